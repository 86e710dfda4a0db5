import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChannelReader, ChannelWriter, channelBufferBytes } from './channel.ts';
import { Clock } from './clock.ts';
import { ClockDomain } from './clock-domain.ts';
import { LogicalProcess } from './logical-process.ts';

interface Happenings {
  /** Cycles from one edge of the long stage to its next one. */
  readonly steps: readonly number[];
  readonly otherCycles: readonly number[];
  readonly eventsPs: readonly number[];
  readonly recordsPs: readonly number[];
  readonly limitsPs: readonly number[];
}

/** What happens in a process, with its instants, when one stage passes on to its next edge itself or waits for its turn. */
function logOf(happenings: Happenings, passes: boolean, isDownstream: boolean): string[] {
  const process = new LogicalProcess('device');
  const domain = process.addClockDomain(1000);
  const log: string[] = [];
  const note = (who: string): number => log.push(`${who} at ${process.nowPs}, cycle ${domain.cycle}`);
  const buffer = new SharedArrayBuffer(channelBufferBytes(4096));
  const writer = new ChannelWriter(buffer);
  const reader = new ChannelReader(buffer);
  process.addInbound(reader, 1, (offset) => {
    note('record');
    reader.release(offset);
  });
  for (const timePs of happenings.recordsPs.toSorted((a, b) => a - b)) writer.append(timePs, 1, 0);
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
      if (passes && domain.passTo(long, edge)) continue;
      domain.wake(long, edge);
      return;
    }
  });
  const second = isDownstream ? before : other();
  const handler = process.queue.addHandler(() => {
    note('event');
    domain.wakeAfter(second, process.nowPs);
  });
  for (const atPs of happenings.eventsPs) process.queue.schedule(atPs, handler);
  for (const cycle of happenings.otherCycles) domain.wake(second, cycle);
  domain.wake(long, 1);
  for (const limitPs of happenings.limitsPs.toSorted((a, b) => a - b)) {
    process.advance(limitPs);
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

describe('a stage that passes on to its next edge itself', () => {
  it('leaves everything in its order and at its instant', () => {
    fc.assert(
      fc.property(happeningsOf, fc.boolean(), (happenings, isDownstream) => {
        expect(logOf(happenings, true, isDownstream)).toEqual(logOf(happenings, false, isDownstream));
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
  /** Whether a stage at edge 1 (1000 ps) may pass on to edge 4. */
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
      if (cycle === 1) passed = domain.passTo(long, 4);
    });
    const other = isDownstream ? before : domain.addStage(() => undefined);
    const handler = process.queue.addHandler(() => undefined);
    for (const atPs of eventsPs) process.queue.schedule(atPs, handler);
    for (const cycle of otherCycles) domain.wake(other, cycle);
    domain.wake(long, 1);
    process.advance(limitPs);
    return passed;
  }

  it('does so when nothing comes before, also at an event behind that edge', () => {
    expect(passes({})).toBe(true);
    expect(passes({ eventsPs: [4000] })).toBe(true);
    expect(passes({ recordsPs: [4001] })).toBe(true);
    expect(passes({ otherCycles: [5] })).toBe(true);
  });

  it('does not pass by an event, a record, another stage, or the end of its turn', () => {
    expect(passes({ eventsPs: [3999] })).toBe(false);
    expect(passes({ recordsPs: [4000] })).toBe(false);
    expect(passes({ otherCycles: [4] })).toBe(false);
    expect(passes({ otherCycles: [4] }, true)).toBe(false);
    expect(passes({ otherCycles: [1] })).toBe(false);
    expect(passes({}, false, 4000)).toBe(false);
  });

  it('lets a program go first that it has resumed', () => {
    const process = new LogicalProcess('host');
    const domain = process.addClockDomain(1000);
    let passed = true;
    const stage = domain.addStage(() => {
      process.runningProgramCount++;
      passed = domain.passTo(stage, 4);
    });
    domain.wake(stage, 1);
    expect(process.advance(100_000)).toBe(true);
    expect(passed).toBe(false);
  });

  it('never does in a domain without a process, nor where several domains or chance decide what comes first', () => {
    const results: boolean[] = [];
    const alonePassing = new ClockDomain(new Clock(1000));
    const stage = alonePassing.addStage(() => results.push(alonePassing.passTo(stage, 4)));
    alonePassing.wake(stage, 1);
    alonePassing.runEdge();
    for (const process of [new LogicalProcess('shuffled', () => 0), new LogicalProcess('two')]) {
      const domain = process.addClockDomain(1000);
      const own = domain.addStage(() => results.push(domain.passTo(own, 4)));
      if (process.name === 'two') process.addClockDomain(500);
      domain.wake(own, 1);
      process.advance(100_000);
    }
    expect(results).toEqual([false, false, false]);
  });
});
