/** Arrivals: their times compared with the definitions of the processes, and the fate of those that find the backlog full. */
import { describe, expect, it } from 'vitest';
import { Random } from '../../sim/index.ts';
import { type LoadPlan, OfferedLoad } from './offered-load.ts';

const random = (seed = 1): Random => new Random(seed, 'test');

/** Instants of all arrivals of a program whose messages are posted as they arrive. */
function arrivalsOf(
  plan: LoadPlan,
  count: number,
  share?: { readonly thread: number; readonly threads: number },
): number[] {
  const load = new OfferedLoad(plan, count, random(), 1000, share);
  const instants: number[] = [];
  for (let next = load.nextPs; next !== undefined; next = load.nextPs) {
    load.admit(next - 1);
    if (load.waitingCount !== 0) throw new Error('admitted before its time');
    load.admit(next);
    instants.push(load.take());
    if (instants.at(-1) !== next) throw new Error('not admitted when it is due');
  }
  return instants;
}

describe('arrivals', () => {
  it('that are paced have a constant distance, without drift', () => {
    // 3 million per second: a third of a microsecond, which is not an integer number of picoseconds.
    const instants = arrivalsOf({ perSecond: 3e6, arrivals: 'paced', backlog: 1 }, 300_000);
    expect(instants[0]).toBe(1000 + 333_333);
    expect(instants.at(-1)).toBe(1000 + 1e11);
  });

  it('of several paced programs alternate', () => {
    const plan: LoadPlan = { perSecond: 1e6, arrivals: 'paced', backlog: 1 };
    const all = [0, 1, 2, 3].flatMap((thread) => arrivalsOf(plan, 25, { thread, threads: 4 }));
    const expected = Array.from({ length: 100 }, (_, index) => 1000 + (index + 1) * 1e6);
    expect(all.toSorted((left, right) => left - right)).toEqual(expected);
  });

  it('that are random are a Poisson process: exponential gaps, counts whose variance equals their mean', () => {
    const [meanPs, count] = [1e6, 200_000];
    const instants = arrivalsOf({ perSecond: 1e12 / meanPs, arrivals: 'poisson', backlog: 1 }, count);
    const gaps = instants.map((instant, index) => instant - (instants[index - 1] ?? 1000));
    const mean = gaps.reduce((sum, gap) => sum + gap, 0) / count;
    // Four standard errors of the mean of this many: 1/sqrt(200,000).
    expect(Math.abs(mean / meanPs - 1)).toBeLessThan(4 / Math.sqrt(count));
    for (const times of [0.1, 0.5, 1, 2, 4]) {
      const share = gaps.filter((gap) => gap > times * meanPs).length / count;
      expect(Math.abs(share - Math.exp(-times)), `${times}`).toBeLessThan(0.005);
    }
    // Counts in windows of ten mean gaps.
    const windows = new Float64Array(count / 10);
    for (const instant of instants) {
      const at = Math.floor((instant - 1000) / (10 * meanPs));
      if (at < windows.length) windows[at]!++;
    }
    const used = windows.subarray(0, windows.length - 1000);
    const average = used.reduce((sum, each) => sum + each, 0) / used.length;
    const variance = used.reduce((sum, each) => sum + (each - average) ** 2, 0) / used.length;
    expect(variance / average).toBeCloseTo(1, 1);
    // Neighbours are independent.
    const covariance = gaps.slice(1).reduce((sum, gap, at) => sum + (gap - mean) * (gaps[at]! - mean), 0);
    expect(Math.abs(covariance / count / meanPs ** 2)).toBeLessThan(0.01);
  });

  it('depend on the seed alone, not on other draws', () => {
    const plan: LoadPlan = { perSecond: 1e6, arrivals: 'poisson', backlog: 8 };
    const instantsOf = (seed: number, isShared: boolean): (number | undefined)[] => {
      const numbers = random(seed);
      const load = new OfferedLoad(plan, 5, numbers, 0);
      return Array.from({ length: 5 }, () => {
        const next = load.nextPs;
        load.admit(next!);
        if (isShared) numbers.uint32();
        return next;
      });
    };
    expect(instantsOf(1, true)).toEqual(instantsOf(1, false));
    expect(instantsOf(1, false)).not.toEqual(instantsOf(2, false));
  });
});

describe('the backlog', () => {
  it('keeps the oldest, drops arrivals when full, and counts both', () => {
    const load = new OfferedLoad({ perSecond: 1e6, arrivals: 'paced', backlog: 3 }, 10, random(), 0);
    load.admit(5e6);
    expect(load.waitingCount).toBe(3);
    expect(load.counts()).toMatchObject({ arrivedCount: 5, droppedCount: 2, backlogMost: 3 });
    expect([load.take(), load.take()]).toEqual([1e6, 2e6]);
    // The sixth and the seventh find room, the eighth does not; the fourth and the fifth have left.
    load.admit(8e6);
    expect([load.take(), load.take(), load.take()]).toEqual([3e6, 6e6, 7e6]);
    expect(load.counts()).toMatchObject({ arrivedCount: 8, droppedCount: 3 });
  });

  it('ends after the requested number of accepted messages: dropped ones do not count', () => {
    const load = new OfferedLoad({ perSecond: 1e6, arrivals: 'paced', backlog: 2 }, 4, random(), 0);
    load.admit(6e6);
    expect(load.nextPs).toBe(7e6);
    load.take();
    load.take();
    load.admit(100e6);
    expect(load.nextPs).toBeUndefined();
    expect(load.counts()).toEqual({
      arrivedCount: 8,
      droppedCount: 4,
      backlogMost: 2,
      backlogAtEnd: 2,
      arrivalsPs: 8e6,
    });
  });
});
