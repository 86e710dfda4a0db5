import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { LogicalProcess } from './logical-process.ts';

interface Happenings {
  /** Cycles from one edge of the long stage to its next one. */
  readonly steps: readonly number[];
  readonly otherCycles: readonly number[];
  readonly eventsPs: readonly number[];
  readonly recordsPs: readonly number[];
  readonly limitsPs: readonly number[];
}

/**
 * Manner in which a stage reaches its next edge: in its turn, by itself, or by itself together with the records before
 * it.
 */
type Way = 'turns' | 'switchedOff' | 'passTo' | 'standAt' | 'takes';

/** Events of a process, with their instants. */
function logOf(happenings: Happenings, way: Way, isDownstream: boolean, firstCycle = 0): string[] {
  const startPs = firstCycle * 1000;
  const process = new LogicalProcess('device', undefined, way !== 'switchedOff');
  const domain = process.addClockDomain(1000);
  const { runAhead } = process;
  const log: string[] = [];
  const note = (who: string): number => log.push(`${who} at ${process.nowPs}, cycle ${domain.cycle}`);
  const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
  const writer = new ChannelWriter(buffer);
  const reader = new ChannelReader(buffer);
  process.addInbound(reader, 1, (offset) => {
    note('record');
    reader.release(offset);
  });
  for (const timePs of happenings.recordsPs.toSorted((a, b) => a - b)) writer.append(startPs + timePs, 1, 0);
  writer.publish(Number.POSITIVE_INFINITY);
  reader.refresh();
  let step = 0;
  const other = (): number => domain.addStage(() => note('other'));
  const before = isDownstream ? other() : -1;
  const long = domain.addStage((cycle) => {
    for (let edge = cycle; ; ) {
      note('long');
      const steps = happenings.steps[step++];
      if (steps === undefined) return;
      edge += steps;
      if (way === 'takes') take(domain.clock.edgePs(edge));
      if (passes(edge)) continue;
      domain.wake(long, edge);
      return;
    }
  });
  const isQuiescentUntil = (instantPs: number): boolean =>
    instantPs < runAhead.quiescentUntilPs(reader) &&
    domain.clock.cycleAtOrAfter(instantPs) < domain.aloneUntil(long);
  const take = (edgePs: number): void => {
    while (reader.nextPs <= edgePs && isQuiescentUntil(reader.nextPs)) {
      const offset = runAhead.takeRecord(reader);
      note('record');
      reader.release(offset);
    }
  };
  const passes = (edge: number): boolean => {
    const edgePs = domain.clock.edgePs(edge);
    if (way === 'turns') return false;
    if (way === 'passTo' || way === 'switchedOff') return runAhead.passTo(domain, long, edge);
    if (way === 'standAt' && edge > runAhead.lastPassable(domain, long)) return false;
    if (way === 'takes' && (reader.nextPs <= edgePs || !isQuiescentUntil(edgePs))) return false;
    process.nowPs = edgePs;
    domain.standAt(edge, 1);
    return true;
  };
  const second = isDownstream ? before : other();
  const handler = process.queue.addHandler(() => {
    note('event');
    domain.wakeAfter(second, process.nowPs);
  });
  for (const atPs of happenings.eventsPs) process.queue.schedule(startPs + atPs, handler);
  for (const cycle of happenings.otherCycles) domain.wake(second, firstCycle + cycle);
  domain.wake(long, firstCycle + 1);
  for (const limitPs of happenings.limitsPs.toSorted((a, b) => a - b)) {
    process.advance(startPs + limitPs);
    log.push(`stopped at ${process.nowPs}, next ${process.nextPs()}, edges ${domain.activeEdgeCount}`);
  }
  return log;
}

const instants = fc.array(fc.integer({ min: 1, max: 40 }).map((halves) => halves * 500));
const happeningsOf = fc.record({
  steps: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 12 }),
  otherCycles: fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 3 }),
  eventsPs: instants,
  recordsPs: instants,
  limitsPs: instants.map((limits) => [...limits, 100_000]),
});

/** First cycles, also beyond 31 bits: the domain then keeps them in another kind of array. */
const firstCycles = fc.constantFrom(0, 2 ** 31 - 12, 2 ** 31 + 1000);

describe('a stage that continues to its next edge by itself', () => {
  it('keeps everything in order and at its instant', () => {
    fc.assert(
      fc.property(happeningsOf, fc.boolean(), firstCycles, (happenings, isDownstream, firstCycle) => {
        const expected = logOf(happenings, 'turns', isDownstream, firstCycle);
        for (const way of ['switchedOff', 'passTo', 'standAt', 'takes'] as const)
          expect(logOf(happenings, way, isDownstream, firstCycle), way).toEqual(expected);
      }),
      { numRuns: 1000 },
    );
  });

  const alone: Happenings = {
    steps: [3],
    otherCycles: [],
    eventsPs: [],
    recordsPs: [],
    limitsPs: [],
  };
  /** Whether a stage at edge 1 (1000 ps) may continue to edge 4. */
  function passes(change: Partial<Happenings>, isDownstream = false, limitPs = 100_000): boolean {
    const { otherCycles, eventsPs, recordsPs } = { ...alone, ...change };
    const process = new LogicalProcess('device');
    const domain = process.addClockDomain(1000);
    const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
    const writer = new ChannelWriter(buffer);
    const reader = new ChannelReader(buffer);
    process.addInbound(reader, 1, (offset) => reader.release(offset));
    for (const timePs of recordsPs) writer.append(timePs, 1, 0);
    writer.publish(Number.POSITIVE_INFINITY);
    reader.refresh();
    let passed = false;
    const before = isDownstream ? domain.addStage(() => undefined) : -1;
    const long = domain.addStage((cycle) => {
      if (cycle !== 1) return;
      const isPassable = process.runAhead.lastPassable(domain, long) >= 4;
      passed = process.runAhead.passTo(domain, long, 4);
      expect(isPassable).toBe(passed);
    });
    const other = isDownstream ? before : domain.addStage(() => undefined);
    const handler = process.queue.addHandler(() => undefined);
    for (const atPs of eventsPs) process.queue.schedule(atPs, handler);
    for (const cycle of otherCycles) domain.wake(other, cycle);
    domain.wake(long, 1);
    process.advance(limitPs);
    return passed;
  }

  it('does so when nothing precedes, also at an event after that edge', () => {
    expect(passes({})).toBe(true);
    expect(passes({ eventsPs: [4000] })).toBe(true);
    expect(passes({ recordsPs: [4001] })).toBe(true);
    expect(passes({ otherCycles: [5] })).toBe(true);
  });

  it('does not pass an event, a record, another stage, or the end of its turn', () => {
    expect(passes({ eventsPs: [3999] })).toBe(false);
    expect(passes({ recordsPs: [4000] })).toBe(false);
    expect(passes({ otherCycles: [4] })).toBe(false);
    expect(passes({ otherCycles: [4] }, true)).toBe(false);
    expect(passes({ otherCycles: [1] })).toBe(false);
    expect(passes({}, false, 4000)).toBe(false);
  });

  it.each(['passTo', 'standAt'] as const)(
    'is at the edge that it reaches by %s: stages woken there run there',
    (way) => {
      const process = new LogicalProcess('device');
      const domain = process.addClockDomain(1000);
      const runs: string[] = [];
      const long = domain.addStage((cycle) => {
        runs.push(`long ${cycle}`);
        if (cycle !== 1) return;
        if (way === 'passTo') expect(process.runAhead.passTo(domain, long, 4)).toBe(true);
        else domain.standAt(4, 1);
        domain.wake(upstream, 4);
      });
      const upstream = domain.addStage((cycle) => runs.push(`upstream ${cycle}`));
      domain.wake(long, 1);
      process.advance(100_000);
      expect(runs).toEqual(['long 1', 'upstream 4']);
      expect(domain.activeEdgeCount).toBe(2);
    },
  );

  it('lets a resumed program run first', () => {
    const process = new LogicalProcess('host');
    const domain = process.addClockDomain(1000);
    const reader = new ChannelReader(new SharedArrayBuffer(channelBufferBytes(4096)));
    const seen: unknown[] = [];
    const stage = domain.addStage(() => {
      process.runningProgramCount++;
      const { runAhead } = process;
      seen.push(
        runAhead.passTo(domain, stage, 4),
        runAhead.lastPassable(domain, stage),
        runAhead.quiescentUntilPs(reader),
      );
    });
    domain.wake(stage, 1);
    expect(process.advance(100_000)).toBe(true);
    expect(seen).toEqual([false, -1, Number.NEGATIVE_INFINITY]);
  });

  /**
   * Returns how long its process is quiescent, as a stage at edge 1 sees it; records of the first channel are its own.
   */
  function quiescentUntilPsOf(
    change: Partial<Happenings>,
    channels: readonly number[][] = [[]],
    limitPs = 100_000,
  ): number {
    const process = new LogicalProcess('host');
    const domain = process.addClockDomain(1000);
    const readers = channels.map((recordsPs) => {
      const writer = new ChannelWriter(new SharedArrayBuffer(channelBufferBytes(4096)));
      const reader = new ChannelReader(writer.buffer);
      process.addInbound(reader, 1, (offset) => reader.release(offset));
      for (const timePs of recordsPs) writer.append(timePs, 1, 0);
      writer.publish(Number.POSITIVE_INFINITY);
      reader.refresh();
      return reader;
    });
    let quiescentUntilPs = Number.NaN;
    const long = domain.addStage((cycle) => {
      if (cycle === 1) quiescentUntilPs = process.runAhead.quiescentUntilPs(readers[0]!);
    });
    const other = domain.addStage(() => undefined);
    const handler = process.queue.addHandler(() => undefined);
    for (const atPs of change.eventsPs ?? []) process.queue.schedule(atPs, handler);
    for (const cycle of change.otherCycles ?? []) domain.wake(other, cycle);
    domain.wake(long, 1);
    process.advance(limitPs);
    return quiescentUntilPs;
  }

  it('finds the instant until which its process only has to run its domain', () => {
    expect(quiescentUntilPsOf({})).toBe(100_000);
    expect(quiescentUntilPsOf({}, [[5000]])).toBe(100_000);
    expect(quiescentUntilPsOf({}, [[5000], [8000]])).toBe(8000);
    expect(quiescentUntilPsOf({ eventsPs: [7000] }, [[5000], [8000]])).toBe(7000);
    expect(quiescentUntilPsOf({ eventsPs: [9000] }, [[5000], [8000]])).toBe(8000);
    expect(quiescentUntilPsOf({}, [[]], 3000)).toBe(3000);
  });

  it('does not find it if more than two channels lead in', () => {
    expect(quiescentUntilPsOf({}, [[], [], []])).toBe(Number.NEGATIVE_INFINITY);
  });

  it('never does so if it is switched off, nor with several domains or a random order', () => {
    const results: boolean[] = [];
    const reader = new ChannelReader(new SharedArrayBuffer(channelBufferBytes(4096)));
    const processes = [
      new LogicalProcess('shuffled', () => 0),
      new LogicalProcess('two'),
      new LogicalProcess('off', undefined, false),
    ];
    for (const process of processes) {
      const domain = process.addClockDomain(1000);
      const { runAhead } = process;
      const own = domain.addStage(() => {
        results.push(
          runAhead.passTo(domain, own, 4),
          runAhead.lastPassable(domain, own) > 1,
          runAhead.quiescentUntilPs(reader) > 0,
        );
      });
      if (process.name === 'two') process.addClockDomain(500);
      domain.wake(own, 1);
      process.advance(100_000);
    }
    expect(results).toHaveLength(9);
    expect(results).not.toContain(true);
  });
});
