import { describe, expect, it } from 'vitest';
import { OBSERVATION_VALUES, ObservationLog, type ProcessObservations } from './observation.ts';

const clockAt = (epochUs = 0) => ({ epochUs, nowPs: 0 });
const unlimited = { recordsMax: 100, fromPs: 0, toPs: Number.POSITIVE_INFINITY };
const instantsOf = ({ columns }: ProcessObservations): bigint[] =>
  Array.from(
    { length: columns.count },
    (_, at) => BigInt(columns.us[at]!) * 1_000_000n + BigInt(columns.ps[at]!),
  );

describe('an observation log', () => {
  it('keeps instants since power-on, independent of epochs', () => {
    const clock = clockAt();
    const log = new ObservationLog('host0', clock, unlimited);
    const track = log.track('cores', 'core 0');
    log.note(3, track, 2_500_001, 7, 1, 2, 3, 4, 5, 6, 7, 8);
    clock.epochUs = 2;
    log.note(3, track, 500_001, 7);
    // Intervals that began before the epoch.
    log.note(3, track, -1, 0);
    const { columns } = log.collect();
    expect(instantsOf(log.collect())).toEqual([2_500_001n, 2_500_001n, 1_999_999n]);
    expect([...columns.durationPs]).toEqual([7, 7, 0]);
    expect([...columns.values.slice(0, 8)]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  it('is exact after days', () => {
    const log = new ObservationLog('host0', clockAt(86_400_000_000 * 30), unlimited);
    log.note(0, log.track('cores', 'core 0'), 1, 0);
    expect(instantsOf(log.collect())).toEqual([86_400_000_000n * 30n * 1_000_000n + 1n]);
  });

  it('keeps a number of records and counts later ones', () => {
    const log = new ObservationLog('host0', clockAt(), { ...unlimited, recordsMax: 5000 });
    const track = log.track('cores', 'core 0');
    for (let at = 0; at < 5003; at++) log.note(0, track, at, 0, at);
    const { columns, droppedCount } = log.collect();
    expect([columns.count, droppedCount]).toEqual([5000, 3]);
    expect(columns.values[4999 * OBSERVATION_VALUES]).toBe(4999);
  });

  it('keeps records that overlap its interval, and counts no others as dropped', () => {
    const log = new ObservationLog('host0', clockAt(), { recordsMax: 9, fromPs: 100, toPs: 200 });
    const track = log.track('cores', 'core 0');
    for (const [at, duration] of [
      [10, 89],
      [10, 90],
      [150, 0],
      [199, 500],
      [200, 1],
    ] as const)
      log.note(0, track, at, duration);
    expect(instantsOf(log.collect())).toEqual([10n, 150n, 199n]);
    expect(log.droppedCount).toBe(0);
  });

  it('numbers a track once, by group and name', () => {
    const log = new ObservationLog('host0', clockAt(), unlimited);
    const numbers = [log.track('a', 'x'), log.track('b', 'x'), log.track('a', 'x', { latencyPs: 3 })];
    expect(numbers).toEqual([0, 1, 0]);
    expect(log.tracks).toEqual([
      { group: 'a', name: 'x' },
      { group: 'b', name: 'x' },
    ]);
  });

  it('shows open intervals up to now, at each sample', () => {
    const log = new ObservationLog('host0', clockAt(), unlimited);
    const track = log.track('blocks', 'doorbells');
    let nowPs = 50;
    log.addOpenEnd(() => log.note(1, track, 40, nowPs - 40));
    log.note(0, track, 0, 40);
    expect([...log.collect().columns.durationPs]).toEqual([40, 10]);
    nowPs = 60;
    expect([...log.collect().columns.durationPs]).toEqual([40, 20]);
    expect(log.count).toBe(1);
  });

  it('passes its records to a sink whenever it is full, and drops nothing', () => {
    const taken: number[] = [];
    const sink = ({ columns }: ProcessObservations): void => void taken.push(...columns.ps);
    const log = new ObservationLog('host0', clockAt(), { ...unlimited, recordsMax: 2, sink });
    for (let at = 0; at < 5; at++) log.note(0, log.track('a', 'x'), at, 0);
    expect(taken).toEqual([0, 1, 2, 3]);
    log.flush();
    expect([taken, log.droppedCount]).toEqual([[0, 1, 2, 3, 4], 0]);
  });
});
