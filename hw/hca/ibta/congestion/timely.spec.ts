/** The rate of one QP by algorithm 1 of Mittal et al., SIGCOMM 2015, at 10 Gb/s. Expected rates are worked out by hand. */
import { describe, expect, it } from 'vitest';
import { defaultsOf, usToPs } from '../../../../base/index.ts';
import { timelyParameters } from './parameters.ts';
import { Timely } from './timely.ts';

/** A QP, and its rate after each of these round trips in us, one after the other. */
function rates(roundTripsUs: readonly number[], lineRateMbps = 10_000): number[] {
  const qp = new Timely(defaultsOf(timelyParameters), lineRateMbps);
  let nowUs = 0;
  return roundTripsUs.map((us) => {
    nowUs += us;
    qp.onFeedback(usToPs(nowUs), usToPs(us));
    return qp.rateMbps();
  });
}

describe('TIMELY', () => {
  it('TIMELY algorithm 1: starts at line rate and increases below T_low by 10 Mb/s at a time', () => {
    // The first is too long: 10,000 × (1 - 0.8 × (1 - 500/1000)) = 6000.
    expect(rates([1000, 49, 49, 49])).toEqual([6000, 6010, 6020, 6030]);
    expect(rates([49])).toEqual([10_000]);
  });

  it('TIMELY algorithm 1: decreases with an upward trend, by its steepness', () => {
    // The second is 2 us longer: d = 0.875 × 2 us, of 20 us 0.0875; 1 - 0.8 × 0.0875 = 0.93. The third equals it: d = 0.125 d.
    const [, second, third] = rates([100, 102, 102]);
    expect(second).toBeCloseTo(9300, 9);
    expect(third).toBeCloseTo(9300 * (1 - 0.8 * 0.0109375), 9);
  });

  it('TIMELY algorithm 1: increases without an upward trend, from the fifth time in a row five times as much', () => {
    const [first, ...others] = rates([1000, 400, 390, 380, 370, 360, 350]);
    expect(first).toBe(6000);
    expect(others).toEqual([6010, 6020, 6030, 6040, 6090, 6140]);
  });

  it('has no rate below the least one, however steep the trend', () => {
    expect(rates([60, 400])[1]).toBe(100);
  });

  it('changes once per round trip: a message that left before the last change says nothing of the rate', () => {
    const qp = new Timely(defaultsOf(timelyParameters), 10_000);
    qp.onFeedback(usToPs(1000), usToPs(1000));
    qp.onFeedback(usToPs(1100), usToPs(1000));
    expect(qp.rateMbps()).toBe(6000);
    qp.rebase(usToPs(100));
    qp.onFeedback(usToPs(950), usToPs(49));
    expect(qp.rateMbps()).toBe(6010);
  });
});
