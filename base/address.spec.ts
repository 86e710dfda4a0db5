import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressAt, addressDistance, addressTopAt, placeInPage, putAddress } from './address.ts';

const END = 2n ** 64n;
const any = fc.bigInt({ min: 0n, max: END - 1n });
/** Addresses that lie no further than 2^52 apart. */
const near = fc.tuple(any, fc.bigInt({ min: -(2n ** 52n), max: 2n ** 52n })).map(([from, by]) => {
  const to = from + by;
  return to >= 0n && to < END ? ([from, to] as const) : ([from, from] as const);
});

const lower = (address: bigint): number => Number(address & (2n ** 52n - 1n));
const top = (address: bigint): number => Number(address >> 52n);

function wordsOf(address: bigint): DataView {
  const view = new DataView(new ArrayBuffer(12));
  view.setBigUint64(4, address);
  return view;
}

describe('an address as two numbers', () => {
  it('is read and written completely', () => {
    fc.assert(
      fc.property(any, fc.nat(2 ** 32 - 1), (address, offset) => {
        const from = wordsOf(address);
        expect([addressAt(from, 4), addressTopAt(from, 4)]).toEqual([lower(address), top(address)]);
        const to = wordsOf(0n);
        putAddress(to, 4, addressAt(from, 4) + offset, addressTopAt(from, 4));
        expect(to.getBigUint64(4)).toBe(BigInt.asUintN(64, address + BigInt(offset)));
      }),
    );
  });

  it('has the distance to another one that whole numbers give', () => {
    fc.assert(
      fc.property(near, ([from, to]) => {
        expect(addressDistance(lower(from), top(from), lower(to), top(to))).toBe(Number(to - from));
      }),
    );
  });

  it('is never near a far one', () => {
    fc.assert(
      fc.property(any, any, (from, to) => {
        const distance = addressDistance(lower(from), top(from), lower(to), top(to));
        const exact = to - from;
        if (exact < 0n) expect(distance).toBeLessThan(0);
        else if (exact > 2n ** 52n) expect(distance).toBeGreaterThan(2 ** 52);
      }),
    );
  });

  it('has a page number in pages of any size', () => {
    fc.assert(
      fc.property(any, fc.nat(52), (address, logPageBytes) => {
        const place = placeInPage(lower(address), top(address), 2 ** logPageBytes);
        expect(BigInt(place)).toBe(address % 2n ** BigInt(logPageBytes));
      }),
    );
  });
});
