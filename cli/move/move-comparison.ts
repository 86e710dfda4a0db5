/**
 * The first table of `hca move`: the same bytes by the traditional path and by RDMA, each in a simulation of its own
 * that runs before the whole file is moved.
 *
 * Word-by-word copying is slow: for a long file, only its beginning is compared.
 */
import { InvalidArgumentError } from 'commander';
import type { CompareOrder, CompareRow } from '../../experiments/runs/compare-run.ts';
import {
  type CompareNetwork,
  type ComparePath,
  pathLimitBytes,
  pathTitles,
} from '../../experiments/workloads/index.ts';
import { bytesText } from '../../explain/text/format.ts';
import type { MachineOptions } from '../../machine/index.ts';
import { iwarpWriteSentence } from '../compare/compare-plots.ts';
import { causeTable, compareTable } from '../compare/compare-table.ts';
import { integer } from '../options.ts';

export const comparedPaths: readonly ComparePath[] = ['pio', 'sockets', 'send', 'write', 'read'];
/** Programmed I/O takes a millisecond per 8 KiB, and its simulation a large part of a second. */
const programmedBytes = 16 * 1024;
const latencyRounds = 2;

export const defaultTraditional = '1M';

/** `all`, `none`, or bytes: the compared part of the file. */
export function parsedTraditional(text: string): number {
  if (text === 'none') return 0;
  if (text === 'all') return Number.POSITIVE_INFINITY;
  try {
    return integer(1, pathLimitBytes.sockets)(text);
  } catch {
    throw new InvalidArgumentError(`expected all, none or bytes up to ${pathLimitBytes.sockets}.`);
  }
}

/** The runs of the comparison; empty for an empty file. Faults apply to the machine that moves the whole file. */
export function comparisonOf(
  file: string,
  fileBytes: number,
  chunkBytes: number,
  askedBytes: number,
  machine: MachineOptions,
): CompareOrder[] {
  const comparedBytes = Math.min(fileBytes, askedBytes);
  if (comparedBytes === 0) return [];
  return comparedPaths.map((path) => {
    const limit = path === 'pio' ? programmedBytes : pathLimitBytes[path];
    const totalBytes = Math.min(comparedBytes, limit);
    const sizeBytes = Math.min(chunkBytes, totalBytes);
    return {
      machine: { ...machine, faults: [] },
      // Word by word has no first-time costs: its single message is as good as a later one.
      args: { path, sizeBytes, totalBytes, latencyRounds: path === 'pio' ? 0 : latencyRounds, file },
    };
  });
}

/** The table, and the notes needed to read it. @param far the host that gets the file */
export function comparisonText(
  rows: readonly CompareRow[],
  fileBytes: number,
  far: number,
  network: CompareNetwork,
): string {
  const shortened = rows.filter(({ totalBytes }) => totalBytes < fileBytes);
  const lengths = [...new Set(shortened.map(({ totalBytes }) => totalBytes))];
  const notes = lengths.map((bytes) => {
    const titles = shortened
      .filter(({ totalBytes }) => totalBytes === bytes)
      .map(({ path }) => pathTitles[path]);
    return `${bytesText(bytes)} by ${titles.join(', ')}`;
  });
  const { sizeBytes } = rows.at(-1)!;
  return [
    compareTable(
      `The same file by the traditional path and by RDMA, in messages of at most ${bytesText(sizeBytes)}`,
      rows,
    ),
    `In "a / b", a is host 0, which has the file, and b is host ${far}, which gets it. Latency is of one message alone; costs and`,
    'rate are of all bytes, from memory to memory: without reading the file, connecting, registering and hashing.',
    ...(notes.length === 0
      ? []
      : [
          `Not the whole file, which would take long (--traditional all), but its beginning: ${notes.join('; ')}.`,
        ]),
    ...(network === 'iwarp' ? [iwarpWriteSentence] : []),
    passiveLine(rows, [0, far]),
    causeTable('Where the cycles of both hosts went', rows),
  ].join('\n');
}

/** Hosts whose programs slept while their memory was written or read. */
function passiveLine(rows: readonly CompareRow[], numbers: readonly number[]): string {
  const passive = rows.flatMap(({ path, isActive, hosts }) =>
    isActive.flatMap((active, side) =>
      active ? [] : [`${hosts[side]!.cyclesTotal} cycles of host ${numbers[side]} for ${pathTitles[path]}`],
    ),
  );
  return `The passive side, by its cores' ledger: ${passive.join(', ')}.`;
}
