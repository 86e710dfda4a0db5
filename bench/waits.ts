/**
 * Measures how long a user waits for whole commands, and for which parts. The parts of a command are differences
 * between commands, each of which does one thing more than the one before. The commands alternate for several rounds;
 * the first round is not measured and fills Node's cache of compiled code. The median of each counts.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageFolder } from '../runtime/package-folder.ts';
import { calibration, type Figure, medianOf } from './figure.ts';
import type { FirstDoorbell } from './first-doorbell.ts';

interface Step {
  /** The work that this command does in addition to the one before. */
  readonly part: string;
  readonly command: readonly string[];
}

interface Wait {
  readonly name: string;
  readonly rounds: number;
  readonly steps: readonly Step[];
}

const node = process.execPath;
const hca = [node, join(packageFolder, 'bin/hca.js')];
const perf = (iterations: number): string[] => [
  ...hca,
  ...['perf', 'write-bw', '--size', '64', '--iters', `${iterations}`],
];
const loading: readonly Step[] = [
  { part: 'start of Node', command: [node, '-e', '0'] },
  { part: 'loading the command line', command: [...hca, '--version'] },
];

export const waits: readonly Wait[] = [
  {
    name: 'cold-perf',
    rounds: 5,
    steps: [
      ...loading,
      { part: 'machine, drivers, connection, one WRITE', command: perf(1) },
      { part: '4,999 more WRITEs', command: perf(5000) },
    ],
  },
  {
    name: 'npm-start',
    rounds: 2,
    steps: [
      ...loading,
      {
        part: 'moving the file in four threads, and the report',
        command: [...hca, 'move', '--traditional', 'none'],
      },
      { part: 'five simulations of the comparison', command: [...hca, 'move'] },
      { part: 'npm', command: ['npm', 'start'] },
    ],
  },
];

/**
 * Measures a command and its parts.
 * @throws Error if one fails
 */
export function figureOfWait({ name, rounds, steps }: Wait): Figure {
  const beside = calibration();
  const seconds = steps.map((): number[] => []);
  for (let round = 0; round <= rounds; round++)
    for (const [index, { command }] of steps.entries()) {
      const taken = secondsOf(command);
      if (round > 0) seconds[index]!.push(taken);
    }
  const medians = seconds.map(medianOf);
  const parts = steps.map(({ part }, index) => [part, medians[index]! - (medians[index - 1] ?? 0)] as const);
  return {
    name,
    value: medians.at(-1)!,
    unit: 's of wall time',
    calibration: beside,
    parts: Object.fromEntries(parts),
  };
}

/** Wall time from the creation of a machine to its first doorbell, in new processes. */
export function figureOfFirstDoorbell(rounds = 5): Figure {
  const beside = calibration();
  const module = new URL(
    `./first-doorbell${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
    import.meta.url,
  );
  const runs = Array.from(
    { length: rounds },
    () => JSON.parse(outputOf([node, fileURLToPath(module)])) as FirstDoorbell,
  );
  const parts = Object.keys(runs[0]!).map((part) => [part, medianOf(runs.map((run) => run[part]!))] as const);
  return {
    name: 'first-doorbell',
    value: parts.reduce((sum, [, ms]) => sum + ms, 0),
    unit: 'ms of wall time from the creation of a machine, in a new process',
    calibration: beside,
    parts: Object.fromEntries(parts),
  };
}

function secondsOf(command: readonly string[]): number {
  const begun = performance.now();
  outputOf(command);
  return (performance.now() - begun) / 1000;
}

function outputOf([program, ...args]: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program!, args, {
    cwd: packageFolder,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  if (status === 0) return stdout;
  throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
}
