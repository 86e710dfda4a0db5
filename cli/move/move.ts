/** `hca move [FILE]`: moves a file between two hosts by every path, verifies it, and shows the use of time and cycles. */
import { accessSync, constants, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Command } from 'commander';
import { ConfigurationError, visible } from '../../base/index.ts';
import { keepingCapture, writeCapture } from '../../experiments/runs/capture-output.ts';
import { programUrl } from '../../experiments/runs/program-url.ts';
import { runMachine } from '../../experiments/runs/run.ts';
import { writeTimeline } from '../../experiments/runs/timeline-files.ts';
import {
  type MoveArgs,
  type MoveReceiverResult,
  type MoveSenderResult,
  networkOf,
} from '../../experiments/workloads/index.ts';
import { timeText } from '../../explain/text/format.ts';
import { renderReport } from '../../explain/text/render.ts';
import { tableOf } from '../../explain/text/table.ts';
import { configuredOf, Machine, type Partition, type Report } from '../../machine/index.ts';
import { checkWritable, writeFileAtomically } from '../../runtime/output-files.ts';
import { packageFolder } from '../../runtime/package-folder.ts';
import { type AnalysisChoice, analysisOptionsOf, analysisText, hasErrors } from '../analysis-options.ts';
import { receiverOf, reportFailures, rowsOf } from '../compare/compare.ts';
import { CountBar } from '../count-bar.ts';
import { headOf } from '../html-output.ts';
import { argumentsOf, inputName, invocationOf } from '../invocation.ts';
import type { ReportOutput, RunFactsOutput } from '../json-outputs.ts';
import {
  type FaultChoice,
  hcaMachineOptionsOf,
  type MachineChoice,
  type TopologyChoice,
} from '../options.ts';
import { codeOf, exitFailed, jsonText, Screen, writeJson } from '../output.ts';
import {
  type TimelineChoice,
  timelineOrderOf,
  timelineText,
  withoutTimelineFile,
} from '../timeline-options.ts';
import { comparedPaths, comparisonOf, comparisonText } from './move-comparison.ts';
import { type MoveOutcome, movedTable, movePage } from './move-page.ts';
import { takeaways, takeawayText } from './move-takeaways.ts';

export interface MoveOptions
  extends AnalysisChoice,
    TimelineChoice,
    MachineChoice,
    TopologyChoice,
    FaultChoice {
  readonly partition: Partition;
  readonly chunk: number;
  readonly window: number;
  /** Bytes of the file that are first moved by every path, to compare them. */
  readonly traditional: number;
  readonly report?: string;
  readonly html?: string;
  readonly json?: string;
}

export const chunkBytesMax = 16 * 1024 ** 2;
const atomicCountMax = 100;

/** The file of a fresh clone (or of the package) that is moved if none is named. */
export const defaultFile = (): string => join(packageFolder, 'README.md');

export async function move(file: string | undefined, options: MoveOptions, command: Command): Promise<void> {
  const path = resolve(file ?? defaultFile());
  const fileBytes = sizeOfFile(path);
  const machineOptions = hcaMachineOptionsOf(options);
  const network = networkOf(configuredOf(machineOptions).config);
  const far = receiverOf(
    machineOptions,
    fileBytes === 0 || options.traditional === 0 ? [] : comparedPaths.map((path) => ({ path })),
  );
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const timeline = timelineOrderOf(options);
  checkWritable(options.report);
  checkWritable(options.html);
  checkWritable(options.json);
  checkWritable(analysis?.trace?.file);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  checkWritable(analysis?.capture?.file);
  const screen = new Screen(options.json);
  const chunks = Math.ceil(fileBytes / options.chunk);
  const args: MoveArgs = {
    file: path,
    fileBytes,
    chunkBytes: options.chunk,
    window: options.window,
    // RDMAP has no atomics (RFC 5040); those of RFC 7306 are not modelled.
    atomicCount: network === 'iwarp' ? 0 : Math.max(1, Math.min(chunks, atomicCountMax)),
  };
  const startedMs = performance.now();
  const comparison = await rowsOf(
    comparisonOf(path, fileBytes, options.chunk, options.traditional, machineOptions),
  );
  const comparedMs = performance.now() - startedMs;
  const comparedText =
    comparison.length === 0
      ? ''
      : `, after ${(comparedMs / 1000).toFixed(2)} s for the ${comparison.length} simulations of the comparison`;
  if (comparison.length > 0)
    screen.print(
      `${takeawayText(comparison, network)}\n\n${comparisonText(comparison, fileBytes, far, network)}`,
    );
  const bar = new CountBar(3 * fileBytes);
  await using machine = await Machine.create({
    ...machineOptions,
    partition: options.partition,
    ...(analysis === undefined ? {} : { analysis }),
    ...(timeline === undefined ? {} : { analysis: { ...analysis, timeline: timeline.options } }),
    onProgress: (node, done) => {
      if (node === 0) bar.update(done);
    },
  });
  const load = (node: number, name: string, module: string, exportName: string): Promise<number> => {
    const run = { url: programUrl(module), exportName };
    return machine.load({ node, name, run, args });
  };
  await load(0, 'sender', 'move-sender', 'send');
  await load(far, 'receiver', 'move-receiver', 'receive');
  const watch = setInterval(() => bar.update(machine.progressOf(0).done), 100);
  try {
    await keepingCapture(machine, analysis, () => runMachine(machine));
  } finally {
    clearInterval(watch);
    bar.stop();
  }
  const [sender, receiver] = await machine.results<[MoveSenderResult, MoveReceiverResult]>();
  const report = await machine.report();
  const facts = await machine.runFacts();
  const outcome = outcomeOf(args, sender, receiver, report);
  const invocation = invocationOf(command, argumentsOf(command), machineOptions, {
    ...(file === undefined ? {} : { file: inputName(file) }),
    bytes: fileBytes,
    sha256: outcome.legs[0]!.sha256,
  });
  if (options.report !== undefined) {
    const output: ReportOutput = { ...report, invocation };
    const factsOutput: RunFactsOutput = { schema: 'hca-run/1', ...facts };
    writeFileAtomically(options.report, jsonText(output));
    writeFileAtomically(runFactsFile(options.report), jsonText(factsOutput));
  }
  if (options.json !== undefined)
    writeJson(options.json, { schema: 'hca-move/1', invocation, ...outcome, comparison, report });
  const ran = {
    title: `${basename(path)} from host 0 to host ${far}`,
    machine: machineOptions,
    input: path,
    elapsedPs: report.elapsedPs,
    sentences: takeaways(comparison, network),
  };
  if (options.html !== undefined)
    writeFileAtomically(options.html, movePage(headOf(command, ran), args, outcome, comparison, report, far));
  screen.print(movedText(args, outcome, far));
  screen.print(renderReport(report));
  screen.print(
    `Simulated ${timeText(report.elapsedPs)} in ${(facts.wallMs / 1000).toFixed(2)} s${comparedText}.\n` +
      `Partition ${facts.partition}, ` +
      `${facts.threads} thread${facts.threads === 1 ? '' : 's'}, Node ${facts.node}. Configuration ${report.configHash.slice(0, 12)}.`,
  );
  if (options.html !== undefined) screen.print(`The same as a page: ${visible(resolve(options.html))}`);
  await writeCapture(machine, analysis);
  const analyses = await machine.analyses();
  if (analysis !== undefined) screen.print(analysisText(analyses, analysis));
  if (timeline !== undefined) screen.print(timelineText(await writeTimeline(machine, timeline)));
  reportFailures(comparison);
  if (!outcome.isCorrect || analyses.some(({ findings }) => hasErrors(findings)))
    process.exitCode = exitFailed;
}

/** `out.json` → `out.run.json`. */
export const runFactsFile = (report: string): string => `${report.replace(/\.json$/, '')}.run.json`;

function outcomeOf(
  { fileBytes, atomicCount }: MoveArgs,
  sender: MoveSenderResult,
  receiver: MoveReceiverResult,
  { checks }: Report,
): MoveOutcome {
  const legs = sender.legs.map((leg, index) => {
    const { sha256: received, endPs } = receiver.legs[index]!;
    const durationPs = Math.max(endPs, leg.endPs) - leg.startPs;
    const bytesPerSecond = durationPs === 0 ? 0 : (fileBytes / durationPs) * 1e12;
    return { ...leg, endPs: leg.startPs + durationPs, received, bytesPerSecond };
  });
  const { fetchAddTotal, compareSwapTotal } = receiver;
  const isCorrect =
    legs.every(({ sha256, received }) => sha256 === received) &&
    fetchAddTotal === atomicCount &&
    compareSwapTotal === atomicCount &&
    checks.balanced;
  return { fileBytes, legs, fetchAddTotal, compareSwapTotal, atomicCount, isCorrect };
}

function movedText(args: MoveArgs, outcome: MoveOutcome, far: number): string {
  const { fetchAddTotal, compareSwapTotal, atomicCount } = outcome;
  const counts =
    atomicCount === 0
      ? 'Not counted by atomics, which iWARP does not have (RFC 5040).'
      : `Counted by FETCH_ADD to ${fetchAddTotal}, by CMP_SWAP to ${compareSwapTotal}: ${atomicCount} each were requested.`;
  const { title, head, rows } = movedTable(args, outcome, far);
  return `${tableOf(title, head, rows)}\n${counts}`;
}

/** @throws ConfigurationError if it is not a readable file */
function sizeOfFile(path: string): number {
  try {
    const stat = statSync(path);
    // A pipe is not even opened: opening would wait for a writer.
    if (!stat.isFile()) throw new ConfigurationError('FILE', path, 'a regular file');
    accessSync(path, constants.R_OK);
    return stat.size;
  } catch (error) {
    if (error instanceof ConfigurationError) throw error;
    throw new ConfigurationError('FILE', path, `a readable file (${codeOf(error)})`);
  }
}
