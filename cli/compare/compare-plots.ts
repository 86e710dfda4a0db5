/** The plots of a comparison over sizes, for the terminal and as a page. */

import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { type CompareNetwork, networkTitleOf, rowTitleOf } from '../../experiments/workloads/index.ts';
import type { PageHead } from '../../explain/page/index.ts';
import { type Chart, chartPage, terminalChart } from '../chart/index.ts';
import {
  cableBytesPerByteOf,
  compareCells,
  compareHead,
  cyclesPerByteOf,
  hasCables,
} from './compare-table.ts';

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

/** Drawn if the bytes on the cable were counted. */
const cableFigure: (typeof figures)[number] = {
  title: 'Bytes on the cable per byte moved, both hosts',
  unit: 'bytes/byte',
  of: cableBytesPerByteOf,
};

/** Number of figures that the terminal shows: all of them would fill several screens. */
const terminalFigures = 3;
const terminalSize = { width: 72, height: 18 };

function chartsOf(rows: readonly CompareRow[]): Chart[] {
  const names = [...new Set(rows.map(rowTitleOf))];
  return [...figures, ...(hasCables(rows) ? [cableFigure] : [])].map(({ title, unit, of }) => ({
    title,
    xLabel: 'Message size (B)',
    yLabel: unit,
    yTitle: `${title} (${unit})`,
    lines: names.map((name) => ({
      name,
      points: rows.filter((row) => rowTitleOf(row) === name).map((row) => [row.sizeBytes, of(row)] as const),
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
export const compareSentences = (far: number, network: CompareNetwork | 'several'): readonly string[] => [
  `Simulated: two hosts with cores of 2.5 GHz unless changed; a conventional 10 Gb/s NIC, or ${hcaText(network)}. ` +
    'Latency is of one message alone, everything else of a stream of messages, from memory to memory.',
  sidesSentence(far),
];

function hcaText(network: CompareNetwork | 'several'): string {
  if (network === 'several') return 'an HCA on the network that a row names';
  return network === 'infiniband' ? 'an InfiniBand HCA' : `an HCA that speaks ${networkTitleOf(network)}`;
}

/** The bytes that a row's hosts put on the cable. */
export const cableSentence =
  'Bytes on the cable are all that both ports sent from the start of the stream until it was idle, with framing, ' +
  'acknowledgements, credits and retransmissions. Networks differ in their rates: the column "cable" has each.';

/** The end of an RDMA WRITE over iWARP. */
export const iwarpWriteSentence =
  'Over iWARP a completed WRITE may still be on its way (RFC 5040, 5.1): RDMA WRITE is timed until a READ of no bytes after it is answered, ' +
  'which is when the peer has the bytes.';

/** A self-contained page with all plots and the table. */
export const comparePage = (head: PageHead, rows: readonly CompareRow[]): string =>
  chartPage(head, {
    charts: chartsOf(rows),
    tables: [
      {
        title: 'Figures',
        head: compareHead(true, hasCables(rows)),
        rows: rows.map((row) => compareCells(row, true)),
      },
    ],
  });
