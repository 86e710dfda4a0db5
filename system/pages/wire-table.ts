/**
 * The wires of the data path in hw/hca/README.md, as the table of hw/hca/data-path.ts declares them. `npm run docs` writes them
 * between the marks of that page; a spec holds the page to them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dataPathWires } from '../../hw/hca/index.ts';
import { listWires } from '../../sim/index.ts';

const start = '<!-- wires -->';
const end = '<!-- /wires -->';
const page = new URL('../../hw/hca/README.md', import.meta.url);

/** Markdown rows `block | neighbours that it calls | neighbours that call it`. */
export function wireTable(): string {
  const wires = listWires(dataPathWires);
  const names = [...new Set(wires.flatMap(({ block, to }) => [block, blockOf(to)]))].sort();
  const rows = names.map((name) => {
    const calls = wires.filter(({ block }) => block === name).map(({ to }) => blockOf(to));
    const callers = wires.filter(({ to }) => blockOf(to) === name).map(({ block }) => block);
    return `| ${name} | ${listOf(calls)} | ${listOf(callers)} |`;
  });
  return ['| block | calls | is called by |', '| --- | --- | --- |', ...rows].join('\n');
}

const blockOf = (place: string): string => place.split('.')[0]!;
const listOf = (names: readonly string[]): string => names.toSorted().join(', ');

/** The page with the table put between its marks. */
export function pageWith(table: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${table}\n${text.slice(to)}`;
}

export const readPage = (): string => readFileSync(page, 'utf8');

if (process.argv[1] === import.meta.filename) writeFileSync(page, pageWith(wireTable(), readPage()));
