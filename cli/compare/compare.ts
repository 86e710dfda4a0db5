/** `hca compare`: moves the same bytes by every path, over sizes, and shows the costs of both hosts as tables, plots and a page. */
import type { Command } from 'commander';
import type { CompareRow } from '../../experiments/runs/compare-run.ts';
import { orderOfRow, type TimelineOrder } from '../../experiments/runs/timeline-files.ts';
import {
  type CompareArgs,
  machineOfRow,
  messageCountOf,
  networkOf,
  pathLimitBytes,
  rowTitleOf,
} from '../../experiments/workloads/index.ts';
import { bytesText, countText } from '../../explain/text/format.ts';
import { faultLinesOf } from '../../explain/text/render.ts';
import { configuredOf, type MachineOptions } from '../../machine/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { CountBar } from '../count-bar.ts';
import { type HtmlChoice, headOf, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import {
  type FaultChoice,
  hcaMachineOptionsOf,
  type MachineChoice,
  machineHashOf,
  type TopologyChoice,
} from '../options.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import { type TimelineChoice, timelineOrderOf, timelineText } from '../timeline-options.ts';
import { type CompareChoice, checkNetworks, compareArgsOf } from './compare-options.ts';
import {
  cableSentence,
  comparePage,
  comparePlots,
  compareSentences,
  iwarpWriteSentence,
  sidesSentence,
} from './compare-plots.ts';
import { comparisons } from './compare-pool.ts';
import { causeTable, compareTable } from './compare-table.ts';

export interface CompareOptions
  extends CompareChoice,
    MachineChoice,
    TopologyChoice,
    FaultChoice,
    HtmlChoice,
    TimelineChoice {
  readonly json?: string;
}

export async function compare(options: CompareOptions, command: Command): Promise<void> {
  // The path determines the card in the slot.
  const machine = hcaMachineOptionsOf(options);
  checkNetworks(options, machine);
  const { runs, leftOut, shortened } = compareArgsOf(options);
  const far = receiverOf(machine, runs);
  checkWritable(options.json);
  checkWritable(options.html);
  const timeline = timelineOrderOf(options);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
  const screen = new Screen(options.json);
  const orders = runs.map((args) => ({ machine, args, ...timelineOf(timeline, args, runs.length) }));
  const rows = await rowsOf(orders);
  for (const sizeBytes of options.sizes) {
    const ofSize = rows.filter((row) => row.sizeBytes === sizeBytes);
    if (ofSize.length === 0) continue;
    screen.print(compareTable(`Messages of ${bytesText(sizeBytes)} from host 0 to host ${far}`, ofSize));
  }
  screen.print(sidesSentence(far));
  const largest = largestOf(rows);
  screen.print(causeTable('Where the cycles went, at the largest size of each path', largest));
  for (const plot of comparePlots(rows)) screen.print(plot);
  const named = rows.map((row) => ({
    name: `${rowTitleOf(row)} of ${bytesText(row.sizeBytes)}`,
    faults: row.faults,
  }));
  for (const line of faultLinesOf(named)) screen.print(line);
  const network = options.networks === undefined ? networkOf(configuredOf(machine).config) : 'several';
  const hasIwarpWrite = runs.some((args) => args.path === 'write' && (args.network ?? network) === 'iwarp');
  const notes = [
    ...(options.networks === undefined ? [] : [cableSentence]),
    ...(hasIwarpWrite ? [iwarpWriteSentence] : []),
    ...(leftOut.length === 0 ? [] : [leftOutText(leftOut)]),
    ...(shortened.length === 0 ? [] : [shortenedText(shortened)]),
  ];
  for (const note of notes) screen.print(note);
  for (const { timeline: written } of rows) if (written !== undefined) screen.print(timelineText(written));
  const ran = {
    title: `The same bytes from host 0 to host ${far} by every path`,
    machine,
    sentences: [...compareSentences(far, network), ...notes],
  };
  writePage(options, () => comparePage(headOf(command, ran), rows), screen);
  if (options.json !== undefined) {
    const invocation = invocationOf(command, argumentsOf(command), machine);
    writeJson(options.json, {
      schema: 'hca-compare/1',
      invocation,
      configHash: machineHashOf(machine),
      rows,
    });
  }
  reportFailures(rows);
}

/**
 * The host that gets the bytes: at the other end of host 0's first cable.
 * @throws ConfigurationError for a machine that the adapter of one of these runs cannot be in
 */
export function receiverOf(
  machine: MachineOptions,
  runs: readonly Pick<CompareArgs, 'path' | 'network'>[],
): number {
  for (const run of runs) configuredOf({ ...machine, set: { ...machine.set, ...machineOfRow(run) } });
  return hostsBySide(configuredOf(machine).topology)[1]!;
}

/** Recordings of one run. With several runs, each has its own files, whose names contain path and size. */
function timelineOf(
  order: TimelineOrder | undefined,
  { path, network, sizeBytes }: CompareArgs,
  runCount: number,
): { readonly timeline?: TimelineOrder } {
  if (order === undefined) return {};
  return {
    timeline:
      runCount === 1
        ? order
        : orderOfRow(order, [path, network, sizeBytes].filter((part) => part !== undefined).join('-')),
  };
}

/** Runs everything under a progress bar. */
export async function rowsOf(orders: Parameters<typeof comparisons>[0]): Promise<CompareRow[]> {
  const bar = new CountBar(orders.length, 'simulations');
  const rows: CompareRow[] = [];
  try {
    for await (const row of comparisons(orders, (count) => bar.update(count))) rows.push(row);
  } finally {
    bar.stop();
  }
  return rows;
}

/** Prints the errors, if any. */
export function reportFailures(rows: readonly CompareRow[]): void {
  for (const row of rows) {
    const { sizeBytes, isEqual, isBalanced } = row;
    const what = `hca: ${rowTitleOf(row)} with ${bytesText(sizeBytes)}`;
    if (!isEqual) process.stderr.write(`${what}: the bytes received differ from those sent\n`);
    if (!isBalanced) process.stderr.write(`${what}: the ledgers of the run do not balance\n`);
    if (!isEqual || !isBalanced) process.exitCode = exitFailed;
  }
}

const largestOf = (rows: readonly CompareRow[]): CompareRow[] => {
  const byTitle = new Map<string, CompareRow>();
  for (const row of rows) {
    const title = rowTitleOf(row);
    if (row.sizeBytes >= (byTitle.get(title)?.sizeBytes ?? 0)) byTitle.set(title, row);
  }
  return [...byTitle.values()];
};

function leftOutText(leftOut: ReturnType<typeof compareArgsOf>['leftOut']): string {
  const texts = leftOut.map((run) => `${rowTitleOf(run)} of ${bytesText(run.sizeBytes)}`);
  return `Left out, as word by word takes too long: ${texts.join(', ')}.`;
}

function shortenedText(shortened: readonly CompareArgs[]): string {
  const texts = shortened.map((args) => {
    const { path, sizeBytes } = args;
    const most = `${countText(messageCountOf(args))} (${bytesText(pathLimitBytes[path])} at most)`;
    return `${rowTitleOf(args)} of ${bytesText(sizeBytes)}: ${most}`;
  });
  return `Fewer messages than --count: ${texts.join(', ')}.`;
}
