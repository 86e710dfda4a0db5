/**
 * The wires of hw/hca's data path and of the card in hw/nic, in the READMEs there, as the tables of the sources declare them.
 * `npm run docs` writes them between the marks of those pages; a spec holds the pages to them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dataPathWires } from '../../hw/hca/index.ts';
import { nicWires } from '../../hw/nic/index.ts';
import { listWires } from '../../sim/index.ts';

const start = '<!-- wires -->';
const end = '<!-- /wires -->';

type WireList = ReturnType<typeof listWires>;

/** Folders whose README has a table of wires, and the wires. */
export const wiresByRoom: Readonly<Record<string, WireList>> = {
  'hw/hca': listWires(dataPathWires),
  'hw/nic': listWires(nicWires),
};

/** Markdown rows `block | neighbours that it calls | neighbours that call it`. */
export function wireTable(wires: WireList): string {
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

const pageOf = (room: string): URL => new URL(`../../${room}/README.md`, import.meta.url);
export const readPage = (room: string): string => readFileSync(pageOf(room), 'utf8');

if (process.argv[1] === import.meta.filename) {
  for (const [room, wires] of Object.entries(wiresByRoom))
    writeFileSync(pageOf(room), pageWith(wireTable(wires), readPage(room)));
}
