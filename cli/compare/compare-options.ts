/** The options of `hca compare`: sizes, paths, networks, and number of messages. */
import { InvalidArgumentError } from 'commander';
import { ConfigurationError } from '../../base/index.ts';
import {
  type CompareArgs,
  type CompareNetwork,
  type ComparePath,
  compareNetworks,
  comparePaths,
  isOnNetwork,
  messageCountOf,
  networkParameters,
  pathLimitBytes,
} from '../../experiments/workloads/index.ts';
import type { MachineOptions } from '../../machine/index.ts';
import { hintFor } from '../../machine/profile/index.ts';
import { integer } from '../options.ts';

export interface CompareChoice {
  readonly sizes: readonly number[];
  readonly paths: readonly ComparePath[];
  /** Networks that carry the RDMA paths; left out: only the machine's own. */
  readonly networks?: readonly CompareNetwork[];
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
export const parsedPaths = (text: string): ComparePath[] => someOf('path', comparePaths, text);

/** @throws ConfigurationError that suggests the nearest name */
export const parsedNetworks = (text: string): CompareNetwork[] => someOf('network', compareNetworks, text);

/** The members of a list that a text names, in the order of the list. */
function someOf<Name extends string>(field: string, all: readonly Name[], text: string): Name[] {
  const names = text.split(',').map((name) => name.trim());
  for (const name of names)
    if (!all.some((known) => known === name))
      throw new ConfigurationError(field, name, `one of ${all.join(', ')}${hintFor(name, all)}`);
  return all.filter((known) => names.includes(known));
}

/**
 * Rejects parameters that `--networks` decides.
 * @throws ConfigurationError
 */
export function checkNetworks(
  { networks }: Pick<CompareChoice, 'networks'>,
  { set = {} }: MachineOptions,
): void {
  if (networks === undefined) return;
  for (const path of networkParameters) {
    const value = set[path];
    if (value !== undefined)
      throw new ConfigurationError(path, value, 'left out with --networks, which sets it for each network');
  }
}

/** Bytes of a stream without --count: enough for a steady state. */
const streamBytes = 256 * 1024;
const countMax = 100;
const latencyRounds = 4;

/**
 * One run for each size and path within the path's limit, ordered by size; also the omitted runs, and those with fewer
 * messages than requested.
 */
export function compareArgsOf({ sizes, paths, networks, count }: CompareChoice): {
  readonly runs: CompareArgs[];
  readonly leftOut: readonly { readonly path: ComparePath; readonly sizeBytes: number }[];
  readonly shortened: readonly CompareArgs[];
} {
  const placesOf = (path: ComparePath) =>
    networks === undefined || !isOnNetwork(path)
      ? [{ path }]
      : networks.map((network) => ({ path, network }));
  const places = paths.flatMap<Pick<CompareArgs, 'path' | 'network'>>(placesOf);
  const all = sizes.flatMap((sizeBytes) => places.map((place) => ({ ...place, sizeBytes })));
  const counted = networks === undefined ? {} : { countsCable: true };
  const fits = ({ path, sizeBytes }: (typeof all)[number]): boolean => sizeBytes <= pathLimitBytes[path];
  const runs = all.filter(fits).map(({ sizeBytes, ...place }) => {
    const enough = Math.min(countMax, Math.max(1, Math.floor(streamBytes / sizeBytes)));
    const messages = Math.min(count ?? enough, Math.floor(pathLimitBytes[place.path] / sizeBytes));
    const totalBytes = messages * sizeBytes;
    return { ...place, sizeBytes, totalBytes, latencyRounds, file: null, ...counted };
  });
  const shortened = count === undefined ? [] : runs.filter((run) => messageCountOf(run) < count);
  return { runs, leftOut: all.filter((run) => !fits(run)), shortened };
}
