/**
 * The intervals of one track as Perfetto draws them. Slices of one row nest, so overlapping intervals go to separate
 * rows, and parts of an interval (the stages of an operation) go into its row.
 */
import type { TimelineRecord } from '../../../machine/timeline/index.ts';

/** Nanoseconds, Perfetto's unit: rounded down, which preserves order and nesting. */
export const nsOf = (ps: number | bigint): number =>
  typeof ps === 'bigint' ? Number(ps / 1000n) : Math.floor(ps / 1000);

export interface Slice {
  readonly record: TimelineRecord;
  readonly fromNs: number;
  readonly toNs: number;
  readonly parts: Slice[];
}

/** Slices of one row, one after another. */
export type Row = readonly Slice[];

/** Places the intervals of a track, which arrive in the order of their starts. */
export function rowsOf(intervals: readonly TimelineRecord[]): readonly Row[] {
  const rows: Slice[][] = [];
  for (const slice of withParts(intervals)) {
    const row = rows.find((placed) => placed.at(-1)!.toNs <= slice.fromNs);
    if (row === undefined) rows.push([slice]);
    else row.push(slice);
  }
  return rows;
}

/** Stages become parts of their operation: they have the same request and lie within its time. */
function withParts(intervals: readonly TimelineRecord[]): readonly Slice[] {
  const slices = intervals.map(sliceOf);
  const operations = new Map<string, Slice[]>();
  for (const slice of slices) {
    const { kind, values } = slice.record;
    if (kind !== 'operation') continue;
    const key = `${values[0]} ${values[1]}`;
    operations.set(key, [...(operations.get(key) ?? []), slice]);
  }
  return slices.filter((slice) => {
    const { kind, values } = slice.record;
    if (kind !== 'stage') return true;
    const candidates = operations.get(`${values[1]} ${values[2]}`) ?? [];
    const owner = candidates.find(({ fromNs, toNs }) => fromNs <= slice.fromNs && slice.toNs <= toNs);
    owner?.parts.push(slice);
    return owner === undefined;
  });
}

function sliceOf(record: TimelineRecord): Slice {
  const { atPs, durationPs } = record;
  const endPs = typeof atPs === 'bigint' ? atPs + BigInt(durationPs) : atPs + durationPs;
  return { record, fromNs: nsOf(atPs), toNs: nsOf(endPs), parts: [] };
}
