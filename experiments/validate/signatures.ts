/** The signatures of reference/measurements.md: shapes formed by several rows, as measured and as simulated. */
import { figureText } from './shown.ts';

/** The figure of a row. */
export type FigureOf = (id: string) => number;

interface Signature {
  readonly shape: string;
  readonly of: (row: FigureOf) => readonly number[];
}

/** Nanoseconds per byte, from two latencies in microseconds. */
const slope = (from: number, to: number, bytes: number): number => ((to - from) * 1000) / bytes;

const signatures: readonly Signature[] = [
  {
    shape: 'two slopes of WRITE latency in ns/B: 512 to 2048 B, 4 to 32 KiB',
    of: (row) => [
      slope(row('A-013'), row('A-015'), 2048 - 512),
      slope(row('A-016'), row('A-020'), 32_768 - 4096),
    ],
  },
  {
    shape: 'inline cliff, us from 128 to 256 B: WRITE, READ',
    of: (row) => [row('A-011') - row('A-009'), row('A-067') - row('A-065')],
  },
  {
    shape: 'inlined UC WRITE by lines of its WQE, Mops: 28, 88, 148, 208, 212 B',
    of: (row) => ['C-075', 'C-077', 'C-079', 'C-081', 'C-082'].map(row),
  },
  {
    shape: 'inlined UD SEND by lines of its WQE, Mops: 60, 120, 180, 240, 244 B',
    of: (row) => ['C-085', 'C-087', 'C-089', 'C-091', 'C-092'].map(row),
  },
  { shape: 'READ over windows 8, 16, 64, Mops', of: (row) => ['D-025', 'D-026', 'D-028'].map(row) },
  { shape: 'WRITE over windows 8, 16, 64, Mops', of: (row) => ['D-045', 'D-046', 'D-048'].map(row) },
  {
    shape: 'outbound WRITE over 16, 64, 256 QPs, Mops',
    of: (row) => ['C-135', 'C-137', 'C-141'].map(row),
  },
  { shape: 'UD SEND of 4, 8, 16 processes, Mops', of: (row) => ['C-144', 'C-146', 'C-150'].map(row) },
  {
    shape: 'atomics: of many QPs and of one, Mops; latency beyond a READ, us',
    of: (row) => [row('D-062'), row('A-087'), row('A-085') - row('A-057')],
  },
  { shape: 'payload over Gen3 x8, Gb/s: WRITE, READ', of: (row) => ['J-001', 'J-002'].map(row) },
  {
    shape: 'registration, us: one page, each further one',
    of: (row) => [row('F-002'), (row('F-006') - row('F-005')) / 192],
  },
  {
    shape: '64 B WRITE into 1 MB and 1024 MB, Mops',
    of: (row) => ['F-018', 'F-023'].map(row),
  },
];

/** Shape, measured, simulated: as texts. */
export const signatureRows = (measured: FigureOf, simulated: FigureOf): string[][] =>
  signatures.map(({ shape, of }) => [shape, ...[measured, simulated].map((row) => textOf(of(row)))]);

const textOf = (figures: readonly number[]): string => figures.map(figureText).join(', ');
