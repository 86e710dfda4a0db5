/** A task of a Slurm job array: every n-th point of a file, except those that have ended. */
import { dirname } from 'node:path';
import { ConfigurationError, codeOf } from '../../../base/index.ts';
import { readRegularFile } from '../../../runtime/files.ts';
import { type Assignment, orderOf } from '../assignment.ts';
import { inLanes, type PointRunner, type Shard } from '../runner.ts';
import { TaskFile, TaskFiles } from './task-files.ts';

/**
 * Runs the points of one task, and writes their outcomes next to their file.
 * @returns how many it has run
 * @throws ConfigurationError for a file that cannot be read, and for points of another version of the emulator
 */
export async function runTask(file: string, { number, count }: Shard, runner: PointRunner): Promise<number> {
  const folder = dirname(file);
  const over = new Set(new TaskFiles(folder).newOutcomes().map(([hash]) => hash));
  const own = assignmentsOf(file).filter(
    ({ hash }, index) => index % count === number - 1 && !over.has(hash),
  );
  using written = new TaskFile(folder, number);
  await inLanes(own, runner.capacity, async (assignment) => {
    const order = orderOf(assignment, assignment.hash);
    written.begin(assignment.hash);
    written.end(assignment.hash, await runner.run(order));
  });
  return own.length;
}

function assignmentsOf(file: string): Assignment[] {
  try {
    const lines = readRegularFile(file).toString('utf8').split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Assignment);
  } catch (error) {
    throw new ConfigurationError('points', file, `a file of points that can be read (${codeOf(error)})`);
  }
}
