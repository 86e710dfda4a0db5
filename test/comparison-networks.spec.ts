/**
 * The RDMA paths on each network: the bytes arrive, also where frames are lost, and the bytes on the cable are those of
 * the standards' headers, computed here.
 */
import { describe, expect, it, vi } from 'vitest';
import runCompare, { type CompareRow } from '../experiments/runs/compare-run.ts';
import { type CompareNetwork, compareNetworks } from '../experiments/workloads/compare-networks.ts';
import type { CompareArgs } from '../experiments/workloads/compare-plan.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { itOfAll, rowsOf } from './extent.ts';
import { smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 240_000 });

const rdmaPaths = ['send', 'write', 'read'] as const;
type RdmaPath = (typeof rdmaPaths)[number];
const messages = 3;

const rowOf = (
  place: Pick<CompareArgs, 'path' | 'network'>,
  sizeBytes: number,
  machine: MachineOptions = {},
): Promise<CompareRow> =>
  runCompare({
    machine: { ...machine, set: { ...smallMemory, ...machine.set } },
    args: {
      ...place,
      sizeBytes,
      totalBytes: messages * sizeBytes,
      latencyRounds: 1,
      file: null,
      countsCable: true,
    },
  });

const padded = (bytes: number): number => Math.ceil(bytes / 4) * 4;

/** IEEE 802.3: destination, source and type; FCS; at least 64 bytes; then 8 of preamble and 12 of gap. */
const ethernet = (payloadBytes: number): number => 8 + Math.max(64, 14 + payloadBytes + 4) + 12;
const ipv4 = 20;

/** Bytes on the cable of a packet of BTH, extended headers and payload: on InfiniBand with SDP and EGP, and LRH, ICRC, VCRC. */
const ibta: Readonly<Record<Exclude<CompareNetwork, 'iwarp'>, (bytes: number) => number>> = {
  infiniband: (bytes) => 1 + 8 + bytes + 4 + 2 + 1,
  'roce-v1': (bytes) => ethernet(40 + bytes + 4),
  'roce-v2': (bytes) => ethernet(ipv4 + 8 + bytes + 4),
};
/** IBTA 7.9.4: a flow control packet of 6 bytes, between SLP and EGP. */
const credits = 1 + 6 + 1;
const bth = 12;
const reth = 16;
const aeth = 4;
/** The port's MTU: 4096 on InfiniBand; on Ethernet the largest that a frame of 1500 bytes has room for. */
const mtuOf = { infiniband: 4096, 'roce-v1': 1024, 'roce-v2': 1024 } as const;

/** RFC 5044, 4: length, padding and CRC; a segment of TCP without options over IPv4 each. */
const fpdu = (unitBytes: number): number => ethernet(ipv4 + 20 + padded(2 + unitBytes) + 4);
/** RFC 5044, 3: the longest unit of an EMSS of 1460. */
const unitMax = 1460 - 6;
/** RFC 5041, 4: headers of tagged and untagged segments; RFC 5040, 4.4: a READ request. */
const tagged = 14;
const untagged = 18;
const readRequest = untagged + 28;
const pureAck = ethernet(ipv4 + 20);

/** Lengths of the parts of a message. */
const partsOf = (sizeBytes: number, most: number): number[] =>
  Array.from({ length: Math.max(1, Math.ceil(sizeBytes / most)) }, (_, at) =>
    Math.min(most, sizeBytes - at * most),
  );

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

interface Expected {
  /** Packets that each host sends in any case, and their bytes. */
  readonly packets: readonly [number, number];
  readonly bytes: readonly [number, number];
  /** Bytes of each acknowledgement beyond them. */
  readonly ackBytes: number;
}

function expectedIbta(
  network: Exclude<CompareNetwork, 'iwarp'>,
  path: RdmaPath,
  sizeBytes: number,
): Expected {
  const packet = ibta[network];
  const parts = partsOf(sizeBytes, mtuOf[network]);
  const isEnd = (at: number): boolean => at === 0 || at === parts.length - 1;
  const headers = {
    send: () => 0,
    write: (at: number) => (at === 0 ? reth : 0),
    read: (at: number) => (isEnd(at) ? aeth : 0),
  }[path];
  const data = sumOf(parts.map((bytes, at) => packet(bth + headers(at) + padded(bytes))));
  const asked = path === 'read' ? 1 : 0;
  return {
    packets: [messages * parts.length, messages * asked],
    bytes: [messages * data, messages * asked * packet(bth + reth)],
    ackBytes: packet(bth + aeth),
  };
}

function expectedIwarp(path: RdmaPath, sizeBytes: number): Expected {
  const header = path === 'send' ? untagged : tagged;
  const parts = partsOf(sizeBytes, unitMax - header);
  const data = sumOf(parts.map((bytes) => fpdu(header + bytes)));
  // After the last WRITE a READ of no bytes, and its response.
  const [asksA, asksB] = { send: [0, 0], write: [1, 0], read: [0, messages] }[path] as [number, number];
  const answersB = asksA;
  return {
    packets: [messages * parts.length + asksA, asksB + answersB],
    bytes: [messages * data + asksA * fpdu(readRequest), asksB * fpdu(readRequest) + answersB * fpdu(tagged)],
    ackBytes: pureAck,
  };
}

const expectedOf = (network: CompareNetwork, path: RdmaPath, sizeBytes: number): Expected =>
  network === 'iwarp' ? expectedIwarp(path, sizeBytes) : expectedIbta(network, path, sizeBytes);

/** Around the ends of packets and segments, from one byte to a mebibyte. */
const sizes = rowsOf([1, 1441, 65_536], [3, 4, 1024, 1025, 1436, 1437, 1440, 4096, 4097, 2 ** 20]);

describe.each(compareNetworks)('%s', (network) => {
  it.each(rdmaPaths)(
    'carries the bytes by %s, in packets with the headers of the standards',
    async (path) => {
      for (const sizeBytes of sizes) {
        const row = await rowOf({ path, network }, sizeBytes);
        expect(row, `${sizeBytes} B`).toMatchObject({ network, isEqual: true, isBalanced: true });
        const { packets, bytes, ackBytes } = expectedOf(network, path, sizeBytes);
        row.cable!.sent.forEach((sent, host) => {
          const acks = sent.packets - packets[host]!;
          expect(acks, `${sizeBytes} B, host ${host}`).toBeGreaterThanOrEqual(0);
          expect(sent, `${sizeBytes} B, host ${host}`).toEqual({
            packets: sent.packets,
            flowControlPackets: network === 'infiniband' ? sent.flowControlPackets : 0,
            linkBytes: bytes[host]! + acks * ackBytes + sent.flowControlPackets * credits,
          });
        });
        // The data of a SEND or WRITE goes one way: nothing else goes with it, but TCP's acknowledgement of the READ's response.
        if (path !== 'read')
          expect(row.cable!.sent[0].packets).toBe(
            packets[0] + (network === 'iwarp' && path === 'write' ? 1 : 0),
          );
      }
    },
  );

  it.each(rdmaPaths)('loses no byte by %s where the cable loses a twentieth of its packets', async (path) => {
    const faults = [0, 1].map((node) => ({ packet: 'lost', chance: '5%', node }) as const);
    for (const sizeBytes of [1, 70_000]) {
      const row = await rowOf({ path, network }, sizeBytes, { faults, seed: 7 });
      expect(row, `${sizeBytes} B`).toMatchObject({ isEqual: true, isBalanced: true });
    }
  });

  itOfAll('loses no byte of messages of 1 MiB there', async () => {
    const faults = [{ packet: 'lost', chance: '5%', node: 0 }] as const;
    for (const path of rdmaPaths) {
      const row = await rowOf({ path, network }, 2 ** 20, { faults });
      expect(row, path).toMatchObject({ isEqual: true, isBalanced: true });
    }
  });
});

describe('a WRITE over iWARP', () => {
  it('RFC 5040, 5.5: is timed until its bytes are in the memory of the peer, whose program does nothing', async () => {
    const write = await rowOf({ path: 'write', network: 'iwarp' }, 65_536);
    // 10 Gb/s carry no more than 1.25 bytes in a nanosecond.
    expect(write.latencyPs).toBeGreaterThan((65_536 / 1.25) * 1000);
    expect(write.durationPs).toBeGreaterThan(((messages * 65_536) / 1.25) * 1000);
    expect(write).toMatchObject({ isActive: [true, false], hosts: [{}, { cyclesTotal: 0, interrupts: 0 }] });
  });

  it('that is not placed is found: its time grows with the delay of the cable, both ways', async () => {
    const near = await rowOf({ path: 'write', network: 'iwarp' }, 64);
    const far = await rowOf({ path: 'write', network: 'iwarp' }, 64, {
      set: { 'ethernet.cableMetres': 1000 },
    });
    // 999 m more, there and back, at 4 to 6 ns a metre.
    expect(far.latencyPs - near.latencyPs).toBeGreaterThan(2 * 999 * 4000);
    expect(far.latencyPs - near.latencyPs).toBeLessThan(2 * 999 * 6000);
  });
});

describe('kernel sockets', () => {
  it('RFC 9293, 3.1: put headers of TCP, IPv4 and Ethernet on the cable', async () => {
    for (const sizeBytes of [1, 1448, 65_536]) {
      const { cable, isEqual } = await rowOf({ path: 'sockets' }, sizeBytes);
      expect(isEqual).toBe(true);
      const { packets, linkBytes } = cable!.sent[1];
      expect(linkBytes).toBe(packets * pureAck);
      const data = messages * sizeBytes;
      const sent = cable!.sent[0];
      // Segments hold as much of the stream as they have room for: a message of one byte each, or full ones.
      if (sizeBytes === 1) expect(sent.linkBytes).toBe(sent.packets * ethernet(ipv4 + 20 + 1));
      else expect(sent.linkBytes).toBe(data + sent.packets * ethernet(ipv4 + 20 + 6) - sent.packets * 6);
    }
  });
});
