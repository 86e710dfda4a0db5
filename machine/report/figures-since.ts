/** Counts since an earlier report of the same machine: each figure of nodes and cable minus its earlier value. */
import type { Report } from './schema.ts';

/** The parts of a report that contain counts. */
export type ReportFigures = Pick<Report, 'nodes' | 'wire'>;

export const figuresSince = (before: Report, after: Report): ReportFigures => ({
  nodes: lessOf(after.nodes, before.nodes),
  wire: after.wire.map((cable, index) => ({ ...lessOf(cable, before.wire[index]!), ...endsOf(cable) })),
});

/** The numbers of a cable that are no counts. */
const endsOf = ({ from, to, fromPort, toPort }: Report['wire'][number]): Partial<Report['wire'][number]> => ({
  ...{ from, to },
  ...(fromPort === undefined ? {} : { fromPort }),
  ...(toPort === undefined ? {} : { toPort }),
});

/** Subtracts earlier numbers; values present in one report only, and values that are not numbers, stay unchanged. */
function lessOf<Part>(after: Part, before: unknown): Part {
  if (typeof after === 'number') return (after - (typeof before === 'number' ? before : 0)) as Part;
  if (Array.isArray(after))
    return after.map((member, index) => lessOf(member, earlierOf(member, index, before))) as Part;
  if (typeof after !== 'object' || after === null) return after;
  const earlier = before as Readonly<Record<string, unknown>> | undefined;
  const members = Object.entries(after).map(([name, member]) => [
    name,
    isNoCount(name) ? member : lessOf(member, earlier?.[name]),
  ]);
  return Object.fromEntries(members) as Part;
}

/** The number of a vector is not a count; nor are addresses and instants of findings. */
const isNoCount = (name: string): boolean =>
  ['vector', 'races', 'lostRaces', 'unownedAccesses'].includes(name);

/** Returns the earlier row of a list's member; rows of vectors are matched by vector, because a list has only the vectors used so far. */
function earlierOf(member: unknown, index: number, before: unknown): unknown {
  const rows = (before ?? []) as readonly unknown[];
  const vector = vectorOf(member);
  return vector === undefined ? rows[index] : rows.find((row) => vectorOf(row) === vector);
}

const vectorOf = (row: unknown): unknown =>
  typeof row === 'object' && row !== null ? (row as Readonly<Record<string, unknown>>)['vector'] : undefined;
