/**
 * What a sweep costs beside its simulations: `node build/run.ts bench/sweep-cost --jobs 2` runs 200 points of 1,000 WRITEs in this
 * process and prints processor time, of all threads and from the start of the process on.
 *
 *     simulation   with one job: while a point runs, collector and compiler threads with it
 *     main thread  with several jobs: all that this thread does, for then it simulates nothing
 */
import '../runtime/node.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { integer } from '../system/cli/options.ts';
import { localRunner } from '../system/cli/sweep-engine.ts';
import {
  checkedSpec,
  headerOf,
  laneEngine,
  type PointRunner,
  pointsOf,
  ResultsFile,
  runWork,
  workOf,
} from '../system/sweep/index.ts';

const { jobs, depths } = new Command('sweep-cost')
  .option('--jobs <n>', 'points that run at once', integer(1, 64), 1)
  .option('--depths <n>', 'one eighth of the points', integer(1, 1000), 25)
  .parse()
  .opts<{ readonly jobs: number; readonly depths: number }>();

const millisecondsOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

const folder = mkdtempSync(join(tmpdir(), 'hca-sweep-cost-'));
let simulationMs = 0;

/** Of one job alone: with more, others work meanwhile. */
function measured(runner: PointRunner): PointRunner {
  if (jobs > 1) return runner;
  return {
    capacity: runner.capacity,
    run: async (order) => {
      const before = process.cpuUsage();
      const outcome = await runner.run(order);
      simulationMs += millisecondsOf(process.cpuUsage(before));
      return outcome;
    },
  };
}

const loadedMs = millisecondsOf(process.cpuUsage());
const began = performance.now();
const spec = checkedSpec({
  workload: 'write-bw,size=64,iters=1000',
  vary: { txDepth: `100..${99 + depths}+1`, size: '16..128+16' },
});
const points = pointsOf(spec);
const header = headerOf(spec, points);
const expandedMs = millisecondsOf(process.cpuUsage()) - loadedMs;
try {
  using results = new ResultsFile(join(folder, 'results.jsonl'), header);
  await using runner = localRunner(jobs);
  await runWork(workOf(points, results.rows), results, laneEngine(measured(runner)));
} finally {
  rmSync(folder, { recursive: true });
}
const wallMs = performance.now() - began;
const totalMs = millisecondsOf(process.cpuUsage());
const outsideMs = jobs === 1 ? totalMs - simulationMs : millisecondsOf(process.threadCpuUsage());
const share = (ms: number): string => `${((ms / totalMs) * 100).toFixed(1)} %`;
console.log(
  [
    `${points.length} points, ${jobs} jobs: ${(wallMs / 1000).toFixed(2)} s, ${(totalMs / points.length).toFixed(1)} ms of processor time a point`,
    `outside of simulations ${(outsideMs / points.length).toFixed(2)} ms a point, ${share(outsideMs)}: loading ${share(loadedMs)}, expansion and hashes ${share(expandedMs)}`,
  ].join('\n'),
);
