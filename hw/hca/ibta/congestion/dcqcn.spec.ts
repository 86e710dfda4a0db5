/**
 * The rate of one QP by the formulas of Zhu et al., SIGCOMM 2015, at 40 Gb/s with its parameters: g = 1/256, both timers 55 us, B = 10 MB,
 * F = 5, R_AI = 40 Mb/s, R_HAI = 400 Mb/s. Expected rates are worked out by hand from these formulas, step by step.
 */
import { describe, expect, it } from 'vitest';
import { defaultsOf, usToPs } from '../../../../base/index.ts';
import { Dcqcn } from './dcqcn.ts';
import { type DcqcnConfig, dcqcnParameters } from './parameters.ts';

const lineRateMbps = 40_000;

/** Begins at an instant that is not 0. */
const beganPs = usToPs(1234);

function control(config: Partial<DcqcnConfig> = {}) {
  const qp = new Dcqcn({ ...defaultsOf(dcqcnParameters), ...config }, lineRateMbps, beganPs);
  return {
    qp,
    cnp: (us: number) => qp.onFeedback(beganPs + usToPs(us)),
    sent: (bytes: number, us: number) => qp.onSent(bytes, beganPs + usToPs(us)),
    rate: (us: number) => qp.rateMbps(beganPs + usToPs(us)),
    alpha: (us: number) => qp.alphaAt(beganPs + usToPs(us)),
  };
}

describe('the reaction point of DCQCN', () => {
  it('DCQCN: starts at line rate, and halves it with the first CNP, whose alpha is 1', () => {
    const { cnp, rate } = control();
    expect(rate(0)).toBe(40_000);
    cnp(0);
    expect(rate(0)).toBe(20_000);
  });

  it('DCQCN: recovers fast: each expiry of the timer halves the distance to the rate before the CNP', () => {
    const { cnp, rate } = control();
    cnp(0);
    // 20 → 30 → 35 → 37.5 → 38.75; the fifth step is additive, whose target is at most the line rate.
    expect([54.9, 55, 110, 165, 220, 275].map(rate)).toEqual([
      20_000, 30_000, 35_000, 37_500, 38_750, 39_375,
    ]);
  });

  it('DCQCN: increases additively from the fifth step on', () => {
    const { cnp, rate } = control();
    cnp(0);
    cnp(0);
    // R_C = 10, R_T = 20 Gb/s: (10 + 20) / 2 … 19.375; then R_T = 20.04, 20.08.
    expect([220, 275, 330].map(rate)).toEqual([19_375, 19_707.5, 19_893.75]);
  });

  it('DCQCN: increases by the byte counter as by the timer, and hyperactively when both are beyond F', () => {
    const { cnp, sent, rate } = control();
    cnp(0);
    cnp(0);
    expect(rate(330)).toBe(19_893.75);
    // Six times 10 MB within the seventh period. T = 6, BC = 1 … 5: R_T += 40; BC = 6: R_T += 400 × (6 - 5).
    const rates = [1, 2, 3, 4, 5, 6].map(() => {
      sent(6_000_000, 340);
      sent(4_000_000, 340);
      return rate(340);
    });
    expect(rates).toEqual([
      20_006.875, 20_083.4375, 20_141.71875, 20_190.859375, 20_235.4296875, 20_457.71484375,
    ]);
  });

  it('DCQCN: counts bytes and steps from the last CNP on', () => {
    const { cnp, sent, rate } = control();
    cnp(0);
    sent(9_999_999, 10);
    cnp(20);
    expect(rate(20)).toBe(10_000);
    sent(9_999_999, 30);
    expect([rate(30), rate(74.9), rate(75)]).toEqual([10_000, 10_000, 15_000]);
    sent(1, 76);
    expect(rate(76)).toBe(17_500);
  });

  it('DCQCN: halves alpha in 177 to 178 periods without a CNP, since (255/256)^177 is 0.5002', () => {
    const { cnp, alpha } = control();
    cnp(0);
    expect(alpha(54.9)).toBe(1);
    expect(alpha(55)).toBe(255 / 256);
    expect(alpha(55 * 177)).toBeCloseTo(0.500_19, 5);
    expect(alpha(55 * 178)).toBeLessThan(0.5);
  });

  it('DCQCN: reduces the rate by alpha / 2, and moves alpha towards 1 by g', () => {
    const { cnp, rate, alpha } = control();
    cnp(0);
    const before = rate(55);
    cnp(55);
    expect(rate(55)).toBe(before * (1 - 255 / 512));
    expect(alpha(55)).toBe((255 / 256) * (255 / 256) + 1 / 256);
  });

  it('is the same however often it is asked', () => {
    const asked = control();
    const silent = control();
    for (const { cnp } of [asked, silent]) {
      cnp(3);
      cnp(70);
    }
    for (let us = 70; us < 5000; us++) {
      asked.rate(us);
      asked.alpha(us);
    }
    expect([asked.rate(5000), asked.alpha(5000)]).toEqual([silent.rate(5000), silent.alpha(5000)]);
  });

  it('stops at line rate, while alpha decreases to 0', () => {
    const { cnp, rate, alpha, sent } = control();
    cnp(0);
    // 40 - 20/2^n Gb/s is within 1 Mb/s of the line rate from n = 15 on.
    expect([rate(55 * 14) < 40_000, rate(55 * 15)]).toEqual([true, 40_000]);
    sent(1e9, 1000);
    expect(rate(1000)).toBe(40_000);
    expect(alpha(55 * 20_000)).toBe(0);
    cnp(55 * 20_000);
    expect(rate(55 * 20_000)).toBe(40_000);
  });

  it('has no rate below the least one', () => {
    const { cnp, rate } = control({ minRateMbps: 100 });
    for (let count = 0; count < 20; count++) cnp(0);
    expect(rate(0)).toBe(100);
  });

  it('keeps its rate and alpha in a new epoch', () => {
    const moved = control();
    const kept = control();
    for (const { cnp } of [moved, kept]) cnp(0);
    moved.qp.rebase(usToPs(1000));
    expect([moved.rate(110 - 1000), moved.alpha(300 - 1000)]).toEqual([kept.rate(110), kept.alpha(300)]);
  });
});
