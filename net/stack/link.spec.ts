/** Behaviour of a host below its transport: neighbours by ARP, pings, and dropped frames. */
import { describe, expect, test } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import { bench, checksumOf, connectTo, expectDropped } from '../testing/link-bench.ts';
import { addresses, ms, us } from '../testing/machine.ts';

const broadcast = 'ffffffffffff';
const [mac0, mac1] = ['020000000001', '020000000002'];
const [ip0, ip1, other] = ['0a000001', '0a000002', '0a000009'];
const none = '000000000000';
const arp = (
  to: string,
  from: string,
  operation: number,
  mac: string,
  ip: string,
  macOf: string,
  of: string,
) => `${to}${from}080600010800060400${operation.toString(16).padStart(2, '0')}${mac}${ip}${macOf}${of}`;

interface PacketFields {
  readonly to?: string;
  readonly source?: string;
  readonly destination?: string;
  readonly protocol?: string;
  readonly fragment?: string;
  readonly length?: number;
  readonly version?: string;
}
/** An IPv4 frame to host 1, from host 0 unless stated otherwise. */
function packet(payload: string, fields: PacketFields = {}): string {
  const { to = mac1, source = ip0, destination = ip1, protocol = '01', fragment = '0000' } = fields;
  const { length = 20 + payload.length / 2, version = '45' } = fields;
  const head = `${version}00${length.toString(16).padStart(4, '0')}0077${fragment}40${protocol}`;
  const checksum = checksumOf(`${head}0000${source}${destination}`);
  return `${to}${mac0}0800${head}${checksum}${source}${destination}${payload}`;
}
const echo = (data: string, type = '08', code = '00'): string =>
  `${type}${code}${checksumOf(`${type}${code}0000${'12340001'}${data}`)}12340001${data}`;

describe('ARP', () => {
  test('RFC 826: one request is broadcast, the SYN leaves with the answer, and the answering host need not ask', async () => {
    const { net, crossed } = await bench();
    const [outcome] = await connectTo(net, addresses[1]);
    expect(outcome).toBe('ECONNREFUSED');
    const seen = crossed();
    expect(seen.slice(0, 2)).toEqual([
      `0 ${arp(broadcast, mac0, 1, mac0, ip0, none, ip1)}`,
      `1 ${arp(mac0, mac1, 2, mac1, ip1, mac0, ip0)}`,
    ]);
    // SYN, and RST with ACK.
    expect(seen.slice(2).map((frame) => [frame.slice(2, 30), frame.slice(96, 98)])).toEqual([
      [`${mac1}${mac0}0800`, '02'],
      [`${mac0}${mac1}0800`, '14'],
    ]);
  });

  test('an absent host: requested at 0, 1 and 2 s, EHOSTUNREACH after 3 s, and requested again the next time', async () => {
    const { net, crossed } = await bench();
    const [outcome, afterMs] = await connectTo(net, 0x0a00_0009);
    expect(outcome).toBe('EHOSTUNREACH');
    expect(afterMs).toBeGreaterThan(3000);
    expect(afterMs).toBeLessThan(3001);
    expect(crossed()).toEqual(new Array(3).fill(`0 ${arp(broadcast, mac0, 1, mac0, ip0, none, other)}`));
    const { counts, driver } = net.nodes[0]!.network;
    // The SYN, and its retransmission after a second.
    expect([counts.arpRequests, counts.unresolvedFrames]).toEqual([3, 2]);
    expect(driver.buffers.taken).toBe(net.nodes[1]!.network.driver.buffers.taken);
    expect((await connectTo(net, 0x0a00_0009))[0]).toBe('EHOSTUNREACH');
    expect(crossed()).toHaveLength(3);
  });

  test('a lost request is repeated', async () => {
    const { net } = await bench();
    const frames: string[] = [];
    net.onFrame = (_from, frame) => frames.push(toHex(frame).slice(24, 28)) > 1;
    const [outcome, afterMs] = await connectTo(net, addresses[1]);
    expect(outcome).toBe('ECONNREFUSED');
    expect(afterMs).toBeGreaterThan(1000);
    expect(afterMs).toBeLessThan(1001);
    expect(frames.slice(0, 4)).toEqual(['0806', '0806', '0806', '0800']);
  });

  test.each([
    ['another link', 0x0b00_0002],
    ['all hosts of the link', 0x0a00_00ff],
    ['the link itself', 0x0a00_0000],
    ['the host itself', addresses[0]],
  ])('has no route to %s', async (_what, address) => {
    const { net, crossed } = await bench();
    expect((await connectTo(net, address))[0]).toBe('EHOSTUNREACH');
    expect(crossed()).toEqual([]);
  });

  test('a configured neighbour is not resolved, nor learnt from others’ announcements', async () => {
    const { net, crossed, receive } = await bench({ asksForNeighbours: false });
    await receive(arp(mac1, mac0, 2, '0200000000ee', ip0, mac1, ip1));
    await receive(arp(broadcast, mac0, 1, '0200000000ee', ip0, none, ip1), packet(echo('00')));
    expect(crossed().map((frame) => frame.slice(2, 14))).toEqual(['0200000000ee', mac0]);
    await connectTo(net, addresses[1]);
    expect(crossed().every((frame) => frame.slice(26, 30) === '0800')).toBe(true);
  });

  test('a resolved MAC is replaced by an unsolicited one, and by no other answer for a second', async () => {
    const { sent, receive } = await bench();
    const destination = async (): Promise<string> => {
      await receive(packet(echo('00')));
      return sent()[0]!.slice(0, 12);
    };
    await receive(arp(broadcast, mac0, 1, mac0, ip0, none, ip1));
    sent();
    await receive(arp(mac1, mac0, 2, '0200000000ee', ip0, mac1, ip1));
    expect(await destination()).toBe(mac0);
    await receive(arp(broadcast, mac0, 1, '0200000000ee', ip0, none, ip0));
    expect(await destination()).toBe('0200000000ee');
  });

  test('frames wait for an answer, the oldest being dropped beyond 101, and leave in order', async () => {
    const { sent, receive, expectCounts, buffers } = await bench();
    const held = buffers.taken;
    for (let at = 0; at < 130; at++) {
      const data = at.toString(16).padStart(4, '0');
      await receive(packet(echo(data), { source: other }));
    }
    expect(sent()).toEqual([arp(broadcast, mac1, 1, mac1, ip1, none, other)]);
    expect(buffers.taken - held).toBe(101);
    await receive(arp(mac1, mac0, 2, mac0, other, mac1, ip1));
    expect(sent().map((frame) => frame.slice(84, 88))).toEqual(
      Array.from({ length: 101 }, (_, at) => (at + 29).toString(16).padStart(4, '0')),
    );
    expect(buffers.taken).toBe(held);
    expectCounts({ arpRequests: 1, echoReplies: 130, unresolvedFrames: 29 });
  });

  test('a removed device releases waiting frames', async () => {
    const { net, receive, buffers } = await bench();
    await receive(packet(echo('00'), { source: other }));
    await net.kernel(1, (cpu) => net.nodes[1]!.network.remove(cpu));
    expect(buffers.taken).toBe(0);
    await net.for(5000 * ms);
  });
});

describe('echo', () => {
  test('RFC 792: returns identifier, sequence number and data, under new checksums', async () => {
    const { sent, receive, expectCounts } = await bench({ asksForNeighbours: false });
    const headers = `${mac1}${mac0}0800${'4500002300770000400166610a0000010a000002'}`;
    await receive(`${headers}0800549d1234000161626364656667`);
    expect(sent()).toEqual([
      `${mac0}${mac1}0800${'4500002300004000400126d80a0000020a000001'}00005c9d1234000161626364656667`,
    ]);
    expectCounts({ echoReplies: 1 });
  });

  test.each([0, 1, 17, 18, 19, 1471, 1472])(
    'of %i bytes, with and without a NIC that sums',
    async (bytes) => {
      const data = Array.from({ length: bytes }, (_, at) => ((at * 7) & 0xff).toString(16).padStart(2, '0'));
      for (const checksumOffload of [true, false]) {
        const { sent, receive } = await bench({ asksForNeighbours: false, driver: { checksumOffload } });
        await receive(packet(echo(data.join(''))));
        expect(sent().map((frame) => frame.slice(68))).toEqual([echo(data.join(''), '00')]);
      }
    },
  );

  test('up to the MTU of long frames', async () => {
    const { sent, receive } = await bench({ asksForNeighbours: false, driver: { mtu: 9000 } });
    const data = 'a7'.repeat(9000 - 28);
    await receive(packet(echo(data)));
    expect(sent().map((frame) => frame.slice(68))).toEqual([echo(data, '00')]);
  });

  test.each(['ff00', 'ff', '0000ff'])('after which a sender has put %s instead of zeros', async (padding) => {
    const { sent, receive, expectCounts } = await bench({ asksForNeighbours: false });
    for (const data of ['', '01', '0203'])
      await receive(packet(echo(data), { length: 28 + data.length / 2 }) + padding);
    expect(sent().map((frame) => frame.slice(68))).toEqual(
      ['', '01', '0203'].map((data) => echo(data, '00')),
    );
    expectCounts({ echoReplies: 3 });
  });

  test('from an unknown host: its address is resolved first', async () => {
    const { net, crossed, receive } = await bench();
    await receive(packet(echo('abcd')));
    expect(crossed().map((frame) => [frame.slice(0, 1), frame.slice(26, 30)])).toEqual([
      ['1', '0806'],
      ['0', '0806'],
      ['1', '0800'],
    ]);
    expect(net.nodes[0]!.network.counts.arpReplies).toBe(1);
  });

  test('without a packet buffer it is not answered, and later it is', async () => {
    // The receive ring uses all buffers but one, which replaces the frame's.
    const { sent, receive, counts } = await bench({
      asksForNeighbours: false,
      driver: { receiveRing: 16, buffersMax: 16 },
    });
    await receive(packet(echo('00')));
    expect([sent(), counts.droppedForMemory]).toEqual([[], 1]);
  });
});

const udp = '1234567800080000';
describe('dropped, and counted', () => {
  test.each([
    ['ARP of another operation', arp(broadcast, mac0, 3, mac0, ip0, none, ip1), 'badFrames'],
    ['ARP of a group', arp(broadcast, mac0, 1, '0300000000ee', ip0, none, ip1), 'badFrames'],
    [
      'ARP of another hardware',
      arp(broadcast, mac0, 1, mac0, ip0, none, ip1).replace('00010800', '00060800'),
      'badFrames',
    ],
    ['an answer that nobody has asked for', arp(mac1, mac0, 2, mac0, ip0, mac1, ip1), 'arpIgnored'],
    ['a request for somebody else', arp(broadcast, mac0, 1, mac0, ip0, none, other), 'arpIgnored'],
    ['a request with our address', arp(broadcast, mac0, 1, mac0, ip1, none, ip1), 'arpIgnored'],
    ['a request from another link', arp(broadcast, mac0, 1, mac0, '0b000001', none, ip1), 'arpIgnored'],
    ['IPv6 that ends within its header', `${mac1}${mac0}86dd60000000`, 'badFrames'],
    ['a tag within a tag', `${mac1}${mac0}8100000781000007${'0'.repeat(80)}`, 'foreignTypes'],
    ['UDP', packet(udp, { protocol: '11' }), 'foreignProtocols'],
    ['an answer to a ping', packet(echo('00', '00')), 'foreignProtocols'],
    ['a timestamp request', packet(echo('00', '0d')), 'foreignProtocols'],
    ['an echo of another code', packet(echo('00', '08', '01')), 'foreignProtocols'],
    ['an echo with a wrong checksum', packet(echo('00').replace('1234', '1235')), 'badChecksums'],
    ['an echo without a whole header', packet('0800f7ff000000'), 'badFrames'],
    ['the first part of a packet', packet(echo('00'), { fragment: '2000' }), 'fragments'],
    ['the last part of a packet', packet(echo('00'), { fragment: '0008' }), 'fragments'],
    ['a ping of all', packet(echo('00'), { to: broadcast, destination: '0a0000ff' }), 'foreignDestinations'],
    [
      'a ping of everybody',
      packet(echo('00'), { to: broadcast, destination: 'ffffffff' }),
      'foreignDestinations',
    ],
    ['a ping of us in a frame to all', packet(echo('00'), { to: broadcast }), 'foreignDestinations'],
    ['a ping of somebody else', packet(echo('00'), { destination: other }), 'foreignDestinations'],
    ['a ping from our address', packet(echo('00'), { source: ip1 }), 'badFrames'],
    ['a ping from a group', packet(echo('00'), { source: 'e0000001' }), 'badFrames'],
    ['a ping from nobody', packet(echo('00'), { source: '00000000' }), 'badFrames'],
    ['options of IPv4', packet(echo('00'), { version: '46' }), 'badFrames'],
    ['another version of IP', packet(echo('00'), { version: '65' }), 'badFrames'],
    ['a packet that is longer than its frame', packet(echo('00'), { length: 1000 }), 'badFrames'],
    ['a packet that is shorter than its header', packet(echo('00'), { length: 19 }), 'badFrames'],
    ['a header with a wrong checksum', packet(echo('00')).replace('4500', '4501'), 'badFrames'],
    ['a segment without a whole header', packet('00'.repeat(19), { protocol: '06' }), 'badFrames'],
    ['a segment with a wrong checksum', packet('00'.repeat(20), { protocol: '06' }), 'badChecksums'],
    ['a length in place of an EtherType', `${mac1}${mac0}0026`, 'foreignTypes'],
  ] as const)('%s', (_what, frame, reason) => expectDropped(frame, reason));

  test.each([
    ['ARP', arp(broadcast, mac0, 1, mac0, ip0, none, ip1)],
    ['IPv4', packet(echo(''))],
  ])('%s that ends before its header does, at any byte', async (_what, frame) => {
    const { net, sent, counts } = await bench();
    const { nic } = net.nodes[1]!;
    for (let bytes = 1; bytes < 42; bytes++) {
      nic.frameArrived(fromHex(frame.slice(0, 2 * bytes)));
      await net.for(ms);
    }
    expect([sent(), counts.badFrames]).toEqual([[], 41]);
  });

  test('a broadcast storm of a looped network holds no memory, and a requester is answered', async () => {
    const { net, sent, receive, buffers, counts } = await bench();
    const held = buffers.taken;
    const storm = [
      arp(broadcast, mac0, 1, mac0, ip0, none, other),
      packet(echo('00'), { to: broadcast, destination: 'ffffffff' }),
      arp(broadcast, mac0, 1, mac0, ip0, none, ip1),
    ];
    for (let round = 0; round < 200; round++) {
      const { nic } = net.nodes[1]!;
      for (let at = 0; at < 30; at++) nic.frameArrived(fromHex(storm[at % 3]!.padEnd(120, '0')));
      await net.for(20 * us);
    }
    await net.for(20 * ms);
    expect(buffers.taken).toBe(held);
    expect(counts.arpReplies).toBe(sent().length);
    await receive(packet(echo('00')));
    expect(sent().map((frame) => frame.slice(68))).toEqual([echo('00', '00')]);
  });
});

describe('TCP with other hosts', () => {
  /** Sends a SYN to port 4000, where host 1 listens, with these options. @returns flags, window and options of the answer */
  async function answerTo(options: string): Promise<string> {
    const { net, sent, receive } = await bench({ asksForNeighbours: false });
    net.run(1, 'server', async ({ cpu }, calls) => {
      const fd = await calls.socket(cpu);
      await calls.bind(cpu, fd, { address: 0, port: 4000 });
      await calls.listen(cpu, fd, 4);
      await cpu.sleep(100 * ms);
    });
    await net.for(ms);
    const offset = (5 + options.length / 8).toString(16);
    const segment = (checksum: string) =>
      `c0000fa000000064${'00000000'}${offset}002faf0${checksum}0000${options}`;
    const pseudo = `${ip0}${ip1}0006${(20 + options.length / 2).toString(16).padStart(4, '0')}`;
    await receive(packet(segment(checksumOf(pseudo + segment('0000'))), { protocol: '06' }));
    return sent()[0]?.slice(92) ?? '';
  }
  /** 20 bytes of header and 8 of options, SYN and ACK, without the checksum that the NIC inserts. */
  const answered = (options: string) => new RegExp(`^7012ffff....0000${options}$`);

  test('RFC 7323, 2.2: sends its window scale to a peer that has sent one: MSS 1460, scale 7', async () => {
    // The options are those of Linux: MSS, SACK permitted, timestamps, a no-operation, scale 7.
    expect(await answerTo('020405b40402080a00000001000000000103 0307'.replace(' ', ''))).toMatch(
      answered('020405b401030307'),
    );
  });

  test('RFC 7323, 2.2: and to no other', async () => {
    expect(await answerTo('020405b4')).toMatch(answered('020405b401010101'));
  });

  test('RFC 9293, 3.7.1: assumes 536 for a peer that sends no MSS', async () => {
    expect(await answerTo('')).toMatch(answered('0204021801010101'));
  });

  test('options that end early or exceed their header are ignored', async () => {
    for (const options of ['02040000', '00000000', '0300020a', '02ff05b4', '02010101'])
      expect(await answerTo(options)).toMatch(/^7012/);
  });
});
