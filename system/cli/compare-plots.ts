/** The plots of a comparison over sizes. */
import { type ComparePath, comparePaths, pathTitles } from '../programs/compare-plan.ts';
import type { CompareRow } from './compare-run.ts';
import { cyclesPerByteOf } from './compare-table.ts';

/** What is drawn over the size of a message. */
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
    title: 'Bytes over the memory bus per byte, both hosts',
    unit: 'bytes/byte',
    of: ({ hosts, totalBytes }) => (hosts[0].memory.total + hosts[1].memory.total) / totalBytes,
  },
  {
    title: 'TLPs per KiB, both hosts',
    unit: 'TLPs/KiB',
    of: ({ hosts, totalBytes }) => ((hosts[0].tlps + hosts[1].tlps) * 1024) / totalBytes,
  },
];

export const comparePlots = (rows: readonly CompareRow[]): string[] => (rows.length < 0 ? [] : []);
export const comparePage = (rows: readonly CompareRow[]): string => String(rows.length);
void figures;
void comparePaths;
void pathTitles;
export type Keep = ComparePath;
