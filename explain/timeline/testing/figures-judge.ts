/**
 * Compares a report's figures of blocks, caches and operations with the records of the run: sums of intervals with sums
 * of cycles, counts of records with counters, and, by Little's law, mean numbers under way.
 */
import type { NodeReport, Report } from '../../../machine/index.ts';
import type { TimelineRecord } from '../../../machine/timeline/index.ts';
import { type OperationFlow, operationFlows } from '../index.ts';
import { labelOf } from '../labels.ts';
import type { RecordedRun } from './recorded-run.ts';

const nodeOf = ({ track }: TimelineRecord): number => Number(track.process.replace(/^\D+/, ''));
const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);
const endOf = ({ atPs, durationPs }: TimelineRecord): number => Number(atPs) + durationPs;

export function figureFailures(recorded: RecordedRun): string[] {
  const { report, timeline } = recorded;
  const records = [...timeline.records()];
  const flows = operationFlows(timeline).map((flow) => ({
    flow,
    own: flow.records.map((at) => records[at]!),
  }));
  return [
    ...report.nodes.flatMap(({ hca }, node) => cacheFailures(records, node, hca.caches)),
    ...blockFailures(records, recorded),
    ...operationFailures(flows, report),
    ...queueFailures(records, flows, recorded),
  ];
}

/**
 * A miss is counted once, when the read is awaited. The report counts a hit when the entry is used; the records have
 * every look-up, so there are at least as many (docs/how-to/timeline.md).
 */
export function cacheFailures(
  records: readonly TimelineRecord[],
  node: number,
  caches: NodeReport['hca']['caches'],
): string[] {
  const seen = new Map<string, { hits: number; misses: number }>();
  for (const record of records) {
    if (nodeOf(record) !== node || (record.kind !== 'cacheHit' && record.kind !== 'cacheMiss')) continue;
    const key = `${record.track.name.toLowerCase()} ${record.track.names![record.values[0]!]}`;
    const row = seen.get(key) ?? { hits: 0, misses: 0 };
    seen.set(key, row);
    row[record.kind === 'cacheHit' ? 'hits' : 'misses']++;
  }
  return Object.entries(caches).flatMap(([name, { hits, misses, users }]) => {
    const rows = Object.entries(users);
    const failures = rows.flatMap(([user, row]) => {
      const found = seen.get(`${name} ${user}`) ?? { hits: 0, misses: 0 };
      return found.misses === row.misses && found.hits >= row.hits && row.hits >= 0
        ? []
        : [`node ${node} ${name} ${user}: ${JSON.stringify(row)} for ${JSON.stringify(found)}`];
    });
    const isSum =
      hits === total(rows.map(([, row]) => row.hits)) && misses === total(rows.map(([, row]) => row.misses));
    return isSum ? failures : [...failures, `node ${node} ${name}: ${hits} and ${misses} are no sums`];
  });
}

/** Cycles of each block equal those of its intervals, and all of them together those of the run. */
function blockFailures(records: readonly TimelineRecord[], { report, config }: RecordedRun): string[] {
  const cyclePs = 1e6 / config.hca.coreClockMHz;
  const times = new Map<string, number>();
  const counts = new Map<string, number>();
  for (const record of records) {
    if (record.kind !== 'blockBusy' && record.kind !== 'blockStalled') continue;
    const state = record.kind === 'blockBusy' ? 'busy' : record.track.names![record.values[0]!]!;
    const key = `${nodeOf(record)} ${record.track.name} ${state}`;
    times.set(key, (times.get(key) ?? 0) + record.durationPs);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return report.nodes.flatMap(({ hca }, node) =>
    Object.entries(hca.blocks).flatMap(([name, { busyCycles, idleCycles, elapsedCycles, stalledCycles }]) => {
      const what = `node ${node} ${name}`;
      const all = busyCycles + idleCycles + total(Object.values(stalledCycles));
      const failures =
        all === elapsedCycles && Math.abs(elapsedCycles * cyclePs - report.elapsedPs) <= cyclePs
          ? []
          : [`${what}: ${all} of ${elapsedCycles} cycles, ${report.elapsedPs} ps`];
      for (const [state, cycles] of Object.entries({ busy: busyCycles, ...stalledCycles })) {
        const key = `${node} ${name} ${state}`;
        const seenPs = times.get(key) ?? 0;
        // An interval ends at edges, which are whole picoseconds; the last work is cut at the end of the run.
        const roundingPs = (counts.get(key) ?? 0) + lastWorkCycles * cyclePs;
        if (Math.abs(seenPs - cycles * cyclePs) > roundingPs)
          failures.push(`${what} ${state}: ${cycles} cycles for ${seenPs / cyclePs}`);
      }
      return failures;
    }),
  );
}

const lastWorkCycles = 64;

interface Followed {
  readonly flow: OperationFlow;
  readonly own: readonly TimelineRecord[];
}
const of = ({ own }: Followed, kind: TimelineRecord['kind']): TimelineRecord | undefined =>
  own.find((record) => record.kind === kind);

/** Quantiles of a report are accurate to 0.4 %. */
const quantileShare = 0.004;

function operationFailures(flows: readonly Followed[], { operations }: Report): string[] {
  return Object.entries(operations).flatMap(([name, billed]) => {
    const own = flows.filter((each) => {
      const ended = of(each, 'operation') ?? of(each, 'failed');
      return ended !== undefined && labelOf(ended).replace(/^failed /, '') === name;
    });
    const done = own.flatMap((each) => of(each, 'operation') ?? []);
    const both = own.filter((each) => of(each, 'operation') !== undefined && of(each, 'taken') !== undefined);
    const { taken, ...stages } = billed.milestonesPs;
    const latencies = own
      .flatMap((each) => {
        const [posted, ended] = [of(each, 'posted'), of(each, 'taken')];
        return posted === undefined || ended === undefined ? [] : [Number(ended.atPs) - Number(posted.atPs)];
      })
      .toSorted((left, right) => left - right);
    const at = (percent: number): number =>
      latencies[Math.max(0, Math.ceil((percent / 100) * latencies.length) - 1)]!;
    const figures: readonly (readonly [string, number, number, number])[] = [
      ['count', billed.count, done.length, 0],
      ['failed', billed.failed, own.length - done.length, 0],
      ['silent', billed.silent, done.filter(({ values }) => values[4] === 1).length, 0],
      ['payload', billed.payloadBytes, total(done.map(({ values }) => values[3]!)), 0],
      ['stages', total(Object.values(stages)), total(done.map(({ durationPs }) => durationPs)), 0],
      [
        'taken',
        taken!,
        total(both.map((each) => Number(of(each, 'taken')!.atPs) - endOf(of(each, 'operation')!))),
        0,
      ],
      ...(billed.latencyPs === null
        ? ([['latencies', 0, latencies.length, 0]] as const)
        : ([
            ['min', billed.latencyPs.min, latencies[0] ?? 0, 0],
            ['max', billed.latencyPs.max, latencies.at(-1) ?? 0, 0],
            ['p50', billed.latencyPs.p50, at(50), quantileShare],
            ['p99', billed.latencyPs.p99, at(99), quantileShare],
          ] as const)),
    ];
    return figures
      .filter(([, is, due, share]) => !(Math.abs(is - due) <= share * due))
      .map(([what, is, due]) => `${name} ${what}: ${is}, ${due} are due`);
  });
}

/**
 * Little's law, exactly: over a time in which a queue begins and ends empty, the integral of its length equals the sum
 * of the times of all its members, at any rate. A completion also covers all earlier requests; they were in the queue
 * until then.
 */
function queueFailures(
  records: readonly TimelineRecord[],
  flows: readonly Followed[],
  { config, report }: RecordedRun,
): string[] {
  const failures: string[] = [];
  for (const [track, levels] of levelsOf(records)) {
    const queue = /^host(\d+) QP 0x([0-9a-f]+): requests posted and not taken$/.exec(track);
    const areaPs = areaOf(levels, report.elapsedPs);
    if (queue !== null) {
      const own = flows.filter(
        ({ flow }) => flow.node === Number(queue[1]) && flow.qpn === Number.parseInt(queue[2]!, 16),
      );
      const duePs = timesUntilTaken(own);
      if (duePs !== undefined && duePs !== areaPs) failures.push(`${track}: ${areaPs} ps, ${duePs} are due`);
    }
    if (!track.endsWith('tags in use')) continue;
    const readsPs = readTimes(records, Number(/\d+/.exec(track)![0]), config.pcie.link.latencyPs);
    const most = levels.reduce((peak, { values }) => Math.max(peak, values[0]!), 0);
    // A tag is in use before its read is on the lanes, and free when its last completion has arrived.
    if (areaPs < readsPs || most > config.dma.tagCount || levels.at(-1)!.values[0] !== 0)
      failures.push(
        `${track}: ${areaPs} ps for ${readsPs}, ${most} at most, ${levels.at(-1)!.values[0]} left`,
      );
  }
  return failures;
}

function levelsOf(records: readonly TimelineRecord[]): Map<string, TimelineRecord[]> {
  const levels = new Map<string, TimelineRecord[]>();
  for (const record of records) {
    if (record.kind !== 'level') continue;
    const key = `${record.track.process} ${record.track.name}`;
    const known = levels.get(key);
    if (known === undefined) levels.set(key, [record]);
    else known.push(record);
  }
  return levels;
}

const areaOf = (levels: readonly TimelineRecord[], endPs: number): number =>
  total(
    levels.map(
      ({ values, atPs }, index) => values[0]! * (Number(levels[index + 1]?.atPs ?? endPs) - Number(atPs)),
    ),
  );

/** Times from the post to the first completion of the request or of a later one; undefined if a request has none. */
function timesUntilTaken(own: readonly Followed[]): number | undefined {
  let sum = 0;
  let takenPs: number | undefined;
  for (const each of own.toReversed()) {
    const taken = of(each, 'taken');
    if (taken !== undefined) takenPs = Math.min(takenPs ?? Number.POSITIVE_INFINITY, Number(taken.atPs));
    const posted = of(each, 'posted');
    if (takenPs === undefined || posted === undefined) return undefined;
    sum += takenPs - Number(posted.atPs);
  }
  return sum;
}

/** Sums the times of all reads of a device, from the lanes to the arrival of the last byte of the completion. */
function readTimes(records: readonly TimelineRecord[], node: number, latencyPs: number): number {
  const [memoryRead, completionWithData] = [2, 3];
  const open = new Map<number, { fromPs: number; leftBytes: number }>();
  let sum = 0;
  for (const record of records) {
    if (record.kind !== 'tlp' || nodeOf(record) !== node) continue;
    const [type, , lengthBytes = 0, tag = 0] = record.values;
    const isToHost = record.track.name === 'to host';
    if (isToHost && type === memoryRead)
      open.set(tag, { fromPs: Number(record.atPs), leftBytes: lengthBytes });
    const read = open.get(tag);
    if (isToHost || type !== completionWithData || read === undefined) continue;
    read.leftBytes -= lengthBytes;
    if (read.leftBytes > 0) continue;
    sum += endOf(record) + latencyPs - read.fromPs;
    open.delete(tag);
  }
  return sum;
}
