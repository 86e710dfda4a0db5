/**
 * The index into the congestion control table and the rate of its entry. Expected values: annex A10 in the form of Linux 6.1
 * drivers/infiniband/hw/hfi1/init.c, whose pause after a packet is (packet time >> CCT_Shift) × CCT_Multiplier.
 */
import { describe, expect, it } from 'vitest';
import { Cct } from './cct.ts';

const config = { increase: 1, limit: 127, min: 0, timer: 100, multiplierStep: 1, shift: 0 };
const unitPs = 1_024_000;

const afterBecns = (count: number, changes: Partial<typeof config> = {}): Cct => {
  const cct = new Cct({ ...config, ...changes }, 32_000);
  for (let index = 0; index < count; index++) cct.onFeedback(1000);
  return cct;
};

describe('the rate of an entry', () => {
  it.each([
    [0, {}, 32_000],
    // A pause of as many packet times as the multiplier.
    [1, {}, 32_000 / 2],
    [9, {}, 32_000 / 10],
    [3, { multiplierStep: 5 }, 32_000 / 16],
    [6, { shift: 2 }, 32_000 / 2.5],
    // 14 bits.
    [10, { multiplierStep: 16_383, shift: 3 }, 32_000 / (1 + 16_383 / 8)],
  ])('annex A10: is, after %i BECNs with %o, %f Mb/s of 32,000', (becns, changes, rateMbps) => {
    expect(afterBecns(becns, changes).rateMbps(1000)).toBeCloseTo(rateMbps, 9);
  });
});

describe('CCTI', () => {
  it('annex A10: increases by CCTI_Increase with each BECN, up to CCTI_Limit', () => {
    const indexes = [1, 2, 3, 4].map((count) => afterBecns(count, { increase: 4, limit: 10 }).indexAt(1000));
    expect(indexes).toEqual([4, 8, 10, 10]);
  });

  it('annex A10: decreases by one with each CCTI_Timer of 1.024 us units, down to CCTI_Min', () => {
    const cct = afterBecns(5, { min: 2 });
    const periodPs = 100 * unitPs;
    expect([cct.indexAt(1000 + periodPs - 1), cct.indexAt(1000 + periodPs)]).toEqual([7, 6]);
    expect(cct.indexAt(1000 + 4 * periodPs)).toBe(3);
    expect(cct.indexAt(1000 + 50 * periodPs)).toBe(2);
  });

  it('does not restart the timer with a BECN, but after a rest at CCTI_Min', () => {
    const cct = afterBecns(2);
    const periodPs = 100 * unitPs;
    cct.onFeedback(1000 + periodPs - 1);
    expect([cct.indexAt(1000 + periodPs - 1), cct.indexAt(1000 + periodPs)]).toEqual([3, 2]);
    expect(cct.indexAt(1000 + 3 * periodPs)).toBe(0);
    const againPs = 1000 + 3.5 * periodPs;
    cct.onFeedback(againPs);
    expect([cct.indexAt(againPs + periodPs - 1), cct.indexAt(againPs + periodPs)]).toEqual([1, 0]);
  });

  it('stays the same in a new epoch', () => {
    const cct = afterBecns(2);
    cct.rebase(500);
    expect([cct.indexAt(500 + 100 * unitPs - 1), cct.indexAt(500 + 100 * unitPs)]).toEqual([2, 1]);
  });
});
