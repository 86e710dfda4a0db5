/**
 * Points as tasks of a Slurm job array.
 *
 *     points ─► points-3.jsonl ─► sbatch --array=1-N ─► task i: points i, i+N, … ─► task-i-1.jsonl ─► outcomes ─► rows
 *                    ▲                                     │ killed                    (a file for each start)
 *                    └── those without an outcome ◄── the array has ended
 *
 * All that has to outlast this process is in the folder, and the array has a name made of its path: a sweep that was killed and comes
 * back reads what has been done meanwhile, and waits for the array that is still there before it submits another. So a point runs twice only
 * when its task was killed.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigurationError, codeOf } from '../../../base/index.ts';
import { RunError } from '../../../sim/index.ts';
import { assignmentOf, lostOutcome, type RunManner, startsMax } from '../assignment.ts';
import type { PointToRun, SweepEngine, TakeOutcome } from '../runner.ts';
import { type QueuedTasks, type SlurmClient, slurmClient } from './client.ts';
import { forgetFailures, TaskFiles } from './task-files.ts';

export interface SlurmOptions {
  /** Shared by all machines; removed when all points have ended. */
  readonly folder: string;
  /** Tasks of an array, at most. */
  readonly taskCount: number;
  /** Points that a task runs at once. */
  readonly jobs: number;
  /** More options of sbatch. */
  readonly sbatch: readonly string[];
  /** The words that start hca on all machines. */
  readonly command: readonly string[];
  readonly manner: RunManner;
  /** Points that are to run and have failed in arrays before this run, or were lost, begin again. */
  readonly isFailedRetried?: boolean;
  readonly onNotice: (text: string) => void;
  readonly client?: SlurmClient;
  /** How often files are read, in milliseconds; Slurm is asked each tenth time. */
  readonly pollMs?: number;
}

const defaultPollMs = 1000;
const pollsOfFiles = 10;
/** Questions to Slurm that may fail one after the other: its controller restarts. */
const failuresMax = 6;
/** Arrays that may end one after the other without a word of any task. */
const silentMax = 3;

export class SlurmEngine implements SweepEngine {
  readonly #options: SlurmOptions;
  readonly #client: SlurmClient;
  readonly #files: TaskFiles;
  #failureCount = 0;

  constructor(options: SlurmOptions) {
    this.#options = options;
    this.#client = options.client ?? slurmClient;
    this.#files = new TaskFiles(options.folder);
  }

  async run(points: readonly PointToRun[], take: TakeOutcome): Promise<void> {
    const { folder, onNotice } = this.#options;
    makeFolder(folder);
    const name = nameOf(folder);
    const left = new Map(points.map((point) => [point.hash, point]));
    if (this.#options.isFailedRetried === true) await this.#forgetFailures(name, left);
    const collect = (): void => {
      for (const [hash, outcome] of this.#files.newOutcomes()) {
        take(hash, outcome);
        left.delete(hash);
      }
    };
    collect();
    let silentCount = 0;
    if (await this.#isQueued(name)) onNotice(`An array of this sweep is there already: ${name}.`);
    else if (left.size > 0) await this.#submit(name, [...left.values()]);
    for (;;) {
      const lineCount = this.#files.lineCount;
      await this.#watched(name, left, collect);
      for (const hash of left.keys()) {
        if (this.#files.startsOf(hash) < startsMax) continue;
        take(hash, lostOutcome);
        left.delete(hash);
      }
      if (left.size === 0) break;
      silentCount = this.#files.lineCount > lineCount ? 0 : silentCount + 1;
      if (silentCount === silentMax)
        throw new RunError(
          `${silentMax} arrays have ended and run no point; the last says: ${lastWords(folder)}`,
        );
      await this.#submit(name, [...left.values()]);
    }
    await this.#ended(name);
    // On a shared disk, what a machine still has open leaves after a while.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Tasks that are there leave out what has failed: it begins again when they have ended. */
  async #forgetFailures(name: string, left: ReadonlyMap<string, unknown>): Promise<void> {
    const { folder, onNotice, pollMs = defaultPollMs } = this.#options;
    for (let isFirst = true; await this.#isQueued(name); isFirst = false) {
      if (isFirst) onNotice(`What has failed runs again when the array that is there has ended: ${name}.`);
      await sleep(pollsOfFiles * pollMs);
    }
    forgetFailures(folder, left);
  }

  /** Until the array has ended, or all points have. */
  async #watched(name: string, left: ReadonlyMap<string, unknown>, collect: () => void): Promise<void> {
    for (let poll = 1; left.size > 0; poll++) {
      await sleep(this.#options.pollMs ?? defaultPollMs);
      collect();
      if (poll % pollsOfFiles !== 0 || (await this.#isQueued(name))) continue;
      // What the tasks wrote last may take its time to be seen on this machine.
      await sleep(this.#options.pollMs ?? defaultPollMs);
      collect();
      return;
    }
  }

  /** Tasks that have nothing left to do end by themselves, or are ended. */
  async #ended(name: string): Promise<void> {
    for (let poll = 0; poll < pollsOfFiles; poll++) {
      if (!(await this.#isQueued(name))) return;
      await sleep(this.#options.pollMs ?? defaultPollMs);
    }
    await this.#client.cancel(name);
  }

  /** @throws RunError for an array that will not run by itself, and when Slurm does not answer again and again */
  async #isQueued(name: string): Promise<boolean> {
    let queued: readonly QueuedTasks[];
    try {
      queued = await this.#client.queued(name);
    } catch (error) {
      if (!(error instanceof RunError) || ++this.#failureCount === failuresMax) throw error;
      return true;
    }
    this.#failureCount = 0;
    const [first] = queued;
    if (
      first !== undefined &&
      queued.every(({ state, reason }) => state === 'PENDING' && /held/i.test(reason))
    )
      throw new RunError(
        `Slurm holds the array (${first.reason}): scontrol release, or scancel --name=${name}, and the same command goes on`,
      );
    return first !== undefined;
  }

  async #submit(name: string, points: readonly PointToRun[]): Promise<void> {
    const { folder, taskCount, jobs, sbatch, command, manner, onNotice } = this.#options;
    const count = Math.min(taskCount, points.length);
    const number = readdirSync(folder).filter((file) => file.startsWith('points-')).length + 1;
    const file = join(realpathSync(folder), `points-${number}.jsonl`);
    writeFileSync(file, points.map((point) => `${JSON.stringify(assignmentOf(point, manner))}\n`).join(''));
    const words = [...command, 'sweep', 'task', file, '--jobs', String(jobs), '--shard'];
    const script = join(folder, 'array.sh');
    writeFileSync(script, `#!/bin/sh\nexec ${words.map(quoted).join(' ')} "$SLURM_ARRAY_TASK_ID/${count}"\n`);
    const log = `--output=${join(realpathSync(folder), 'task-%a.log')}`;
    const own = [`--array=1-${count}`, '--requeue', `--cpus-per-task=${jobs}`, log, '--open-mode=append'];
    const array = await this.#client.submit(name, script, [...own, ...sbatch]);
    onNotice(`Submitted array ${array} of ${count} tasks (${name}).`);
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new ConfigurationError('folder of tasks', folder, `a folder that can be made (${codeOf(error)})`);
  }
}

/** Of the folder's path, so that a sweep finds its array again and no other one. */
const nameOf = (folder: string): string =>
  `hca-sweep-${createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 12)}`;

/** As one word of a shell. */
const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The last line of a log of a task. */
function lastWords(folder: string): string {
  const logs = readdirSync(folder).filter((name) => name.endsWith('.log'));
  const lines = logs.flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n').slice(-1));
  return lines.find((line) => line !== '') ?? 'nothing';
}
