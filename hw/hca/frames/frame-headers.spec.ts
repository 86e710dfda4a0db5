import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../../base/bytes.ts';
import { fillIpChecksum, fillTransportChecksum, insertTag, packetPlacesOf, tagOf } from './frame-headers.ts';

const MACS = '0002c90000020002c9000001';
/** RFC 1071's sum of this header is 0xb861: the example of the article "IPv4 header checksum" of Wikipedia, which is UDP of 95 bytes. */
const header = '45000073000040004011b861c0a80001c0a800c7';

describe('headers of frames', () => {
  it('RFC 1071: the checksum of an IPv4 header replaces what stood in its place', () => {
    const frame = fromHex(`${MACS}0800${header.replace('b861', 'ffff')}`, 14 + 0x73);
    fillIpChecksum(frame, packetPlacesOf(frame, 0, frame.length)!);
    expect(toHex(frame.subarray(14, 34))).toBe(header);
  });

  /** Sum by hand of a UDP datagram 10.0.0.1:1 to 10.0.0.2:2 with the byte 0x41: 0a00+0001+0a00+0002+0011+0009+0001+0002+0009+4100 = 5529, complement aad6. */
  const udp = '4500001d00000000401166ce0a0000010a000002000100020009000041';

  it.each([
    ['', ''],
    ['behind a tag', '81000007'],
    ['with padding behind it', ''],
  ])('RFC 768: the checksum of UDP covers pseudo-header and an odd byte %s', (what, tag) => {
    const padding = what.includes('padding') ? 'ff'.repeat(17) : '';
    const frame = fromHex(`${MACS}${tag}0800${udp}${padding}`);
    fillTransportChecksum(frame, packetPlacesOf(frame, 0, frame.length)!);
    expect(toHex(frame)).toBe(`${MACS}${tag}0800${udp.replace('00090000', '0009aad6')}${padding}`);
  });

  it('RFC 9293: that of TCP over IPv6 does the same, whatever stands in its place', () => {
    // fe80::1 to fe80::2, 20 bytes: fe80+0001+fe80+0002+0006+0014+0001+0002+5000 = 24d20 with carries, 4d22; complement b2dd.
    const address = (last: string): string => `fe80${'00'.repeat(13)}${last}`;
    const tcp = (checksum: string): string => `00010002${'00'.repeat(8)}50000000${checksum}0000`;
    const packet = (checksum: string): string =>
      `6000000000140640${address('01')}${address('02')}${tcp(checksum)}`;
    const frame = fromHex(`${MACS}86dd${packet('1234')}`);
    fillTransportChecksum(frame, packetPlacesOf(frame, 0, frame.length)!);
    expect(toHex(frame.subarray(14))).toBe(packet('b2dd'));
  });

  it.each([
    ['a fragment', `0800${udp.replace('0000000040', '0000200040')}`],
    ['a packet that is not whole', `0800${udp.slice(0, -2)}`],
    ['ARP', '0806000108000604'],
    ['nothing but tags', '81000007'.repeat(12)],
    ['ICMP', `0800${udp.replace('4011', '4001')}`],
  ])('leaves %s as it is', (_what, rest) => {
    const frame = fromHex(MACS + rest, 60);
    const before = frame.slice();
    const places = packetPlacesOf(frame, 0, MACS.length / 2 + rest.length / 2);
    if (places !== undefined) fillTransportChecksum(frame, places);
    expect(frame).toEqual(before);
  });

  it('IEEE 802.1Q 9.6: a tag lies behind the addresses, and is found there', () => {
    const frame = fromHex(`${MACS}0806aabb`);
    const to = new Uint8Array(64);
    expect(insertTag(frame, 0, frame.length, 0x8100, 0x6007, to)).toBe(20);
    expect(toHex(to.subarray(0, 20))).toBe(`${MACS}810060070806aabb`);
    expect([tagOf(to, 0), tagOf(frame, 0)]).toEqual([0x6007, -1]);
  });

  it('IEEE 802.1Q 9.5: a service tag is a tag, and none of a customer', () => {
    const frame = fromHex(`${MACS}88a800640800`);
    expect([tagOf(frame, 0), tagOf(frame, 0, true)]).toEqual([0x64, -1]);
  });
});
