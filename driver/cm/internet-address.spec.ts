/** Addresses of IP as text: examples of the RFCs, and what a stock Linux wrote into a REQ over IPv6. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import { textOfGid } from '../address-text.ts';
import { CmAttribute, cmMad, decodeCm } from './cm-mad.ts';
import { gidOfAddress, plainAddress, requireAddress } from './internet-address.ts';
import { incomingRequestOf } from './request-addresses.ts';

/** RFC 4291, 2.2, and RFC 5952, 1 and 4: an accepted spelling, its bytes, the spelling to be written. */
const examples: readonly (readonly [string, string, string])[] = [
  ['2001:DB8:0:0:8:800:200C:417A', '20010db80000000000080800200c417a', '2001:db8::8:800:200c:417a'],
  ['FF01:0:0:0:0:0:0:101', 'ff010000000000000000000000000101', 'ff01::101'],
  ['0:0:0:0:0:0:0:1', '00000000000000000000000000000001', '::1'],
  ['::', '00000000000000000000000000000000', '::'],
  ['2001:db8::', '20010db8000000000000000000000000', '2001:db8::'],
  ['2001:db8:0:1:1:1:1:1', '20010db8000000010001000100010001', '2001:db8:0:1:1:1:1:1'],
  ['2001:0:0:1:0:0:0:1', '20010000000000010000000000000001', '2001:0:0:1::1'],
  ['2001:db8:0:0:1:0:0:1', '20010db8000000000001000000000001', '2001:db8::1:0:0:1'],
  ['fe80::202:c9ff:fe00:11%eth1', 'fe800000000000000202c9fffe000011', 'fe80::202:c9ff:fe00:11'],
  ['10.0.0.2', '00000000000000000000ffff0a000002', '10.0.0.2'],
];

describe('an address of IP', () => {
  it.each(examples)('RFC 4291, 2.2; RFC 5952, 4: %s is parsed and written', (text, bytes, plain) => {
    requireAddress('address', { sinAddr: text, sinPort: 1 });
    expect(toHex(gidOfAddress(text))).toBe(bytes);
    expect(textOfGid(fromHex(bytes))).toBe(plain);
    expect(plainAddress({ sinAddr: text, sinPort: 7 })).toEqual({ sinAddr: plain, sinPort: 7 });
  });

  it.each([
    '',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8',
    '12345::',
    'g::',
    'fe80::1%a%b',
    '10.0.0',
    '10.0.0.256',
    '10.0.0.1.2',
    '::10.0.0.1',
    ':1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:',
  ])('is not %s', (sinAddr) => {
    expect(() => requireAddress('address', { sinAddr, sinPort: 1 })).toThrow(/EINVAL|expected an IPv4/);
  });

  it('annex A11: in a REQ equals Linux’s, for IPv4 and IPv6', () => {
    // 36 bytes ahead of the private data: CMA version 0, version of IP, port of the client, both addresses.
    const headerIn = (name: string, version: string, addresses: string): Uint8Array => {
      const text = readFileSync(new URL(`../../reference/wire/${name}`, import.meta.url)).toString('hex');
      const [found] = new RegExp(`00${version}0[0-9a-f]{4}${addresses}`).exec(text) ?? expect.fail(name);
      return fromHex(found);
    };
    const [near, far] = ['fe80000000000000505400fffe000001', 'fe80000000000000505400fffe000002'];
    const addressesIn = (privateData: Uint8Array): unknown => {
      const padded = new Uint8Array(92);
      padded.set(privateData);
      const request = decodeCm(CmAttribute.REQ, cmMad(CmAttribute.REQ, 1n, { privateData: padded }));
      const { ownAddress, peer } = incomingRequestOf(request) ?? expect.fail('no addresses');
      return { ownAddress, peer };
    };
    expect(addressesIn(headerIn('cm-wt-ipv6.pcap', '6', near + far))).toEqual({
      ownAddress: 'fe80::5054:ff:fe00:2',
      peer: { sinAddr: 'fe80::5054:ff:fe00:1', sinPort: expect.any(Number) },
    });
    const zeros = '0'.repeat(24);
    expect(addressesIn(headerIn('cm-wt-ipv4.pcap', '4', `${zeros}0a000001${zeros}0a000002`))).toEqual({
      ownAddress: '10.0.0.2',
      peer: { sinAddr: '10.0.0.1', sinPort: expect.any(Number) },
    });
  });
});
