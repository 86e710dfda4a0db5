/** Ranges of story seeds on the command line. */
import { InvalidArgumentError } from 'commander';
import { integer } from './options.ts';

/** The greatest seed that a story may have. */
export const seedMax = 2 ** 48;

export interface SeedRange {
  readonly first: number;
  readonly last: number;
}

/** Of `1..1000`. @throws InvalidArgumentError for anything else */
export function seedRange(text: string): SeedRange {
  const [first, last, ...rest] = text.split('..').map(integer(0, seedMax));
  if (first === undefined || last === undefined || rest.length > 0 || first > last)
    throw new InvalidArgumentError('expected two seeds like 1..1000, the smaller one first.');
  return { first, last };
}
