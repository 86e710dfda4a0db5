import { expect, it } from 'vitest';
import { fromHex, toHex } from './bytes.ts';
import { macBytesOf, macOfBytes } from './mac-address.ts';

it('a MAC has 6 bytes, the highest first (IEEE 802, 8.2: 34-56-78-9A-BC-DE)', () => {
  const mac = 0x3456_789a_bcde;
  expect([toHex(macBytesOf(mac)), macOfBytes(fromHex('3456789abcdeffff'))]).toEqual(['3456789abcde', mac]);
});
