/**
 * The commands of Slurm that a sweep needs: sbatch, squeue, scancel.
 * Source: sbatch(1), squeue(1), scancel(1).
 */
import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';
import { promisify } from 'node:util';
import { ConfigurationError, codeOf } from '../../../base/index.ts';
import { RunError } from '../../../sim/index.ts';

/** State of a part of an array, as squeue prints it. */
export interface QueuedTasks {
  /** PENDING, RUNNING and so on. */
  readonly state: string;
  /** Reason why the task does not run. */
  readonly reason: string;
}

/** Arrays have a derived name, so that a resumed sweep finds those that it has left. */
export interface SlurmClient {
  /** @returns the array's number */
  submit(name: string, script: string, options: readonly string[]): Promise<string>;
  /** Parts of arrays with this name that have not ended. */
  queued(name: string): Promise<readonly QueuedTasks[]>;
  cancel(name: string): Promise<void>;
}

const commandTimeoutMs = 60_000;
const run = promisify(execFile);

export const slurmClient: SlurmClient = {
  submit: async (name, script, options) => {
    const out = await output('sbatch', ['--parsable', `--job-name=${name}`, ...options, script]);
    return out.trim().split(';')[0]!;
  },
  queued: async (name) => {
    const out = await output('squeue', ['--noheader', ...ownNamed(name), '--format=%T|%r']);
    const lines = out.split('\n').filter((line) => line !== '');
    return lines.map((line) => ({ state: line.split('|')[0]!, reason: line.split('|')[1] ?? '' }));
  },
  cancel: async (name) => {
    await output('scancel', ownNamed(name));
  },
};

const ownNamed = (name: string): string[] => [`--name=${name}`, `--user=${userInfo().username}`];

/** @throws ConfigurationError if Slurm is not installed; RunError with the first line of its error output */
async function output(command: string, args: readonly string[]): Promise<string> {
  try {
    return (await run(command, args, { timeout: commandTimeoutMs })).stdout;
  } catch (error) {
    if (codeOf(error) === 'ENOENT')
      throw new ConfigurationError('--engine', 'slurm', `Slurm's ${command} in the PATH of this machine`);
    const complaint = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new RunError(`${command}: ${complaint.split('\n')[0] || (error as Error).message.split('\n')[0]}`);
  }
}
