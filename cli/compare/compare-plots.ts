/** The plots of a comparison over sizes, for the terminal and as a page. */

import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { comparePaths, pathTitles } from '../../experiments/workloads/index.ts';
import type { PageHead } from '../../explain/page/index.ts';
import { type Chart, chartPage, terminalChart } from '../chart/index.ts';
import { compareCells, compareHead, cyclesPerByteOf } from './compare-table.ts';

/** Figures drawn over the size of a message. */
const figures: readonly {
  readonly title: string;
  readonly unit: string;
  readonly of: (row: CompareRow) => number;
}[] = [
  { title: 'Latency of one message', unit: 'µs', of: ({ latencyPs }) => latencyPs / 1e6 },
  { title: 'Rate of a stream', unit: 'MB/s', of: ({ bytesPerSecond }) => bytesPerSecond / 1e6 },
  {
    title: 'CPU cycles per byte, both hosts',
    unit: 'cycles/byte',
    of: (row) => cyclesPerByteOf(row, 0) + cyclesPerByteOf(row, 1),
  },
  {
    title: 'Bytes over the memory buses per byte moved, both hosts',
    unit: 'bytes/byte',
    of: ({ hosts, totalBytes }) => (hosts[0].memory.total + hosts[1].memory.total) / totalBytes,
  },
  {
    title: 'TLPs per KiB, both hosts',
    unit: 'TLPs/KiB',
    of: ({ hosts, totalBytes }) => ((hosts[0].tlps + hosts[1].tlps) * 1024) / totalBytes,
  },
];

/** Number of figures that the terminal shows: all of them would fill several screens. */
const terminalFigures = 3;
const terminalSize = { width: 72, height: 18 };

function chartsOf(rows: readonly CompareRow[]): Chart[] {
  const paths = comparePaths.filter((path) => rows.some((row) => row.path === path));
  return figures.map(({ title, unit, of }) => ({
    title,
    xLabel: 'Message size (B)',
    yLabel: unit,
    yTitle: `${title} (${unit})`,
    lines: paths.map((path) => ({
      name: pathTitles[path],
      points: rows.filter((row) => row.path === path).map((row) => [row.sizeBytes, of(row)] as const),
    })),
  }));
}

/** Text plots; empty for a single size. */
export function comparePlots(rows: readonly CompareRow[]): string[] {
  if (new Set(rows.map(({ sizeBytes }) => sizeBytes)).size < 2) return [];
  return chartsOf(rows)
    .slice(0, terminalFigures)
    .map((chart) => terminalChart(chart, terminalSize));
}

/**
 * Explains how tables show two hosts.
 * @param far the host that gets the bytes
 */
export const sidesSentence = (far: number): string =>
  `In "a / b", a is host 0, which has the bytes, and b is host ${far}, which gets them.`;

/** First sentences of the page. */
export const compareSentences = (far: number): readonly string[] => [
  'Simulated: two hosts with cores of 2.5 GHz unless changed; a conventional 10 Gb/s NIC, or an InfiniBand HCA. ' +
    'Latency is of one message alone, everything else of a stream of messages, from memory to memory.',
  sidesSentence(far),
];

/** A self-contained page with all plots and the table. */
export const comparePage = (head: PageHead, rows: readonly CompareRow[]): string =>
  chartPage(head, {
    charts: chartsOf(rows),
    tables: [{ title: 'Figures', head: compareHead(true), rows: rows.map((row) => compareCells(row, true)) }],
  });
