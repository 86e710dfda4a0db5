import { describe, expect, it } from 'vitest';
import { rssContext, rssOffsetInQpc } from '../../../abi/qpc.ts';
import { fromHex, viewOf } from '../../../base/bytes.ts';
import { packetPlacesOf } from './frame-headers.ts';
import { RingChoice } from './ring-choice.ts';

/** The key and the hashes are those that Microsoft publishes to verify RSS by ("Verifying the RSS hash calculation"). */
const key = fromHex('6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa');
const TCP_IPV4 = 0x10;
const IPV4 = 0x20;
const IPV6 = 0x08;
const TCP_IPV6 = 0x04;
const UDP_IPV4 = 0x02;

const MACS = '0002c90000020002c9000001';
const PORTS = '0aea06e6';
/** 66.9.149.187:2794 to 161.142.100.80:1766. */
const ipv4 = (protocol: string): Uint8Array =>
  fromHex(`${MACS}0800450000280000000040${protocol}0000420995bba18e6450${PORTS}${'00'.repeat(16)}`);
/** 3ffe:2501:200:1fff::7, port 2794, to 3ffe:2501:200:3::1, port 1766. */
const ipv6 = fromHex(
  `${MACS}86dd60000000001406403ffe250102001fff00000000000000073ffe250102000003${'0000000000000001'}${PORTS}${'00'.repeat(16)}`,
);

function chosen(
  frame: Uint8Array,
  fields: Partial<Parameters<typeof rssContext.encode>[0]>,
): [number, number] {
  const context = new Uint8Array(256);
  rssContext.encodeInto(
    { logTableSize: 3, baseQpn: 0x200, defaultQpn: 0x205, hashFunction: 1, key, ...fields },
    context,
    rssOffsetInQpc,
  );
  const rings = new RingChoice();
  rings.choose(viewOf(context), 0, frame, packetPlacesOf(frame, 0, frame.length));
  return [rings.hash >>> 0, rings.qpn];
}

describe('the choice of a ring', () => {
  it.each([
    ['IPv4 with the ports of TCP', ipv4('06'), IPV4 | TCP_IPV4, 0x51ccc178],
    ['IPv4 by addresses alone', ipv4('06'), IPV4, 0x323e8fc2],
    ['IPv4 with those of UDP', ipv4('11'), UDP_IPV4, 0x51ccc178],
    ['IPv6 with the ports of TCP', ipv6, IPV6 | TCP_IPV6, 0x40207d3d],
    ['IPv6 by addresses alone', ipv6, IPV6, 0x2cc18cd5],
  ])('hashes %s by Toeplitz', (_what, frame, flags, hash) => {
    expect(chosen(frame, { flags })).toEqual([hash, 0x200 + (hash & 7)]);
  });

  it('sheet 5.1: gives the default ring what the table does not hash', () => {
    expect(chosen(ipv4('06'), { flags: IPV6 })).toEqual([0, 0x205]);
    expect(chosen(fromHex(`${MACS}08060001`, 60), { flags: IPV4 })).toEqual([0, 0x205]);
  });

  it('XORs the same bytes where the table says so', () => {
    const hash = (0x420995bb ^ 0xa18e6450 ^ 0x0aea06e6) >>> 0;
    expect(chosen(ipv4('06'), { flags: TCP_IPV4, hashFunction: 0 })).toEqual([hash, 0x200 + (hash & 7)]);
  });
});
