/** `hca perf TEST`: perftest's tests and columns, in simulated time. */
import type { Command } from 'commander';
import {
  bottleneckLines,
  bottleneckShort,
  type EventTimes,
  isWithinLink,
  stageLines,
} from '../../experiments/bottleneck/index.ts';
import { loadedHeader, loadedLine, loadNotes } from '../../experiments/runs/perf-loaded.ts';
import { checkPort } from '../../experiments/runs/perf-port.ts';
import { recoveryLine } from '../../experiments/runs/perf-recovery.ts';
import runPerf, {
  fittedToHost,
  type PerfOrder,
  type PerfRow,
  type ReportedRow,
} from '../../experiments/runs/perf-run.ts';
import { taskRunner } from '../../experiments/runs/task-pool.ts';
import { orderOfRow, type TimelineOrder } from '../../experiments/runs/timeline-files.ts';
import {
  type BandwidthRates,
  kindOf,
  type LatencyResult,
  type LoadedRates,
  meanBytesOf,
  mib,
  type PerfArgs,
  perfArgsOf,
  startOf,
  usec,
} from '../../experiments/workloads/index.ts';
import { faultLinesOf, raceLines } from '../../explain/text/render.ts';
import { type AnalysisOptions, traceFileOf } from '../../machine/analysis/index.ts';
import { configuredOf, type MachineOptions, type Partition } from '../../machine/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type AnalysisChoice, analysisOptionsOf, analysisText, hasErrors } from '../analysis-options.ts';
import { CountBar } from '../count-bar.ts';
import { expectedError } from '../expected-error.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import {
  type FaultChoice,
  hcaMachineOptionsOf,
  type MachineChoice,
  machineHashOf,
  type TopologyChoice,
} from '../options.ts';
import { exitFailed, Screen, wrapped, writeJson } from '../output.ts';
import {
  type TimelineChoice,
  timelineOrderOf,
  timelineText,
  withoutTimelineFile,
} from '../timeline-options.ts';
import { arrivalNotes, parameterNotes, stretchNotes } from './perf-notes.ts';
import { optionOf, type PerfChoice, withoutEffect, workloadsOf } from './perf-options.ts';
import { perfPage } from './perf-page.ts';

export interface PerfOptions
  extends AnalysisChoice,
    TimelineChoice,
    PerfChoice,
    MachineChoice,
    TopologyChoice,
    FaultChoice,
    HtmlChoice {
  readonly partition: Partition;
  readonly json?: string;
}

export async function perf(name: string, options: PerfOptions, command: Command): Promise<void> {
  const start = startOf(name);
  const { test } = start;
  const workloads = workloadsOf(start, options);
  const machine = { ...hcaMachineOptionsOf(options), partition: options.partition };
  const { config, topology } = configuredOf(machine);
  hostsBySide(topology);
  const rows = workloads.map((workload) => fittedToHost(perfArgsOf(workload), config.host, '--'));
  for (const args of rows) checkPort(args, config, optionOf);
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const timeline = timelineOrderOf(options);
  checkWritable(options.json);
  checkWritable(options.html);
  checkWritable(analysis?.trace?.file);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  checkWritable(analysis?.capture?.file);
  const screen = new Screen(options.json);
  screen.write(`${headerOf(rows[0]!)}\n`);
  const orders = rows.map((args) => ({
    machine: analysed(machine, analysis, args, rows.length),
    args,
    ...timelineOf(timeline, args, rows.length),
    isReported: options.html !== undefined,
  }));
  const results: ReportedRow[] = [];
  const bar =
    orders.length === 1
      ? new CountBar(messagesOf(rows[0]!), 'messages')
      : new CountBar(orders.length, 'sizes');
  try {
    for await (const row of inOrder(orders, bar)) {
      results.push(row);
      bar.erase();
      screen.write(`${lineOf(row)}\n`);
    }
  } finally {
    bar.stop();
  }
  for (const { args, races = [], lostRaces = [] } of results)
    for (const line of raceLines(races.map((found, host) => ({ races: found, ...lostOf(lostRaces[host]) }))))
      screen.print(` ${args.sizeBytes} bytes: ${line}`);
  if (options.odp === true) screen.print(onDemandText(results));
  const notes = [
    ...recoveryNotes(results),
    ...withoutEffect(test, options),
    ...parameterNotes(machine, results),
    ...stretchNotes(results),
    ...arrivalNotes(machine, results),
    ...lossNotes(results),
  ];
  for (const { args, load, result } of results)
    if (load !== undefined) notes.push(...loadNotes(args, load, (result as LoadedRates).messagesPerSecond));
  for (const line of notes) screen.print(line);
  const bound = bottleneckText(results);
  for (const line of bound) screen.print(line);
  screen.print(wrapped(expectedError(rows.at(-1)!, config), 80));
  for (const line of faultLinesOf(results.map(runOf))) screen.print(line);
  if (options.json !== undefined) {
    const invocation = invocationOf(command, [name, ...argumentsOf(command)], machine);
    const configHash = machineHashOf(machine);
    const figures = results.map(({ report: _report, ...row }) => row);
    writeJson(options.json, { schema: 'hca-perf/2', invocation, test, configHash, rows: figures });
  }
  const ran = { title: `hca perf ${name}`, words: [name], machine, sentences: notes };
  writePage(options, () => perfPage(headOf(command, ran), results, bound), screen);
  const analyses = results.flatMap((row) => row.analyses ?? []);
  if (analysis !== undefined) screen.print(analysisText(analyses, analysis));
  if (analyses.some(({ findings }) => hasErrors(findings))) process.exitCode = exitFailed;
  for (const { timeline: written } of results) if (written !== undefined) screen.print(timelineText(written));
  for (const { args, result, linkBytesPerSecond } of results) {
    if (linkBytesPerSecond === undefined || isWithinLink(result as BandwidthRates, linkBytesPerSecond))
      continue;
    process.stderr.write(
      `hca: messages of ${args.sizeBytes} bytes are faster than the link, which carries at most ${mib(linkBytesPerSecond)} MiB/sec\n`,
    );
    process.exitCode = exitFailed;
  }
  if (!results.every(({ isBalanced }) => isBalanced)) {
    process.stderr.write('hca: the ledgers of a run do not balance\n');
    process.exitCode = exitFailed;
  }
}

/**
 * The bottleneck of each row of a bandwidth test, abbreviated if there are several rows; the time stages of a latency
 * test for a single row.
 */
function bottleneckText(rows: readonly PerfRow[]): string[] {
  const [first] = rows;
  if (rows.every(({ load }) => load?.isOverload === false))
    return ['What binds: nothing; all that is offered goes through.'];
  if (rows.length === 1 && first?.stages !== undefined) return stageLines(first.stages, eventTimesOf(first));
  if (rows.length === 1 && first?.bottleneck !== undefined) return bottleneckLines(first.bottleneck);
  const lines = rows.flatMap(({ args, bottleneck }) =>
    bottleneck === undefined ? [] : [` ${runOf({ args }).name.padEnd(22)} ${bottleneckShort(bottleneck)}`],
  );
  return lines.length === 0 ? [] : ['What binds:', ...lines];
}

function eventTimesOf({ args, result, lifePs }: PerfRow): EventTimes | undefined {
  if (lifePs === undefined) return undefined;
  const { averagePs } = result as LatencyResult;
  return { averagePs, lifePs, isModerated: args.eventModeration !== undefined };
}

const lostOf = (lostRaces = 0): { readonly lostRaces?: number } => (lostRaces === 0 ? {} : { lostRaces });

/** Messages that an unreliable service lost, and why; other effects of faults are printed below. */
const lossNotes = (rows: readonly PerfRow[]): string[] =>
  rows.flatMap(({ args, received }) => {
    if (received === undefined) return [];
    const { count, expected, lost } = received;
    if (count > expected)
      return [`${args.sizeBytes} bytes: ${expected} messages were sent, and ${count} came: some twice.`];
    if (lost === undefined) return [];
    const total = expected - count;
    const { withoutReceive, withoutPage } = lost;
    const causes: readonly (readonly [number, string])[] = [
      [withoutReceive, 'found no receive'],
      [withoutPage, 'found its page absent'],
      [total - withoutReceive - withoutPage, 'never came whole'],
    ];
    const found = causes.flatMap(([part, words]) => (part > 0 ? [`${part} ${words}`] : []));
    const share = ((total / expected) * 100).toFixed(1);
    const lines = [
      `${args.sizeBytes} bytes: ${total} of ${expected} messages (${share} %) are lost: ${found.join(', ')};`,
      '  the rate is that of the sender.',
    ];
    return withoutReceive === 0 ? lines : [...lines, '  --rx-depth or --threads would take more.'];
  });

/** Recovery by the transport, for each row that has any. */
const recoveryNotes = (rows: readonly PerfRow[]): string[] =>
  rows.flatMap((row) => (row.recovery === undefined ? [] : [recoveryLine(runOf(row).name, row.recovery)]));

const runOf = ({ args, faults }: Pick<PerfRow, 'args' | 'faults'>) => ({
  name: `${args.sizeBytes} bytes${args.isOnDemand === true ? ' on demand' : ''}`,
  faults,
});

/** Messages that the client of a row counts. */
const messagesOf = ({ isLatency, iterations, qpCount }: PerfArgs): number =>
  isLatency ? iterations : iterations * qpCount;

/** The machine of one row: with several rows, each has its own trace, whose file name contains the size. */
function analysed(
  machine: MachineOptions,
  analysis: AnalysisOptions | undefined,
  args: PerfArgs,
  rowCount: number,
): MachineOptions {
  if (analysis === undefined) return machine;
  const { trace, capture } = analysis;
  if (rowCount === 1) return { ...machine, analysis };
  const fileOf = (file: string): string => traceFileOf(file, rowNameOf(args));
  return {
    ...machine,
    analysis: {
      ...analysis,
      ...(trace === undefined ? {} : { trace: { ...trace, file: fileOf(trace.file) } }),
      ...(capture?.file === undefined ? {} : { capture: { ...capture, file: fileOf(capture.file) } }),
    },
  };
}

/** The recording of one row, likewise. */
function timelineOf(
  order: TimelineOrder | undefined,
  args: PerfArgs,
  rowCount: number,
): { readonly timeline?: TimelineOrder } {
  if (order === undefined) return {};
  return { timeline: rowCount === 1 ? order : orderOfRow(order, rowNameOf(args)) };
}

const rowNameOf = ({ sizeBytes, isOnDemand }: PerfArgs): string =>
  isOnDemand === true ? `${sizeBytes}-odp` : `${sizeBytes}`;

/** Runs one order in this thread, several in parallel on a pool; yields in the order of the orders, whichever finishes first. */
async function* inOrder(orders: readonly PerfOrder[], bar: CountBar): AsyncGenerator<ReportedRow> {
  if (orders.length === 1) {
    yield await runPerf(orders[0]!, (node, done) => {
      if (node === 0) bar.update(done);
    });
    return;
  }
  await using pool = taskRunner<PerfOrder, ReportedRow>('perf-run');
  const rows = orders.map((order) => pool.run(order));
  let doneCount = 0;
  for (const row of rows)
    row.then(
      () => bar.update(++doneCount),
      () => undefined,
    );
  for (const row of rows) yield await row;
}

/** The head of the table, with the names of the units. */
const headerOf = (args: PerfArgs): string =>
  args.load === undefined ? kindOf(args).tableOf(args).head : loadedHeader();

function lineOf(row: PerfRow): string {
  const { args, result, load } = row;
  if (load === undefined) return kindOf(args).tableOf(args).lineOf(row);
  const arrived = load.arrivedCount - load.droppedCount;
  return loadedLine(meanBytesOf(args), arrived, result as LoadedRates, load);
}

/** Times of registration, the first message and a typical one, pinned and on demand. */
function onDemandText(rows: readonly PerfRow[]): string {
  const head = ' #bytes  memory     registration[usec]  first[usec]  typical[usec]  page requests  RNR NAKs';
  return ['', head, ...rows.map(onDemandLine)].join('\n');
}

function onDemandLine({ args, result, onDemand = [] }: PerfRow): string {
  const { registrationPs, firstPs, typicalPs } = result as Partial<LatencyResult>;
  const time = (ps: number | undefined, width: number): string =>
    (ps === undefined ? '-' : usec(ps)).padStart(width);
  const sum = (pick: (node: (typeof onDemand)[number]) => number): number =>
    onDemand.reduce((total, node) => total + pick(node), 0);
  const requests = sum(({ driver }) => driver.pageRequests);
  const naks = sum(({ device }) => device.rnrNaks);
  return (
    ` ${String(args.sizeBytes).padEnd(7)} ${(args.isOnDemand === true ? 'on demand' : 'pinned').padEnd(10)}` +
    `${time(registrationPs, 19)}${time(firstPs, 13)}${time(typicalPs, 15)}` +
    `${String(requests).padStart(15)}${String(naks).padStart(10)}`
  );
}
