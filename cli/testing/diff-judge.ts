/** Compares `hca diff` of two outputs in both directions with each other and with the values in both files. */
import type { ReportDiff } from '../../explain/diff/index.ts';

interface Row {
  readonly group: string;
  readonly path: string;
  readonly before?: unknown;
  readonly after?: unknown;
  readonly change: number | null;
}

const rowsOf = ({ groups }: ReportDiff): Row[] =>
  groups.flatMap(({ group, changes }) => changes.map((change) => ({ group, ...change })));

/** Errors of the two, in words: one must equal the other with before and after exchanged. */
export function mirrorFailures(there: ReportDiff, back: ReportDiff): string[] {
  const failures: string[] = [];
  for (const name of ['figures', 'changed', 'beyond', 'isEqual', 'compared'] as const)
    if (there[name] !== back[name]) failures.push(`${name}: ${there[name]}, back ${back[name]}`);
  const [rows, others] = [rowsOf(there), rowsOf(back)];
  if (rows.length !== there.changed) failures.push(`${rows.length} rows of ${there.changed}`);
  const orderOf = (list: readonly Row[]): string =>
    list.map(({ group, path }) => `${group} ${path}`).join('\n');
  if (orderOf(rows) !== orderOf(others)) failures.push('the order is another');
  for (const [index, row] of rows.entries()) {
    const other = others[index];
    if (row.before !== other?.after || row.after !== other?.before || row.before === row.after)
      failures.push(`${row.path}: ${row.before} to ${row.after}, back ${other?.before} to ${other?.after}`);
    const { before, after } = row;
    if (typeof before !== 'number' || typeof after !== 'number' || before === 0) continue;
    const due = (after - before) / Math.abs(before);
    if (row.change === null || Math.abs(row.change - due) > 1e-12 * Math.abs(due))
      failures.push(`${row.path}: ${row.change}, ${due} is due`);
  }
  const askedOf = ({ request }: ReportDiff, from: 'before' | 'after', to: 'before' | 'after'): string =>
    request
      .map((row) => JSON.stringify([row.what, row.name, row[from], row[to], row.isAsked]))
      .toSorted()
      .join('\n');
  return askedOf(there, 'before', 'after') === askedOf(back, 'after', 'before')
    ? failures
    : [...failures, 'what was asked for is not the same back'];
}

/** Every value of a list of rows, by its path. */
function valuesOf(
  value: unknown,
  place = '',
  into: Map<string, unknown> = new Map(),
): ReadonlyMap<string, unknown> {
  if (typeof value === 'object' && value !== null)
    for (const [name, member] of Object.entries(value)) valuesOf(member, `${place}.${name}`, into);
  else into.set(place, value);
  return into;
}

/** Requested values, and lists ordered by name instead of index. */
const elsewhere = /^\.\d+\.(args|bottleneck|stages)\.|\.fault$/;
const byName = /\.(bottleneck|stages)\./;

/** Whether the number of differing values equals the diff's rows, for rows of two outputs of the same size. */
export function countFailures(rows: readonly [unknown, unknown], found: ReportDiff): string[] {
  const [left, right] = rows.map((each) => valuesOf(each)) as [
    ReadonlyMap<string, unknown>,
    ReadonlyMap<string, unknown>,
  ];
  const differing = [...new Set([...left.keys(), ...right.keys()])].filter(
    (place) => !elsewhere.test(place) && left.get(place) !== right.get(place),
  );
  const listed = rowsOf(found).filter(({ path }) => !byName.test(path));
  return differing.length === listed.length
    ? []
    : [`${differing.length} differ, ${listed.length} are listed`];
}
