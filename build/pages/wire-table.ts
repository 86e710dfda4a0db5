/**
 * The tables of wires in the READMEs of the hardware rooms, generated from the tables in the sources. `npm run docs` writes it
 * between the marks of those pages; a spec compares the pages with it. The HCA, with too many blocks for a table, is drawn in
 * its README.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { busWires } from '../../hw/dma/index.ts';
import { iommuWires } from '../../hw/iommu/index.ts';
import { nicWires } from '../../hw/nic/index.ts';
import { functionWires, rootComplexWires } from '../../hw/pcie/index.ts';
import { systemDmaWires } from '../../hw/system-dma/index.ts';
import { listWires } from '../../sim/index.ts';
import { ethernetPortWires, wirePortWires } from '../../wire/index.ts';

const start = '<!-- wires -->';
const end = '<!-- /wires -->';

type WireList = ReturnType<typeof listWires>;

/** Folders whose README has tables of wires, and the wires of each table by its heading. */
export const wiresByRoom: Readonly<Record<string, Readonly<Record<string, WireList>>>> = {
  'hw/pcie': {
    'The function': listWires(functionWires),
    'The root complex': listWires(rootComplexWires),
  },
  'hw/iommu': { 'The IOMMU': listWires(iommuWires) },
  'hw/dma': { 'A bus interface': listWires(busWires) },
  'hw/system-dma': { 'The system DMA controller': listWires(systemDmaWires) },
  wire: {
    'An InfiniBand port': listWires(wirePortWires),
    'An Ethernet port': listWires(ethernetPortWires),
  },
  'hw/nic': { 'The card': listWires(nicWires) },
};

/** The tables of a room: each under its heading, if there are several. */
export function wireTables(tables: Readonly<Record<string, WireList>>): string {
  const entries = Object.entries(tables);
  return entries
    .map(([heading, wires]) => (entries.length === 1 ? '' : `**${heading}**\n\n`) + wireTable(wires))
    .join('\n\n');
}

/** Markdown rows `block | neighbours that it calls | neighbours that call it`. */
function wireTable(wires: WireList): string {
  const names = [...new Set(wires.flatMap(({ block, to }) => [block, blockOf(to)]))].sort();
  const rows = names.map((name) => {
    const calls = wires.filter(({ block }) => block === name).map(({ to }) => blockOf(to));
    const callers = wires.filter(({ to }) => blockOf(to) === name).map(({ block }) => block);
    return `| ${name} | ${listOf(calls)} | ${listOf(callers)} |`;
  });
  return ['| block | calls | is called by |', '| --- | --- | --- |', ...rows].join('\n');
}

const blockOf = (place: string): string => place.split('.')[0]!;
const listOf = (names: readonly string[]): string => [...new Set(names)].sort().join(', ');

/** The page with its tables put between its marks. */
export function pageWith(tables: string, text: string): string {
  const from = text.indexOf(start);
  const to = text.indexOf(end);
  return `${text.slice(0, from + start.length)}\n${tables}\n${text.slice(to)}`;
}

const pageOf = (room: string): URL => new URL(`../../${room}/README.md`, import.meta.url);
export const readPage = (room: string): string => readFileSync(pageOf(room), 'utf8');

if (process.argv[1] === import.meta.filename) {
  for (const [room, tables] of Object.entries(wiresByRoom))
    writeFileSync(pageOf(room), pageWith(wireTables(tables), readPage(room)));
}
