/**
 * `hca why TEST|FILE`: runs a `hca perf` test, or the programs of a file, and explains each request that failed or
 * never completed: the check that refused it, the found and the expected value, and the line that posted the request.
 */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { ConfigurationError, visible } from '../../base/index.ts';
import { checkPort } from '../../experiments/runs/perf-port.ts';
import { fittedToHost, loadPrograms } from '../../experiments/runs/perf-run.ts';
import { kernelText } from '../../experiments/runs/run.ts';
import { perfArgsOf, startOf } from '../../experiments/workloads/index.ts';
import { pageOf, reportSections, textSection } from '../../explain/page/index.ts';
import {
  type Failure,
  failuresOf,
  type Losses,
  lossesOf,
  type Unfinished,
  unfinishedOf,
} from '../../explain/timeline/index.ts';
import { type Cause, causeLines, diagnosedRun, ProgramLines } from '../../explain/why/index.ts';
import {
  configuredOf,
  type FaultReport,
  Machine,
  type MachineOptions,
  type ProgramFunction,
  type Report,
} from '../../machine/index.ts';
import type { TimelineOptions } from '../../machine/timeline/index.ts';
import { hostsBySide } from '../../machine/topology/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { packageFolder } from '../../runtime/package-folder.ts';
import { type HtmlChoice, headOf, htmlOption, writePage } from '../html-output.ts';
import { argumentsOf, invocationOf } from '../invocation.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addTopologyOption,
  type FaultChoice,
  hcaMachineOptionsOf,
  type MachineChoice,
  machineHashOf,
  type TopologyChoice,
} from '../options.ts';
import { Screen, writeJson } from '../output.ts';
import {
  addPerfOptions,
  optionOf,
  type PerfChoice,
  refuseTestOptions,
  workloadsOf,
} from '../perf/perf-options.ts';

interface WhyOptions extends PerfChoice, MachineChoice, TopologyChoice, FaultChoice, HtmlChoice {
  readonly json?: string;
}

/** How a run ended, and why its requests failed. */
export interface WhyResult {
  /** Reason for the end of the run; left out if all programs have ended. */
  readonly error?: string;
  /** Causes, one sentence each. */
  readonly causes: readonly Cause[];
  readonly failures: readonly Failure[];
  readonly unfinished: readonly Unfinished[];
  readonly losses: Losses;
  /** Injected faults, and how often each fired. */
  readonly faults: readonly FaultReport[];
  /** Records lost because a stream was full; their contents are missing. */
  readonly dropped: number;
}

/** Adds the command with its options. */
export function addWhyCommand(program: Command): void {
  const command = program
    .command('why')
    .description(
      'explain why requests of a test or of a program failed or never completed, and where they were posted',
    )
    .argument(
      '<test|file>',
      'a test of hca perf, or a file that exports host0, host1 and so on, the programs of the hosts',
    )
    .option('--json <file>', 'write it as JSON; - is standard output')
    .option(...htmlOption)
    .action(why);
  addFaultOptions(addTopologyOption(addMachineOptions(addPerfOptions(command))));
}

async function why(name: string, options: WhyOptions, command: Command): Promise<void> {
  const machine = hcaMachineOptionsOf(options);
  checkWritable(options.json);
  checkWritable(options.html);
  const screen = new Screen(options.json);
  const load = isProgramFile(name) ? await programsOf(name, options) : testOf(name, options, machine);
  const lines = new ProgramLines(isProgramFile(name) ? resolve(name) : undefined, isLibrary);
  const { report, ...result } = await whyOf(machine, load, lines);
  const text = textOf(result, report);
  screen.print(text);
  const ran = { title: `Why: ${name}`, words: [name], machine, elapsedPs: report.elapsedPs };
  const page = (): string =>
    pageOf(headOf(command, ran), [textSection('What failed, and why', text), reportSections(report)]);
  writePage(options, page, screen);
  if (options.json === undefined) return;
  const invocation = invocationOf(command, [name, ...argumentsOf(command)], machine);
  writeJson(options.json, { schema: 'hca-why/1', invocation, configHash: machineHashOf(machine), ...result });
}

type Load = (machine: Machine) => Promise<void>;

const isProgramFile = (name: string): boolean => /\.[cm]?[jt]s$/.test(name);

function testOf(name: string, options: PerfChoice, machine: MachineOptions): Load {
  const workloads = workloadsOf(startOf(name), options);
  if (workloads.length > 1)
    throw new ConfigurationError('hca why', '--all or --odp', 'one size and one kind of memory');
  const { config, topology } = configuredOf(machine);
  hostsBySide(topology);
  const args = fittedToHost(perfArgsOf(workloads[0]!), config.host, '--');
  checkPort(args, config, optionOf);
  return (built) => loadPrograms(built, args);
}

/** @throws ConfigurationError for a file that cannot be loaded or exports no program */
async function programsOf(file: string, options: PerfChoice): Promise<Load> {
  refuseTestOptions(options, 'left out: a program posts requests of its own');
  let found: Readonly<Record<string, unknown>>;
  try {
    found = (await import(pathToFileURL(resolve(file)).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new ConfigurationError('FILE', file, `a module that loads (${String(error)})`);
  }
  const programs = Object.entries(found).flatMap(([name, run]) => {
    const node = /^host(\d)$/.exec(name)?.[1];
    return node !== undefined && typeof run === 'function'
      ? [{ node: Number(node), run: run as ProgramFunction }]
      : [];
  });
  if (programs.length === 0)
    throw new ConfigurationError(
      'FILE',
      file,
      'a module that exports host0, host1 or the program of another host',
    );
  return async (machine) => {
    const last = machine.nodeCount - 1;
    const beyond = programs.find(({ node }) => node > last);
    if (beyond !== undefined)
      throw new ConfigurationError(
        'FILE',
        `${file} with host${beyond.node}`,
        last === 1 ? 'exports for host0 and host1' : `exports for host0 to host${last}`,
      );
    for (const { node, run } of programs) await machine.load({ node, name: `host${node}`, run });
  };
}

/** Runs a machine and queries its records. */
export async function whyOf(
  options: MachineOptions,
  load: Load,
  programLines = new ProgramLines(undefined, isLibrary),
): Promise<WhyResult & { readonly report: Report }> {
  const lines = new Map<string, string>();
  const timeline: TimelineOptions = {
    categories: ['operations', 'packets', 'checks'],
    onPost: (node, ordinal) => {
      const line = programLines.note(node, stackHere());
      if (line !== undefined) lines.set(`${node} ${ordinal}`, line);
    },
  };
  const placeOf = (node: number): string | undefined => programLines.note(node, stackHere());
  await using machine = await Machine.create({
    ...options,
    watch: options.watch ?? 'races',
    analysis: { timeline, evidence: { placeOf } },
  });
  await load(machine);
  const { error: ended, findings } = await diagnosedRun(machine, (thrown) =>
    thrown instanceof Error ? programLines.note(ANY_NODE, thrown.stack ?? '') : undefined,
  );
  const error = ended === undefined ? undefined : `${ended}${await kernelText(machine)}`;
  const recorded = await machine.timeline();
  const report = await machine.report();
  const postedAt = (node: number, ordinal: number): string | undefined =>
    programLines.lineOf(lines.get(`${node} ${ordinal}`))?.line;
  return {
    ...(error === undefined ? {} : { error }),
    causes: findings.map((cause) => withLines(cause, programLines)),
    failures: failuresOf(recorded, postedAt),
    unfinished: unfinishedOf(recorded, postedAt),
    losses: lossesOf(recorded),
    faults: report.faults ?? [],
    report,
    dropped: recorded.dropped.reduce((sum, { dropped }) => sum + dropped, 0),
  };
}

/** Stack frames that do not belong to the program: those of the library below it, and of Node. */
const library = [
  ...['userlib', 'driver', 'host', 'sim', 'net', 'protocol', 'runtime', 'dist'],
  ...['machine', 'explain', 'experiments', 'guests', 'torture', 'cli'],
].map((folder) => join(packageFolder, folder, '/'));
const isLibrary = (frame: string): boolean =>
  frame.includes('node:') || library.some((folder) => frame.includes(folder));

/** The library may have many frames: the program's frames are below them. */
const stackFrames = 40;

function stackHere(): string {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = stackFrames;
  const { stack } = new Error('here');
  Error.stackTraceLimit = before;
  return stack ?? '';
}

/** Node of an error that a program threw; the error's own text names the program. */
const ANY_NODE = -1;

/** A cause with lines of the program instead of stack names. */
function withLines({ line, mendLine, ...cause }: Cause, lines: ProgramLines): Cause {
  const [at, see] = [lines.lineOf(line), lines.lineOf(mendLine)];
  return {
    ...cause,
    ...(at === undefined ? {} : { line: at.line, ...(at.within.length > 0 ? { within: at.within } : {}) }),
    ...(see === undefined
      ? {}
      : { mendLine: see.line, ...(see.within.length > 0 ? { mendWithin: see.within } : {}) }),
  };
}

const usText = (ps: number): string => `${(ps / 1e6).toFixed(3)} µs`;

function textOf(
  { error, causes, failures, unfinished, losses, faults, dropped }: WhyResult,
  { nodes }: Report,
): string {
  const lines = failures.map(
    ({ node, qpn, queue, wqeCounter, status, atPs, operation, ordinal, postedAt, reasons }) => [
      `host ${node}, QP 0x${qpn.toString(16)}, WQE 0x${wqeCounter.toString(16)} of the ${queue} queue` +
        `${operation === undefined ? '' : ` (${operation}, post ${ordinal})`}: ${status} at ${usText(atPs)}`,
      ...(postedAt === undefined ? [] : [`  posted at ${visible(postedAt)}`]),
      ...reasonLines(reasons),
    ],
  );
  const open = unfinished.map(
    ({ node, qpn, wqeCounter, operation, ordinal, postedPs, postedAt, reasons }) => [
      `host ${node}, QP 0x${qpn.toString(16)}, WQE 0x${wqeCounter.toString(16)} (${operation}, post ${ordinal}): posted at ${usText(postedPs)}, never ended`,
      ...(postedAt === undefined ? [] : [`  posted at ${visible(postedAt)}`]),
      ...reasonLines(reasons),
    ],
  );
  return [
    ...causeLines(causes),
    ...(error === undefined ? [] : [`The run ended with: ${error}`]),
    ...lines.flat(),
    ...open.flat(),
    ...(failures.length + unfinished.length === 0
      ? [`Every send request of ${nodes.length === 2 ? 'both' : 'all'} hosts ${endedWell(nodes)}.`]
      : []),
    ...reasonLines(losses.first),
    ...(losses.count > losses.first.length
      ? [`  and ${losses.count - losses.first.length} more packets that were lost or corrupted`]
      : []),
    ...faults.map(
      ({ fault, fired }) => `Injected: ${fault}: fired ${fired === 1 ? 'once' : `${fired} times`}.`,
    ),
    ...(dropped === 0 ? [] : [`${dropped} records found their stream full: reasons may be missing.`]),
  ].join('\n');
}

/** Over iWARP a completion of a WRITE or SEND tells nothing of the peer. */
const endedWell = (nodes: Report['nodes']): string =>
  nodes.some(({ hca }) => hca.iwarp !== undefined)
    ? 'completed without an error; over iWARP a WRITE or SEND completes when TCP has it'
    : 'ended well';

const reasonLines = (reasons: Failure['reasons']): string[] =>
  reasons.flatMap(({ where, atPs, text, found, heldTo, clause }) => [
    `  ${where}, ${usText(atPs)}: ${text}${clause === undefined ? '' : ` (${clause})`}`,
    ...(found === undefined ? [] : [`    found ${found}; held to ${heldTo}`]),
  ]);
