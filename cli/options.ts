/** Options that several commands share, and the parsers of their values. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { ConfigurationError } from '../base/index.ts';
import {
  checkedFaults,
  type FaultEntry,
  type FaultPlan,
  parsedFault,
  readFaults,
} from '../machine/faults/index.ts';
import { configuredOf, type MachineOptions, partitions } from '../machine/index.ts';
import { type ParameterValue, parsedAssignment } from '../machine/profile/index.ts';
import { parsedTopology, type Topology } from '../machine/topology/index.ts';

export { effectiveOf, machineHashOf } from '../machine/index.ts';

export interface MachineChoice {
  readonly profile?: string;
  readonly set: readonly string[];
  readonly seed?: number;
  readonly watch?: 'races';
  /** False if `--no-shortcuts` was given. */
  readonly shortcuts?: boolean;
}

export interface TopologyChoice {
  readonly topology?: Topology;
}

export interface FaultChoice {
  readonly fault?: readonly string[];
  readonly faults?: readonly string[];
}

/** Parses an integer within a range; decimal or 0x, with optional K, M or G for powers of 1024. */
export function integer(minimum: number, maximum: number): (text: string) => number {
  return (text) => {
    const match = /^(0x[0-9a-f]+|\d+)([KMG]?)$/i.exec(text);
    const unit = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }[(match?.[2] ?? '').toUpperCase()]!;
    const value = match === null ? Number.NaN : Number(match[1]) * unit;
    if (value >= minimum && value <= maximum) return value;
    throw new InvalidArgumentError(`expected an integer from ${minimum} to ${maximum}.`);
  };
}

const collected = (text: string, before: readonly string[]): string[] => [...before, text];

/** Adds --profile, --set, --seed and --no-shortcuts. */
export function addMachineOptions(command: Command): Command {
  command
    .option('--profile <name|file>', 'a named profile, or a JSON file')
    .option('--set <path=value>', 'change a parameter; may be repeated', collected, [])
    .option('--seed <n>', 'seed of everything drawn at random', integer(0, 2 ** 32 - 1));
  return addShortcutsOption(command);
}

/** Adds --no-shortcuts. */
export function addShortcutsOption(command: Command): Command {
  return command.option(
    '--no-shortcuts',
    'simulate without running ahead, early placement and zero-copy: slower, every report the same',
  );
}

/** Adds --topology, for commands whose programs run on two of the machine's hosts. */
export const addTopologyOption = (command: Command): Command =>
  command.option(
    '--topology <file|links|name>',
    'hosts, switches and cables: a JSON file, links such as 0-2,1-3, or a fabric such as star:8; a test runs on host 0 and the host joined to it',
    parsedTopology,
  );

/** Has a command reject --topology. @param range what it has instead */
export const refuseTopologyOption = (command: Command, range: string): Command =>
  command.addOption(
    new Option('--topology <file|links>')
      .argParser((text) => {
        throw new ConfigurationError('--topology', text, range);
      })
      .hideHelp(),
  );

/** Adds --watch, for commands that run programs on simulated hosts. */
export function addWatchOption(command: Command): Command {
  return command.addOption(
    new Option('--watch <what>', "report programs that touch buffers which are the device's").choices([
      'races',
    ]),
  );
}

/** Adds --fault and --faults. */
export function addFaultOptions(command: Command): Command {
  return command
    .option('--fault <field=value,...>', 'inject a fault; may be repeated (see: hca faults)', collected, [])
    .option('--faults <file>', 'inject the faults of a JSON file; may be repeated', collected, []);
}

/**
 * The requested faults; those of files come first.
 * @throws ConfigurationError for a file that cannot be read
 */
function faultsFrom({ fault = [], faults = [] }: FaultChoice): FaultPlan {
  const entries: FaultEntry[] = faults.flatMap((path) => [...readFaults(path)]);
  return [...entries, ...fault.map(parsedFault)];
}

/** Adds --partition. */
export function addPartitionOption(command: Command, preset: (typeof partitions)[number]): Command {
  return command.addOption(
    new Option('--partition <name>', 'how the machine is placed on threads')
      .choices([...partitions])
      .default(preset),
  );
}

/** Machine options from the shared options. @throws ConfigurationError for a bad --set */
export function machineOptionsOf({
  profile,
  set,
  seed,
  watch,
  shortcuts = true,
  topology,
  ...choice
}: MachineChoice & FaultChoice & TopologyChoice): MachineOptions {
  const values: Record<string, ParameterValue> = {};
  for (const text of set) {
    const [path, value] = parsedAssignment(text);
    values[path] = value;
  }
  const ownSeed = values['machine.seed'];
  if (seed !== undefined && ownSeed !== undefined && ownSeed !== seed)
    throw new ConfigurationError('--seed', seed, `left out with --set machine.seed=${ownSeed}`);
  return {
    set: values,
    faults: faultsFrom(choice),
    ...(shortcuts ? {} : { shortcuts }),
    ...(profile === undefined ? {} : { profile }),
    ...(seed === undefined ? {} : { seed }),
    ...(watch === undefined ? {} : { watch }),
    ...(topology === undefined ? {} : { topology }),
  };
}

/**
 * Like {@link machineOptionsOf}, for a command whose programs use verbs.
 * @throws ConfigurationError for a machine without HCAs, and for bad faults before anything has run
 */
export function hcaMachineOptionsOf(choice: MachineChoice & FaultChoice & TopologyChoice): MachineOptions {
  const options = machineOptionsOf(choice);
  const { config, topology } = configuredOf(options);
  const { adapter, nodeCount } = config.machine;
  checkedFaults(options.faults ?? [], nodeCount, topology, config.hca.capability.transport);
  if (adapter === 'hca') return options;
  throw new ConfigurationError(
    'machine.adapter',
    adapter,
    'hca for this command; hca compare has the NIC too',
  );
}
