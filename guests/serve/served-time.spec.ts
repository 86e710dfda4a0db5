import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../base/parameter.ts';
import { LogicalProcess, SteppedRunner } from '../../sim/index.ts';
import { servingParameters } from './parameters.ts';
import { ServedTime } from './served-time.ts';

const serving = defaultsOf(servingParameters);
const MS = 1e9;

/** One process with events at given instants, and a wall clock turned by hand. */
function clockwork(scale = 1) {
  const process = new LogicalProcess('alone');
  const wall = { ms: 500, perPoll: 0 };
  const time = new ServedTime(new SteppedRunner([process]), serving, scale, () => {
    wall.ms += wall.perPoll;
    return wall.ms;
  });
  const ran: number[] = [];
  const note = process.queue.addHandler(() => ran.push(process.nowPs));
  const at = (instantPs: number): void => {
    process.queue.schedule(instantPs, note);
    time.touched();
  };
  return { process, wall, time, ran, at };
}

describe('time on a served machine', () => {
  it('passes at full speed while an event is due soon', () => {
    const { time, ran, at } = clockwork();
    for (const instantPs of [1000, 2_000_000, 5_000_000]) at(instantPs);
    expect(time.work(1)).toBe(Number.POSITIVE_INFINITY);
    expect(ran).toEqual([1000, 2_000_000, 5_000_000]);
    expect(time.followedPs).toBe(0);
  });

  it('follows the wall clock to later events, and reports the remaining time', () => {
    const { time, ran, at, wall } = clockwork();
    at(7 * MS);
    expect(time.work(1)).toBe(7);
    wall.ms += 3;
    expect(time.work(1)).toBe(4);
    wall.ms += 3.999;
    expect(time.work(1)).toBeCloseTo(0.001, 6);
    expect(ran).toEqual([]);
    wall.ms += 1;
    expect(time.work(1)).toBe(Number.POSITIVE_INFINITY);
    expect(ran).toEqual([7 * MS]);
  });

  it('follows it at the given scale', () => {
    const { time, ran, at, wall } = clockwork(0.25);
    at(7 * MS);
    expect(time.work(1)).toBe(28);
    wall.ms += 28;
    time.work(1);
    expect(ran).toEqual([7 * MS]);
  });

  it('has passed when a guest acts after idleness, but not beyond events due in between', () => {
    const { time, at, wall, ran } = clockwork();
    time.work(1);
    wall.ms += 20;
    time.arrive();
    expect(time.nowPs).toBe(20 * MS);
    at(22 * MS);
    time.work(1);
    wall.ms += 5;
    time.arrive();
    expect(time.nowPs).toBe(22 * MS);
    expect(ran).toEqual([]);
    time.work(1);
    expect(ran).toEqual([22 * MS]);
  });

  it('does not catch up wall time that the computer spent on work', () => {
    const { time, at, wall } = clockwork();
    time.work(1);
    at(1000);
    wall.ms += 100;
    time.work(1);
    at(time.nowPs + 10 * MS);
    // 10 ms from now on, not from 100 ms ago.
    expect(time.work(1)).toBeCloseTo(10, 2);
  });

  it('catches up the jitter of a timer that fires a little late', () => {
    const { time, at, wall } = clockwork();
    time.work(1);
    at(5 * MS);
    at(15 * MS);
    time.work(1);
    wall.ms += 6;
    // 1 ms late: the next one, 10 ms after it, is due in 9.
    expect(time.work(1)).toBeCloseTo(9, 6);
  });

  it('returns the thread when its slice is over, for any load of the device', () => {
    const { process, time, wall } = clockwork();
    const again = process.queue.addHandler(() => {
      process.queue.schedule(process.nowPs + 1000, again);
    });
    process.queue.schedule(1000, again);
    time.touched();
    wall.perPoll = 0.1;
    expect(time.work(0.5)).toBe(0);
    expect(time.cutSliceCount).toBe(1);
    // Some steps of 1 µs each.
    expect(time.nowPs).toBeGreaterThan(2_000_000);
    expect(time.nowPs).toBeLessThan(10_000_000);
  });

  it('stands still while no guest is attached', () => {
    const { time, wall } = clockwork();
    time.work(1);
    time.standStill();
    wall.ms += 1e6;
    time.arrive();
    expect(time.nowPs).toBe(0);
    expect(time.work(1)).toBe(Number.POSITIVE_INFINITY);
    wall.ms += 1;
    time.arrive();
    expect(time.nowPs).toBe(MS);
  });

  it('continues for weeks: an event a month from the start takes as long as one at the start', () => {
    const { process, time, wall, ran } = clockwork();
    time.work(1);
    wall.ms += 30 * 86_400_000;
    time.arrive();
    const monthPs = 30n * 86_400n * 10n ** 12n;
    expect([process.instantPs, time.followedPs]).toEqual([monthPs, monthPs]);
    process.queue.schedule(
      process.nowPs + 1_234_567,
      process.queue.addHandler(() => ran.push(process.nowPs)),
    );
    const startPs = BigInt(process.instantPs);
    const watch = process.stopwatch();
    time.touched();
    expect(time.work(1)).toBe(Number.POSITIVE_INFINITY);
    expect([ran.length, watch.elapsedPs >= 1_234_567]).toEqual([1, true]);
    expect(BigInt(process.epochUs) * 1_000_000n + BigInt(ran[0]!) - startPs).toBe(1_234_567n);
  });

  it('accepts a timer of hours that expires days after the start, and another after it', () => {
    const { process, time, wall } = clockwork();
    const due: bigint[] = [];
    // ACK time-out code 31: 4.096 us × 2^31 (IBA 9.7.6.1.3).
    const timeoutPs = 4_096_000 * 2 ** 31;
    const handler = process.queue.addHandler(() => {
      due.push(BigInt(process.instantPs));
      if (due.length < 8) process.queue.schedule(process.nowPs + timeoutPs, handler);
    });
    process.queue.schedule(timeoutPs, handler);
    time.touched();
    while (due.length < 8) {
      const waitMs = time.work(1);
      wall.ms += Math.max(waitMs, 1);
    }
    expect(due).toEqual(due.map((_, turn) => BigInt(turn + 1) * BigInt(timeoutPs)));
  });

  it('waits for answers within one limit for one access, for any number of them', () => {
    const { process, time, wall } = clockwork();
    const again = process.queue.addHandler(() => {
      process.queue.schedule(process.nowPs + 1000, again);
    });
    process.queue.schedule(1000, again);
    time.touched();
    wall.perPoll = 10;
    const waitedMs = (): number => {
      const startMs = wall.ms;
      expect(time.runUntil({ isDone: false })).toBe(false);
      return wall.ms - startMs;
    };
    // accessLimitMs, after a first reading of the clock and including the last.
    expect(waitedMs()).toBe(serving.accessLimitMs + 20);
    for (let more = 0; more < 100; more++) expect(waitedMs()).toBe(10);
    expect(time.runUntil({ isDone: true })).toBe(true);
    time.arrive();
    expect(waitedMs()).toBe(serving.accessLimitMs + 20);
  });

  it('does not wait for an answer when no event is left', () => {
    expect(clockwork().time.runUntil({ isDone: false })).toBe(false);
  });
});
