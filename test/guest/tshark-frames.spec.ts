/**
 * Frames read by tshark: those of an LSO, whose checksums it computes itself, form one TCP stream; PAUSE frames are decoded
 * correctly; two simulated kernels with NICs find each other and communicate over IPv4 and IPv6, with and without a tag.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { pattern } from '../../hw/hca/testing/data-path-verbs.ts';
import {
  ownFrame,
  ownPacketBytes,
  ownTcpHeader,
  TCP_CHECKSUM_PLACE,
} from '../../hw/hca/testing/own-frames.ts';
import { frameCompletions, frameOf, MAC_B, ringScene } from '../../hw/hca/testing/rings.ts';
import { addresses, ipv6Addresses, vlanAddresses, vlanIpv6Addresses } from '../../net/testing/machine.ts';
import { NicMachine } from '../../net/testing/nic-machine.ts';
import { fieldsOf, tsharkTree } from './tshark.ts';

const BUFFER_BYTES = 2000;
const ETHERNET = 1;

/** A capture in the original format (draft-ietf-opsawg-pcap). */
function captureOf(frames: readonly Uint8Array[]): Uint8Array {
  const head = Buffer.alloc(24);
  head.writeUInt32LE(0xa1b2_c3d4, 0);
  head.writeUInt16LE(2, 4);
  head.writeUInt16LE(4, 6);
  head.writeUInt32LE(65_535, 16);
  head.writeUInt32LE(ETHERNET, 20);
  const records = frames.flatMap((frame) => {
    const record = Buffer.alloc(16);
    record.writeUInt32LE(frame.length, 8);
    record.writeUInt32LE(frame.length, 12);
    return [record, frame];
  });
  return Buffer.concat([head, ...records]);
}

/** Frames that b's ring received from an LSO of a with these headers. */
async function framesOf(headers: Uint8Array, data: Uint8Array, segmentBytes: number): Promise<Uint8Array[]> {
  const { bench, a, b, from, to } = await ringScene({ offloads: { logMaxLsoBytes: 16 } });
  const count = Math.ceil(data.length / segmentBytes);
  for (let index = 0; index < count; index++) b.qp.receive([to.part(index * BUFFER_BYTES, BUFFER_BYTES)]);
  from.write(data, 0);
  a.send({ segments: [from.part(0, data.length)], lso: { segmentBytes, headers } });
  await bench.until(() => bench.b.ethernet!.port.received.deliveredFrames === count);
  await bench.run(20);
  const sizes = frameCompletions(bench.b, b.cq).map(({ byteCount }) => byteCount);
  expect(sizes).toHaveLength(count);
  return sizes.map((bytes, index) => to.read(index * BUFFER_BYTES, bytes));
}

const folder = mkdtempSync(join(tmpdir(), 'hca-pcap-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('PAUSE frames, read by tshark, are MAC control frames, for all their quanta and for none', async () => {
  const ethernet = { receiveFifoFrames: 1, pauseQuanta: 1234 };
  const { bench, a, b, from, to } = await ringScene({ ethernet, hasFlowControl: true });
  const frames: Uint8Array[] = [];
  bench.b.ethernet!.port.tap = {
    packetPassed: (direction, _atPs, bytes, first, length) => {
      if (direction === 'outbound') frames.push(bytes.slice(first, first + length));
    },
  };
  b.qp.receive([to.part(0, BUFFER_BYTES)]);
  const frame = frameOf(MAC_B, pattern(1, 1000));
  from.write(frame, 0);
  a.send({ segments: [from.part(0, frame.length)] });
  await bench.until(() => frames.length === 2);
  const file = join(folder, 'pause.pcap');
  writeFileSync(file, captureOf(frames));
  const fields = ['eth.dst', 'eth.src', 'eth.type', 'macc.opcode', 'macc.pause_time', 'frame.len'];
  const rows = await fieldsOf(await tsharkTree(), file, [...fields, '_ws.malformed', '_ws.expert'], []);
  const head = ['01:80:c2:00:00:01', '00:00:00:00:00:01', '0x8808', '0x0001'];
  expect(rows).toEqual([
    [...head, '1234', '60', '', ''],
    [...head, '0', '60', '', ''],
  ]);
});

describe('the frames of an LSO, read by tshark', () => {
  it.each([
    ['IPv4', true],
    ['IPv6', false],
  ])('are a stream of TCP over %s with right checksums', async (name, isIpv4) => {
    const addresses = pattern(1, isIpv4 ? 8 : 32);
    const transport = ownTcpHeader(0xffff_fc00, 0x19, Uint8Array.of(1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2));
    const packet = { isIpv4, protocol: 6, identification: 0xfffe, addresses, transport };
    const headers = ownFrame(ownPacketBytes({ ...packet, checksumPlace: TCP_CHECKSUM_PLACE }), isIpv4);
    const frames = await framesOf(headers, pattern(2, 5000), 1400);
    const file = join(folder, `${name}.pcap`);
    writeFileSync(file, captureOf(frames));
    const network = isIpv4 ? ['ip.checksum.status', 'ip.id'] : ['ipv6.plen', 'ipv6.nxt'];
    const fields = [
      'tcp.checksum.status',
      'tcp.seq_raw',
      'tcp.len',
      'tcp.flags',
      '_ws.malformed',
      ...network,
    ];
    const preferences = ['tcp.check_checksum:TRUE', 'ip.check_checksum:TRUE'];
    const rows = await fieldsOf(await tsharkTree(), file, fields, preferences);
    const GOOD = '1';
    const [last, rest] = ['0x0019', '0x0010'];
    const whole = isIpv4 ? GOOD : '1432';
    expect(rows).toEqual([
      [GOOD, '4294966272', '1400', rest, '', whole, isIpv4 ? '0xfffe' : '6'],
      [GOOD, '376', '1400', rest, '', whole, isIpv4 ? '0xffff' : '6'],
      [GOOD, '1776', '1400', rest, '', whole, isIpv4 ? '0x0000' : '6'],
      [GOOD, '3176', '800', last, '', isIpv4 ? GOOD : '832', isIpv4 ? '0x0001' : '6'],
    ]);
  });
});

/** All frames of two hosts; the first sends bytes to each of these addresses of the second. */
async function framesBetween(
  remotes: readonly (number | string)[],
  lengthBytes: number,
): Promise<Uint8Array[]> {
  const frames: Uint8Array[] = [];
  const machine = new NicMachine({ asksForNeighbours: true });
  machine.nodes[0]!.nic.port.tap = {
    packetPassed: (_direction, _atPs, bytes, first, length) => {
      frames.push(bytes.slice(first, first + length));
    },
  };
  machine.run(1, 'server', async ({ cpu, memory }, calls) => {
    const listening = await calls.socket(cpu, 'AF_INET6');
    await calls.bind(cpu, listening, { address: '::', port: 7000 });
    await calls.listen(cpu, listening, 4);
    const buffer = memory.map(lengthBytes);
    for (const _remote of remotes) {
      const fd = await calls.accept(cpu, listening);
      expect(await calls.recv(cpu, fd, buffer, lengthBytes, { waitAll: true })).toBe(lengthBytes);
      await calls.close(cpu, fd);
    }
  });
  machine.run(0, 'client', async ({ cpu, memory }, calls) => {
    await cpu.sleep(20e9);
    const buffer = memory.map(lengthBytes);
    await memory.store(cpu, buffer, pattern(3, lengthBytes));
    for (const address of remotes) {
      const fd = await calls.socket(cpu, typeof address === 'number' ? 'AF_INET' : 'AF_INET6');
      await calls.connect(cpu, fd, { address, port: 7000 });
      await calls.send(cpu, fd, buffer, lengthBytes);
      await calls.close(cpu, fd);
    }
  });
  await machine.toEnd();
  return frames;
}

it('the frames of two simulated kernels, read by tshark, are ARP, Neighbor Discovery and TCP with right checksums', async () => {
  const remotes = [addresses[1], ipv6Addresses[1], vlanAddresses[1], vlanIpv6Addresses[1]];
  const file = join(folder, 'kernels.pcap');
  writeFileSync(file, captureOf(await framesBetween(remotes, 5000)));
  const fields = [
    ...['_ws.malformed', 'frame.protocols', 'vlan.id', 'vlan.priority', 'eth.src'],
    ...['ip.checksum.status', 'icmpv6.checksum.status', 'tcp.checksum.status', 'icmpv6.type', 'tcp.len'],
  ];
  const preferences = ['tcp.check_checksum:TRUE', 'ip.check_checksum:TRUE'];
  const rows = await fieldsOf(await tsharkTree(), file, fields, preferences);
  const kinds = new Map<string, { bytes: number; status: Set<string> }>();
  for (const [malformed, protocols = '', vlan, priority, source = '', ip, icmp, tcp, type, length] of rows) {
    expect(malformed).toBe('');
    const name = `${source.at(-1)} ${protocols.replace('eth:ethertype:', '').replace(/:data.*/, '')} ${vlan} ${priority} ${type}`;
    const kind = kinds.get(name) ?? { bytes: 0, status: new Set<string>() };
    kinds.set(name, kind);
    kind.bytes += Number(length);
    for (const status of [ip, icmp, tcp]) if (status !== '') kind.status.add(status!);
  }
  const GOOD = new Set(['1']);
  const none = new Set<string>();
  const bytes = 5000;
  const of = (count: number, status = GOOD) => ({ bytes: count, status });
  // Frames of the first host in VLAN 7 have priority 3, those of the second 5.
  expect(Object.fromEntries(kinds)).toEqual({
    '1 arp   ': of(0, none),
    '2 arp   ': of(0, none),
    '1 ip:tcp   ': of(bytes),
    '2 ip:tcp   ': of(0),
    '1 ipv6:icmpv6   135': of(0),
    '2 ipv6:icmpv6   136': of(0),
    '1 ipv6:tcp   ': of(bytes),
    '2 ipv6:tcp   ': of(0),
    '1 vlan:ethertype:arp 7 3 ': of(0, none),
    '2 vlan:ethertype:arp 7 5 ': of(0, none),
    '1 vlan:ethertype:ip:tcp 7 3 ': of(bytes),
    '2 vlan:ethertype:ip:tcp 7 5 ': of(0),
    '1 vlan:ethertype:ipv6:icmpv6 7 3 135': of(0),
    '2 vlan:ethertype:ipv6:icmpv6 7 5 136': of(0),
    '1 vlan:ethertype:ipv6:tcp 7 3 ': of(bytes),
    '2 vlan:ethertype:ipv6:tcp 7 5 ': of(0),
  });
});
