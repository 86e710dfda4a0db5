/**
 * Hosts on an Ethernet cable find each other: frames of ARP and Neighbor Discovery over the device, including lost,
 * duplicated and damaged ones, and neighbours that do not answer. Their bytes and rules are tested in `driver/network`.
 */
import { describe, expect, it, vi } from 'vitest';
import { readCapture } from '../analyser/capture/index.ts';
import { toHex } from '../base/bytes.ts';
import { labelOf } from '../explain/timeline/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import type { JsonValue } from '../machine/program.ts';
import { decodeEthernet, type WirePacket } from '../wire/index.ts';
import { expectBalanced } from './expectations.ts';
import { programOf, smallMachine } from './machines.ts';

vi.setConfig({ testTimeout: 120_000 });

const macs = ['0002c9000001', '0002c9000011'] as const;
const broadcast = 'ffffffffffff';
const arpHead = '0001080006040001';
const request = (address: string): string =>
  `${broadcast}${macs[0]}0806${arpHead}${macs[0]}0a000001000000000000${address}`;
const reply = `${macs[0]}${macs[1]}0806000108000604${'0002'}${macs[1]}0a000002${macs[0]}0a000001`;
/** ETIMEDOUT. */
const timedOut = -110;

/** Neighbours that host 0 finds, and frames on the cable while host 1 is present for this many seconds: sender, time in µs, bytes in base 16. */
async function find(
  program: string,
  args: JsonValue,
  seconds: number,
  faults: NonNullable<MachineOptions['faults']> = [],
) {
  const ends = [
    { node: 0, direction: 'outbound' },
    { node: 1, direction: 'outbound' },
  ] as const;
  const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' };
  const analysis = {
    capture: { ends, sizeBytes: 2 ** 20 },
    timeline: { categories: ['packets', 'interrupts'] as const },
  };
  await using machine = await smallMachine({ set, faults, analysis });
  await machine.load(programOf('neighbours', program, 0, { args }));
  await machine.load(programOf('neighbours', 'bystander', 1, { args: seconds }));
  await machine.run();
  const [found] = (await machine.results()) as [readonly (readonly [string, number, number])[]];
  const { frames } = readCapture((await machine.capture())!);
  const report = await machine.report();
  expectBalanced(report);
  const sent = frames.map(
    ({ timePs, bytes }) => [Number(timePs) / 1e12, Buffer.from(bytes).toString('hex')] as const,
  );
  const records = [...(await machine.timeline()).records()];
  return { found, sent, report, records };
}

const bytesOf = (sent: readonly (readonly [number, string])[]): string[] => sent.map(([, bytes]) => bytes);
/** Seconds from the first frame to each. */
const secondsOf = (sent: readonly (readonly [number, string])[]): number[] =>
  sent.map(([second]) => Math.round((second - sent[0]![0]) * 1e4) / 1e4);

describe('a host on Ethernet', () => {
  it('RFC 826: resolves an address with one request and one answer, and then knows it', async () => {
    const { found, sent, report, records } = await find(
      'resolveByCm',
      [
        ['10.0.0.2', 2000],
        ['10.0.0.2', 2000],
      ],
      0.01,
    );
    expect(bytesOf(sent)).toEqual([request('0a000002'), reply]);
    const [[event, status, firstNs], [, , againNs]] = found as [
      [string, number, number],
      [string, number, number],
    ];
    expect([event, status]).toEqual(['RDMA_CM_EVENT_ADDR_RESOLVED', 0]);
    // The first one alone includes two passages of at least 309.6 ns of cable and 57.6 ns of frame (64 bytes and 8 of preamble
    // at 10 Gb/s).
    expect(firstNs - againNs).toBeGreaterThan(2 * (309.6 + 57.6));
    expect(firstNs).toBeLessThan(20_000);
    // The counts of the port, the wire and the timeline include them as Ethernet frames, not as RoCE packets.
    for (const { hca } of report.nodes) {
      expect(hca!.ethernet!.transmitted).toMatchObject({ frames: 1, bytes: 64, padBytes: 18 });
      expect(hca!.ethernet!).toMatchObject({ completed: 1, packets: 0 });
      expect(hca!.ethernet!.roce).toMatchObject({ transmitted: {}, received: {} });
    }
    expect(report.wire.map(({ opcodes }) => Object.keys(opcodes))).toEqual([['FRAME'], ['FRAME']]);
    expect(report.operations).toMatchObject({ FRAME: { count: 2, payloadBytes: 84, failed: 0 } });
    expect(Object.keys(report.operations)).toEqual(['FRAME']);
    expect(report.nodes.map(({ neighbours }) => neighbours)).toEqual([
      { requests: 1, resolved: 1, received: 1 },
      { answers: 1, received: 1 },
    ]);
    const onCable = records.filter(({ kind }) => kind === 'frame');
    // 60 bytes with padding, and no FCS; 8 and 64 bytes of 0.8 ns.
    expect(onCable.map((record) => [labelOf(record), record.values[0], record.durationPs])).toEqual([
      ['ARP request', 60, 57_600],
      ['ARP reply', 60, 57_600],
    ]);
  });

  it('gets ADDR_ERROR without an answer, after three requests, a second apart', async () => {
    const { found, sent, report } = await find('resolveByCm', [['10.0.0.99', 5000]], 5.1);
    expect(found).toEqual([['RDMA_CM_EVENT_ADDR_ERROR', timedOut, expect.any(Number)]]);
    expect(found[0]![2] / 1e9).toBeCloseTo(5, 4);
    // It checks once more at the end, which sends another request.
    expect(bytesOf(sent)).toEqual(Array(4).fill(request('0a000063')));
    expect(secondsOf(sent)).toEqual([0, 1, 2, 5]);
    // Each of the first three has had its second, the fourth not yet.
    expect(report.nodes[0]!.neighbours).toMatchObject({ requests: 4, unresolved: 1 });
    expect(report.nodes[1]!.neighbours).toEqual({ received: 4, ignored: 4 });
  });

  it('repeats a request if it or its answer is lost, and accepts the second answer', async () => {
    for (const node of [0, 1]) {
      const faults = [{ packet: 'lost', node, nth: 1 } as const];
      const { found, sent } = await find('resolveByCm', [['10.0.0.2', 2000]], 1.5, faults);
      expect(found[0]!.slice(0, 2)).toEqual(['RDMA_CM_EVENT_ADDR_RESOLVED', 0]);
      expect(found[0]![2] / 1e9).toBeCloseTo(1, 4);
      const first = node === 0 ? [request('0a000002')] : [request('0a000002'), reply];
      expect(bytesOf(sent)).toEqual([...first, request('0a000002'), reply]);
    }
  });

  it('rdma_addr_find_l2_eth_by_grh: the verbs wait for a second', async () => {
    const gid = (address: string): [string, number] => [`00000000000000000000ffff${address}`, 3];
    const { found, sent } = await find(
      'resolveByVerbs',
      [gid('0a000063'), gid('0a000102'), gid('0a000001')],
      3.5,
    );
    expect(found.map(([code]) => code)).toEqual(['ETIMEDOUT', 'ENETUNREACH', 'ok']);
    expect(found[0]![1] / 1e9).toBeCloseTo(1, 4);
    // Neighbour requests continue even after a caller has given up.
    expect(secondsOf(sent)).toEqual([0, 1, 2]);
  });

  it('accepts a duplicated answer once, and none that is damaged on the cable', async () => {
    const doubled = await find('resolveByCm', [['10.0.0.2', 2000]], 0.01, [
      { packet: 'duplicated', node: 1, nth: 1 },
    ]);
    expect(doubled.found[0]![0]).toBe('RDMA_CM_EVENT_ADDR_RESOLVED');
    expect(doubled.report.nodes[0]!.hca!.ethernet!.completed).toBe(2);
    const damaged = await find('resolveByCm', [['10.0.0.2', 2000]], 1.5, [
      { packet: 'corrupted', node: 1, nth: 1 },
    ]);
    expect(damaged.report.nodes[0]!.hca!.ethernet!.received).toMatchObject({
      corruptedFrames: 1,
      deliveredFrames: 1,
    });
    expect(damaged.found[0]![2] / 1e9).toBeCloseTo(1, 4);
  });

  it('RFC 4861: resolves a link-local GID by Neighbor Discovery if packets are routed, and from the GID itself if not', async () => {
    const gids = [
      ['fe800000000000000202c9fffe000011', 1],
      ['fe800000000000000202c9fffe000011', 0],
      ['fe800000000000000202c9fffe000011', 1],
    ];
    const { found, sent, records } = await find('resolveByVerbs', gids, 0.01);
    expect(found.map(([code]) => code)).toEqual(['ok', 'ok', 'ok']);
    const [own, peer] = ['fe800000000000000202c9fffe000001', 'fe800000000000000202c9fffe000011'];
    const ipv6 = '86dd6000000000203aff';
    // Checksums by RFC 4443, 2.3, computed independently.
    expect(bytesOf(sent)).toEqual([
      `3333ff000011${macs[0]}${ipv6}${own}ff0200000000000000000001ff00001187001f7100000000${peer}0101${macs[0]}`,
      `${macs[0]}${macs[1]}${ipv6}${peer}${own}8800f2e160000000${peer}0201${macs[1]}`,
    ]);
    expect(records.filter(({ kind }) => kind === 'frame').map(labelOf)).toEqual([
      'neighbor solicitation',
      'neighbor advertisement',
    ]);
  });

  it('drops an advertisement damaged by a switch, by its checksum, and repeats its request', async () => {
    const gids = [['fe800000000000000202c9fffe000011', 1]];
    const faults = [{ packet: 'corrupted', crc: 'icrc', node: 1, nth: 1 } as const];
    const { found, sent, report } = await find('resolveByVerbs', gids, 2.5, faults);
    // The second answer arrives after the verb has given up: 1 s, and a little more.
    expect(found[0]![0]).toBe('ETIMEDOUT');
    expect([report.nodes[0]!.hca!.ethernet!.completed, sent.length]).toEqual([2, 4]);
    expect(report.nodes[0]!.neighbours).toEqual({ requests: 2, resolved: 1, received: 2, malformed: 1 });
  });
});

const [near, far] = ['fe80::202:c9ff:fe00:1', 'fe80::202:c9ff:fe00:11'] as const;

/** A program of host 0 connects to an address of host 1 and sends; a program there listens at an address. */
async function connect(version: 'v1' | 'v2', to: string, at: string, isRefused = false) {
  const set = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': version };
  const analysis = { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 20 } };
  await using machine = await smallMachine({ set, analysis });
  await machine.load(programOf('neighbours', 'connectAndSend', 0, { args: to }));
  await machine.load(programOf('neighbours', 'listenAndReceive', 1, { args: [at, isRefused] }));
  await machine.run();
  const [active, passive] = await machine.results();
  const { frames } = readCapture((await machine.capture())!);
  expectBalanced(await machine.report());
  const packets = frames.map(({ bytes }) => decodeEthernet(bytes)).filter(({ kind }) => kind === 'packet');
  return { active, passive, packets: packets as WirePacket[], frames };
}

describe('rdma_cm by IPv6', () => {
  it.each([
    [far, far],
    ['FE80:0:0:0:202:C9FF:FE00:11%eth0', '::'],
  ])('annex A11: connects to %s, where a program listens as %s', async (to, at) => {
    const { active, passive, packets, frames } = await connect('v2', to, at);
    const told = ['ADDR_RESOLVED', 'ROUTE_RESOLVED', 'ESTABLISHED', 'DISCONNECTED'];
    expect(active).toEqual([told, 'SUCCESS', [near, far]]);
    expect(passive).toEqual([['CONNECT_REQUEST', 'ESTABLISHED'], 100, [far, near]]);
    // A solicitation and an advertisement, and no ARP request.
    expect(frames.slice(0, 2).map(({ bytes }) => bytes[54])).toEqual([135, 136]);
    expect(frames.slice(2).every(({ bytes }) => decodeEthernet(bytes).kind === 'packet')).toBe(true);
    // Messages and data both use version 2, from one link-local address to the other.
    const ends = [near, far].map((text) => text.slice(-2).replace(':', '0'));
    for (const { ipv6 } of packets)
      expect([ipv6!.source, ipv6!.destination].map((bytes) => toHex(bytes).slice(-2)).sort()).toEqual(
        ends.sort(),
      );
    const request = packets[0]!.payload;
    expect(packets[0]!.bth.destinationQp).toBe(1);
    const [nearBytes, farBytes] = ['fe800000000000000202c9fffe000001', 'fe800000000000000202c9fffe000011'];
    // The header before the private data, at byte 140 of the message, after 24 of the MAD: version 6, port, addresses.
    expect(toHex(request.subarray(164, 166))).toBe('0060');
    expect(toHex(request.subarray(168, 200))).toBe(nearBytes + farBytes);
  });

  it('does so by RoCE v1', async () => {
    const { active, packets } = await connect('v1', far, far);
    expect(active).toMatchObject([{ 2: 'ESTABLISHED' }, 'SUCCESS', [near, far]]);
    for (const { grh } of packets) expect(toHex(grh!.sourceGid).slice(0, 4)).toBe('fe80');
  });

  it('bindv6only 0: a listener at any address of IPv6 receives IPv4 requests, one at any of IPv4 does not receive IPv6', async () => {
    const both = await connect('v2', '10.0.0.2', '::');
    expect(both.active).toMatchObject([{ 2: 'ESTABLISHED' }, 'SUCCESS', ['10.0.0.1', '10.0.0.2']]);
    for (const at of ['0.0.0.0', '10.0.0.2']) {
      const { active } = await connect('v2', far, at, true);
      expect(active).toEqual([['ADDR_RESOLVED', 'ROUTE_RESOLVED', 'REJECTED 8']]);
    }
  });

  it('gets ADDR_ERROR for a neighbour that does not answer, and has no route beyond the link', async () => {
    const addresses = [
      ['fe80::99', 2500],
      ['2001:db8::1', 2500],
      ['ff02::1', 2500],
      [near, 2500],
    ];
    const { found, sent } = await find('resolveByCm', addresses, 3);
    expect(found.map(([said, status]) => [said, status ?? 0])).toEqual([
      ['RDMA_CM_EVENT_ADDR_ERROR', timedOut],
      ['ENETUNREACH', 0],
      ['ENETUNREACH', 0],
      ['RDMA_CM_EVENT_ADDR_RESOLVED', 0],
    ]);
    // Three solicitations, a second apart, and one at the end of the time.
    expect(secondsOf(sent)).toEqual([0, 1, 2]);
  });
});
