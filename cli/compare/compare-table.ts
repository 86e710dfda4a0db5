/** Rows of a comparison as tables: the costs of a path on both hosts, and the causes of their cycles. */

import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { rowTitleOf } from '../../experiments/workloads/index.ts';
import { bytesText, countText, rateText, timeText } from '../../explain/text/format.ts';
import { tableOf } from '../../explain/text/table.ts';
import type { HostSpent } from '../../machine/index.ts';

/** Host 0 and host 1 share a row; separate rows would double the table. */
const both = ({ hosts }: CompareRow, text: (spent: HostSpent) => string): string =>
  `${text(hosts[0])} / ${text(hosts[1])}`;

/** Cycles of a host for each byte moved. */
export const cyclesPerByteOf = ({ hosts, totalBytes }: CompareRow, host: 0 | 1): number =>
  totalBytes === 0 ? 0 : hosts[host].cyclesTotal / totalBytes;

const perByteText = (row: CompareRow, host: 0 | 1): string => {
  const cycles = cyclesPerByteOf(row, host);
  if (cycles >= 100) return cycles.toFixed(0);
  // Distinguishes a host that works a little from one that does nothing.
  return cycles > 0 && cycles < 0.01 ? String(Number(cycles.toPrecision(2))) : cycles.toFixed(2);
};

const head = [
  'by',
  'bytes moved',
  'latency',
  'rate',
  'CPU cycles',
  'cycles/byte',
  'interrupts',
  'system calls',
  'switches',
  'copies',
  'bytes copied',
  'memory bus',
  'TLPs',
  'SHA-256',
];

/** Columns of the cable; they follow the rate. */
const cableHead = ['cable', 'on the cable', 'on it per byte'];

/** Column heads, with or without the message size, and the cable. */
export function compareHead(hasSizes: boolean, hasCable = false): string[] {
  const [by, moved, latency, rate, ...costs] = head;
  const size = hasSizes ? ['message'] : [];
  return [by!, ...size, moved!, latency!, rate!, ...(hasCable ? cableHead : []), ...costs];
}

/** Whether the bytes on the cable were counted. */
export const hasCables = (rows: readonly CompareRow[]): boolean =>
  rows.some(({ cable }) => cable !== undefined);

/** Bytes that both hosts put on the cable for each byte moved. */
export const cableBytesPerByteOf = ({ cable, totalBytes }: CompareRow): number =>
  cable === undefined ? Number.NaN : (cable.sent[0].linkBytes + cable.sent[1].linkBytes) / totalBytes;

function cableCells(row: CompareRow): string[] {
  if (row.cable === undefined) return [];
  const { bytesPerSecond, sent } = row.cable;
  return [
    `${Number(((bytesPerSecond * 8) / 1e9).toPrecision(4))} Gb/s`,
    `${countText(sent[0].linkBytes)} / ${countText(sent[1].linkBytes)} B`,
    cableBytesPerByteOf(row).toFixed(3),
  ];
}

/** A row; "a / b" is host 0 (has the bytes) and host 1 (receives them). */
export const compareCells = (row: CompareRow, hasSizes: boolean): string[] => [
  rowTitleOf(row),
  ...(hasSizes ? [bytesText(row.sizeBytes)] : []),
  bytesText(row.totalBytes),
  timeText(row.latencyPs),
  rateText(row.bytesPerSecond),
  ...cableCells(row),
  both(row, ({ cyclesTotal }) => countText(cyclesTotal)),
  `${perByteText(row, 0)} / ${perByteText(row, 1)}`,
  both(row, ({ interrupts }) => countText(interrupts)),
  both(row, ({ systemCalls }) => countText(systemCalls)),
  both(row, ({ contextSwitches }) => countText(contextSwitches)),
  both(row, ({ copies }) => countText(copies)),
  both(row, ({ copiedBytes }) => bytesText(copiedBytes)),
  both(row, ({ memory }) => bytesText(memory.total)),
  both(row, ({ tlps }) => countText(tlps)),
  row.isEqual ? 'equal' : 'DIFFERENT',
];

/** One row for each path. */
export const compareTable = (title: string, rows: readonly CompareRow[]): string =>
  tableOf(
    title,
    compareHead(false, hasCables(rows)),
    rows.map((row) => compareCells(row, false)),
  );

/** Cycles by cause: a row for each host and path, a column for each cause that occurs. */
export function causeTable(title: string, rows: readonly CompareRow[]): string {
  const causes = [
    ...new Set(rows.flatMap(({ hosts }) => hosts.flatMap(({ cycles }) => Object.keys(cycles)))),
  ] as (keyof HostSpent['cycles'])[];
  const cells = rows.flatMap((row) =>
    row.hosts.map((spent, host) => [
      `${rowTitleOf(row)}, host ${host}`,
      ...causes.map((cause) => countText(spent.cycles[cause] ?? 0)),
      countText(spent.cyclesTotal),
    ]),
  );
  return tableOf(title, ['cycles of', ...causes, 'total'], cells);
}
