/** The page of `hca perf`: figures over sizes, the bottleneck, and the whole report of each row. */

import type { LoadOutcome } from '../../experiments/runs/perf-loaded.ts';
import type { PerfRow, ReportedRow } from '../../experiments/runs/perf-run.ts';
import {
  type BandwidthRates,
  kindOf,
  type LatencyResult,
  type LoadedRates,
  lengthText,
  millionsText,
} from '../../experiments/workloads/index.ts';
import { type PageHead, type PageTable, reportSections, textSection } from '../../explain/page/index.ts';
import { countText, timeText } from '../../explain/text/format.ts';
import { type Chart, chartPage } from '../chart/index.ts';

/** Fewer sizes make no curve. */
const sizesLeast = 3;

/** The figures cover only the measured messages. */
const warmUpSentence =
  'The sections below the figures and the bottleneck, from the life of an operation on, include the warm-up.';

/** @param bound lines about the bottleneck */
export function perfPage(head: PageHead, rows: readonly ReportedRow[], bound: readonly string[]): string {
  const reports = rows.flatMap(({ args, report }, number) =>
    report === undefined ? [] : [{ number, args, report }],
  );
  const [only] = reports;
  const isWarmed = rows.some(({ args }) => args.warmupIterations !== undefined);
  const sentences = [...(head.sentences ?? []), ...(isWarmed ? [warmUpSentence] : [])];
  return chartPage(
    { ...head, sentences, ...(reports.length === 1 ? { elapsedPs: only!.report.elapsedPs } : {}) },
    {
      charts: new Set(rows.map(({ args }) => args.sizeBytes)).size < sizesLeast ? [] : chartsOf(rows),
      tables: [figuresOf(rows)],
      sections: [
        ...(bound.length === 0 ? [] : [textSection('What binds, and where the time goes', bound.join('\n'))]),
        ...(reports.length === 1 ? [reportSections(only!.report)] : []),
      ],
      ...(reports.length < 2
        ? {}
        : {
            reports: {
              title: 'Reports',
              reports: reports.map(({ number, args, report }) => ({
                number,
                title: `The report of ${lengthText(args)}`,
                section: reportSections(report, true),
              })),
            },
          }),
    },
  );
}

const isLatency = (row: PerfRow): row is PerfRow & { readonly result: LatencyResult } => row.args.isLatency;

function chartsOf(rows: readonly PerfRow[]): Chart[] {
  const axis = { xLabel: 'Message size (B)' };
  const drawn = rows
    .map((row, number) => ({ row, number }))
    .filter(({ row: { args } }) => args.isOnDemand !== true);
  const lineOf = (name: string, of: (row: PerfRow) => number) => ({
    name,
    points: drawn.map(({ row }) => [row.args.sizeBytes, of(row)] as const),
    reports: drawn.map(({ number }) => number),
  });
  if (rows.every(isLatency))
    return [
      {
        title: 'Latency',
        yLabel: 'µs',
        yTitle: 'Latency (µs)',
        ...axis,
        lines: [
          lineOf('typical', ({ result }) => (result as LatencyResult).typicalPs / 1e6),
          lineOf('99 %', ({ result }) => (result as LatencyResult).p99Ps / 1e6),
        ],
      },
    ];
  return [
    {
      title: 'Payload',
      yLabel: 'MiB/s',
      yTitle: 'Payload rate (MiB/s)',
      ...axis,
      lines: [lineOf('average', ({ result }) => (result as BandwidthRates).averageBytesPerSecond / 2 ** 20)],
    },
    {
      title: 'Messages',
      yLabel: 'M/s',
      yTitle: 'Message rate (million/s)',
      ...axis,
      lines: [lineOf('average', ({ result }) => (result as BandwidthRates).messagesPerSecond / 1e6)],
    },
  ];
}

type LoadedRow = PerfRow & { readonly result: LoadedRates; readonly load: LoadOutcome };
const isLoaded = (row: PerfRow): row is LoadedRow => row.load !== undefined;

const loadedFigures = (rows: readonly LoadedRow[]): PageTable => ({
  title: 'Under an offered load, from the arrival of a message until its completion or answer',
  head: [
    ...[
      'size',
      'messages',
      'dropped',
      'M/s offered',
      'M/s delivered',
      '50 %',
      '90 %',
      '99 %',
      '99.9 %',
      'most',
    ],
    ...['interrupts/s', 'busy cores'],
  ],
  rows: rows.map((row) => {
    const { result, load } = row;
    const { typicalPs, p90Ps, p99Ps, p999Ps, maxPs } = result;
    return [
      lengthText(row.args),
      countText(load.arrivedCount),
      countText(load.droppedCount),
      millionsText(load.offeredPerSecond),
      millionsText(result.messagesPerSecond),
      ...[typicalPs, p90Ps, p99Ps, p999Ps, maxPs].map(timeText),
      load.interruptsPerSecond.map((rate) => countText(Math.round(rate))).join(' / '),
      load.busyCores.map((cores) => cores.toFixed(2)).join(' / '),
    ];
  }),
});

function figuresOf(rows: readonly PerfRow[]): PageTable {
  if (rows.every(isLoaded)) return loadedFigures(rows);
  const { title, heads, cellsOf } = kindOf(rows[0]!.args).tableOf(rows[0]!.args);
  return { title, head: heads, rows: rows.map(cellsOf) };
}
