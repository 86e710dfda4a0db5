import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AtomicValue } from './atomic-value.ts';

const low = (value: bigint): number => Number(value & 0xffff_ffffn);
const high = (value: bigint): number => Number(value >> 32n);

function wordOf(value: bigint): AtomicValue {
  const made = new AtomicValue();
  made.set(low(value), high(value));
  return made;
}

const joined = (value: AtomicValue): bigint => (BigInt(value.high) << 32n) | BigInt(value.low);

function sumOf(value: bigint, add: bigint, boundaries: bigint): bigint {
  const made = wordOf(value);
  made.add(low(add), high(add), low(boundaries), high(boundaries));
  return joined(made);
}

function swapOf(
  value: bigint,
  compare: bigint,
  swap: bigint,
  masks: { compare: bigint; swap: bigint },
): bigint {
  const made = wordOf(value);
  if (made.isEqual(low(compare), high(compare), low(masks.compare), high(masks.compare)))
    made.replace(low(swap), high(swap), low(masks.swap), high(masks.swap));
  return joined(made);
}

/** Cuts 64 bits into fields that end at the boundaries, and adds in each of them modulo its size. */
function sumByFields(value: bigint, add: bigint, boundaries: bigint): bigint {
  let sum = 0n;
  let first = 0n;
  for (let bit = 0n; bit < 64n; bit++) {
    const isLast = bit === 63n || ((boundaries >> bit) & 1n) === 1n;
    if (!isLast) continue;
    const size = bit + 1n - first;
    const field = (of: bigint): bigint => BigInt.asUintN(Number(size), of >> first);
    sum |= BigInt.asUintN(Number(size), field(value) + field(add)) << first;
    first = bit + 1n;
  }
  return sum;
}

const words = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  fc.constantFrom(0n, 1n, 0xffff_ffffn, 0x1_0000_0000n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n),
);

describe('the arithmetic of atomics', () => {
  it('MLNX_OFED, enhanced atomic operations: adds each field by itself, whatever the boundaries', () => {
    fc.assert(
      fc.property(words, words, words, (value, add, boundaries) => {
        expect(sumOf(value, add, boundaries)).toBe(sumByFields(value, add, boundaries));
      }),
      { numRuns: 5000 },
    );
  });

  it('MLNX_OFED, enhanced atomic operations: carries up to a boundary and not beyond it', () => {
    // Eight fields of a byte, each 0xff and one more.
    expect(sumOf(0xffff_ffff_ffff_ffffn, 0x0101_0101_0101_0101n, 0x8080_8080_8080_8080n)).toBe(0n);
    // Two fields of 32 bits: the lower overflows, the upper receives only its own addend.
    expect(sumOf(0x0000_0001_ffff_ffffn, 0x0000_0002_0000_0001n, 0x8000_0000n)).toBe(0x0000_0003_0000_0000n);
    // Every bit a field: no carry at all.
    expect(sumOf(0b1100n, 0b1010n, 2n ** 64n - 1n)).toBe(0b0110n);
    // Fields of 31 and 33 bits, across the middle.
    expect(sumOf(0x7fff_ffffn, 0x0000_0001n, 0x4000_0000n)).toBe(0n);
    expect(sumOf(0xffff_ffff_8000_0000n, 0x8000_0000n, 0x4000_0000n)).toBe(0n);
  });

  it('IBTA 9.4.5: is the FETCH_ADD of the standard without boundaries, modulo 2^64', () => {
    fc.assert(
      fc.property(words, words, (value, add) => {
        expect(sumOf(value, add, 0n)).toBe(BigInt.asUintN(64, value + add));
      }),
    );
  });

  it('MLNX_OFED, enhanced atomic operations: compares under one mask and swaps under another', () => {
    fc.assert(
      fc.property(
        words,
        words,
        words,
        words,
        words,
        fc.boolean(),
        (value, other, swap, compareMask, swapMask, isSame) => {
          // Bits equal under the mask, and arbitrary bits outside of it: by chance that hardly happens.
          const compare = isSame ? (value & compareMask) | (other & ~compareMask & (2n ** 64n - 1n)) : other;
          const isEqual = (value & compareMask) === (compare & compareMask);
          const wanted = isEqual ? value - (value & swapMask) + (swap & swapMask) : value;
          expect(swapOf(value, compare, swap, { compare: compareMask, swap: swapMask })).toBe(wanted);
        },
      ),
      { numRuns: 2000 },
    );
    const ones = 2n ** 64n - 1n;
    expect(swapOf(7n, 0n, 9n, { compare: 0n, swap: ones })).toBe(9n);
    expect(swapOf(7n, 7n, 9n, { compare: ones, swap: 0n })).toBe(7n);
    expect(swapOf(2n ** 63n, 0n, 9n, { compare: ones, swap: ones })).toBe(2n ** 63n);
  });
});
