import { describe, expect, it } from 'vitest';
import { LogicalProcess, SteppedRunner } from '../../sim/index.ts';
import { LockstepTime } from './lockstep-time.ts';

/** Devices that notice something every `periodPs`, as often as `count`. */
function timeWith(periodPs: number, count: number) {
  const process = new LogicalProcess('device');
  const noticed: number[] = [];
  const { queue } = process;
  const notice = queue.addHandler(() => {
    noticed.push(process.epochUs * 1e6 + process.nowPs);
    if (noticed.length < count) queue.schedule(process.nowPs + periodPs, notice);
  });
  if (count > 0) queue.schedule(periodPs, notice);
  return { time: new LockstepTime(new SteppedRunner([process])), noticed };
}

describe('the time of devices that follow PCs', () => {
  it('passes up to the instant of the PCs and no further', () => {
    const { time, noticed } = timeWith(1_000_000, 10);
    time.follow(3_500_000);
    expect(time.work()).toBe(0.0000005 * 1000);
    expect(noticed).toEqual([1_000_000, 2_000_000, 3_000_000]);
    expect(time.instantPs).toBe(3_500_000);
    time.follow(2_000_000);
    time.work();
    expect(time.instantPs).toBe(3_500_000);
  });

  it('is exact after two hours of idleness', () => {
    const { time, noticed } = timeWith(8e15, 1);
    time.follow(8e15 - 1);
    time.work();
    expect(noticed).toEqual([]);
    expect(time.nextPs).toBe(8e15);
    time.follow(8e15 + 1);
    time.work();
    expect(noticed).toEqual([8e15]);
  });

  it('runs ahead for an access until it is answered, or gives it up if nothing can answer', () => {
    const { time, noticed } = timeWith(700_000, 5);
    const third = {
      get isDone() {
        return noticed.length >= 3;
      },
    };
    time.arrive();
    expect(time.runUntil(third)).toBe(true);
    expect(noticed.length).toBe(3);
    // It looks again after 10 ns.
    expect(time.instantPs).toBeLessThanOrEqual(2_100_000 + 10_000);
    expect(time.runUntil({ isDone: false })).toBe(false);
  });

  it('gives an access up that takes longer than a completion time-out', () => {
    const { time } = timeWith(1_000_000_000, 1000);
    time.arrive();
    expect(time.runUntil({ isDone: false })).toBe(false);
    expect(time.instantPs).toBeGreaterThan(50_000_000_000);
    expect(time.instantPs).toBeLessThan(53_000_000_000);
  });
});
