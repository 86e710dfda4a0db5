/**
 * Data to run a command again: the part `invocation` of its JSON, in addition to the figures.
 *
 *     hca perf write-bw --profile mine.json --size 64 --partition per-node --json out.json
 *       arguments  write-bw --size 64                   options of the command itself
 *       machine    parameters, seed, faults, topology   from any source
 *       left out   --partition --json                   how it was computed, and the outputs
 *
 * An invocation is therefore the same on every machine and for every partition, and stays valid after the profile's
 * file has changed.
 */
import { basename, isAbsolute } from 'node:path';
import type { Command, Option } from 'commander';
import { ConfigurationError } from '../base/index.ts';
import type { Output } from '../explain/diff/index.ts';
import type { MachineOptions } from '../machine/index.ts';
import {
  changesOf,
  configHashOf,
  defaultProfileName,
  type ParameterValues,
} from '../machine/profile/index.ts';
import { topologyText } from '../machine/topology/index.ts';
import { packageNameAndVersion } from '../runtime/package-folder.ts';
import { effectiveOf } from './options.ts';

/** An input file of a command: found again by its name and verified by its hash. */
export interface InvocationInput {
  /** The name as given, only the last part of an absolute path; left out if the command chose the file. */
  readonly file?: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The requested machine: equal exactly if configHash is equal. */
interface InvocationMachine {
  /** A named profile or a file name; `set` has its contents. */
  readonly profile: string;
  /** Parameters that differ from their defaults, by path: from profile, --set and library together. */
  readonly set: ParameterValues;
  readonly seed: number;
  /** Each in the form of the option --fault. */
  readonly faults: readonly string[];
  /** The topology in the form of the option --topology; left out for the default, which is pairs. */
  readonly topology?: string;
  /** Hash of parameters, seed, faults and topology, as in reports. */
  readonly configHash: string;
}

export interface Invocation {
  readonly command: string;
  /** Version of the package. */
  readonly version: string;
  /** Options of the command itself; `machine` has the options of the machine. */
  readonly arguments: readonly string[];
  /** Left out by commands that draw their machines at random. */
  readonly machine?: InvocationMachine;
  /** Left out by commands without an input file. */
  readonly input?: InvocationInput;
}

/** Options for output and for the way of computing, for input files, and for the machine, which an invocation stores separately. */
const leftOut: ReadonlySet<string> = new Set([
  ...['--json', '--report', '--html', '--save', '--trace', '--trace-filter', '--trace-file'],
  ...['--trace-format', '--trace-size', '--pcap', '--pcap-at', '--pcap-size', '--timeline', '--vcd'],
  ...['--timeline-window', '--timeline-operations', '--timeline-only', '--timeline-records'],
  ...['--partition', '--jobs'],
  ...['--story', '--profile', '--set', '--fault', '--faults', '--topology'],
]);

/** Whether options choose a command's machine; other commands use --seed for their own purpose. */
export const hasMachine = (command: Command): boolean => command.options.some(({ long }) => long === '--set');

/** The options of a command that are stored among the arguments of an invocation. */
const recordedOptions = (command: Command): Option[] =>
  command.options.filter(({ long }) => {
    // A command without --set has these as its own options: the story to play, and how.
    const isMachine = hasMachine(command) && (long === '--seed' || long === '--no-shortcuts');
    return long !== undefined && long !== null && !leftOut.has(long) && !isMachine;
  });

const textsOf = new WeakMap<Command, Map<string, string[]>>();

/** Records the options of a command as they are given, for {@link argumentsOf}. Must be called before they are parsed. */
export function recordOptions(command: Command): void {
  const texts = new Map<string, string[]>();
  textsOf.set(command, texts);
  for (const option of recordedOptions(command)) {
    const { long } = option;
    command.on(`option:${option.name()}`, (text: string | null | undefined) => {
      const words = text === null || text === undefined ? [long!] : [long!, text];
      texts.set(long!, isRepeatable(option) ? [...(texts.get(long!) ?? []), ...words] : words);
    });
  }
}

/** Each occurrence of the option adds to the previous ones. */
const isRepeatable = ({ variadic, defaultValue }: Option): boolean => variadic || Array.isArray(defaultValue);

/** Arguments and recorded options as they were given, in the command's declaration order. */
export function argumentsOf(command: Command): string[] {
  const texts = textsOf.get(command);
  return recordedOptions(command).flatMap(({ long }) => texts?.get(long!) ?? []);
}

/** @param words the arguments of the command itself: for perf the test, and its options */
export function invocationOf(
  command: Command,
  words: readonly string[],
  machine?: MachineOptions,
  input?: InvocationInput,
): Invocation {
  return {
    command: command.name(),
    version: packageNameAndVersion().version,
    arguments: [...words],
    ...(machine === undefined ? {} : { machine: machineOf(machine) }),
    ...(input === undefined ? {} : { input }),
  };
}

function machineOf(options: MachineOptions): InvocationMachine {
  const { config, faults, topology } = effectiveOf(options);
  const { 'machine.seed': _seed, ...set } = changesOf(config);
  return {
    profile: options.profile === undefined ? defaultProfileName : basename(options.profile),
    set,
    seed: config.machine.seed,
    faults,
    ...(topology === undefined ? {} : { topology: topologyText(topology) }),
    configHash: configHashOf(config, faults, topology),
  };
}

/** Name of a file as stored in an invocation. */
export const inputName = (file: string): string => (isAbsolute(file) ? basename(file) : file);

/**
 * Reads the invocation from an output.
 * @param file for the message
 * @param commands of this package
 * @throws ConfigurationError if it is missing or no command would have written it
 */
export function checkedInvocation(
  file: string,
  { schema, invocation: found }: Output,
  commands: readonly Command[],
): Invocation {
  const refuse = (value: unknown, range: string): never => {
    throw new ConfigurationError(`invocation of ${file}`, value, range);
  };
  if (!isObject(found))
    return refuse(
      found,
      `the invocation that a command writes into ${schema}: outputs of guests and of the library have none`,
    );
  const { command: name, version, arguments: words, machine, input } = found;
  const command = commands.find((one) => one.name() === name && rerunnable.has(one.name()));
  if (command === undefined) return refuse(name, `one of ${[...rerunnable].join(', ')}`);
  if (typeof version !== 'string') return refuse(version, 'a version');
  if (!isWords(words)) return refuse(words, 'a list of arguments');
  if (machine !== undefined && !isMachine(machine)) return refuse('machine', 'parameters, seed and faults');
  if (input !== undefined && !isInput(input)) return refuse('input', 'a file with its bytes and SHA-256');
  const unexpected = unexpectedWord(command, words);
  if (unexpected !== undefined)
    return refuse(unexpected, `arguments of hca ${command.name()} that make figures`);
  return found as unknown as Invocation;
}

/** Commands whose results are reproducible: those that only simulate. */
const rerunnable: ReadonlySet<string> = new Set([
  'move',
  'perf',
  'compare',
  'cutoff',
  'fabric',
  'devinfo',
  'torture',
]);

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isWords = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((word) => typeof word === 'string');
const isInput = (value: unknown): boolean =>
  isObject(value) &&
  (value['file'] === undefined || typeof value['file'] === 'string') &&
  typeof value['bytes'] === 'number' &&
  typeof value['sha256'] === 'string';
/** Accepts links only: a foreign output must not cause a file to be read. */
/** Links, or a topology as JSON: no name of a file. */
const isLinks = (value: unknown): boolean => typeof value === 'string' && /^(?:[-.\d,]+$|\{)/.test(value);
const isMachine = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['seed'] === 'number' &&
  isWords(value['faults']) &&
  (value['topology'] === undefined || isLinks(value['topology'])) &&
  isObject(value['set']) &&
  Object.values(value['set']).every((one) => ['number', 'string', 'boolean'].includes(typeof one));

/** An argument that no invocation contains: a foreign output must not cause files to be written. */
function unexpectedWord(command: Command, words: readonly string[]): string | undefined {
  const options = new Map(recordedOptions(command).map((option) => [option.long!, option]));
  const first = words.findIndex((word) => word.startsWith('-'));
  const positional = words.slice(0, first < 0 ? words.length : first);
  // The input stores the file to read.
  if (positional.length > (['perf', 'fabric'].includes(command.name()) ? 1 : 0)) return positional.at(-1);
  for (let at = positional.length; at < words.length; at++) {
    const option = options.get(words[at]!);
    if (option === undefined) return words[at];
    if (option.required) at++;
  }
  return undefined;
}

/**
 * The command line that repeats the run.
 * @param input current path of the input file
 */
export function commandLineOf(invocation: Invocation, input: string | undefined): string[] {
  const { command, arguments: words, machine } = invocation;
  const files = input === undefined ? [] : command === 'torture' ? [`--story=${input}`] : ['--', input];
  const changes = Object.entries(machine?.set ?? {}).map(([path, value]) => `--set=${path}=${value}`);
  const seed = machine === undefined ? [] : [`--seed=${machine.seed}`];
  const faults = (machine?.faults ?? []).map((text) => `--fault=${text}`);
  const links = machine?.topology === undefined ? [] : [`--topology=${machine.topology}`];
  return [command, ...words, ...changes, ...seed, ...links, ...faults, ...files];
}
