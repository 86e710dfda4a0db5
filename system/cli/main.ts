/** The command line: `hca move | compare | perf | devinfo | profiles | faults | cutoff | serve | guest | torture | validate`. Bad input ends with one clear line and exit code 2. */
import '../../runtime/node.ts';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { ConfigurationError } from '../../base/assert.ts';
import { RunError } from '../../sim/index.ts';
import { packageFolder } from '../package-folder.ts';
import { comparePaths } from '../workloads/compare-plan.ts';
import { addAnalysisOptions } from './analysis-options.ts';
import { compare } from './compare.ts';
import { parsedPaths, parsedSizes } from './compare-options.ts';
import { addCutoffCommand } from './cutoff.ts';
import { devinfo } from './devinfo.ts';
import { listFaults } from './faults.ts';
import { addGuestCommand } from './guest.ts';
import { chunkBytesMax, defaultFile, move, runFactsFile } from './move.ts';
import { defaultTraditional, parsedTraditional } from './move-comparison.ts';
import {
  addFaultOptions,
  addMachineOptions,
  addPartitionOption,
  addWatchOption,
  integer,
} from './options.ts';
import { checkApart, exitBadInput, exitFailed, fail, watchStandardOutput } from './output.ts';
import { perf } from './perf.ts';
import { addPerfOptions, perfTestNames } from './perf-options.ts';
import { listProfiles } from './profiles.ts';
import { addServeCommand } from './serve.ts';
import { addTortureCommand } from './torture.ts';
import { addValidateCommand } from './validate.ts';

/** Options that name files: those that are written, and those that are read. */
const written = ['json', 'report', 'html', 'traceFile', 'save'] as const;
const read = ['profile', 'faults', 'story'] as const;

/** No command writes over what it reads. @throws ConfigurationError */
function checkFiles(command: Command): void {
  const options = command.opts<Readonly<Record<string, string | readonly string[] | undefined>>>();
  const filesOf = (names: readonly string[]): string[] => names.flatMap((name) => options[name] ?? []);
  const outputs = filesOf(written);
  if (command.name() === 'move' && typeof options['report'] === 'string')
    outputs.push(runFactsFile(options['report']));
  const isMove = command.name() === 'move';
  checkApart([...filesOf(read), ...(isMove ? [command.args[0] ?? defaultFile()] : [])], outputs);
}

const jsonOption = ['--json <file>', 'write the figures as JSON; - is standard output'] as const;

function versionText(): string {
  const { name, version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    name: string;
    version: string;
  };
  return `${name} ${version}, Node ${process.version}`;
}

function programOf(): Command {
  const program = new Command('hca')
    .description('A ConnectX-3 class RDMA adapter, its hosts and its cable, with every cycle accounted for.')
    .version(versionText(), '-V, --version', 'print the version of the emulator and of Node')
    .showHelpAfterError(false)
    .exitOverride()
    .configureOutput({ writeErr: () => {} });

  const moveCommand = program
    .command('move')
    .description(
      'move a file from host 0 to host 1 by the traditional path and by SEND, RDMA WRITE and RDMA READ, and count by atomics',
    )
    .argument('[file]', 'file to move (default: the README)')
    .option('--chunk <bytes>', 'bytes of one work request', integer(1, chunkBytesMax), 65_536)
    .option('--window <chunks>', 'chunks under way at once', integer(1, 256), 8)
    .option(
      '--traditional <all|none|bytes>',
      'how much of the file is moved by every path first, to compare them',
      parsedTraditional,
      parsedTraditional(defaultTraditional),
    )
    .option('--report <file>', 'write the report as JSON, and facts of the run beside it')
    .option(...jsonOption)
    .action(move);
  addWatchOption(addAnalysisOptions(addFaultOptions(addMachineOptions(moveCommand))));
  addPartitionOption(moveCommand, 'per-device');

  const perfCommand = program
    .command('perf')
    .description(
      `measure latency or bandwidth as perftest does, in simulated time: ${perfTestNames.join(', ')}`,
    )
    .argument('<test>', 'one of them')
    .option(...jsonOption)
    .action(perf);
  addWatchOption(addAnalysisOptions(addFaultOptions(addMachineOptions(addPerfOptions(perfCommand)))));
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
      '--count <n>',
      'messages of a stream (default: as many as show the steady state)',
      integer(1, 1e6),
    )
    .option('--html <file>', 'write a page with the plots, which needs nothing else')
    .option(...jsonOption)
    .action(compare);
  addFaultOptions(addMachineOptions(compareCommand));

  const devinfoCommand = program
    .command('devinfo')
    .description('print what ibv_devinfo -v would')
    .option(...jsonOption)
    .action(devinfo);
  addMachineOptions(devinfoCommand);

  program
    .command('profiles')
    .description('list the profiles and every parameter')
    .option(...jsonOption)
    .action(listProfiles);

  program
    .command('faults')
    .description('list the faults that can be injected')
    .option(...jsonOption)
    .action(listFaults);
  addCutoffCommand(program);
  addServeCommand(program);
  addGuestCommand(program);
  addTortureCommand(program);
  addValidateCommand(program);
  program.hook('preAction', (_program, command) => checkFiles(command));
  for (const command of program.commands) command.exitOverride().configureOutput({ writeErr: () => {} });
  return program;
}

watchStandardOutput();

try {
  await programOf().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    if (error.exitCode !== 0 && error.code !== 'commander.help') fail(error.message, exitBadInput);
    else if (error.code === 'commander.help')
      fail(
        'say what to do: move, compare, perf, devinfo, profiles, faults, cutoff, serve, guest or torture; --help tells more',
        exitBadInput,
      );
  } else if (error instanceof ConfigurationError) fail(error.message, exitBadInput);
  else if (error instanceof RunError) fail(error.message, exitFailed);
  else throw error;
}
