/**
 * Files that tasks write and the sweep reads: one for each start of a task, in the sweep's folder, as JSON lines.
 *
 *     {"begun":"cf53b9…"}
 *     {"ended":"cf53b9…","outcome":{"status":"done","figures":{…}}}
 *
 * A file has one writer, which may be killed at any instant: an incomplete line is not read.
 */
import { closeSync, existsSync, fsyncSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigurationError, codeOf } from '../../../base/index.ts';
import { appendWhole, replaceFile } from '../../../runtime/files.ts';
import { outcomeFrom } from '../assignment.ts';
import type { Outcome } from '../row.ts';

/** The file of one start of a task. */
export class TaskFile implements Disposable {
  readonly #handle: number;

  /** @param task number of the task, which may have been started before */
  constructor(folder: string, task: number) {
    this.#handle = newFile(folder, task);
  }

  begin(hash: string): void {
    this.#write({ begun: hash });
  }

  /** The data is on the disk when this returns: other machines see it. */
  end(hash: string, outcome: Outcome): void {
    this.#write({ ended: hash, outcome });
    fsyncSync(this.#handle);
  }

  [Symbol.dispose](): void {
    closeSync(this.#handle);
  }

  #write(line: object): void {
    appendWhole(this.#handle, `${JSON.stringify(line)}\n`);
  }
}

/** Upper bound of the starts of one task. */
const startsOfTaskMax = 100_000;

function newFile(folder: string, task: number): number {
  for (let start = 1; start <= startsOfTaskMax; start++) {
    const file = join(folder, `task-${task}-${start}.jsonl`);
    try {
      return openSync(file, 'wx');
    } catch (error) {
      if (codeOf(error) !== 'EEXIST')
        throw new ConfigurationError('output file', file, `a file that can be written (${codeOf(error)})`);
    }
  }
  throw new ConfigurationError('folder of tasks', folder, `at most ${startsOfTaskMax} starts of a task`);
}

const isTaskFile = (name: string): boolean => /^task-\d+-\d+\.jsonl$/.test(name);

/** Removes entries of points that failed or have not ended. Must be called while no task writes. */
export function forgetFailures(folder: string, points: ReadonlyMap<string, unknown>): void {
  const outcomes = new TaskFiles(folder).newOutcomes();
  const over = new Set(outcomes.flatMap(([hash, { status }]) => (status === 'failed' ? [] : [hash])));
  for (const name of readdirSync(folder).filter(isTaskFile)) {
    const file = join(folder, name);
    const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
    const kept = lines.filter((line) => {
      const { begun, ended = begun } = objectOf(line);
      return typeof ended === 'string' && (over.has(ended) || !points.has(ended));
    });
    replaceFile(file, kept.map((line) => `${line}\n`).join(''));
  }
}

/** Reads new entries of the files in a folder. */
export class TaskFiles {
  readonly #folder: string;
  /** Bytes read of each file, in whole lines. */
  readonly #read = new Map<string, number>();
  /** Number of starts of each point. */
  readonly #begun = new Map<string, number>();
  /** Whole lines that have been read. */
  lineCount = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Returns the number of times that a point was started. */
  startsOf(hash: string): number {
    return this.#begun.get(hash) ?? 0;
  }

  /** Outcomes that were not read before. */
  newOutcomes(): [hash: string, outcome: Outcome][] {
    const names = existsSync(this.#folder) ? readdirSync(this.#folder) : [];
    return names.filter(isTaskFile).flatMap((name) => this.#newOf(name));
  }

  #newOf(name: string): [string, Outcome][] {
    const from = this.#read.get(name) ?? 0;
    const bytes = bytesFrom(join(this.#folder, name), from);
    const end = bytes.lastIndexOf('\n') + 1;
    this.#read.set(name, from + end);
    const lines = bytes.toString('utf8', 0, end).split('\n').slice(0, -1);
    this.lineCount += lines.length;
    return lines.flatMap((line) => this.#outcomeOf(line));
  }

  #outcomeOf(line: string): [string, Outcome][] {
    const { begun, ended, outcome } = objectOf(line);
    if (typeof begun === 'string') this.#begun.set(begun, this.startsOf(begun) + 1);
    const found = outcomeFrom(outcome);
    return typeof ended === 'string' && found !== undefined ? [[ended, found]] : [];
  }
}

function bytesFrom(file: string, from: number): Buffer {
  const handle = openSync(file, 'r');
  try {
    const pieces: Buffer[] = [];
    for (let at = from; ; ) {
      const piece = Buffer.alloc(65_536);
      const count = readSync(handle, piece, 0, piece.length, at);
      if (count === 0) return Buffer.concat(pieces);
      pieces.push(piece.subarray(0, count));
      at += count;
    }
  } finally {
    closeSync(handle);
  }
}

/** A line that is not JSON (after a full disk) has no result: its point is missing, and runs again. */
function objectOf(line: string): Readonly<Record<string, unknown>> {
  try {
    const value = JSON.parse(line) as unknown;
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}
