/**
 * `hca guest`: runs a stock Linux guest on simulated HCAs in one command. It fetches the required files, boots, loads
 * the drivers, runs commands or a shell, and shows the counters of the devices.
 */
import { constants as os } from 'node:os';
import { type Command, Option } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import { reportFullCapture } from '../../experiments/runs/capture-output.ts';
import { pageOf, textSection } from '../../explain/page/index.ts';
import { diagnosedGuests } from '../../explain/why/index.ts';
import {
  figuresBetween,
  type GuestChoice,
  type GuestCommandResult,
  GuestError,
  type GuestReport,
  GuestSession,
  guestFaultsOf,
  guestFiles,
  guestReportOf,
  guestsByHand,
  kernelNames,
  quoted,
  type RunCost,
  readBudget,
  renderGuestReport,
  runScenario,
  type ScenarioOptions,
  type SessionResult,
  scenarioNamed,
  scenarios,
  startScenario,
  terminalProgress,
} from '../../guests/linux/index.ts';
import type { ServeReport } from '../../guests/serve/index.ts';
import type { FaultReport } from '../../machine/index.ts';
import { addAnalysisOptions, analysisOptionsOf, analysisText, hasErrors } from '../analysis-options.ts';
import { headOf, writePage } from '../html-output.ts';
import type { ScenarioOutput } from '../json-outputs.ts';
import { addFaultOptions, addMachineOptions, integer, refuseTopologyOption } from '../options.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import {
  addTimelineOptions,
  servedTimelineOrderOf,
  timelineText,
  withoutTimelineFile,
  writeServedTimeline,
} from '../timeline-options.ts';
import {
  addGuestCacheOptions,
  addGuestFileOptions,
  addGuestOutputOptions,
  type CommonGuestChoice,
  checkGuestFiles,
  collected,
  costsOf,
  deviceOptionsOf,
  endingSignals,
  guestCauseLines,
  refuseBesideScenario,
  refuseOutputsWithoutGuest,
} from './common-options.ts';
import { guestPage } from './guest-page.ts';
import { addPeerOptions, type PeerChoice, peerOptionsOf } from './peer-options.ts';

interface GuestCommandOptions extends CommonGuestChoice, PeerChoice {
  readonly guests: 1 | 2;
  readonly hcas?: 1 | 2;
  readonly cable?: boolean;
  readonly memory: number;
  readonly cpus: number;
  readonly cpu?: string;
  readonly siw?: boolean;
  readonly shell?: boolean;
  readonly printQemu?: boolean;
  readonly scenario?: string;
}

/**
 * The exit code that a shell gives a program ended by a signal. The process exits instead of dying by the signal, so
 * that it can remove the guest's files.
 */
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
      '--run <command>',
      'run a shell command in guest 0 (or "guest1: command"); may be repeated; none: a shell',
      collected,
      [],
    )
    .option(
      '--siw',
      "load Linux's Soft-iWARP (siw), built on first use from Debian's sources of the kernel; takes gcc and make",
    )
    .option('--shell', 'a shell in guest 0 after the commands')
    .option('--print-qemu', 'print the commands that serve and boot the same by hand, and end')
    .option('--guests <n>', 'guests: 2 have an HCA each, joined by a cable', integer(1, 2), 1)
    .option('--hcas <n>', 'HCAs (default: one for each guest)', integer(1, 2))
    .option('--cable', 'join two HCAs of one guest by a cable; without one each talks to itself')
    .option('--memory <MiB>', 'memory of each guest', integer(512, 65_536), 1024)
    .option('--cpus <n>', 'processors of each guest', integer(1, 16), 2)
    .option('--cpu <model>', "QEMU's model of the processors, such as max (default: QEMU's own choice)")
    .option('--timeout <s>', 'longest time of a command', integer(1, weekSeconds), 600)
    .addOption(
      new Option('--scenario <name>', 'run a scenario instead of commands').choices(
        scenarios.map(({ name }) => name),
      ),
    )
    .action(guest);
  addGuestFileOptions(command, kernelNames, 'each guest');
  addGuestOutputOptions(addGuestCacheOptions(command, "the guests'"));
  addTimelineOptions(
    addAnalysisOptions(addFaultOptions(addMachineOptions(addPeerOptions(command, softRoceWords)))),
  );
  refuseTopologyOption(command, 'left out: --guests, --hcas, --cable and --peer say what the cables lead to');
}

async function guest(options: GuestCommandOptions, command: Command): Promise<void> {
  refuseIdle(options, command);
  refusePeer(options);
  checkGuestFiles(options);
  const screen = new Screen(options.json);
  try {
    if (options.fetchOnly) await fetchFiles(options, screen);
    else if (options.printQemu) await printQemu(options, command, screen);
    else if (options.scenario !== undefined) await scenario(options.scenario, options, command, screen);
    else await session(options, command, screen);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    process.stderr.write(`hca: ${error.message}\n`);
    process.exitCode = exitFailed;
  } finally {
    for (const signal of endingSignals) process.removeListener(signal, leave);
  }
}

/** Options that boot no guest, and those that write no guest output. */
const bootless = { fetchOnly: '--fetch-only', printQemu: '--print-qemu' } as const;

function refuseFilesWithoutGuest(options: GuestCommandOptions): void {
  if (options.fetchOnly === true && options.printQemu === true)
    throw new ConfigurationError(bootless.printQemu, true, `left out with ${bootless.fetchOnly}`);
  if (options.fetchOnly === true) refuseOutputsWithoutGuest(options, bootless.fetchOnly, true);
  // Traces and timelines are options that users of --print-qemu give to hca serve.
  if (options.printQemu === true) refuseOutputsWithoutGuest(options, bootless.printQemu, false);
}

/** @throws ConfigurationError for options that would have no effect */
function refuseIdle(options: GuestCommandOptions, command: Command): void {
  refuseFilesWithoutGuest(options);
  if (options.scenario !== undefined) refuseBesideScenario(options.scenario, ofScenario, command);
  const { scenario: name, run, budget, writeBudget, shell } = options;
  if (name !== undefined && servedTimelineOrderOf(options) !== undefined)
    throw new ConfigurationError('--scenario', name, 'without a timeline: its guests come and go');
  const hasBudget = budget !== undefined || writeBudget !== undefined;
  if (name !== undefined && (run.length > 0 || hasBudget || shell === true))
    throw new ConfigurationError(
      '--scenario',
      name,
      'without --run, --shell and budgets: its steps are its own',
    );
  if (hasBudget && run.length === 0)
    throw new ConfigurationError('--run', 'left out', 'a command for the budget');
  const elsewhere = run.find((text) => text.startsWith('guest1:'));
  if (elsewhere !== undefined && guestChoice(options).guests === 1)
    throw new ConfigurationError('--run', elsewhere, 'a command of guest 0: guest 1 takes --guests 2');
}

/** Options that a scenario sets itself. */
const ofScenario = {
  guests: '--guests',
  hcas: '--hcas',
  cable: '--cable',
  load: '--no-load',
  timeout: '--timeout',
} as const;

/** Only a session can have a simulated host next to its guest. */
function refusePeer(options: GuestCommandOptions): void {
  const { peer, scenario: name, fetchOnly, printQemu: isByHand } = options;
  if (peer === undefined) return;
  if (peer === softRocePeer) refuseBesideStranger(options);
  if (name !== undefined)
    throw new ConfigurationError(
      '--peer',
      peer,
      'left out with --scenario: its peer, if it has one, is its own',
    );
  if (fetchOnly === true)
    throw new ConfigurationError('--peer', peer, `left out with ${bootless.fetchOnly}, which runs no guest`);
  if (isByHand === true)
    throw new ConfigurationError(
      '--peer',
      peer,
      `left out with ${bootless.printQemu}: hca serve --peer prints what QEMU takes to reach it`,
    );
}

/** The peer on the cable is a guest with an ordinary network card, under Linux's Soft-RoCE. */
const softRocePeer = 'rxe';
const softRoceWords = `; ${softRocePeer}: guest 1 there, with an ordinary network card under Linux's Soft-RoCE`;
/** Settings that this peer requires, unless the user chooses others. */
const strangerParameters = [
  'hca.capability.linkLayer=ethernet',
  'hca.capability.roce=v2',
  'pcie.function.deviceId=0x1007',
];

/** @throws ConfigurationError for options that would put a second peer on the cable */
function refuseBesideStranger({ hcas, cable, peerArgs, shell, run }: GuestCommandOptions): void {
  const wanted = (what: string): string => `${what} with --peer ${softRocePeer}`;
  if (hcas !== undefined && hcas !== 1) throw new ConfigurationError('--hcas', hcas, wanted('1'));
  if (cable === true) throw new ConfigurationError('--cable', true, wanted('left out'));
  if (peerArgs !== undefined) throw new ConfigurationError('--peer-args', peerArgs, wanted('left out'));
  if (shell === true || run.length === 0)
    throw new ConfigurationError('--run', 'left out', wanted('a command, and no shell,'));
}

/** Guest kits and options of their devices. */
function commonOptions(options: GuestCommandOptions): ScenarioOptions {
  const { kernel, memory, cpus, cpu } = options;
  const given = options.peer === softRocePeer ? [...strangerParameters, ...options.set] : options.set;
  return {
    kernel,
    cpus,
    cpuModel: cpu,
    memoryMib: memory,
    cache: { folder: options.cache, mirror: options.mirror, progress: terminalProgress() },
    console: options.console ? 'shown' : 'kept',
    hasSoftIwarp: options.siw,
    ownFiles: { copies: options.copy, modules: options.module },
    serve: deviceOptionsOf({ ...options, set: given }),
    onNotice: (text) => process.stderr.write(`hca: ${text}\n`),
  };
}

async function fetchFiles(options: GuestCommandOptions, screen: Screen): Promise<void> {
  const { kernelVersion, initramfs } = await guestFiles(
    { kernel: options.kernel, hasSoftIwarp: options.siw },
    commonOptions(options).cache,
  );
  screen.print(`Linux ${kernelVersion} is ready in ${options.cache} (${initramfs})`);
}

/** The guests of a session. */
function guestChoice(
  options: GuestCommandOptions,
): Pick<GuestChoice, 'hcas' | 'guests' | 'cable' | 'stranger'> {
  if (options.peer === softRocePeer) return { hcas: 1, guests: 2, cable: false, stranger: softRocePeer };
  const { guests, hcas = guests, cable = guests > 1 } = options;
  return { guests, hcas, cable };
}

/** Prints the command lines for users who need QEMU's options, gdb's stub or another emulated device in the guests. */
async function printQemu(options: GuestCommandOptions, command: Command, screen: Screen): Promise<void> {
  const { cache, ...common } = commonOptions(options);
  const choice = { ...common, ...guestChoice(options) };
  const { socket, qemu } = await guestsByHand(choice, cache);
  const { hcas, cable } = choice;
  const shape = [...(hcas > 1 ? ['--hcas', String(hcas)] : []), ...(cable ? ['--cable'] : [])];
  const words = ['--socket', socket, ...shape, ...servedWords(command)];
  screen.print(`# The devices:\nnpx hca serve ${words.map(quoted).join(' ')}`);
  qemu.forEach((line, index) => {
    screen.print(`# Guest ${index}, in a terminal of its own; poweroff -f ends it:\n${line}`);
  });
  screen.print('# In each guest:\nmodprobe -a mlx4_core mlx4_en mlx4_ib ib_uverbs ib_umad rdma_ucm');
}

const ofServeAlone: ReadonlySet<string> = new Set(['--socket', '--hcas', '--cable', '--report', '--json']);

/** Options of `hca guest` that are passed to `hca serve` unchanged. */
function servedWords(command: Command): string[] {
  const serve = command.parent?.commands.find((one) => one.name() === 'serve');
  const served = serve?.options.filter(({ long }) => !ofServeAlone.has(long!)) ?? [];
  const words = process.argv.slice(2);
  const kept: string[] = [];
  for (let at = 0; at < words.length; at++) {
    const [name = ''] = words[at]!.split('=', 1);
    const option = command.options.find(({ long, short }) => name === long || name === short);
    if (option === undefined) continue;
    const hasOwnWord = option.required && name === words[at];
    const given = words.slice(at, at + (hasOwnWord ? 2 : 1));
    if (served.some(({ long }) => long === option.long)) kept.push(...given);
    at += given.length - 1;
  }
  return kept;
}

async function session(options: GuestCommandOptions, command: Command, screen: Screen): Promise<void> {
  const hasShell = options.run.length === 0 || options.shell === true;
  if (hasShell && !(process.stdin.isTTY && process.stdout.isTTY))
    throw new ConfigurationError('--run', 'left out', 'a command, where there is no terminal for a shell');
  if (hasShell && options.guests > 1)
    throw new ConfigurationError('--run', 'left out', 'a command: two guests have no shell');
  const { hcas } = guestChoice(options);
  const budget = options.budget === undefined ? undefined : readBudget(options.budget, options.run, hcas);
  const peer = options.peer === softRocePeer ? undefined : peerOptionsOf(options);
  const started = await GuestSession.start({
    ...commonOptions(options),
    ...guestChoice(options),
    ...(peer === undefined ? {} : { peer }),
    ...(hasShell ? { console: 'terminal' as const } : {}),
  });
  await using machine = started;
  const commands: GuestCommandResult[] = [];
  const costs: RunCost[] = [];
  // Ctrl-C ends the guests and their programs; the devices still report.
  const interrupt = (): void => {
    for (const signal of endingSignals) process.removeListener(signal, interrupt).once(signal, leave);
    void Promise.all(machine.guests.map((one) => one.dispose()));
  };
  for (const signal of endingSignals) process.removeListener(signal, leave).once(signal, interrupt);
  let result: SessionResult;
  try {
    if (options.load) await machine.load();
    for (const text of options.run) {
      const before = await machine.figures();
      commands.push(await runCommand(machine, text, options.timeout, screen));
      const after = await machine.figures();
      costs.push({ run: text, hcas: after.map((figures, hca) => figuresBetween(before[hca]!, figures)) });
    }
    if (hasShell) await machine.shell();
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
  const causes =
    options.why === true
      ? diagnosedGuests(await started.machine.evidence(), faultsOfServe(result.report))
      : undefined;
  const isWhole =
    commands.length === options.run.length && commands.every(({ exitStatus }) => exitStatus === 0);
  const more = { ...costsOf(costs, options, budget, isWhole), ...(causes === undefined ? {} : { causes }) };
  show(guestReportOf(result, commands, more), options, command, screen);
  if (causes !== undefined) for (const line of guestCauseLines(causes)) screen.print(line);
  await reportFullCapture(started.machine, analysisOptionsOf(withoutTimelineFile(options)));
  const timeline = servedTimelineOrderOf(options);
  if (timeline !== undefined)
    screen.print(timelineText(await writeServedTimeline(started.machine, result.report, timeline)));
}

const faultsOfServe = ({ faults = [] }: ServeReport): readonly FaultReport[] => faults;

/** Runs one --run, showing its output as it arrives. */
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

function show(report: GuestReport, options: GuestCommandOptions, command: Command, screen: Screen): void {
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  if (options.report !== undefined) writeJson(options.report, report);
  if (options.json !== undefined) writeJson(options.json, report);
  screen.print(renderGuestReport(report));
  writePage(options, () => guestPage(headOf(command, { title: 'A stock Linux guest' }), report), screen);
  if (analysis !== undefined) screen.print(analysisText(report.serve.analyses, analysis));
  const faults = guestFaultsOf(report);
  for (const fault of faults) process.stderr.write(`hca: ${fault}\n`);
  const isFaulty = report.serve.analyses.some(({ findings }) => hasErrors(findings));
  if (faults.length > 0 || isFaulty) process.exitCode = exitFailed;
}

async function scenario(
  name: string,
  options: GuestCommandOptions,
  command: Command,
  screen: Screen,
): Promise<void> {
  const lines: string[] = [];
  const print = (line: string): void => {
    lines.push(line);
    screen.print(line);
  };
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  const chosen = scenarioNamed(name);
  let versions: GuestReport['versions'] | undefined;
  const outcome = await runScenario(
    chosen,
    () => startScenario(chosen, commonOptions(options)),
    print,
    async ({ qemuSession: qemu }, holds) => {
      versions = qemu.versions;
      // The devices tell what they recorded once they are no longer served.
      if (!holds) await qemu.abandon();
      await reportFullCapture(qemu.machine, analysis);
    },
  );
  const { analyses = [] } = outcome;
  if (analysis !== undefined && analyses.length > 0) print(analysisText(analyses, analysis));
  const output: ScenarioOutput = { schema: 'hca-guest-scenario/1', versions: { ...versions }, ...outcome };
  if (options.report !== undefined) writeJson(options.report, output);
  if (options.json !== undefined) writeJson(options.json, output);
  const head = headOf(command, { title: `Scenario ${name}` });
  writePage(options, () => pageOf(head, [textSection('What it found', lines.join('\n'))]), screen);
  if (!outcome.holds || analyses.some(({ findings }) => hasErrors(findings))) process.exitCode = exitFailed;
}
