/** `--html FILE`: the results of a command as one self-contained page. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { visible } from '../base/index.ts';
import type { PageHead } from '../explain/page/index.ts';
import type { MachineOptions } from '../machine/index.ts';
import { writeFileAtomically } from '../runtime/output-files.ts';
import { argumentsOf, commandLineOf, hasMachine, invocationOf } from './invocation.ts';
import type { Screen } from './output.ts';

export interface HtmlChoice {
  readonly html?: string;
}

/** Parses --html. Text follows the results on standard output: a page there would not be one. */
export function htmlFile(text: string): string {
  if (text !== '-') return text;
  throw new InvalidArgumentError('expected a file: the text of the results is on standard output.');
}

export const htmlOption = ['--html <file>', 'write it as one self-contained HTML file', htmlFile] as const;

interface Ran {
  readonly title: string;
  /** Arguments in addition to options: the name of a test, files. */
  readonly words?: readonly string[];
  /** Everything that reproduces the run, if it differs from the given options. */
  readonly instead?: readonly string[];
  /** Omitted by commands that simulate no machine or draw machines at random. */
  readonly machine?: MachineOptions;
  /** The input file, if it comes after the options. */
  readonly input?: string;
  /** Hash of the configuration, for commands without `machine`. */
  readonly configHash?: string;
  readonly elapsedPs?: number;
  readonly sentences?: readonly string[];
}

/** Head of a command's page: the command line that reproduces it, with the machine's parameters. */
export function headOf(
  command: Command,
  { title, words = [], instead, machine, input, ...rest }: Ran,
): PageHead {
  const invocation = invocationOf(command, instead ?? [...words, ...argumentsOf(command)], machine);
  // The outer command of a subcommand such as `sweep merge`.
  const outer = command.parent?.parent ? [command.parent.name()] : [];
  const line = [
    ...outer,
    ...commandLineOf(invocation, input),
    ...(machine === undefined ? machineWords(command) : []),
  ];
  const { version, machine: { configHash } = {} } = invocation;
  return {
    title: visible(title),
    command: visible(`hca ${line.map(shellWord).join(' ')}`),
    version,
    ...(configHash === undefined ? {} : { configHash }),
    ...rest,
  };
}

/** The machine options as they were given, for commands that have several machines or serve them. */
function machineWords(command: Command): string[] {
  if (!hasMachine(command)) return [];
  const given: Readonly<Record<string, unknown>> = command.opts();
  return ['profile', 'set', 'seed', 'fault', 'faults'].flatMap((name) => {
    if (command.getOptionValueSource(name) !== 'cli') return [];
    const values = Array.isArray(given[name]) ? given[name] : [given[name]];
    return values.map((value) => `--${name}=${String(value)}`);
  });
}

/** Writes a page if one was requested, and prints its name. */
export function writePage({ html }: HtmlChoice, page: () => string, screen: Screen): void {
  if (html === undefined) return;
  writeFileAtomically(html, page());
  screen.print(`The same as a page: ${visible(resolve(html))}`);
}

/** Quotes a word for a shell if necessary. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
