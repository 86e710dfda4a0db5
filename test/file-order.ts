/**
 * The order in which vitest takes files: those that take longest first, so that a run does not end with one long file on one
 * core while the others are idle. Vitest knows durations only from an earlier run, which a fresh clone lacks.
 */
import { existsSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files of more than ten seconds of processor time each, the longest of each project first. */
const longest = [
  'test/torture/fresh-stories.spec.ts',
  'torture/scenes/scenes.spec.ts',
  'test/package.spec.ts',
  'cli/cli.spec.ts',
  'machine/machine.spec.ts',
  'cli/rerun/rerun.spec.ts',
  'test/on-demand.spec.ts',
  'test/partitions.spec.ts',
  'test/budget-project.long.spec.ts',
  'test/machine-image.spec.ts',
  'cli/json-outputs.spec.ts',
  'cli/cutoff/cutoff.spec.ts',
  'torture/torture.spec.ts',
  'test/messaging-cache.spec.ts',
  'cli/files.spec.ts',
  'build/checkout.long.spec.ts',
  'test/memory.spec.ts',
  'test/docs.spec.ts',
  'cli/sweep/sweep.spec.ts',
  'lab/worker/program-session.spec.ts',
  'test/traditional.spec.ts',
  'experiments/model/estimate.spec.ts',
  'build/field-kinds.long.spec.ts',
  'test/bad-input-resources.spec.ts',
  'build/bundle.long.spec.ts',
  'cli/perf/perf-bottleneck.spec.ts',
  'test/comparison.spec.ts',
  'test/inspected-states.spec.ts',
  'torture/served/served-story.spec.ts',
  'machine/timeline/timeline.spec.ts',
  'torture/first-difference.spec.ts',
  'test/epochs.spec.ts',
  'test/faults.spec.ts',
  'test/bad-input-protection.spec.ts',
] as const;

/** The Linux guests and browsers: first tests that wait idle for a minute, then long ones; short ones last. */
const guests = [
  'test/guest/faults-silence.long.spec.ts',
  'test/page/lab.spec.ts',
  'test/guest/linux-inside.spec.ts',
  'test/guest/fabric.spec.ts',
  'test/guest/linux-profile.spec.ts',
  'test/guest/roce.spec.ts',
  'test/guest/roce-v1.long.spec.ts',
  'test/guest/soft-roce-peer.long.spec.ts',
  'test/guest/soft-iwarp.long.spec.ts',
  'test/guest/loopback.spec.ts',
  'test/guest/probe-debian.long.spec.ts',
  'test/guest/faults-work.long.spec.ts',
  'test/guest/two-guests.spec.ts',
  'test/guest/raw-packets.long.spec.ts',
  'test/guest/rough-guests.long.spec.ts',
  'test/guest/nfs.long.spec.ts',
  'test/guest/nfs-roce.long.spec.ts',
  'test/guest/cable.long.spec.ts',
  'test/guest/ethernet-offloads.spec.ts',
  'test/guest/soft-roce.long.spec.ts',
  'test/guest/probe-backports.spec.ts',
  'test/guest/faults-probe.long.spec.ts',
  'test/guest/srp-unbind.long.spec.ts',
  'test/guest/subnet-manager.spec.ts',
  'test/guest/peer.spec.ts',
  'test/guest/ethernet-peer.spec.ts',
  'test/guest/roce-peer.spec.ts',
  'test/guest/roce-v1-peer.long.spec.ts',
  'test/guest/sweep-bullmq.long.spec.ts',
  'test/guest/pyverbs.long.spec.ts',
  'test/guest/sweep-slurm.long.spec.ts',
  'test/guest/counters.long.spec.ts',
  'test/page/site.spec.ts',
  'test/page/page.spec.ts',
  'test/page/report-page.spec.ts',
  'test/page/chart-pages.spec.ts',
  'test/guest/own-files.spec.ts',
] as const;

const root = fileURLToPath(new URL('..', import.meta.url));

const places = new Map<string, number>([...longest, ...guests].map((path, place) => [path, place]));
for (const path of places.keys())
  if (!existsSync(`${root}${path}`)) throw new Error(`test/file-order.ts names ${path}, which is not there`);

/**
 * Projects stay together, as vitest sorts them: a process that runs one file of a project after another ends when the next file
 * belongs to another project, and its loaded and compiled code is lost. Within a project, the named files are followed by the
 * others in vitest's order: by an earlier run or by size.
 */
export class FileOrder extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId }: TestSpecification): number =>
      places.get(relative(root, moduleId)) ?? places.size;
    const ofProjects = Map.groupBy(await super.sort(files), ({ project }) => project.name);
    return [...ofProjects.values()].flatMap((ofOne) =>
      ofOne.toSorted((one, other) => placeOf(one) - placeOf(other)),
    );
  }
}
