/**
 * Turns rows into verdicts: the requested rows, the points that they need, and their results.
 *
 *     measurements ─► Case (row, family) ─► points, each once ─► figures ─► RowResult ─► GroupResult
 */
import { ConfigurationError, InvariantError } from '../../base/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { perfArgsOf } from '../workloads/index.ts';
import { families, isPublished, refusalOf } from './families/index.ts';
import { belongs, type Family, isRun, type NotRunKind, simulatedOf, toleranceOf } from './family.ts';
import { groupOf, isGiven, type Measurement } from './measurements.ts';
import { medianOf } from './median.ts';
import { type Figures, type Point, pointKey } from './points.ts';
import { type ToleranceName, verdictOf } from './verdict.ts';

/** Sources by the letter of their rows. */
const groupTitles: Readonly<Record<string, string>> = {
  A: 'perftest on a ConnectX-3 at QDR',
  B: 'ConnectX-3 at FDR: latency, IPoIB',
  C: 'HERD: ConnectX-3 at FDR',
  D: 'Design Guidelines: ConnectX-3 at FDR',
  E: 'FaSST: READs of all from all',
  F: 'LITE: registration, large regions',
  G: 'RFP, isolation, Storm',
  H: 'ConnectX-2: perftest, timers, wire',
  I: 'pcie-bench: the slot',
  J: 'ConnectX-5 at Gen3 x8',
  L: 'MPI over IPoIB',
  T: 'found later: perftest of many, RoCE',
  W: 'iWARP cards: vendors and a paper',
  X: 'fabrics of many hosts',
  own: 'rows of your file',
};

/** The title of a group; rows of a user's file may have any letter. */
export const groupTitle = (group: string): string => groupTitles[group] ?? 'own rows';

/** A row and how it runs. */
export interface Case {
  readonly row: Measurement;
  readonly family: Family;
  /** Absent for a row that does not run. */
  readonly points: readonly Point[];
}

/** @throws InvariantError for a row that belongs to no family, or to several */
export function casesOf(rows: readonly Measurement[]): Case[] {
  return rows.map((row) => {
    const own = families.filter((family) => belongs(row, family));
    const [family] = own;
    if (family === undefined || own.length > 1)
      throw new InvariantError(`families of row ${row.id}`, own.length, '1');
    return { row: differenceOf(row, family, rows), family, points: isRun(family) ? family.points(row) : [] };
  });
}

/** The row, less that from which its family tells the difference. */
function differenceOf(row: Measurement, family: Family, rows: readonly Measurement[]): Measurement {
  if (!isRun(family) || family.base === undefined) return row;
  const base = rows.find(({ id }) => id === family.base!(row));
  if (base === undefined) throw new InvariantError(`base of row ${row.id}`, family.base(row), 'a row');
  return { ...row, value: row.value - base.value, params: `${row.params}; less ${base.id}` };
}

/** A family for rows of a user's file that cannot run. */
const unknownFamily = (why: string): Family => ({
  name: 'rows that cannot run',
  of: {},
  workload: 'unknown',
  notRun: { kind: 'workload', why },
});

/**
 * The same for a user's file: a row that cannot run is not run, and says why. Its own rows are perftest's; a row with a
 * source and a place in it is read as a published one.
 */
export const ownCasesOf = (rows: readonly Measurement[]): Case[] =>
  rows.map((row) => {
    const isOwn = !isPublished(row);
    const refusal = isOwn ? refusalOf(row) : undefined;
    const family = families.find((one) => belongs(row, one) && !(isOwn && one.of.group !== undefined));
    if (refusal !== undefined || family === undefined)
      return without(row, refusal ?? 'no family of rows has its nic, workload, metric and unit');
    try {
      const points = isRun(family) ? family.points(row) : [];
      for (const { workload } of points) if (workload.kind === 'perf') perfArgsOf(workload.test);
      return { row, family, points };
    } catch (error) {
      if (error instanceof ConfigurationError) return without(row, error.message);
      if (error instanceof InvariantError) return without(row, `its params lack ${String(error.value)}`);
      throw error;
    }
  });

const without = (row: Measurement, why: string): Case => ({ row, family: unknownFamily(why), points: [] });

export interface RowChoice {
  /** Groups, rows, and ranges of rows: `A,C-074..C-083,D-030`. */
  readonly rows?: string;
  /** A group's letter, or part of a family name. */
  readonly group?: string;
}

/**
 * The requested cases.
 * @throws ConfigurationError for unknown rows and names
 */
export function chosen(cases: readonly Case[], { rows, group }: RowChoice): Case[] {
  const isListed = rows === undefined ? () => true : listed(cases, rows);
  const isNamed = group === undefined ? () => true : named(cases, group);
  return cases.filter((one) => isListed(one) && isNamed(one));
}

const groupsIn = (cases: readonly Case[]): string[] => [...new Set(cases.map(({ row }) => groupOf(row)))];

function listed(cases: readonly Case[], text: string): (one: Case) => boolean {
  const wanted = new Set(text.split(',').flatMap((part) => idsOf(cases, part.trim())));
  return ({ row }) => wanted.has(row.id);
}

/** A row of reference/fabric-measurements.csv. */
const fabricRow = /^X-\d/;

/** Ids of a group, a row or a range of rows. */
function idsOf(cases: readonly Case[], item: string): string[] {
  const groups = groupsIn(cases);
  if (groups.includes(item)) return cases.flatMap(({ row }) => (groupOf(row) === item ? [row.id] : []));
  const ids = cases.map(({ row }) => row.id);
  const [first, last = first] = item.split('..');
  const [from, to] = [ids.indexOf(first!), ids.indexOf(last!)];
  const hint = hintFor(first!, ids);
  if (fabricRow.test(item) && !cases.some(({ row }) => fabricRow.test(row.id)))
    throw new ConfigurationError('--rows', item, 'left out without --fabric: the row is of many hosts');
  if (from < 0 || to < from)
    throw new ConfigurationError(
      '--rows',
      item,
      `a group (${groups.join(', ')}), a row like ${ids[0]}, or a range like C-074..C-083${hint}`,
    );
  return ids.slice(from, to + 1);
}

function named(cases: readonly Case[], name: string): (one: Case) => boolean {
  const groups = groupsIn(cases);
  const isGroup = groups.includes(name);
  const matches = ({ row, family }: Case): boolean =>
    isGroup ? groupOf(row) === name : family.name.toLowerCase().includes(name.toLowerCase());
  if (name !== '' && cases.some(matches)) return matches;
  const names = [...new Set(cases.map(({ family }) => family.name))];
  const hint = hintFor(name, names);
  throw new ConfigurationError(
    '--group',
    name,
    `a group (${groups.join(', ')}) or a part of a family's name; --list shows them${hint}`,
  );
}

/** The points of cases, each once. */
export function pointsOf(cases: readonly Case[]): Point[] {
  const byKey = new Map(
    cases.flatMap(({ points }) => points.map((point) => [pointKey(point), point] as const)),
  );
  return [...byKey.values()];
}

const rowVerdicts = ['holds', 'misses', 'failed', 'not run'] as const;
type RowVerdict = (typeof rowVerdicts)[number];

/** One row, as plain data. */
export interface RowResult {
  readonly id: string;
  readonly group: string;
  readonly family: string;
  readonly source: string;
  /** Whether parameters may have been fitted to it. */
  readonly isGiven: boolean;
  readonly measured: number;
  readonly unit: string;
  readonly verdict: RowVerdict;
  /** Simulated value, for a row that ran. */
  readonly simulated?: number;
  /** Relative to the measured value. */
  readonly error?: number;
  readonly tolerance?: ToleranceName;
  /** Why a row did not run, or how its simulation failed. */
  readonly why?: string;
  readonly kind?: NotRunKind;
}

/** Result of a point, or its failure. */
export type PointOutcome = Figures | { readonly failure: string };

const hasFailed = (outcome: PointOutcome | undefined): outcome is { readonly failure: string } =>
  typeof outcome?.['failure'] === 'string';

/** The verdict on a case from its points' results. */
export function resultOf(one: Case, outcomes: ReadonlyMap<string, PointOutcome>): RowResult {
  const { family, points } = one;
  if (!isRun(family)) return withoutRun(one, family.notRun);
  const own = points.map((point) => outcomes.get(pointKey(point)) ?? { failure: 'did not run' });
  const failed = own.find(hasFailed);
  if (failed !== undefined) return { ...commonOf(one), verdict: 'failed', why: failed.failure };
  return judged(one, simulatedOf(family, own as readonly Figures[], one.row));
}

/** The verdict on a case whose simulated value is known. */
export function judged(one: Case, simulated: number): RowResult {
  const { row, family } = one;
  if (!isRun(family)) return withoutRun(one, family.notRun);
  const tolerance = toleranceOf(family, row);
  const { error, holds } = verdictOf(row.value, simulated, tolerance);
  return { ...commonOf(one), verdict: holds ? 'holds' : 'misses', simulated, error, tolerance };
}

const withoutRun = (
  one: Case,
  { kind, why }: { readonly kind: NotRunKind; readonly why: string },
): RowResult => ({
  ...commonOf(one),
  verdict: 'not run',
  kind,
  why,
});

function commonOf({ row, family }: Case) {
  const { id, source, unit } = row;
  const origin = { family: family.name, source, isGiven: isGiven(row) };
  return { id, group: groupOf(row), ...origin, measured: row.value, unit };
}

/** Counts of rows. */
export interface Tally {
  readonly rows: number;
  readonly holds: number;
  readonly misses: number;
  readonly failed: number;
  readonly notRun: number;
  /** Share of passing rows among the rows that ran. */
  readonly share: number;
  /** Median of the absolute errors. */
  readonly medianError: number;
}

export interface GroupResult extends Tally {
  readonly group: string;
  /** Rows that were known when parameters were fitted. */
  readonly given: Tally;
  /** Rows that were not: only these say how far a figure holds that was never measured. */
  readonly unseen: Tally;
}

/** The groups in the order of their rows, and all of them together. */
export function groupsOf(results: readonly RowResult[]): GroupResult[] {
  const names = [...new Set(results.map(({ group }) => group))];
  return [
    ...names.map((name) =>
      summed(
        name,
        results.filter(({ group }) => group === name),
      ),
    ),
    summed('all', results),
  ];
}

const summed = (group: string, rows: readonly RowResult[]): GroupResult => ({
  group,
  ...tallyOf(rows),
  given: tallyOf(rows.filter((row) => row.isGiven)),
  unseen: tallyOf(rows.filter((row) => !row.isGiven)),
});

/** Counts of rows and their median error. */
export function tallyOf(rows: readonly RowResult[]): Tally {
  const count = (verdict: RowVerdict): number => rows.filter((row) => row.verdict === verdict).length;
  const [holds, misses, failed, notRun] = rowVerdicts.map(count) as [number, number, number, number];
  const errors = rows.flatMap(({ error }) =>
    error === undefined || Number.isNaN(error) ? [] : [Math.abs(error)],
  );
  const run = holds + misses + failed;
  return {
    rows: rows.length,
    holds,
    misses,
    failed,
    notRun,
    share: run === 0 ? 0 : holds / run,
    medianError: medianOf(errors),
  };
}
