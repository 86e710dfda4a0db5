/** The command line: `hca move | compare | perf | devinfo | profiles | faults | cutoff | fabric | topology | serve | guest | linux | torture | sweep | plot | diff | rerun | validate | explain | why | lab`. Bad input ends with one clear line and exit code 2. */
import '../runtime/node.ts';
import { Command, CommanderError } from 'commander';
import { ConfigurationError } from '../base/index.ts';
import {
  compareNetworks,
  comparePaths,
  perfTestNames,
  readyWorkloadNames,
} from '../experiments/workloads/index.ts';
import { packageNameAndVersion } from '../runtime/package-folder.ts';
import { RunError } from '../sim/index.ts';
import { addAnalysisOptions } from './analysis-options.ts';
import { addAskCommand } from './ask/ask.ts';
import { compare } from './compare/compare.ts';
import { parsedNetworks, parsedPaths, parsedSizes } from './compare/compare-options.ts';
import { addCutoffCommand } from './cutoff/cutoff.ts';
import { devinfo } from './devinfo/devinfo.ts';
import { addDiffCommand } from './diff/diff.ts';
import { addExplainCommand } from './explain/explain.ts';
import { addFabricCommand } from './fabric/fabric.ts';
import { addTopologyCommand } from './fabric/topology.ts';
import { listFaults } from './faults/faults.ts';
import { addGuestCommand } from './guest/guest.ts';
import { htmlOption } from './html-output.ts';
import { recordOptions } from './invocation.ts';
import { addLabCommand } from './lab/lab.ts';
import { addLinuxCommand } from './linux/linux.ts';
import { chunkBytesMax, defaultFile, move, runFactsFile } from './move/move.ts';
import { defaultTraditional, parsedTraditional } from './move/move-comparison.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addPartitionOption,
  addTopologyOption,
  addWatchOption,
  integer,
} from './options.ts';
import { checkApart, exitBadInput, exitFailed, fail } from './output.ts';
import { perf } from './perf/perf.ts';
import { addPerfOptions } from './perf/perf-options.ts';
import { addPlotCommand } from './plot/plot.ts';
import { listProfiles } from './profiles/profiles.ts';
import { addRerunCommand } from './rerun/rerun.ts';
import { addServeCommand } from './serve/serve.ts';
import { addSweepCommand } from './sweep/sweep.ts';
import { addTimelineFileOption, addTimelineOptions, timelineFilesOf } from './timeline-options.ts';
import { addTortureCommand } from './torture/torture.ts';
import { addValidateCommand } from './validate/validate.ts';
import { addWhyCommand } from './why/why.ts';
import { addWireCommand } from './wire/wire.ts';

/** Options that name output files, and options that name input files. */
const written = [
  ...['json', 'report', 'html', 'markdown', 'traceFile', 'timeline', 'vcd', 'pcap'],
  ...['save', 'sqlite', 'out', 'writeBudget'],
];
const read = ['profile', 'faults', 'story', 'reuse', 'rowsFile', 'script'] as const;

/** Commands whose arguments name input files. */
const readsArguments: ReadonlySet<string> = new Set(['sweep', 'merge', 'plot', 'diff', 'rerun', 'wire']);

/**
 * Rejects a command that would overwrite its input.
 * @throws ConfigurationError
 */
function checkFiles(command: Command): void {
  const options = command.opts<Readonly<Record<string, string | readonly string[] | undefined>>>();
  const filesOf = (names: readonly string[]): string[] => names.flatMap((name) => options[name] ?? []);
  const outputs = [...filesOf(written), ...timelineFilesOf(options)];
  if (command.name() === 'move' && typeof options['report'] === 'string')
    outputs.push(runFactsFile(options['report']));
  checkApart([...filesOf(read), ...operandFilesOf(command)], outputs);
}

/** Input files that are named without an option. */
function operandFilesOf(command: Command): readonly string[] {
  if (command.name() === 'move') return [command.args[0] ?? defaultFile()];
  return readsArguments.has(command.name()) ? command.args : [];
}

const jsonOption = ['--json <file>', 'write the figures as JSON; - is standard output'] as const;

function commandNamesOf({ commands }: Command): string {
  const names = commands.map((command) => command.name());
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}

function versionText(): string {
  const { name, version } = packageNameAndVersion();
  return `${name} ${version}, Node ${process.version}`;
}

function programOf(): Command {
  const program = new Command('hca')
    .description('A ConnectX-3 class RDMA adapter, its hosts and its cable, with every cycle accounted for.')
    .version(versionText(), '-V, --version', 'print the version of the emulator and of Node')
    .showHelpAfterError(false)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ writeErr: () => {} });

  const moveCommand = program
    .command('move')
    .description(
      'move a file from host 0 to host 1 by the traditional path and by SEND, RDMA WRITE and RDMA READ, and count by atomics',
    )
    .argument('[file]', 'file to move (default: the README)')
    .option('--chunk <bytes>', 'bytes of each work request', integer(1, chunkBytesMax), 65_536)
    .option('--window <chunks>', 'work requests in flight at once', integer(1, 256), 8)
    .option(
      '--traditional <all|none|bytes>',
      'how much of the file is moved by every path first, to compare them',
      parsedTraditional,
      parsedTraditional(defaultTraditional),
    )
    .option('--report <file>', 'write the report as JSON, and facts of the run next to it')
    .option(...htmlOption)
    .option(...jsonOption)
    .action(move);
  addTimelineOptions(
    addWatchOption(addAnalysisOptions(addFaultOptions(addTopologyOption(addMachineOptions(moveCommand))))),
  );
  addPartitionOption(moveCommand, 'per-device');

  const perfCommand = program
    .command('perf')
    .description(
      `measure latency or bandwidth as perftest does, in simulated time: ${perfTestNames.join(', ')}; or a ready workload: ${readyWorkloadNames.join(', ')}`,
    )
    .argument('<test>', 'one of them')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(perf);
  addTopologyOption(addMachineOptions(addPerfOptions(perfCommand)));
  addTimelineOptions(addWatchOption(addAnalysisOptions(addFaultOptions(perfCommand))));
  addPartitionOption(perfCommand, 'single');

  const compareCommand = program
    .command('compare')
    .description(
      'compare programmed I/O, a DMA controller, kernel sockets and RDMA on the same bytes, over sizes',
    )
    .option('--sizes <from..to>', 'bytes of a message: powers of four in a range, or a list', parsedSizes, [
      ...parsedSizes('64..64K'),
    ])
    .option('--paths <list>', `some of ${comparePaths.join(',')}`, parsedPaths, [...comparePaths])
    .option(
      '--networks <list>',
      `carry the RDMA paths by some of ${compareNetworks.join(',')}, and count the bytes on the cable`,
      parsedNetworks,
    )
    .option('--count <n>', 'messages of a stream (default: enough for the steady state)', integer(1, 1e6))
    .option(...htmlOption)
    .option(...jsonOption)
    .action(compare);
  addTimelineOptions(
    addTimelineFileOption(addFaultOptions(addTopologyOption(addMachineOptions(compareCommand)))),
  );

  const devinfoCommand = program
    .command('devinfo')
    .description('print the output of ibv_devinfo -v')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(devinfo);
  addMachineOptions(devinfoCommand);

  program
    .command('profiles')
    .description('list the profiles and every parameter')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(listProfiles);

  program
    .command('faults')
    .description('list the faults that can be injected')
    .option(...jsonOption)
    .option(...htmlOption)
    .action(listFaults);
  addCutoffCommand(program);
  addFabricCommand(program);
  addTopologyCommand(program);
  addServeCommand(program);
  addWireCommand(program);
  addGuestCommand(program);
  addLinuxCommand(program);
  addTortureCommand(program);
  addSweepCommand(program);
  addPlotCommand(program);
  addAskCommand(program);
  addDiffCommand(program);
  addRerunCommand(program, runCommandLine);
  addValidateCommand(program);
  addExplainCommand(program);
  addLabCommand(program);
  addWhyCommand(program);
  program.hook('preAction', (_program, command) => checkFiles(command));
  for (const command of program.commands) {
    command.exitOverride().configureOutput({ writeErr: () => {} });
    recordOptions(command);
  }
  return program;
}

/**
 * Runs a command. Sets `process.exitCode`, and reports bad input and failed runs in one line on standard error.
 * @param words arguments after `hca` in a shell
 * @throws any other error, which is a defect
 */
export async function runCommandLine(words: readonly string[]): Promise<void> {
  const program = programOf();
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0 && error.code !== 'commander.help') fail(error.message, exitBadInput);
      else if (error.code === 'commander.help')
        fail(`expected a command: ${commandNamesOf(program)}; see --help`, exitBadInput);
    } else if (error instanceof ConfigurationError) fail(error.message, exitBadInput);
    else if (error instanceof RunError) fail(error.message, exitFailed);
    else throw error;
  }
}
