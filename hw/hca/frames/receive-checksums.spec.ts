import { describe, expect, it } from 'vitest';
import { CqeIpStatus } from '../../../abi/cqe.ts';
import { fromHex, toHex } from '../../../base/bytes.ts';
import { Random } from '../../../sim/index.ts';
import { pattern } from '../testing/data-path-verbs.ts';
import {
  joined,
  type OwnPacket,
  ownFrame,
  ownPacketBytes,
  ownSum,
  ownTcpHeader,
  ownUdp,
  TCP_CHECKSUM_PLACE,
  UDP_CHECKSUM_PLACE,
  u16,
} from '../testing/own-frames.ts';
import { frameCompletions, frameOf, MAC_B, ringScene } from '../testing/rings.ts';
import { FrameChecksums } from './receive-checksums.ts';

const { IPV4, IPV4_FRAGMENT, IPV4_OPTIONS, IPV6, TCP, UDP, IP_OK } = CqeIpStatus;
const TCP_PROTOCOL = 6;
const UDP_PROTOCOL = 17;
const ICMP = 1;
const ICMPV6 = 58;
const FULL = 0xffff;

const ipv4 = { isIpv4: true, addresses: fromHex('0a0200010a020002'), identification: 7 };
const ipv6 = { isIpv4: false, addresses: pattern(3, 32) };
const data = pattern(5, 111);
const tcp = (ip: typeof ipv4 | typeof ipv6): OwnPacket => ({
  ...ip,
  protocol: TCP_PROTOCOL,
  transport: joined(ownTcpHeader(1, 0x10), data),
  checksumPlace: TCP_CHECKSUM_PLACE,
});
const udp = (ip: typeof ipv4 | typeof ipv6): OwnPacket => ({
  ...ip,
  protocol: UDP_PROTOCOL,
  transport: ownUdp(data),
  checksumPlace: UDP_CHECKSUM_PLACE,
});
const icmp: OwnPacket = { ...ipv4, protocol: ICMP, transport: pattern(8, 64) };

/** Status and checksum of the packet in a frame; bytes before and after the frame must not affect them. */
function examined(frame: Uint8Array, form: 'verified' | 'complete'): [number, number] {
  const around = joined(pattern(1, 33), frame, pattern(2, 50));
  const checksums = new FrameChecksums(form);
  checksums.examine(around, 33, frame.length);
  return [checksums.ipStatus, checksums.checksum];
}

const frameWith = (packet: OwnPacket): Uint8Array => ownFrame(ownPacketBytes(packet), packet.isIpv4);

/** Returns a copy with the byte at `place`, counted from the end, changed. */
function damaged(frame: Uint8Array, place: number): Uint8Array {
  const copy = frame.slice();
  copy[copy.length - place]! ^= 0x40;
  return copy;
}

/** Compares sums modulo ffff: in ones' complement, 0 and ffff are the same number. */
const equalSums = (one: number, other: number): boolean => one % FULL === other % FULL;

describe('the checksum in a completion', () => {
  it.each([
    ['TCP over IPv4', tcp(ipv4), IPV4 | IP_OK | TCP],
    [
      'TCP over IPv4 with options',
      { ...tcp(ipv4), options: pattern(1, 8) },
      IPV4 | IPV4_OPTIONS | IP_OK | TCP,
    ],
    ['UDP over IPv4', udp(ipv4), IPV4 | IP_OK | UDP],
    ['TCP over IPv6', tcp(ipv6), IPV6 | IP_OK | TCP],
    ['UDP over IPv6', udp(ipv6), IPV6 | IP_OK | UDP],
  ])('sheet 6.6: of %s that is right is ffff, and in its status', (_what, packet, status) => {
    const frame = frameWith(packet);
    for (const form of ['verified', 'complete'] as const) {
      expect(examined(frame, form)).toEqual([status, FULL]);
      expect(examined(joined(frame, pattern(4, 9)), form)).toEqual([status, FULL]);
    }
  });

  /**
   * Checks the sum as Linux's mlx4_en does: after subtracting the IPv4 pseudo-header, or adding the six IPv6 bytes that
   * the sum leaves out, it must equal the sum of the packet. A correct IPv4 header contributes nothing.
   */
  function linuxSumIs(packet: OwnPacket, bytes: Uint8Array, checksum: number): boolean {
    if (!packet.isIpv4) {
      const whole = ownSum(bytes.subarray(0, 4), bytes.subarray(6, 8));
      return equalSums(checksum + whole, ownSum(bytes));
    }
    const headerBytes = (bytes[0]! & 0xf) * 4;
    const rest = bytes.subarray(headerBytes);
    const pseudo = ownSum(packet.addresses, u16(packet.protocol), u16(rest.length));
    return equalSums(checksum + FULL - pseudo, ownSum(rest));
  }

  it.each([
    ['TCP over IPv4 that is wrong', tcp(ipv4), IPV4 | IP_OK | TCP],
    ['UDP over IPv6 that is wrong', udp(ipv6), IPV6 | IP_OK | UDP],
    ['ICMP', icmp, IPV4 | IP_OK],
    ['ICMPv6', { ...icmp, ...ipv6, protocol: ICMPV6 }, IPV6 | IP_OK],
    ['a fragment', { ...udp(ipv4), fragment: 0x2000 }, IPV4 | IPV4_FRAGMENT | IP_OK],
    ['a later fragment', { ...udp(ipv4), fragment: 0x0010 }, IPV4 | IPV4_FRAGMENT | IP_OK],
    ['TCP behind an extension header', { ...tcp(ipv6), options: fromHex('0600010400000000') }, IPV6 | IP_OK],
    ['TCP whose header is not whole', { ...tcp(ipv4), transport: pattern(1, 19) }, IPV4 | IP_OK],
  ])('sheet 3.19: of %s is nothing, or with the mode of all packets their sum', (_what, packet, status) => {
    const frame = damaged(frameWith(packet), 3);
    expect(examined(frame, 'verified')).toEqual([status, 0]);
    const [seen, sum] = examined(frame, 'complete');
    expect(seen).toBe(status);
    expect(linuxSumIs(packet, frame.subarray(14), sum)).toBe(true);
  });

  it('sheet 6.6: does not say that IP is right where its header is wrong', () => {
    const frame = frameWith(tcp(ipv4));
    frame[14 + 8] = 63;
    expect(examined(frame, 'complete')).toEqual([IPV4 | TCP, FULL]);
  });

  it('RFC 768: of UDP without one, or with a length of its own, is not right', () => {
    const without = frameWith({ ...ipv4, protocol: UDP_PROTOCOL, transport: ownUdp(data) });
    expect(examined(without, 'verified')).toEqual([IPV4 | IP_OK | UDP, 0]);
    const short = ownUdp(data);
    short.set(u16(50), 4);
    expect(examined(frameWith({ ...udp(ipv4), transport: short }), 'verified')).toEqual([
      IPV4 | IP_OK | UDP,
      0,
    ]);
  });

  it('is never ffff of TCP or UDP that is wrong, whatever the sum is', () => {
    // For IPv6 the sum lacks the next header: a checksum that is wrong by 6 makes it ffff.
    const frame = frameWith(tcp(ipv6));
    const place = 14 + 40 + TCP_CHECKSUM_PLACE;
    frame.set(u16(((frame[place]! << 8) | frame[place + 1]!) + TCP_PROTOCOL), place);
    expect(examined(frame, 'complete')).toEqual([IPV6 | IP_OK | TCP, 0]);
  });

  it('agrees with other code on frames of any kind, right and wrong', () => {
    const random = new Random(41);
    for (let round = 0; round < 400; round++) {
      const ip = random.chance(0.5) ? ipv4 : ipv6;
      const bytes = pattern(round, random.below(300));
      const packet = random.chance(0.5)
        ? { ...tcp(ip), transport: joined(ownTcpHeader(random.uint32(), random.below(256)), bytes) }
        : { ...udp(ip), transport: ownUdp(bytes) };
      const frame = frameWith(packet);
      expect(examined(frame, 'complete')[1]).toBe(FULL);
      const wrong = damaged(frame, 1 + random.below(packet.transport.length - 8));
      const [, sum] = examined(wrong, 'complete');
      const isSame = sum === FULL;
      expect([isSame, linuxSumIs(packet, wrong.subarray(14), sum)]).toEqual([false, true]);
    }
  });

  it.each([
    ['ARP', frameOf(MAC_B, pattern(1, 46), undefined, 0x0806)],
    ['a packet that is not whole', frameWith(tcp(ipv4)).slice(0, 100)],
    ['a packet behind a tag of a service', behind(0x88a8, fromHex('0007'))],
    ['a packet behind two tags', behind(0x8100, fromHex('000781000008'))],
  ])('sheet 3.19: of %s says nothing', (_what, frame) => {
    expect(examined(frame, 'complete')).toEqual([0, 0]);
  });
});

/** TCP over IPv4 after tags. */
const behind = (type: number, tags: Uint8Array): Uint8Array =>
  frameOf(MAC_B, joined(tags, u16(0x0800), ownPacketBytes(tcp(ipv4))), undefined, type);

describe('a completion', () => {
  const packets = [tcp(ipv4), udp(ipv6), icmp].map((packet) => frameWith(packet));

  async function completionsOf(
    form: 'none' | 'verified' | 'complete',
    frames: readonly Uint8Array[],
    fields: { readonly keepVlanTag?: number } = {},
  ) {
    const scene = await ringScene({ offloads: { receiveChecksums: form } }, { fields });
    const { bench, a, b, from, to } = scene;
    bench.b.ethernet!.side.steering.vlanFilter.fill(1);
    frames.forEach((frame, index) => {
      const place = index * 2000;
      b.qp.receive([to.part(place, 1536)]);
      from.write(frame, place);
      a.send({ segments: [from.part(place, frame.length)] });
    });
    await bench.until(() => bench.b.ethernet!.port.received.deliveredFrames === frames.length);
    await bench.run(10);
    return { completions: frameCompletions(bench.b, b.cq), to };
  }

  it('sheet 6.6: says of received frames what they are of IP, and of none what was sent', async () => {
    const { completions } = await completionsOf('complete', packets);
    const icmpSum = ownSum(icmp.addresses, u16(ICMP), u16(icmp.transport.length), icmp.transport);
    expect(completions.map(({ status, checksum, isSend }) => [status, checksum, isSend])).toEqual([
      [IPV4 | IP_OK | TCP, FULL, false],
      [IPV6 | IP_OK | UDP, FULL, false],
      [IPV4 | IP_OK, icmpSum, false],
    ]);
  });

  it('sheet 3.19: says nothing of other packets in the mode without sums, and nothing at all where it is off', async () => {
    const of = async (form: 'none' | 'verified') =>
      (await completionsOf(form, packets)).completions.map(({ status, checksum }) => [status, checksum]);
    expect(await of('verified')).toEqual([
      [IPV4 | IP_OK | TCP, FULL],
      [IPV6 | IP_OK | UDP, FULL],
      [IPV4 | IP_OK, 0],
    ]);
    expect(await of('none')).toEqual(packets.map(() => [0, 0]));
  });

  it('sheet 6.6: has the tag, whether it is taken out or kept, and its checksum does not', async () => {
    const frame = ownFrame(ownPacketBytes(icmp), true, 0x2007);
    const plain = (await completionsOf('complete', [frameWith(icmp)])).completions[0]!.checksum;
    for (const keepVlanTag of [0, 1]) {
      const { completions, to } = await completionsOf('complete', [frame], { keepVlanTag });
      const byteCount = frame.length - (keepVlanTag === 1 ? 0 : 4);
      expect(completions).toMatchObject([{ tag: 0x2007, status: IPV4 | IP_OK, checksum: plain, byteCount }]);
      expect(toHex(to.read(12, 2))).toBe(keepVlanTag === 1 ? '8100' : '0800');
    }
  });
});
