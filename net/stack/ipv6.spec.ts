/** Behaviour of a host below its transport with IPv6: neighbours, pings, extension headers, and dropped frames. */
import { describe, expect, test } from 'vitest';
import { toHex } from '../../base/bytes.ts';
import { bench, checksumOf, connectTo, expectDropped } from '../testing/link-bench.ts';
import { ipv6Addresses, linkLocalAddresses, ms } from '../testing/machine.ts';
import { ipv6Of } from './address.ts';

const [mac0, mac1] = ['020000000001', '020000000002'];
const hexOf = (text: string): string => toHex(ipv6Of(text)!.bytes);
const [ip0, ip1] = [hexOf('2001:db8::1'), hexOf('2001:db8::2')];
const [local0, local1] = [hexOf('fe80::ff:fe00:1'), hexOf('fe80::ff:fe00:2')];
const other = hexOf('2001:db8::9');
const nobody = '0'.repeat(32);
const allNodes = hexOf('ff02::1');
/** ff02::1:ff00:2, the group of host 1, and its MAC; the group of 2001:db8::9. */
const group1 = hexOf('ff02::1:ff00:2');
const groupMac1 = '3333ff000002';
const otherGroup = hexOf('ff02::1:ff00:9');

interface PacketFields {
  readonly to?: string;
  readonly from?: string;
  readonly source?: string;
  readonly destination?: string;
  readonly next?: string;
  readonly hop?: string;
  readonly length?: number;
  readonly version?: string;
}
/** An IPv6 frame to host 1, from host 0 unless stated otherwise. */
function packet(payload: string, fields: PacketFields = {}): string {
  const { to = mac1, from = mac0, source = ip0, destination = ip1, next = '3a', hop = '40' } = fields;
  const { length = payload.length / 2, version = '60000000' } = fields;
  return `${to}${from}86dd${version}${length.toString(16).padStart(4, '0')}${next}${hop}${source}${destination}${payload}`;
}
/** The data after the header, with its checksum at byte `at` (RFC 8200, 8.1). */
function summed(message: string, source: string, destination: string, next = '3a', at = 2): string {
  const length = (message.length / 2).toString(16).padStart(8, '0');
  const checksum = checksumOf(`${source}${destination}${length}000000${next}${message}`);
  return `${message.slice(0, 2 * at)}${checksum}${message.slice(2 * at + 4)}`;
}
const icmp = (message: string, source = ip0, destination = ip1): string =>
  summed(message, source, destination);
const echo = (data: string, source = ip0, destination = ip1, type = '80', code = '00'): string =>
  icmp(`${type}${code}000012340001${data}`, source, destination);
interface FrameFields {
  readonly to?: string;
  readonly from?: string;
  readonly option?: string;
  readonly flags?: string;
  readonly target?: string;
}
const solicitation = (
  source: string,
  target: string,
  group: string,
  { to = `3333${group.slice(24)}`, from = mac0, option = `0101${from}` }: FrameFields = {},
): string =>
  packet(icmp(`8700000000000000${target}${option}`, source, group), {
    ...{ to, from, source, destination: group, hop: 'ff' },
  });
const advertisement = (
  source: string,
  destination: string,
  { to = mac1, from = mac0, flags = '60', target = source, option = `0201${from}` }: FrameFields = {},
): string =>
  packet(icmp(`88000000${flags}000000${target}${option}`, source, destination), {
    ...{ to, from, source, destination, hop: 'ff' },
  });

describe('Neighbor Discovery', () => {
  test.each([
    ['a configured address', ipv6Addresses[1], ip0, ip1],
    ['a link-local one', `${linkLocalAddresses[1]}%eth0`, local0, local1],
  ])(
    'RFC 4861, 7.2: %s is solicited in its group, and the SYN leaves with the answer',
    async (_what, address, own, its) => {
      const { net, crossed } = await bench();
      expect((await connectTo(net, address))[0]).toBe('ECONNREFUSED');
      const seen = crossed();
      expect(seen.slice(0, 2)).toEqual([
        `0 ${solicitation(own, its, group1)}`,
        `1 ${advertisement(its, own, { to: mac0, from: mac1 })}`,
      ]);
      // SYN, and RST with ACK, which needs no neighbour request: the requester is already known.
      expect(seen.slice(2).map((frame) => [frame.slice(2, 30), frame.slice(136, 138)])).toEqual([
        [`${mac1}${mac0}86dd`, '02'],
        [`${mac0}${mac1}86dd`, '14'],
      ]);
      // MTU 1500 without 40 and 20.
      expect(seen[2]!.slice(150, 158)).toBe('020405a0');
    },
  );

  test('an absent host: solicited at 0, 1 and 2 s, EHOSTUNREACH after 3 s', async () => {
    const { net, crossed } = await bench();
    const [outcome, afterMs] = await connectTo(net, '2001:db8::9');
    expect(outcome).toBe('EHOSTUNREACH');
    expect(afterMs).toBeGreaterThan(3000);
    expect(afterMs).toBeLessThan(3001);
    expect(crossed()).toEqual(new Array(3).fill(`0 ${solicitation(ip0, other, otherGroup)}`));
    const { counts } = net.nodes[0]!.network;
    expect([counts.neighborSolicitations, counts.neighbourProbes, counts.unresolvedFrames]).toEqual([
      3, 0, 2,
    ]);
  });

  test.each([
    ['another link', '2001:db9::2', 'EHOSTUNREACH'],
    ['a group', 'ff02::1', 'EHOSTUNREACH'],
    ['nobody', '::', 'EHOSTUNREACH'],
    ['the host itself', ipv6Addresses[0], 'EHOSTUNREACH'],
    ['a link-local address of no link', linkLocalAddresses[1], 'EINVAL'],
    ['a link-local address of a link that there is not', `${linkLocalAddresses[1]}%eth1`, 'ENODEV'],
    ['no address', '2001:db8::g', 'EINVAL'],
  ])('has no route to %s', async (_what, address, code) => {
    const { net, crossed } = await bench();
    expect((await connectTo(net, address))[0]).toBe(code);
    expect(crossed()).toEqual([]);
  });

  test('RFC 4861, 7.2.4: a requester is answered from the requested address; one without an address by an answer to all', async () => {
    const { sent, receive, expectCounts } = await bench();
    await receive(solicitation(local0, local1, group1));
    await receive(solicitation(ip0, ip1, group1, { to: mac1 }));
    await receive(solicitation(nobody, ip1, group1, { option: '' }));
    const toAll = { to: '333300000001', from: mac1, flags: '20' };
    expect(sent()).toEqual([
      advertisement(local1, local0, { to: mac0, from: mac1 }),
      advertisement(ip1, ip0, { to: mac0, from: mac1 }),
      advertisement(ip1, allNodes, toAll),
    ]);
    expectCounts({ neighborAdvertisements: 3 });
  });

  test('RFC 4861, 7.3.3: a neighbour that does not acknowledge is probed after 5 s, and no more once it has answered', async () => {
    const { net, sent, receive, expectCounts } = await bench();
    const frames: string[] = [];
    net.onFrame = (from, frame) => {
      if (from === 1) frames.push(toHex(frame));
      return from !== 1;
    };
    await receive(solicitation(ip0, ip1, group1));
    await receive(packet(echo('abcd')));
    frames.length = 0;
    await net.for(4980 * ms);
    expect(frames).toEqual([]);
    await net.for(20 * ms);
    const probe = packet(icmp(`8700000000000000${ip0}0101${mac1}`, ip1, ip0), {
      ...{ to: mac0, from: mac1, source: ip1, destination: ip0, hop: 'ff' },
    });
    expect(frames).toEqual([probe]);
    await receive(advertisement(ip0, ip1, { option: '' }));
    await receive(packet(echo('abcd')));
    await net.for(20_000 * ms);
    expect(frames.slice(1).map((frame) => frame.slice(108, 110))).toEqual(['81']);
    expectCounts({ neighborAdvertisements: 1, neighborSolicitations: 1, neighbourProbes: 1, echoReplies: 2 });
    expect(sent()).toEqual([]);
  });

  test('RFC 4861, 7.3.3 and 10: one that does not answer three probes is removed, and resolved again', async () => {
    const { net, receive, expectCounts } = await bench();
    const frames: [number, string][] = [];
    net.onFrame = (from, frame) => {
      if (from === 1) frames.push([Math.round(net.process.nowPs / (1000 * ms)), toHex(frame).slice(0, 12)]);
      return false;
    };
    await receive(solicitation(ip0, ip1, group1));
    await receive(packet(echo('00')));
    await net.for(9000 * ms);
    const seconds = (at: number) => frames.filter(([second]) => second === at).map(([, to]) => to);
    expect([5, 6, 7, 8].map(seconds)).toEqual([[mac0], [mac0], [mac0], []]);
    frames.length = 0;
    await receive(packet(echo('00')));
    expect(frames.map(([, to]) => to)).toEqual(['3333ff000001']);
    await net.for(4000 * ms);
    expect(frames).toHaveLength(3);
    expectCounts({
      ...{ neighborAdvertisements: 1, neighborSolicitations: 6, neighbourProbes: 3 },
      ...{ echoReplies: 2, unresolvedFrames: 1 },
    });
  });

  test('acknowledgements of a connection confirm its neighbour: it is not probed meanwhile', async () => {
    const { net } = await bench();
    net.run(1, 'server', async ({ cpu, memory }, calls) => {
      const listening = await calls.socket(cpu, 'AF_INET6');
      await calls.bind(cpu, listening, { address: '::', port: 4000 });
      await calls.listen(cpu, listening, 1);
      const fd = await calls.accept(cpu, listening);
      const buffer = memory.map(4096);
      while ((await calls.recv(cpu, fd, buffer, 1)) === 1) await calls.send(cpu, fd, buffer, 1);
    });
    net.run(0, 'client', async ({ cpu, memory }, calls) => {
      const fd = await calls.socket(cpu, 'AF_INET6');
      await calls.connect(cpu, fd, { address: ipv6Addresses[1], port: 4000 });
      const buffer = memory.map(4096);
      for (let second = 0; second < 70; second++) {
        await calls.send(cpu, fd, buffer, 1);
        await calls.recv(cpu, fd, buffer, 1);
        await cpu.sleep(1000 * ms);
      }
    });
    await net.toEnd(ms);
    for (const { network } of net.nodes) expect(network.counts.neighbourProbes).toBe(0);
    expect(net.nodes[0]!.network.counts.neighborSolicitations).toBe(1);
  });

  test('an IPv4 neighbour that does not acknowledge is probed by ARP', async () => {
    const { net, receive } = await bench();
    const frames: string[] = [];
    net.onFrame = (from, frame) => {
      if (from === 1) frames.push(toHex(frame).slice(0, 32));
      return from !== 1;
    };
    await receive(`ffffffffffff${mac0}08060001080006040001${mac0}0a0000010000000000000a000002`);
    const head = '45000020007700004001';
    const addresses = '0a0000010a000002';
    const ping = `0800${checksumOf('08000000123400010000')}123400010000`;
    await receive(
      `${mac1}${mac0}0800${head}${checksumOf(`${head}0000${addresses}`)}${addresses}${ping}`.replace(
        '45000020',
        '4500001e',
      ),
    );
    await net.for(5000 * ms);
    expect(frames).toEqual([`${mac0}${mac1}08060001`]);
  });
});

describe('echo over IPv6', () => {
  test.each([0, 1, 17, 1451, 1452])(
    'RFC 4443, 4.2: of %i bytes, with and without a NIC that sums',
    async (bytes) => {
      const data = Array.from({ length: bytes }, (_, at) =>
        ((at * 7) & 0xff).toString(16).padStart(2, '0'),
      ).join('');
      for (const checksumOffload of [true, false]) {
        const { sent, receive, expectCounts } = await bench({
          asksForNeighbours: false,
          driver: { checksumOffload },
        });
        await receive(packet(echo(data)));
        const answer = { to: mac0, from: mac1, source: ip1, destination: ip0 };
        expect(sent()).toEqual([packet(echo(data, ip1, ip0, '81'), answer)]);
        expectCounts({ echoReplies: 1 });
      }
    },
  );

  test('up to the MTU of long frames', async () => {
    const { sent, receive } = await bench({ asksForNeighbours: false, driver: { mtu: 9000 } });
    const data = 'a7'.repeat(9000 - 48);
    await receive(packet(echo(data)));
    expect(sent().map((frame) => frame.slice(108))).toEqual([echo(data, ip1, ip0, '81')]);
  });

  test('to all nodes is answered from an address of the requester’s link', async () => {
    const { sent, receive } = await bench({ asksForNeighbours: false });
    const to = { to: '333300000001', source: local0, destination: allNodes };
    await receive(packet(echo('0102', local0, allNodes), to));
    expect(sent()).toEqual([
      packet(echo('0102', local1, local0, '81'), {
        to: mac0,
        from: mac1,
        source: local1,
        destination: local0,
      }),
    ]);
  });

  test.each(['ff00', 'ff', '0000ff'])('after which a sender has put %s instead of zeros', async (padding) => {
    const { sent, receive } = await bench({ asksForNeighbours: false });
    for (const data of ['', '01', '0203']) await receive(packet(echo(data)) + padding);
    expect(sent().map((frame) => frame.slice(108))).toEqual(
      ['', '01', '0203'].map((data) => echo(data, ip1, ip0, '81')),
    );
  });

  /** The request after these headers. */
  const behind = (headers: string, first: string): string =>
    packet(`${headers}${echo('0102')}`, { next: first, length: headers.length / 2 + 10 });
  test.each([
    ['hop-by-hop options that are padding', '3a00010400000000', '00'],
    ['options that may be passed over', '3a011e0a00000000000000000000010000', '3c'],
    ['a routing header that has come to its end', '3a00000000000000', '2b'],
    ['a fragment that is the whole packet', '3a00000012345678', '2c'],
    ['several of them', '3c00010400000000' + '2c00010400000000' + '3a00000012345678', '00'],
  ])('RFC 8200, 4; RFC 6946: is read after %s', async (what, headers, first) => {
    const { sent, receive, expectCounts } = await bench({ asksForNeighbours: false });
    // 1e 0a, ten bytes, then PadN of one… the second case has 16 bytes.
    const whole = what.startsWith('options') ? '3a011e0a000000000000000000000100' : headers;
    await receive(behind(whole, first));
    expect(sent().map((frame) => frame.slice(108))).toEqual([echo('0102', ip1, ip0, '81')]);
    expectCounts({ echoReplies: 1 });
  });

  test.each([
    ['an option that asks for the packet to be dropped', '3a00420400000000', '3c', 'foreignProtocols'],
    ['an option beyond its header', '3a00010500000000', '00', 'badFrames'],
    ['an option without a length', '3a00000000000001', '00', 'badFrames'],
    ['hop-by-hop options that are not the first', '0000010400000000' + '3a00010400000000', '3c', 'badFrames'],
    ['a way that goes on', '3a00000100000000', '2b', 'badFrames'],
    ['a header longer than the packet', '3aff010400000000', '00', 'badFrames'],
    ['the first part of a packet', '3a00000100000001', '2c', 'fragments'],
    ['the last part of a packet', '3a00000800000001', '2c', 'fragments'],
    ['the end of headers', '', '3b', 'foreignProtocols'],
  ] as const)('RFC 8200, 4: is not read after %s', async (_what, headers, first, reason) => {
    const { sent, receive, expectCounts } = await bench({ asksForNeighbours: false });
    await receive(behind(headers, first));
    expect(sent()).toEqual([]);
    expectCounts({ [reason]: 1 });
  });
});

describe('dropped, and counted', () => {
  test.each([
    [
      'a solicitation that has passed a router',
      solicitation(ip0, ip1, group1).replace('3aff', '3afe'),
      'badFrames',
    ],
    [
      'a solicitation with a wrong checksum',
      solicitation(ip0, ip1, group1).replace(/0101020000000001$/, '0101020000000003'),
      'badChecksums',
    ],
    [
      'a solicitation with an empty option',
      solicitation(ip0, ip1, group1, { option: `0100${mac0}` }),
      'badFrames',
    ],
    [
      'a solicitation of another code',
      packet(icmp(`8701000000000000${ip1}0101${mac0}`), { hop: 'ff' }),
      'badFrames',
    ],
    ['a solicitation for a group', solicitation(ip0, allNodes, group1), 'badFrames'],
    ['a solicitation from nobody with a MAC', solicitation(nobody, ip1, group1), 'badFrames'],
    [
      'a solicitation for somebody of the same group',
      solicitation(ip0, hexOf('2001:db8::3:0:2'), group1),
      'neighborIgnored',
    ],
    ['a solicitation from our address', solicitation(ip1, ip1, group1), 'neighborIgnored'],
    ['an advertisement that nobody has asked for', advertisement(ip0, ip1), 'neighborIgnored'],
    ['an advertisement of our address', advertisement(ip0, ip1, { target: ip1 }), 'neighborIgnored'],
    [
      'an advertisement to all that says that it was asked for',
      advertisement(ip0, allNodes, { to: '333300000001' }),
      'badFrames',
    ],
    [
      'a solicitation behind options',
      packet(`3a00010400000000${icmp(`8700000000000000${ip1}0101${mac0}`)}`, { hop: 'ff', next: '3c' }),
      'foreignProtocols',
    ],
    [
      'an advertisement of a router',
      packet(icmp(`86000000${'0'.repeat(24)}`, local0, allNodes), {
        to: '333300000001',
        source: local0,
        destination: allNodes,
        hop: 'ff',
      }),
      'foreignProtocols',
    ],
    ['packet too big', packet(icmp(`02000000000005000000${'0'.repeat(100)}`)), 'foreignProtocols'],
    ['unreachable', packet(icmp(`0104000000000000${'0'.repeat(100)}`)), 'foreignProtocols'],
    ['an answer to a ping', packet(echo('00', ip0, ip1, '81')), 'foreignProtocols'],
    ['an echo of another code', packet(echo('00', ip0, ip1, '80', '01')), 'foreignProtocols'],
    ['an echo with a wrong checksum', packet(echo('00').replace('1234', '1235')), 'badChecksums'],
    ['an echo without a whole header', packet('80000000000000'), 'badFrames'],
    ['an echo from nobody', packet(echo('00', nobody), { source: nobody }), 'badFrames'],
    ['an echo from our address', packet(echo('00', ip1), { source: ip1 }), 'badFrames'],
    ['an echo from a group', packet(echo('00', allNodes), { source: allNodes }), 'badFrames'],
    ['an echo from ::1', packet(echo('00', hexOf('::1')), { source: hexOf('::1') }), 'badFrames'],
    ['an echo to ::1', packet(echo('00', ip0, hexOf('::1')), { destination: hexOf('::1') }), 'badFrames'],
    [
      'an echo from another link',
      packet(echo('00', hexOf('2001:db9::1')), { source: hexOf('2001:db9::1') }),
      'unroutable',
    ],
    [
      'an echo to somebody else',
      packet(echo('00', ip0, other), { destination: other }),
      'foreignDestinations',
    ],
    [
      'an echo to a group of others',
      packet(echo('00', ip0, otherGroup), { destination: otherGroup }),
      'foreignDestinations',
    ],
    ['an echo to us in a frame to all', packet(echo('00'), { to: '333300000001' }), 'foreignDestinations'],
    ['ICMP of IPv4', packet(echo('00'), { next: '01' }), 'foreignProtocols'],
    ['UDP', packet('1234567800080000', { next: '11' }), 'foreignProtocols'],
    ['another version', packet(echo('00'), { version: '40000000' }), 'badFrames'],
    ['a packet that is longer than its frame', packet(echo('00'), { length: 1000 }), 'badFrames'],
    ['a segment without a whole header', packet('00'.repeat(19), { next: '06' }), 'badFrames'],
    ['a segment with a wrong checksum', packet('00'.repeat(20), { next: '06' }), 'badChecksums'],
    ['a segment from nobody', packet('00'.repeat(20), { next: '06', source: nobody }), 'badFrames'],
    [
      'a segment to a group',
      packet('00'.repeat(20), { next: '06', to: groupMac1, destination: group1 }),
      'badFrames',
    ],
  ] as const)('%s', (_what, frame, reason) => expectDropped(frame, reason));

  test.each([
    ['a solicitation', solicitation(ip0, ip1, group1), 86],
    ['an echo', packet(echo('')), 62],
  ])('%s that ends before it should, at any byte', async (_what, frame, length) => {
    const { net, sent, counts } = await bench();
    const { nic } = net.nodes[1]!;
    const bytes = Uint8Array.from(frame.match(/../g)!, (digits) => Number.parseInt(digits, 16));
    expect(bytes).toHaveLength(length);
    for (let end = 1; end < length; end++) {
      nic.frameArrived(bytes.slice(0, end));
      await net.for(ms);
    }
    expect([sent(), counts.badFrames]).toEqual([[], length - 1]);
  });

  test('a host that resolves more neighbours than it keeps holds no more of them, nor memory', async () => {
    const { net, receive, buffers, counts } = await bench({ driver: { receiveRing: 512 } });
    net.onFrame = () => false;
    const held = buffers.taken;
    for (let at = 0; at < 1200; at++) {
      const source = hexOf(`2001:db8::1:${at.toString(16)}`);
      net.nodes[1]!.nic.frameArrived(
        Uint8Array.from(packet(echo('00', source), { source }).match(/../g)!, (digits) =>
          Number.parseInt(digits, 16),
        ),
      );
      await net.for(0.05 * ms);
    }
    await receive();
    expect(counts.echoReplies).toBe(1200);
    // 1024 addresses are being resolved; none of the others is.
    expect(buffers.taken - held).toBe(1024);
    expect(counts.unresolvedFrames).toBe(176);
    await net.for(4000 * ms);
    expect([buffers.taken - held, counts.unresolvedFrames]).toEqual([0, 1200]);
  });
});
