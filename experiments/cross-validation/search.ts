/**
 * The fit of several values to rows: a coordinate descent over bounded candidates.
 *
 *     for each pass: for each value: try its candidates, the other values fixed, and keep the best
 *
 * The loss of a candidate is the number of rows out of tolerance, then the median of the absolute errors, over the
 * training rows that the value changes. If two candidates are equal, the present one stays, so that a value moves away
 * from its start only for evidence. A candidate stops early when it misses more rows than the best one does; that
 * changes no result. The order of rows and candidates is fixed, so a fit is deterministic.
 */
import { medianOf } from '../validate/index.ts';

export interface SearchedValue {
  readonly name: string;
  readonly start: number;
  readonly candidates: readonly number[];
}

export type Values = Readonly<Record<string, number>>;

/** A row under certain values. */
export interface Judgement {
  readonly holds: boolean;
  /** Absolute, relative to the measured value. */
  readonly error: number;
}

export type Judge<Row> = (row: Row, values: Values) => Promise<Judgement>;

export interface Search<Row> {
  readonly values: readonly SearchedValue[];
  /** The training rows that a value changes. */
  readonly rowsOf: (name: string) => readonly Row[];
  readonly judge: Judge<Row>;
  readonly passesMax: number;
  /** Rows that are judged at the same time. */
  readonly atOnce: number;
}

interface Loss {
  readonly missed: number;
  readonly medianError: number;
}

const isLess = (one: Loss, other: Loss): boolean =>
  one.missed === other.missed ? one.medianError < other.medianError : one.missed < other.missed;

const startOf = (values: readonly SearchedValue[]): Values =>
  Object.fromEntries(values.map(({ name, start }) => [name, start]));

/** Returns the best values that the descent finds, and the number of its passes. */
export async function fitted<Row>(
  search: Search<Row>,
): Promise<{ readonly values: Values; readonly passes: number }> {
  let values = startOf(search.values);
  for (let passes = 1; ; passes++) {
    const before = values;
    for (const value of search.values)
      values = { ...values, [value.name]: await bestCandidate(search, value, values) };
    const isSettled = search.values.every(({ name }) => values[name] === before[name]);
    if (isSettled || passes === search.passesMax) return { values, passes };
  }
}

async function bestCandidate<Row>(
  search: Search<Row>,
  { name, candidates }: SearchedValue,
  values: Values,
): Promise<number> {
  const rows = search.rowsOf(name);
  const present = values[name]!;
  let best = present;
  if (rows.length === 0) return best;
  let least = (await lossOf(search, rows, values, Number.POSITIVE_INFINITY))!;
  for (const candidate of candidates) {
    if (candidate === present) continue;
    const loss = await lossOf(search, rows, { ...values, [name]: candidate }, least.missed);
    if (loss !== undefined && isLess(loss, least)) [best, least] = [candidate, loss];
  }
  return best;
}

/** The loss over rows; undefined as soon as more than `missedMax` rows are out of tolerance. */
async function lossOf<Row>(
  { judge, atOnce }: Search<Row>,
  rows: readonly Row[],
  values: Values,
  missedMax: number,
): Promise<Loss | undefined> {
  const errors: number[] = [];
  let missed = 0;
  for (let from = 0; from < rows.length; from += atOnce) {
    const judged = await Promise.all(rows.slice(from, from + atOnce).map((row) => judge(row, values)));
    for (const { holds, error } of judged) {
      if (!holds) missed++;
      errors.push(error);
    }
    if (missed > missedMax) return undefined;
  }
  return { missed, medianError: medianOf(errors) };
}
