/**
 * `hca guest`: a stock Linux guest on HCAs of ours in one command. Fetches what it takes, boots, loads the drivers, runs
 * commands or a shell, and shows what the devices counted.
 */
import { constants as os } from 'node:os';
import { type Command, Option } from 'commander';
import { ConfigurationError } from '../../base/assert.ts';
import {
  defaultCacheFolder,
  type GuestCommandResult,
  GuestError,
  type GuestReport,
  GuestSession,
  guestFaultsOf,
  guestFiles,
  guestReportOf,
  kernelNames,
  renderGuestReport,
  runScenario,
  type ScenarioOptions,
  type SessionResult,
  scenarioNamed,
  scenarios,
  terminalProgress,
} from '../linux-lab/index.ts';
import {
  type AnalysisChoice,
  addAnalysisOptions,
  analysisOptionsOf,
  analysisText,
  hasErrors,
} from './analysis-options.ts';
import type { ScenarioOutput } from './json-outputs.ts';
import {
  addFaultOptions,
  addMachineOptions,
  type FaultChoice,
  integer,
  type MachineChoice,
  machineOptionsOf,
} from './options.ts';
import { checkWritable, exitFailed, Screen, writeJson } from './output.ts';

interface GuestCommandOptions extends AnalysisChoice, MachineChoice, FaultChoice {
  readonly kernel: string;
  readonly run: readonly string[];
  readonly guests: 1 | 2;
  readonly hcas?: 1 | 2;
  readonly cable?: boolean;
  readonly memory: number;
  readonly cpus: number;
  readonly timeout: number;
  /** False when `--no-load` was given. */
  readonly load: boolean;
  readonly console?: boolean;
  readonly cache: string;
  readonly mirror?: string;
  readonly fetchOnly?: boolean;
  readonly scenario?: string;
  readonly report?: string;
  readonly json?: string;
}

const collected = (text: string, before: readonly string[]): string[] => [...before, text];
/** What ends a guest from outside: Ctrl-C, kill, and a terminal that is closed. */
const endingSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** As a shell has it for a program that a signal ended. Ending so, and not by the signal, removes what the guest had in files. */
const leave = (signal: (typeof endingSignals)[number]): never => process.exit(128 + os.signals[signal]);
const weekSeconds = 7 * 24 * 3600;

/** Adds the command with its options. */
export function addGuestCommand(program: Command): void {
  const command = program
    .command('guest')
    .description(
      'boot a stock Linux guest with its own drivers on HCAs of ours; everything is fetched as needed',
    )
    .option(
      '--kernel <name|path>',
      `${kernelNames.join(', ')}, a folder of an installed kernel, or a .deb`,
      'debian',
    )
    .option(
      '--run <command>',
      'run a shell command in guest 0 (or "guest1: command"); may be repeated; none: a shell',
      collected,
      [],
    )
    .option('--guests <n>', 'guests: 2 have an HCA each, joined by a cable', integer(1, 2), 1)
    .option('--hcas <n>', 'HCAs (default: one for each guest)', integer(1, 2))
    .option('--cable', 'join two HCAs of one guest by a cable; without one each talks to itself')
    .option('--memory <MiB>', 'memory of each guest', integer(512, 65_536), 1024)
    .option('--cpus <n>', 'processors of each guest', integer(1, 16), 2)
    .option('--timeout <s>', 'longest time of a command', integer(1, weekSeconds), 600)
    .option('--no-load', 'do not load the drivers')
    .option('--console', "show the guests' consoles")
    .option('--cache <folder>', 'where fetched and built files are kept', defaultCacheFolder())
    .option('--mirror <uri>', "Debian archive to fetch from (default: the one in this machine's apt sources)")
    .option('--fetch-only', 'fetch and build what a guest takes, and end')
    .addOption(
      new Option('--scenario <name>', 'run a scenario instead of commands').choices(
        scenarios.map(({ name }) => name),
      ),
    )
    .option('--report <file>', 'write the report as JSON')
    .option('--json <file>', 'the same; - is standard output, which then has nothing else')
    .action(guest);
  addAnalysisOptions(addFaultOptions(addMachineOptions(command)));
}

async function guest(options: GuestCommandOptions): Promise<void> {
  checkWritable(options.report);
  checkWritable(options.json);
  const screen = new Screen(options.json);
  try {
    if (options.fetchOnly) await fetchFiles(options, screen);
    else if (options.scenario !== undefined) await scenario(options.scenario, options, screen);
    else await session(options, screen);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    process.stderr.write(`hca: ${error.message}\n`);
    process.exitCode = exitFailed;
  } finally {
    for (const signal of endingSignals) process.removeListener(signal, leave);
  }
}

/** What guests are made from and served with. */
function commonOptions(options: GuestCommandOptions): ScenarioOptions {
  const { kernel, memory, cpus } = options;
  const { profile, set, seed, faults, shortcuts } = machineOptionsOf(options);
  const analysis = analysisOptionsOf(options);
  return {
    kernel,
    cpus,
    memoryMib: memory,
    cache: { folder: options.cache, mirror: options.mirror, progress: terminalProgress() },
    console: options.console ? 'shown' : 'kept',
    serve: {
      ...(profile === undefined ? {} : { profile }),
      ...(set === undefined ? {} : { set }),
      ...(seed === undefined ? {} : { seed }),
      ...(faults === undefined ? {} : { faults }),
      ...(shortcuts === undefined ? {} : { shortcuts }),
      ...(analysis === undefined ? {} : { analysis }),
    },
    onNotice: (text) => process.stderr.write(`hca: ${text}\n`),
  };
}

async function fetchFiles(options: GuestCommandOptions, screen: Screen): Promise<void> {
  const { kernelVersion, initramfs } = await guestFiles(options.kernel, commonOptions(options).cache);
  screen.print(`Linux ${kernelVersion} is ready in ${options.cache} (${initramfs})`);
}

async function session(options: GuestCommandOptions, screen: Screen): Promise<void> {
  const hasShell = options.run.length === 0;
  if (hasShell && !(process.stdin.isTTY && process.stdout.isTTY))
    throw new ConfigurationError('--run', 'left out', 'a command, where there is no terminal for a shell');
  if (hasShell && options.guests > 1)
    throw new ConfigurationError('--run', 'left out', 'a command: two guests have no shell');
  const { guests, hcas = guests } = options;
  const started = await GuestSession.start({
    ...commonOptions(options),
    ...{ guests, hcas },
    cable: options.cable ?? guests > 1,
    ...(hasShell ? { console: 'terminal' as const } : {}),
  });
  await using machine = started;
  const commands: GuestCommandResult[] = [];
  // Ctrl-C ends the guests, and with them what runs there; the devices still report.
  const interrupt = (): void => {
    for (const signal of endingSignals) process.removeListener(signal, interrupt).once(signal, leave);
    void Promise.all(machine.guests.map((one) => one.dispose()));
  };
  for (const signal of endingSignals) process.removeListener(signal, leave).once(signal, interrupt);
  let result: SessionResult;
  try {
    if (options.load) await machine.load();
    if (hasShell) await machine.shell();
    for (const text of options.run) commands.push(await runCommand(machine, text, options.timeout, screen));
    result = await machine.finish();
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    process.stderr.write(`hca: ${error.message}\n`);
    process.exitCode = exitFailed;
    result = await machine.abandon();
  } finally {
    for (const signal of endingSignals)
      process.removeListener(signal, interrupt).removeListener(signal, leave);
  }
  show(guestReportOf(result, commands), options, screen);
}

/** Runs one --run, showing its output as it comes. */
async function runCommand(
  machine: GuestSession,
  text: string,
  timeoutSeconds: number,
  screen: Screen,
): Promise<GuestCommandResult> {
  const [, digit = '0', command = text] = /^guest([01]):\s*(.*)$/s.exec(text) ?? [];
  const index = Number(digit);
  screen.print(`guest${index}$ ${command}`);
  const result = await machine.run(index, command, {
    timeoutSeconds,
    onOutput: (output) => screen.write(output),
  });
  return { guest: index, ...result };
}

function show(report: GuestReport, options: GuestCommandOptions, screen: Screen): void {
  const analysis = analysisOptionsOf(options);
  if (options.report !== undefined) writeJson(options.report, report);
  if (options.json !== undefined) writeJson(options.json, report);
  screen.print(renderGuestReport(report));
  if (analysis !== undefined) screen.print(analysisText(report.serve.analyses, analysis));
  const faults = guestFaultsOf(report);
  for (const fault of faults) process.stderr.write(`hca: ${fault}\n`);
  const isFaulty = report.serve.analyses.some(({ findings }) => hasErrors(findings));
  if (faults.length > 0 || isFaulty) process.exitCode = exitFailed;
}

async function scenario(name: string, options: GuestCommandOptions, screen: Screen): Promise<void> {
  const outcome = await runScenario(scenarioNamed(name), commonOptions(options), (line) =>
    screen.print(line),
  );
  const output: ScenarioOutput = { schema: 'hca-guest-scenario/1', ...outcome };
  if (options.report !== undefined) writeJson(options.report, output);
  if (options.json !== undefined) writeJson(options.json, output);
  if (!outcome.holds) process.exitCode = exitFailed;
}
