/**
 * Runs the missing points of a sweep and appends each row when its point is finished.
 *
 *     points ─► without a row? ─► one of each hash ─► engine ─► outcome, by hash ─► row ─► file
 *                                     others of the hash: copies of its row
 *
 * An engine runs the points: this process (`laneEngine` with any runner), or other machines (`bullmq/`, `slurm/`). It
 * guarantees that an outcome depends on its order alone, so the engine affects neither the sequence of rows nor the
 * figures. This file ensures, for every engine, that no point is lost or has two rows.
 */
import { assertInvariant } from '../../base/index.ts';
import type { MachineOptions } from '../../machine/index.ts';
import { canonicalJson } from '../../machine/profile/index.ts';
import type { SweepOrder, SweepPoint } from './expansion.ts';
import type { ResultsFile } from './results-file.ts';
import { type Outcome, outcomeOf, rowOf, type SweepRow, worthOfStatus } from './row.ts';
import type { PointArgs } from './workload-field.ts';

/** A point to run; its outcome is identified by its hash. */
export interface PointToRun {
  readonly hash: string;
  readonly order: SweepOrder;
}

/** Receives the outcome of the point with this hash; of several for one point, the first counts. */
export type TakeOutcome = (hash: string, outcome: Outcome) => void;

/** Runs points. */
export interface SweepEngine {
  /**
   * Passes the outcome of each point to `take` as it ends; a failed point also has an outcome. Ends when all have one.
   * @throws if no more points can run, and the error of `take`, after which it starts no more points
   */
  run(points: readonly PointToRun[], take: TakeOutcome): Promise<void>;
}

/** A point's run, on a machine that may also say in which manner it runs. */
export interface PointOrder {
  readonly machine: MachineOptions;
  readonly args: PointArgs;
}

/** Executes single orders. */
export interface PointRunner {
  /** Number of orders that it needs at once to stay busy. */
  readonly capacity: number;
  /** Never throws: an error is an outcome. */
  run(order: PointOrder): Promise<Outcome>;
}

/** The engine that keeps a runner busy. */
export const laneEngine = (runner: PointRunner): SweepEngine => ({
  run: (points, take) =>
    inLanes(points, runner.capacity, async ({ hash, order }) => take(hash, await runner.run(order))),
});

/**
 * Processes each of the points in order, with this many at once.
 * @throws the first error, after which it starts no more
 */
export async function inLanes<Point>(
  points: readonly Point[],
  laneCount: number,
  work: (point: Point) => Promise<void>,
): Promise<void> {
  let begun = 0;
  let isGivenUp = false;
  const lane = async (): Promise<void> => {
    while (begun < points.length && !isGivenUp) await work(points[begun++]!);
  };
  const giveUp = (error: unknown): never => {
    isGivenUp = true;
    throw error;
  };
  const lanes = Math.min(laneCount, points.length);
  const ends = await Promise.allSettled(Array.from({ length: lanes }, () => lane().catch(giveUp)));
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

/** A part of a sweep: every `count`-th point, from the `number`-th on, counted from 1. */
export interface Shard {
  readonly number: number;
  readonly count: number;
}

export interface RunChoice {
  readonly shard?: Shard;
  /** Runs points again that failed before. */
  readonly isFailedRetried?: boolean;
  /** Rows of other sweeps: a point with the hash of one copies its outcome. */
  readonly reused?: readonly SweepRow[];
}

/** Points to run, and those whose outcome is known from elsewhere. */
export interface Work {
  /** Each element has the points of one hash; the first of them runs. */
  readonly groups: readonly (readonly SweepPoint[])[];
  /** Rows that only need to be written. */
  readonly known: readonly SweepRow[];
}

/** Remaining points of a sweep. */
export function workOf(
  points: readonly SweepPoint[],
  rows: ReadonlyMap<number, SweepRow>,
  { shard = { number: 1, count: 1 }, isFailedRetried = false, reused = [] }: RunChoice = {},
): Work {
  const isOver = ({ status }: SweepRow): boolean => status !== 'failed' || !isFailedRetried;
  const over = bestByHash([...reused, ...rows.values()].filter(isOver));
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

/** Selects, for each hash, the most informative row, and the last among equal ones. */
function bestByHash(rows: readonly SweepRow[]): ReadonlyMap<string, SweepRow> {
  const best = new Map<string, SweepRow>();
  for (const row of rows) {
    const other = best.get(row.hash);
    if (other === undefined || worthOfStatus[row.status] >= worthOfStatus[other.status])
      best.set(row.hash, row);
  }
  return best;
}

/** Points of the same machine consecutively, in the order of each machine's first point: then it boots only once. */
function byMachine(groups: readonly (readonly SweepPoint[])[]): (readonly SweepPoint[])[] {
  const machines = Map.groupBy(groups, ([point]) => canonicalJson(point!.order!.machine));
  return [...machines.values()].flat();
}

/** @param onDone called with the number of finished points, after each */
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
  const left = new Map(groups.map((group) => [group[0]!.hash, group]));
  const points = groups.map(([point]) => ({ hash: point!.hash, order: point!.order! }));
  await engine.run(points, (hash, outcome) => {
    const group = left.get(hash) ?? [];
    left.delete(hash);
    for (const point of group) take(rowOf(point, outcome));
  });
  assertInvariant(left.size === 0, 'an engine ends with an outcome for every point');
  file.finish();
}
