/** Options of stock Linux guests that `hca guest` and `hca linux` share, and what follows from them. */
import type { Command } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { type Cause, causeLines } from '../../explain/why/index.ts';
import {
  budgetOf,
  defaultCacheFolder,
  type GuestBudget,
  type GuestReport,
  heldToBudget,
  type RunCost,
} from '../../guests/linux/index.ts';
import type { DevicesOptions } from '../../guests/serve/index.ts';
import { checkWritable } from '../../runtime/output-files.ts';
import { type AnalysisChoice, analysisOptionsOf } from '../analysis-options.ts';
import { type HtmlChoice, htmlOption } from '../html-output.ts';
import { type FaultChoice, type MachineChoice, machineOptionsOf } from '../options.ts';
import { writeJson } from '../output.ts';
import { servedTimelineOrderOf, type TimelineChoice, withoutTimelineFile } from '../timeline-options.ts';

export interface CommonGuestChoice
  extends AnalysisChoice,
    TimelineChoice,
    MachineChoice,
    FaultChoice,
    HtmlChoice {
  readonly kernel: string;
  readonly run: readonly string[];
  readonly timeout: number;
  /** False if `--no-load` was given. */
  readonly load: boolean;
  readonly console?: boolean;
  readonly cache: string;
  readonly mirror?: string;
  readonly fetchOnly?: boolean;
  readonly copy: readonly string[];
  readonly module: readonly string[];
  readonly why?: boolean;
  readonly budget?: string;
  readonly writeBudget?: string;
  readonly report?: string;
  readonly json?: string;
}

type GuestDevices = Pick<DevicesOptions, 'profile' | 'set' | 'seed' | 'faults' | 'shortcuts' | 'analysis'>;

/** An option that may be repeated. */
export const collected = (text: string, before: readonly string[]): string[] => [...before, text];

/** Signals that end a guest from outside: Ctrl-C, kill, and a closed terminal. */
export const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Adds --kernel, --copy, --module, --why, --budget and --write-budget.
 * @param guests as in "each guest"
 */
export const addGuestFileOptions = (command: Command, kernels: readonly string[], guests: string): Command =>
  command
    .option(
      '--kernel <name|path>',
      `${kernels.join(', ')}, a folder of an installed kernel, or a .deb`,
      'debian',
    )
    .option(
      '--copy <file>',
      `put a file or a folder into ${guests}, at /root or, as <file>:<place>, elsewhere; may be repeated`,
      collected,
      [],
    )
    .option(
      '--module <file.ko>',
      'load a kernel module of your own, replacing a stock one of the same name, if any; may be repeated',
      collected,
      [],
    )
    .option(
      '--why',
      'name the causes of requests that failed or never completed, from commands, contexts, packets and counters',
    )
    .option('--budget <file>', 'compare the cost of each command at the HCAs with a budget')
    .option('--write-budget <file>', 'write the cost of each command as a budget');

/** Adds --no-load, --console, --cache, --mirror and --fetch-only. @param guests as in "the guests' consoles" */
export const addGuestCacheOptions = (command: Command, guests: string): Command =>
  command
    .option('--no-load', 'do not load the drivers')
    .option('--console', `show ${guests} consoles`)
    .option('--cache <folder>', 'folder of fetched and built files', defaultCacheFolder())
    .option('--mirror <uri>', "Debian archive to fetch from (default: the one in this machine's apt sources)")
    .option('--fetch-only', 'fetch and build the files of a guest, and end');

/** Adds --report, --json and --html. */
export const addGuestOutputOptions = (command: Command): Command =>
  command
    .option('--report <file>', 'write the report as JSON')
    .option('--json <file>', 'the same; - is standard output, which then has nothing else')
    .option(...htmlOption);

/** @throws ConfigurationError for an output file that cannot be written */
export function checkGuestFiles(options: CommonGuestChoice): void {
  checkWritable(options.writeBudget);
  checkWritable(options.report);
  checkWritable(options.json);
  checkWritable(options.html);
  checkWritable(options.pcap);
  const timeline = servedTimelineOrderOf(options);
  checkWritable(timeline?.timeline);
  checkWritable(timeline?.vcd);
}

/** The devices that the options describe, and what is recorded of them. @throws ConfigurationError */
export function deviceOptionsOf(options: CommonGuestChoice): GuestDevices {
  const { profile, set, seed, faults, shortcuts } = machineOptionsOf(options);
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const timeline = servedTimelineOrderOf(options);
  const isRecorded = analysis !== undefined || timeline !== undefined || options.why === true;
  return {
    ...(profile === undefined ? {} : { profile }),
    ...(set === undefined ? {} : { set }),
    ...(seed === undefined ? {} : { seed }),
    ...(faults === undefined ? {} : { faults }),
    ...(shortcuts === undefined ? {} : { shortcuts }),
    ...(isRecorded
      ? {
          analysis: {
            ...analysis,
            ...(timeline === undefined ? {} : { timeline: timeline.options }),
            ...(options.why === true ? { evidence: {} } : {}),
          },
        }
      : {}),
  };
}

/** Files that are written after a guest has run. */
const afterwards = {
  html: '--html',
  json: '--json',
  report: '--report',
  budget: '--budget',
  writeBudget: '--write-budget',
} as const;

/**
 * @param ended the option that boots no guest
 * @param hasBusOutputs whether traces and timelines are refused too
 * @throws ConfigurationError for what would stay empty
 */
export function refuseOutputsWithoutGuest(
  options: CommonGuestChoice,
  ended: string,
  hasBusOutputs: boolean,
): void {
  const range = `left out with ${ended}, which runs no guest`;
  for (const [name, option] of Object.entries(afterwards)) {
    const file = options[name as keyof typeof afterwards];
    if (file !== undefined) throw new ConfigurationError(option, file, range);
  }
  if (options.run.length > 0) throw new ConfigurationError('--run', options.run[0], range);
  if (!hasBusOutputs) return;
  for (const name of ['trace', 'pcap', 'timeline', 'vcd'] as const)
    if (options[name] !== undefined) throw new ConfigurationError(`--${name}`, options[name], range);
}

/**
 * @param refused options that have no effect on a scenario, by their keys
 * @throws ConfigurationError for one that the command line gives
 */
export function refuseBesideScenario(
  name: string,
  refused: Readonly<Record<string, string>>,
  command: Command,
): void {
  for (const [key, option] of Object.entries(refused))
    if (command.getOptionValueSource(key) === 'cli')
      throw new ConfigurationError(
        option,
        String(command.getOptionValue(key)),
        `left out with --scenario ${name}, which decides that`,
      );
}

/** Costs of the commands, as in the report; writes a budget if one was requested and every command succeeded. */
export function costsOf(
  costs: readonly RunCost[],
  { writeBudget }: CommonGuestChoice,
  budget: GuestBudget | undefined,
  isWhole: boolean,
): Pick<GuestReport, 'costs' | 'budget'> {
  if (writeBudget !== undefined && isWhole) writeJson(writeBudget, budgetOf(costs));
  else if (writeBudget !== undefined)
    process.stderr.write(`hca: ${writeBudget} was not written: not every command succeeded\n`);
  return { costs, ...(budget === undefined ? {} : { budget: heldToBudget(budget, costs) }) };
}

export const guestCauseLines = (causes: readonly Cause[]): string[] =>
  causes.length === 0 ? ['No request failed, and none was left without an answer.'] : causeLines(causes);
