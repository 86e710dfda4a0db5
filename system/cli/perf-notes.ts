/** Notes on parameters that were set and can have had no effect. */
import type { MachineOptions } from '../machine/index.ts';
import { configurationOf, type MachineConfig, type ParameterValue } from '../machine/profile/index.ts';
import { countText } from '../text/format.ts';
import type { PerfRow } from './perf-run.ts';

/** Sizes of caches: the cache that a report has under this name. */
const cacheOf: Readonly<Record<string, string>> = {
  'hca.mttCacheLines': 'mtt',
  'hca.mptCacheEntries': 'mpt',
  'hca.qpcCacheEntries': 'qpc',
  'hca.sendContextEntries': 'qpc',
  'hca.cqcCacheEntries': 'cqc',
  'hca.srqcCacheEntries': 'srqc',
};

/**
 * Parameters that were set to what they are anyway, and sizes of caches that this test does not fill: where no line was given
 * up, and fewer were filled than there are with and without the change, the size made no difference.
 */
export function cacheNotes(machine: MachineOptions, rows: readonly PerfRow[]): string[] {
  const profile = machine.profile === undefined ? {} : { profile: machine.profile };
  const plain = configurationOf(profile);
  return Object.entries(machine.set ?? {}).flatMap(([path, value]) => {
    const usual = valueAt(plain, path);
    if (String(usual) === String(value))
      return [`--set ${path}=${value} has no effect: it is the value of the profile.`];
    const cache = cacheOf[path];
    // What a warm-up has filled is not counted.
    if (cache === undefined || rows.some(({ args }) => args.warmupIterations !== undefined)) return [];
    const filled = Math.max(...rows.flatMap(({ caches }) => caches.map((each) => each[cache]?.misses ?? 0)));
    const isFull = rows.some(({ caches }) => caches.some((each) => (each[cache]?.evictions ?? 0) > 0));
    if (isFull || filled > Math.min(Number(usual), Number(value))) return [];
    return [
      `--set ${path}=${value} should have no effect: this test fills ${countText(filled)} entries and evicts none; a larger --region fills more.`,
    ];
  });
}

function valueAt(config: MachineConfig, path: string): ParameterValue | undefined {
  let node: unknown = config;
  for (const name of path.split('.')) node = (node as Readonly<Record<string, unknown>> | undefined)?.[name];
  return node as ParameterValue | undefined;
}
