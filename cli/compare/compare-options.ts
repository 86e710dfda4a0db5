/** The options of `hca compare`: sizes, paths, and number of messages. */
import { InvalidArgumentError } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import {
  type CompareArgs,
  type ComparePath,
  comparePaths,
  messageCountOf,
  pathLimitBytes,
} from '../../experiments/workloads/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { integer } from '../options.ts';

export interface CompareChoice {
  readonly sizes: readonly number[];
  readonly paths: readonly ComparePath[];
  readonly count?: number;
}

const sizeMax = 16 * 1024 ** 2;
const size = integer(1, sizeMax);
const doubling = 4;

/** `64..1M`: powers of four from the first to the second, which is included; or sizes separated by commas. */
export function parsedSizes(text: string): number[] {
  const range = /^([^.,]+)\.\.([^.,]+)$/.exec(text);
  if (range === null) return text.split(',').map((part) => size(part.trim()));
  const [from, to] = [size(range[1]!), size(range[2]!)];
  if (from > to) throw new InvalidArgumentError('expected the smaller size first.');
  const sizes: number[] = [];
  for (let next = from; next < to; next *= doubling) sizes.push(next);
  return [...sizes, to];
}

/** @throws ConfigurationError that suggests the nearest name */
export function parsedPaths(text: string): ComparePath[] {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names)
    if (!comparePaths.some((path) => path === name))
      throw new ConfigurationError(
        'path',
        name,
        `one of ${comparePaths.join(', ')}${hintFor(name, comparePaths)}`,
      );
  return comparePaths.filter((path) => names.includes(path));
}

/** Bytes of a stream without --count: enough for a steady state. */
const streamBytes = 256 * 1024;
const countMax = 100;
const latencyRounds = 4;

/**
 * One run for each size and path within the path's limit, ordered by size; also the omitted runs, and those with fewer
 * messages than requested.
 */
export function compareArgsOf({ sizes, paths, count }: CompareChoice): {
  readonly runs: CompareArgs[];
  readonly leftOut: readonly { readonly path: ComparePath; readonly sizeBytes: number }[];
  readonly shortened: readonly CompareArgs[];
} {
  const all = sizes.flatMap((sizeBytes) => paths.map((path) => ({ path, sizeBytes })));
  const fits = ({ path, sizeBytes }: (typeof all)[number]): boolean => sizeBytes <= pathLimitBytes[path];
  const runs = all.filter(fits).map(({ path, sizeBytes }) => {
    const enough = Math.min(countMax, Math.max(1, Math.floor(streamBytes / sizeBytes)));
    const messages = Math.min(count ?? enough, Math.floor(pathLimitBytes[path] / sizeBytes));
    return { path, sizeBytes, totalBytes: messages * sizeBytes, latencyRounds, file: null };
  });
  const shortened = count === undefined ? [] : runs.filter((run) => messageCountOf(run) < count);
  return { runs, leftOut: all.filter((run) => !fits(run)), shortened };
}
