/**
 * Runs what is missing of a sweep and appends each row as its point is over.
 *
 *     points ─► without a row? ─► one of each hash ─► engine, so many at once ─► row ─► file
 *                                     others of the hash: copies of its row
 *
 * What runs a point is an engine: this thread, workers, or one day other machines. It promises that the outcome of an order
 * depends on nothing but the order, so that neither order nor figures depend on it.
 */
import type { PerfOrder } from '../cli/perf-run.ts';
import { canonicalJson } from '../machine/profile/canonical-json.ts';
import type { SweepPoint } from './expansion.ts';
import type { ResultsFile } from './results-file.ts';
import { type Outcome, outcomeOf, rowOf, type SweepRow } from './row.ts';

/** Carries out orders. */
export interface SweepEngine {
  /** Orders that it wants at once, so that it has no gap between them. */
  readonly capacity: number;
  /** Never throws: an error is an outcome. */
  run(order: PerfOrder): Promise<Outcome>;
}

/** A part of a sweep: every `count`-th point, from the `number`-th on, counted from 1. */
export interface Shard {
  readonly number: number;
  readonly count: number;
}

export interface RunChoice {
  readonly shard?: Shard;
  /** Points that failed before run again. */
  readonly isFailedRetried?: boolean;
  /** Rows of other sweeps: a point with the hash of one takes over its outcome. */
  readonly reused?: readonly SweepRow[];
}

/** Points that have to run, and those whose outcome is known from elsewhere. */
export interface Work {
  /** Each the points of one hash; the first of them runs. */
  readonly groups: readonly (readonly SweepPoint[])[];
  /** Rows that only have to be written. */
  readonly known: readonly SweepRow[];
}

/** What is left to do of a sweep. */
export function workOf(
  points: readonly SweepPoint[],
  rows: ReadonlyMap<number, SweepRow>,
  { shard = { number: 1, count: 1 }, isFailedRetried = false, reused = [] }: RunChoice = {},
): Work {
  const isOver = ({ status }: SweepRow): boolean => status !== 'failed' || !isFailedRetried;
  const over = new Map([...reused, ...rows.values()].filter(isOver).map((row) => [row.hash, row]));
  const groups = new Map<string, SweepPoint[]>();
  const known: SweepRow[] = [];
  for (const point of points) {
    const own = rows.get(point.index);
    if (point.index % shard.count !== shard.number - 1 || (own !== undefined && isOver(own))) continue;
    const other = over.get(point.hash);
    if (other !== undefined) known.push(rowOf(point, outcomeOf(other)));
    else if (point.refusal !== undefined)
      known.push(rowOf(point, { status: 'refused', error: point.refusal }));
    else groups.set(point.hash, [...(groups.get(point.hash) ?? []), point]);
  }
  return { groups: byMachine([...groups.values()]), known };
}

/** Points of the same machine after each other, in the order of each machine's first point: it need boot only once then. */
function byMachine(groups: readonly (readonly SweepPoint[])[]): (readonly SweepPoint[])[] {
  const machines = Map.groupBy(groups, ([point]) => canonicalJson(point!.order!.machine));
  return [...machines.values()].flat();
}

/** @param onDone called with the number of points that are over, after each */
export async function runWork(
  { groups, known }: Work,
  file: ResultsFile,
  engine: SweepEngine,
  onDone: (count: number) => void = () => {},
): Promise<void> {
  let doneCount = 0;
  const take = (row: SweepRow): void => {
    file.append(row);
    onDone(++doneCount);
  };
  for (const row of known) take(row);
  let begun = 0;
  let isGivenUp = false;
  const work = async (): Promise<void> => {
    while (begun < groups.length && !isGivenUp) {
      const group = groups[begun++]!;
      const outcome = await engine.run(group[0]!.order!);
      for (const point of group) take(rowOf(point, outcome));
    }
  };
  const giveUp = (error: unknown): never => {
    isGivenUp = true;
    throw error;
  };
  const ends = await Promise.allSettled(Array.from({ length: engine.capacity }, () => work().catch(giveUp)));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
  file.finish();
}
