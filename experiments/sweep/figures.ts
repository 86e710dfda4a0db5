/**
 * The figures of a run by name, one flat table: the client's measurements under their own names, the others under their
 * paths.
 *
 *     result.messagesPerSecond    ─►  messagesPerSecond
 *     caches[0].mtt.misses        ─►  caches.0.mtt.misses
 *     stages[0], named transmit   ─►  stages.transmit.share, wherever in the list it stands
 */
import type { FabricTotals } from '../runs/fabric-totals.ts';
import type { PerfRow } from '../runs/perf-run.ts';
import type { Figure, Outcome } from './row.ts';

/** Requested values and lists of findings are not figures. */
const leftOut: ReadonlySet<string> = new Set(['args', 'isBalanced', 'races', 'lostRaces', 'analyses']);

/** A run whose statistics do not balance has no trustworthy figures. */
export function outcomeOfRun(row: PerfRow): Outcome {
  if (!row.isBalanced) return { status: 'failed', error: 'the statistics of the run do not balance' };
  return { status: 'done', figures: figuresOf(row) };
}

/** The same of traffic over a fabric. @param failure how the run is wrong, if it is */
export function outcomeOfFabric(totals: FabricTotals, failure: string | undefined): Outcome {
  if (failure !== undefined) return { status: 'failed', error: failure };
  const figures: Record<string, Figure> = {};
  flatten(totals, '', figures);
  return { status: 'done', figures };
}

function figuresOf(row: PerfRow): Record<string, Figure> {
  const figures: Record<string, Figure> = {};
  const { result, ...others } = row;
  flatten(result, '', figures);
  for (const [name, value] of Object.entries(others)) if (!leftOut.has(name)) flatten(value, name, figures);
  return figures;
}

function flatten(value: unknown, name: string, figures: Record<string, Figure>): void {
  if (typeof value === 'bigint') figures[name] = Number(value);
  else if (typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean')
    figures[name] = value;
  else if (typeof value === 'object' && value !== null)
    for (const [key, member] of namedMembersOf(value) ?? Object.entries(value))
      flatten(member, name === '' ? key : `${name}.${key}`, figures);
}

/**
 * A member of a list of named members (sorted, for example, by length) is identified by its name, because its index
 * differs between points.
 */
function namedMembersOf(value: object): (readonly [name: string, member: object])[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const members = value.flatMap((member: unknown): (readonly [string, object])[] => {
    if (typeof member !== 'object' || member === null || !('name' in member)) return [];
    const { name, ...rest } = member;
    return typeof name === 'string' ? [[name, rest]] : [];
  });
  const names = new Set(members.map(([name]) => name));
  return names.size === value.length && value.length > 0 ? members : undefined;
}
