/** Counts since an earlier report of the same machine: each figure of nodes and cable minus its earlier value. */
import type { Report } from './schema.ts';

/** The parts of a report that count. */
export type ReportFigures = Pick<Report, 'nodes' | 'wire'>;

export const figuresSince = (before: Report, after: Report): ReportFigures => ({
  nodes: lessOf(after.nodes, before.nodes),
  wire: after.wire.map((cable, index) => ({
    ...lessOf(cable, before.wire[index]!),
    from: cable.from,
    to: cable.to,
  })),
});

/** Numbers less what they were; what stands on one side only, and what is no number, stays as it is. */
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

/** The number of a vector counts nothing; nor does what was found, wherever in the run: addresses and instants. */
const isNoCount = (name: string): boolean =>
  ['vector', 'races', 'lostRaces', 'unownedAccesses'].includes(name);

/** Returns the earlier row of a list's member: rows of vectors by their vectors, since a list has only vectors used by then. */
function earlierOf(member: unknown, index: number, before: unknown): unknown {
  const rows = (before ?? []) as readonly unknown[];
  const vector = vectorOf(member);
  return vector === undefined ? rows[index] : rows.find((row) => vectorOf(row) === vector);
}

const vectorOf = (row: unknown): unknown =>
  typeof row === 'object' && row !== null ? (row as Readonly<Record<string, unknown>>)['vector'] : undefined;
