import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  assertInvariant,
  assertOneOf,
  assertPositive,
  assertRange,
  ConfigurationError,
  InvariantError,
  SimulatorError,
} from './assert.ts';
import { bytesEqual, fromHex, highWordOf, joinWords, lowWordOf, swap32, toHex } from './bytes.ts';
import { advance, counterMask16, distance, passBit, ringIndex } from './ring-index.ts';
import { log2Ceil, log2Exact, mask24, nsToPs, roundUp, usToPs } from './units.ts';

describe('typed errors', () => {
  test('name the field, the value and the range', () => {
    const attempt = () => assertRange('mttCache.ways', 17, 1, 16);
    expect(attempt).toThrow(ConfigurationError);
    expect(attempt).toThrow('mttCache.ways is 17, expected an integer from 1 to 16');
    try {
      attempt();
    } catch (error) {
      expect(error).toMatchObject({ field: 'mttCache.ways', value: 17, name: 'ConfigurationError' });
      expect(error).toBeInstanceOf(SimulatorError);
    }
  });

  test('accept values in the range and return them', () => {
    expect(assertRange('ports', 2, 1, 2)).toBe(2);
    expect(assertPositive('rate', 0.5)).toBe(0.5);
    expect(assertOneOf('policy', 'lru', ['lru', 'random'])).toBe('lru');
  });

  test('reject zero rates, unknown words and broken promises', () => {
    expect(() => assertPositive('rate', 0)).toThrow(ConfigurationError);
    expect(() => assertOneOf('policy', 'fifo', ['lru', 'random'])).toThrow('one of lru, random');
    expect(() => assertInvariant(false, 'credits are not negative')).toThrow(InvariantError);
  });
});

describe('bytes', () => {
  test('hexadecimal in both directions', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => bytesEqual(fromHex(toHex(bytes)), bytes)));
    expect(fromHex('01', 3)).toEqual(new Uint8Array([1, 0, 0]));
    expect(() => fromHex('0g')).toThrow(SimulatorError);
    expect(() => fromHex('0102', 1)).toThrow(SimulatorError);
  });

  test('byte order and words', () => {
    expect(swap32(0x0100_0080)).toBe(0x8000_0001);
    expect([highWordOf(0x1_8000_0002), lowWordOf(0x1_8000_0002)]).toEqual([1, 0x8000_0002]);
    expect([highWordOf(1n << 63n), lowWordOf((1n << 63n) | 5n)]).toEqual([0x8000_0000, 5]);
    expect(joinWords(1, 0x8000_0002)).toBe(0x1_8000_0002);
  });
});

describe('ring arithmetic', () => {
  test('wraps the index and flips the pass bit', () => {
    // A ring of 64: counter 63 is the last entry of pass 0, counter 64 the first of pass 1.
    expect([ringIndex(63, 6), passBit(63, 6)]).toEqual([63, 0]);
    expect([ringIndex(64, 6), passBit(64, 6)]).toEqual([0, 1]);
  });

  test('counts distances across the wrap of the counter', () => {
    expect(distance(2, 0xfffe, counterMask16)).toBe(4);
    expect(advance(0xff_ffff, 1, mask24)).toBe(0);
  });
});

describe('units', () => {
  test('convert to whole picoseconds', () => {
    expect([nsToPs(1.5), usToPs(2)]).toEqual([1500, 2_000_000]);
  });

  test('take logarithms and round to steps', () => {
    expect([log2Exact(1), log2Exact(4096), log2Ceil(1), log2Ceil(5), log2Ceil(2 ** 31)]).toEqual([
      0, 12, 0, 3, 31,
    ]);
    expect([roundUp(65, 64), roundUp(64, 64)]).toEqual([128, 64]);
  });
});
