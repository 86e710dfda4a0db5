/** Ranges of story seeds on the command line. */
import { type Command, InvalidArgumentError } from 'commander';
import { argumentsOf } from '../invocation.ts';
import { integer } from '../options.ts';

/** The greatest possible seed of a story. */
export const seedMax = 2 ** 50;

export interface SeedRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Parses `1..1000`.
 * @throws InvalidArgumentError for anything else
 */
export function seedRange(text: string): SeedRange {
  const [first, last, ...rest] = text.split('..').map(integer(0, seedMax));
  if (first === undefined || last === undefined || rest.length > 0 || first > last)
    throw new InvalidArgumentError('expected two seeds like 1..1000, the smaller one first.');
  return { first, last };
}

/**
 * The arguments that repeat the played stories, for any reason that ended the run.
 * @param fabrics number of stories per story of a fabric; left out: none or all are of fabrics
 */
export function playedArguments(
  command: Command,
  first: number,
  stories: number,
  fabrics?: number,
): string[] {
  const recorded = argumentsOf(command);
  const ends: readonly string[] = ['--seed', '--seeds', '--minutes', '--actions', '--fabrics'];
  const rest = recorded.filter((word, at) => !ends.includes(word) && !ends.includes(recorded[at - 1] ?? ''));
  const share = fabrics === undefined ? [] : ['--fabrics', String(fabrics)];
  return ['--seeds', `${first}..${first + stories - 1}`, ...share, ...rest];
}
