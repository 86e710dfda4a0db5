/** Of what could be turned, what does something for a test: some options belong to other tests, some are turned already. */
import type { PerfArgs } from '../workloads/index.ts';
import { gathers, type Turn } from './measured.ts';

/** A key-value store has a QP for each client, and no lists of requests. */
const notOfKv: readonly string[] = ['--qps', '--post-list', '--tx-depth'];

/** Options that do something for some tests only, or that some have turned already. */
const doesSomething: Readonly<Record<string, (args: PerfArgs) => boolean>> = {
  '--inline': gathers,
  '--mtu': ({ mtuBytes }) => mtuBytes > 0 && mtuBytes < mtuMax,
  '--region': ({ region }) => region !== undefined,
  '--page-size': ({ region, pageBytes = 0 }) => region !== undefined && pageBytes < largePageBytes,
  '--keys': ({ region }) => (region?.keys ?? 1) > 1,
  '--cq-mod': ({ cqModeration }) => cqModeration > 1,
};
const mtuMax = 4096;
const largePageBytes = 2 * 1024 ** 2;

export const advised = <R extends { readonly turn: readonly Turn[] }>(args: PerfArgs, resource: R): R => ({
  ...resource,
  turn: resource.turn.filter(
    ({ what }) => (doesSomething[what]?.(args) ?? true) && (args.kv === undefined || !notOfKv.includes(what)),
  ),
});
