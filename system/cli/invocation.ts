/**
 * What it takes to run a command again: the part `invocation` of its JSON, beside the figures.
 *
 *     hca perf write-bw --profile mine.json --size 64 --partition per-node --json out.json
 *       arguments  write-bw --size 64           what the command itself was asked
 *       machine    parameters, seed, faults     whatever they came from
 *       left out   --partition --json           how it was computed, where it went
 *
 * So it is the same on every machine and for every partition, and holds after the profile's file has changed.
 */
import { basename, isAbsolute } from 'node:path';
import type { Command, Option } from 'commander';
import type { MachineOptions } from '../machine/machine.ts';
import {
  changesOf,
  configHashOf,
  defaultProfileName,
  type ParameterValues,
} from '../machine/profile/index.ts';
import { packageFacts } from '../package-folder.ts';
import { effectiveOf } from './options.ts';

/** A file that a command has read: found again by its name, held to its bytes. */
export interface InvocationInput {
  /** As it was named, of an absolute path the last part; left out when the command chose it. */
  readonly file?: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The machine that was asked for: equal exactly when configHash is. */
interface InvocationMachine {
  /** A named profile or the name of a file; `set` has what it says. */
  readonly profile: string;
  /** Parameters that differ from their defaults, by path: of profile, --set and library together. */
  readonly set: ParameterValues;
  readonly seed: number;
  /** Each as the option --fault says it. */
  readonly faults: readonly string[];
  /** Of parameters, seed and faults, as in reports. */
  readonly configHash: string;
}

export interface Invocation {
  readonly command: string;
  /** Of the package. */
  readonly version: string;
  /** Of the command alone: options of the machine stand in `machine`. */
  readonly arguments: readonly string[];
  /** Left out by commands whose machines are drawn at random. */
  readonly machine?: InvocationMachine;
  /** Left out by commands that read no file. */
  readonly input?: InvocationInput;
}

/** Where output goes and how it is computed; files that are read; and the machine, which stands in an invocation as such. */
const leftOut: ReadonlySet<string> = new Set([
  ...['--json', '--report', '--html', '--save', '--trace', '--trace-filter', '--trace-file'],
  ...['--trace-format', '--trace-size', '--lint', '--partition', '--jobs'],
  ...['--story', '--profile', '--set', '--fault', '--faults'],
]);

const hasMachine = (command: Command): boolean => command.options.some(({ long }) => long === '--set');

/** The options of a command that stand among the arguments of an invocation. */
const recordedOptions = (command: Command): Option[] =>
  command.options.filter(({ long }) => {
    // To a command without --set these are its own: which story is played, and how.
    const isMachine = hasMachine(command) && (long === '--seed' || long === '--no-shortcuts');
    return long !== undefined && long !== null && !leftOut.has(long) && !isMachine;
  });

const textsOf = new WeakMap<Command, Map<string, string[]>>();

/** Keeps the options of a command as they are given, for {@link argumentsOf}. To be called before they are parsed. */
export function recordOptions(command: Command): void {
  const texts = new Map<string, string[]>();
  textsOf.set(command, texts);
  for (const option of recordedOptions(command)) {
    const { long } = option;
    command.on(`option:${option.name()}`, (text: string | null | undefined) => {
      const words = text === null || text === undefined ? [long!] : [long!, text];
      texts.set(long!, option.variadic ? [...(texts.get(long!) ?? []), ...words] : words);
    });
  }
}

/** Arguments and recorded options as they were given, in the order in which the command declares them. */
export function argumentsOf(command: Command): string[] {
  const texts = textsOf.get(command);
  return recordedOptions(command).flatMap(({ long }) => texts?.get(long!) ?? []);
}

/** @param words the words of the command itself: of perf the test, and its options */
export function invocationOf(
  command: Command,
  words: readonly string[],
  machine?: MachineOptions,
  input?: InvocationInput,
): Invocation {
  return {
    command: command.name(),
    version: packageFacts().version,
    arguments: [...words],
    ...(machine === undefined ? {} : { machine: machineOf(machine) }),
    ...(input === undefined ? {} : { input }),
  };
}

function machineOf(options: MachineOptions): InvocationMachine {
  const { config, faults } = effectiveOf(options);
  const { 'machine.seed': _seed, ...set } = changesOf(config);
  return {
    profile: options.profile === undefined ? defaultProfileName : basename(options.profile),
    set,
    seed: config.machine.seed,
    faults,
    configHash: configHashOf(config, faults),
  };
}

/** How a file is named in an invocation. */
export const inputName = (file: string): string => (isAbsolute(file) ? basename(file) : file);
