/**
 * Points as tasks of a Slurm job array.
 *
 *     points ─► points-3.jsonl ─► sbatch --array=1-N ─► task i: points i, i+N, … ─► task-i-1.jsonl ─► outcomes ─► rows
 *                    ▲                                     │ killed                    (a file for each start)
 *                    └── those without an outcome ◄── the array has ended
 *
 * All persistent state is in the folder, and the array's name is derived from its path. A sweep that was killed and
 * restarted reads the results so far, and waits for an existing array before it submits another. So a point runs twice
 * only if its task was killed.
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
  /** Greatest number of tasks of an array. */
  readonly taskCount: number;
  /** Points that a task runs at once. */
  readonly jobs: number;
  /** More options of sbatch. */
  readonly sbatch: readonly string[];
  /** The command that starts hca on all machines. */
  readonly command: readonly string[];
  readonly manner: RunManner;
  /** Starts points again that failed or were lost in arrays before this run. */
  readonly isFailedRetried?: boolean;
  readonly onNotice: (text: string) => void;
  readonly client?: SlurmClient;
  /** Interval at which files are read, in milliseconds; Slurm is queried every tenth time. */
  readonly pollMs?: number;
}

const defaultPollMs = 1000;
const pollsOfFiles = 10;
/** Greatest number of consecutive failed queries to Slurm, whose controller may restart. */
const failuresMax = 6;
/** Greatest number of consecutive arrays that end without output of any task. */
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
    // On a shared disk, files that a machine still has open disappear after a while.
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Running tasks skip failed points, which start again after the tasks have ended. */
  async #forgetFailures(name: string, left: ReadonlyMap<string, unknown>): Promise<void> {
    const { folder, onNotice, pollMs = defaultPollMs } = this.#options;
    for (let isFirst = true; await this.#isQueued(name); isFirst = false) {
      if (isFirst) onNotice(`Failed points run again when the existing array has ended: ${name}.`);
      await sleep(pollsOfFiles * pollMs);
    }
    forgetFailures(folder, left);
  }

  /** Waits until the array has ended, or all points have. */
  async #watched(name: string, left: ReadonlyMap<string, unknown>, collect: () => void): Promise<void> {
    for (let poll = 1; left.size > 0; poll++) {
      await sleep(this.#options.pollMs ?? defaultPollMs);
      collect();
      if (poll % pollsOfFiles !== 0 || (await this.#isQueued(name))) continue;
      // The tasks' last output may need time to become visible on this machine.
      await sleep(this.#options.pollMs ?? defaultPollMs);
      collect();
      return;
    }
  }

  /** Tasks without remaining work end by themselves, or are cancelled. */
  async #ended(name: string): Promise<void> {
    for (let poll = 0; poll < pollsOfFiles; poll++) {
      if (!(await this.#isQueued(name))) return;
      await sleep(this.#options.pollMs ?? defaultPollMs);
    }
    await this.#client.cancel(name);
  }

  /** @throws RunError for an array that will not run by itself, and if Slurm repeatedly does not answer */
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
        `Slurm holds the array (${first.reason}): scontrol release, or scancel --name=${name}, and the same command continues`,
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

/** Derived from the folder's path, so that a sweep finds its own array and no other. */
const nameOf = (folder: string): string =>
  `hca-sweep-${createHash('sha256').update(realpathSync(folder)).digest('hex').slice(0, 12)}`;

/** Quoted as one shell word. */
const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** The last line of a task's log. */
function lastWords(folder: string): string {
  const logs = readdirSync(folder).filter((name) => name.endsWith('.log'));
  const lines = logs.flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n').slice(-1));
  return lines.find((line) => line !== '') ?? 'nothing';
}
