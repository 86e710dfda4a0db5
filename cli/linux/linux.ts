/**
 * `hca linux`: a stock Linux on a PC of this process, on simulated time alone. The same command line prints the same lines and
 * writes the same report.
 */
import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { ConfigurationError, codeOf } from '../../base/index.ts';
import { reportFullCapture } from '../../experiments/runs/capture-output.ts';
import { diagnosedGuests } from '../../explain/why/index.ts';
import {
  GuestError,
  insideFiles,
  insideKernelNames,
  insideScenarioOf,
  LinuxMachine,
  type LinuxMachineOptions,
  type LinuxReport,
  type LinuxVersions,
  linuxFaultsOf,
  linuxHostsMax,
  linuxReportOf,
  parsedPcParameters,
  profileText,
  readBudget,
  renderLinuxReport,
  runScenario,
  scenarioNamed,
  scenarios,
  startInside,
  terminalProgress,
} from '../../guests/linux/index.ts';
import { parsedTopology, type Topology } from '../../machine/topology/index.ts';
import { addAnalysisOptions, analysisOptionsOf, analysisText, hasErrors } from '../analysis-options.ts';
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
} from '../guest/common-options.ts';
import { addPeerOptions, type PeerChoice, peerOptionsOf } from '../guest/peer-options.ts';
import { headOf, writePage } from '../html-output.ts';
import type { ScenarioOutput } from '../json-outputs.ts';
import { addFaultOptions, addMachineOptions, integer } from '../options.ts';
import { exitFailed, Screen, writeJson } from '../output.ts';
import {
  addTimelineOptions,
  servedTimelineOrderOf,
  timelineText,
  withoutTimelineFile,
  writeServedTimeline,
} from '../timeline-options.ts';
import { linuxPage } from './linux-page.ts';
import { type OrderedRun, orderedRuns, RunsOfHosts } from './runs-of-hosts.ts';

interface LinuxCommandOptions extends CommonGuestChoice, PeerChoice {
  readonly topology?: Topology;
  readonly hosts: number;
  readonly script?: string;
  readonly scenario?: string;
  readonly fresh?: boolean;
  readonly pc: readonly string[];
  readonly jitter?: number;
  readonly cpuProfile?: number | true;
  readonly kernelParameter: readonly string[];
}

const hourSeconds = 3600;

/** Adds the command with its options. */
export function addLinuxCommand(program: Command): void {
  const command = program
    .command('linux')
    .description(
      'run a stock Linux with its own drivers on a PC of this process, in simulated time: every run is the same',
    )
    .option(
      '--run <command>',
      'run a shell command in host 0 (or "hostN: command"); with & at its end the next one runs beside it; may be repeated',
      collected,
      [],
    )
    .addOption(
      new Option('--scenario <name>', 'run a scenario instead of commands').choices(
        scenarios.map(({ name }) => name),
      ),
    )
    .option('--script <file>', 'run a shell script in host 0, before the commands')
    .option(
      '--hosts <n>',
      'PCs, each with an HCA: 2 are joined by a cable, more by a switch',
      integer(1, linuxHostsMax),
      1,
    )
    .option('--timeout <s>', 'longest simulated time of a command', integer(1, hourSeconds), 60)
    .option('--pc <parameter=value>', 'change a parameter of the PCs; may be repeated', collected, [])
    .option(
      '--jitter <seed>',
      'vary interrupts, quanta and costs by chance: the same seed, the same run',
      integer(0, 2 ** 31 - 1),
    )
    .option(
      '--kernel-parameter <text>',
      "add to the kernel's command line, such as pci=nomsi for an HCA that interrupts by its pin; may be repeated",
      collected,
      [],
    )
    .option(
      '--cpu-profile [instructions]',
      'show where the processors spent their instructions; samples at most so many apart change the run itself',
      integer(50, 50_000),
    )
    .option('--fresh', 'boot although a booted Linux is in the cache')
    .action(linux);
  addGuestFileOptions(command, insideKernelNames, 'each host');
  addGuestOutputOptions(addGuestCacheOptions(command, "the hosts'"));
  addTimelineOptions(addAnalysisOptions(addFaultOptions(addMachineOptions(addPeerOptions(command)))));
  command.option(
    '--topology <file|links|name>',
    'hosts, switches and cables, as of hca fabric: the first hosts are the PCs, the others are simulated',
    parsedTopology,
  );
}

async function linux(options: LinuxCommandOptions, command: Command): Promise<void> {
  if (options.fetchOnly === true) refuseOutputsWithoutGuest(options, '--fetch-only', true);
  checkGuestFiles(options);
  const screen = new Screen(options.json);
  try {
    if (options.fetchOnly === true) await fetchFiles(options, screen);
    else if (options.scenario !== undefined) await scenario(options.scenario, options, command, screen);
    else await session(options, command, screen);
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    process.stderr.write(`hca: ${error.message}\n`);
    process.exitCode = exitFailed;
  }
}

async function fetchFiles(options: LinuxCommandOptions, screen: Screen): Promise<void> {
  const { kernelVersion, initramfs } = await insideFiles(options, cacheOf(options));
  screen.print(`Linux ${kernelVersion} is ready in ${options.cache} (${initramfs})`);
}

const cacheOf = ({ cache: folder, mirror }: LinuxCommandOptions) => ({
  ...{ folder, mirror },
  progress: terminalProgress(),
});

/** Options that only a session of commands obeys. */
const ofSession = {
  ...{
    run: '--run',
    script: '--script',
    hosts: '--hosts',
    topology: '--topology',
    load: '--no-load',
    timeout: '--timeout',
    peer: '--peer',
    peerArgs: '--peer-args',
  },
  ...{ budget: '--budget', writeBudget: '--write-budget', why: '--why', cpuProfile: '--cpu-profile' },
  ...{ html: '--html', timeline: '--timeline', vcd: '--vcd' },
} as const;

const hostOptionsOf = (options: LinuxCommandOptions): Omit<LinuxMachineOptions, 'hosts'> => ({
  ...deviceOptionsOf(options),
  kernel: options.kernel,
  cache: cacheOf(options),
  pc: parsedPcParameters(options.pc),
  jitter: options.jitter,
  ...(options.cpuProfile === undefined
    ? {}
    : { cpuProfile: options.cpuProfile === true ? {} : { quantumInstructions: options.cpuProfile } }),
  kernelParameters: options.kernelParameter,
  ownFiles: { copies: options.copy, modules: options.module },
  isFresh: options.fresh ?? false,
  onNotice: (text) => process.stderr.write(`hca: ${text}\n`),
  ...(options.console === true ? { onConsole: consoleLines() } : {}),
});

/** Runs a scenario, which has its own commands and number of hosts. @throws ConfigurationError; GuestError */
async function scenario(
  name: string,
  options: LinuxCommandOptions,
  command: Command,
  screen: Screen,
): Promise<void> {
  refuseBesideScenario(name, ofSession, command);
  const chosen = insideScenarioOf(scenarioNamed(name));
  let versions: LinuxVersions | undefined;
  const outcome = await runScenario(
    chosen,
    async () => {
      const stage = await startInside(chosen, hostOptionsOf(options));
      versions = stage.session.linux.versions;
      return stage;
    },
    (line) => screen.print(line),
  );
  const output: ScenarioOutput = { schema: 'hca-guest-scenario/1', versions: { ...versions }, ...outcome };
  if (options.report !== undefined) writeJson(options.report, output);
  if (options.json !== undefined) writeJson(options.json, output);
  const { analyses = [] } = outcome;
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  if (analysis !== undefined && analyses.length > 0) screen.print(analysisText(analyses, analysis));
  if (!outcome.holds || analyses.some(({ findings }) => hasErrors(findings))) process.exitCode = exitFailed;
}

async function session(options: LinuxCommandOptions, command: Command, screen: Screen): Promise<void> {
  const runs = runsOf(options);
  const budget =
    options.budget === undefined ? undefined : readBudget(options.budget, options.run, options.hosts);
  const machine = await LinuxMachine.start({
    ...hostOptionsOf(options),
    peer: peerOptionsOf(options),
    hosts: options.hosts,
    topology: options.topology,
  });
  const ran = new RunsOfHosts(machine, options.timeout, screen);
  const { isWhole, kernels, profiles, interrupts, evidence } = await runAll(machine, ran, runs, options);
  const faults = machine.devices().faults ?? [];
  const causes = options.why === true ? diagnosedGuests(evidence, faults) : undefined;
  const areDone = isWhole && ran.commands.every(({ exitStatus }) => exitStatus === 0);
  const more = {
    ...costsOf(ran.costs, options, budget, areDone),
    ...(causes === undefined ? {} : { causes }),
    ...(kernels.length === 0 ? {} : { kernels }),
  };
  show(linuxReportOf(machine, ran.commands, interrupts, more), options, command, screen);
  for (const profile of profiles) screen.print(profileText(profile));
  if (causes !== undefined) for (const line of guestCauseLines(causes)) screen.print(line);
  await writeRecords(machine, options, screen);
}

/**
 * Runs commands, and reads the machine's figures; its traces end even if a guest or a command fails.
 * @throws GuestError
 */
async function runAll(
  machine: LinuxMachine,
  ran: RunsOfHosts,
  runs: readonly OrderedRun[],
  { load, cpuProfile }: LinuxCommandOptions,
) {
  try {
    const isWhole = await untilEnded(machine, async () => {
      if (load) await machine.load();
      machine.beginCpuProfile();
      for (const run of runs) await ran.run(run);
      await ran.finish();
      await machine.peer?.ended();
    });
    const kernels = machine.kernelCosts();
    const profiles = cpuProfile === undefined ? [] : await machine.cpuProfile();
    const interrupts = isWhole ? await machine.compareInterrupts() : [];
    const evidence = machine.evidence();
    machine.close();
    return { isWhole, kernels, profiles, interrupts, evidence };
  } catch (error) {
    machine.abandon();
    throw error;
  }
}

/** Shows consoles on standard error: a line when it is complete, with the name of its host. */
function consoleLines(): (host: string, text: string) => void {
  const begun = new Map<string, string>();
  return (host, text) => {
    const line = (begun.get(host) ?? '') + text;
    const isWhole = line.endsWith('\n');
    if (isWhole) process.stderr.write(`${host}: ${line}`);
    begun.set(host, isWhole ? '' : line);
  };
}

/** The script, and the commands in their order. @throws ConfigurationError */
function runsOf({ script, run, hosts, budget, writeBudget }: LinuxCommandOptions): OrderedRun[] {
  if (script === undefined && run.length === 0)
    throw new ConfigurationError('--run', 'left out', 'a command, or --script with a file');
  if ((budget !== undefined || writeBudget !== undefined) && run.length === 0)
    throw new ConfigurationError('--run', 'left out', 'a command for the budget');
  const first: OrderedRun[] = script === undefined ? [] : [scriptRun(script)];
  return [...first, ...orderedRuns(run, hosts)];
}

function scriptRun(file: string): OrderedRun {
  try {
    const typed = readFileSync(file, 'utf8');
    return { node: 0, command: `. ${file}`, typed, isServer: false, budgetName: undefined };
  } catch (error) {
    throw new ConfigurationError('--script', file, `a readable file (${codeOf(error)})`);
  }
}

/**
 * Runs a session to its end; Ctrl-C ends it early, and a second one the process.
 * @returns false if a guest failed, which was said
 */
async function untilEnded(machine: LinuxMachine, act: () => Promise<void>): Promise<boolean> {
  const interrupt = (): void => {
    for (const signal of endingSignals) process.removeListener(signal, interrupt);
    machine.stop('interrupted');
  };
  for (const signal of endingSignals) process.once(signal, interrupt);
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof GuestError)) throw error;
    process.stderr.write(`hca: ${error.message}\n`);
    process.exitCode = exitFailed;
    return false;
  } finally {
    for (const signal of endingSignals) process.removeListener(signal, interrupt);
  }
}

function show(report: LinuxReport, options: LinuxCommandOptions, command: Command, screen: Screen): void {
  const analysis = analysisOptionsOf(withoutTimelineFile(options));
  if (options.report !== undefined) writeJson(options.report, report);
  if (options.json !== undefined) writeJson(options.json, report);
  screen.print(renderLinuxReport(report));
  writePage(options, () => linuxPage(headOf(command, { title: 'A stock Linux' }), report), screen);
  const { analyses } = report.devices;
  if (analysis !== undefined) screen.print(analysisText(analyses, analysis));
  const faults = linuxFaultsOf(report);
  for (const fault of faults) process.stderr.write(`hca: ${fault}\n`);
  if (faults.length > 0 || analyses.some(({ findings }) => hasErrors(findings)))
    process.exitCode = exitFailed;
}

async function writeRecords(
  machine: LinuxMachine,
  options: LinuxCommandOptions,
  screen: Screen,
): Promise<void> {
  const captured = { captureDrops: async () => machine.captureDrops() };
  await reportFullCapture(captured, analysisOptionsOf(withoutTimelineFile(options)));
  const timeline = servedTimelineOrderOf(options);
  if (timeline !== undefined)
    screen.print(timelineText(await writeServedTimeline(machine, machine.devices(), timeline)));
}
