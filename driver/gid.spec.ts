import { expect, it } from 'vitest';
import { toHex } from '../base/bytes.ts';
import { gidOfIpv4, gidOfMac, ipv4OfGid, isIpv4Gid, isLinkLocalGid, macOfGid } from './gid.ts';

it('a link-local GID is the modified EUI-64 of its MAC, and leads back to it', () => {
  // RFC 4291, appendix A: 34-56-78-9A-BC-DE makes 36-56-78-FF-FE-9A-BC-DE.
  const mac = 0x3456_789a_bcde;
  const gid = gidOfMac(mac);
  expect(toHex(gid)).toBe('fe80000000000000365678fffe9abcde');
  expect([macOfGid(gid), isLinkLocalGid(gid), isIpv4Gid(gid)]).toEqual([mac, true, false]);
});

it('an IPv4 address is mapped as in RFC 4291, 2.5.5.2', () => {
  const gid = gidOfIpv4('129.144.52.38');
  expect(toHex(gid)).toBe('00000000000000000000ffff81903426');
  expect([ipv4OfGid(gid), isIpv4Gid(gid), isLinkLocalGid(gid)]).toEqual(['129.144.52.38', true, false]);
});
