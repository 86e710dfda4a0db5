import { describe, expect, expectTypeOf, test } from 'vitest';
import { type Cycles, log2Ceil, nsToPs, type Picoseconds, roundUp, type Unit } from './units.ts';

describe('a unit', () => {
  test('accepts plain numbers and computed values, and no other unit', () => {
    expectTypeOf<number>().toExtend<Cycles>();
    expectTypeOf<Cycles>().toExtend<number>();
    expectTypeOf<Cycles>().not.toExtend<Picoseconds>();
    expectTypeOf<Picoseconds>().not.toExtend<Cycles>();
    expectTypeOf<Unit<'QP number'>>().not.toExtend<Unit<'QP slot'>>();
    const start: Cycles = 5;
    const later: Cycles = start + 1;
    expect(later).toBe(6);
  });

  test('is a number at run time', () => {
    const instant: Picoseconds = nsToPs(4);
    expect(instant).toBe(4000);
    expect([roundUp(13, 8), log2Ceil(5)]).toEqual([16, 3]);
  });
});
