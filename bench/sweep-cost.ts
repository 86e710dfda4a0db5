/**
 * The cost of a sweep point: `node build/run.ts bench/sweep-cost --jobs 2 --points 800` runs points of 1,000 WRITEs in
 * this process. It prints the processor time of all threads, first since the start of the process, then for the second
 * half of the points alone, when most code is compiled. With `--boots` each point boots a machine of its own.
 *
 *     simulation   with one job: while a point runs, collector and compiler threads with it
 *     main thread  with several jobs: all that this thread does, for then it simulates nothing
 */
import '../runtime/node.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { integer } from '../cli/options.ts';
import { localRunner } from '../cli/sweep/sweep-engine.ts';
import {
  checkedSpec,
  headerOf,
  laneEngine,
  type PointRunner,
  pointsOf,
  ResultsFile,
  runWork,
  workOf,
} from '../experiments/sweep/index.ts';

const {
  jobs,
  points: pointCount,
  boots,
} = new Command('sweep-cost')
  .option('--jobs <n>', 'points that run at once', integer(1, 64), 1)
  .option('--points <n>', 'points', integer(2, 8000), 200)
  .option('--boots', 'each point boots', false)
  .parse()
  .opts<{ readonly jobs: number; readonly points: number; readonly boots: boolean }>();

const millisecondsOf = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

const folder = mkdtempSync(join(tmpdir(), 'hca-sweep-cost-'));
let simulationMs = 0;
let endedCount = 0;
/** Time at which the first half of the points had ended. */
let halfway = { wallMs: 0, totalMs: 0, mainMs: 0 };

const now = (): typeof halfway => ({
  wallMs: performance.now(),
  totalMs: millisecondsOf(process.cpuUsage()),
  mainMs: millisecondsOf(process.threadCpuUsage()),
});

function measured(runner: PointRunner): PointRunner {
  return {
    capacity: runner.capacity,
    run: async (order) => {
      const before = process.cpuUsage();
      const outcome = await runner.run(order);
      // With more jobs, other threads work at the same time.
      if (jobs === 1) simulationMs += millisecondsOf(process.cpuUsage(before));
      endedCount++;
      if (endedCount === Math.floor(pointCount / 2)) halfway = now();
      return outcome;
    },
  };
}

const loadedMs = millisecondsOf(process.cpuUsage());
const began = performance.now();
const spec = checkedSpec({
  workload: 'write-bw,size=64,iters=1000',
  vary: boots ? { 'machine.seed': `1..${pointCount}+1` } : { txDepth: `100..${99 + pointCount}+1` },
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
const ended = now();
const wallMs = ended.wallMs - began;
const { totalMs } = ended;
const outsideMs = jobs === 1 ? totalMs - simulationMs : ended.mainMs;
const secondHalf = points.length - Math.floor(pointCount / 2);
const warmMs = ended.totalMs - halfway.totalMs;
const share = (ms: number): string => `${((ms / totalMs) * 100).toFixed(1)} %`;
console.log(
  [
    `${points.length} points, ${jobs} jobs: ${(wallMs / 1000).toFixed(2)} s, ${(totalMs / points.length).toFixed(1)} ms of processor time a point`,
    `outside of simulations ${(outsideMs / points.length).toFixed(2)} ms a point, ${share(outsideMs)}: loading ${share(loadedMs)}, expansion and hashes ${share(expandedMs)}`,
    `second half: ${(warmMs / secondHalf).toFixed(1)} ms of processor time a point, of it the main thread's ${((ended.mainMs - halfway.mainMs) / secondHalf).toFixed(2)}; ${((1000 * secondHalf) / (ended.wallMs - halfway.wallMs)).toFixed(1)} points a second`,
  ].join('\n'),
);
