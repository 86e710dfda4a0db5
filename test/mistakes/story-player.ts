/** Plays stories in a source tree of its own, in a process of its own, one after the other. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Finding } from '../../system/torture/finding.ts';
import type { SourceTree } from './source-tree.ts';

/** A story that takes longer never ends. */
const storyLimitMs = 90_000;

/** A process that is to end does so by itself, and so leaves what it has compiled to the next one, or is ended. */
const endLimitMs = 5000;

export interface PlayedStory {
  readonly seed: number;
  readonly findings: readonly Finding[];
  /** By the clock. */
  readonly ms: number;
  /** Of the processor, since the process was started. */
  readonly cpuMs: number;
}

export class StoryPlayer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #closed: Promise<unknown>;
  #complaint = '';

  constructor({ folder }: SourceTree) {
    const child = spawn(process.execPath, [join(folder, 'test/mistakes/play.ts')], {
      cwd: folder,
      env: { ...process.env, NODE_COMPILE_CACHE: join(folder, '.compiled') },
    });
    this.#child = child;
    this.#closed = once(child, 'close');
    child.stdin.on('error', () => {});
    child.stderr.on('data', (text) => {
      this.#complaint = `${this.#complaint}${text}`.slice(-2000);
    });
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  }

  /** A process that ends badly, or a story that does not end, is a finding; nothing can be played after it. */
  async play(seed: number): Promise<PlayedStory> {
    let isEndless = false;
    const limit = setTimeout(() => {
      isEndless = true;
      this.#child.kill('SIGKILL');
    }, storyLimitMs);
    this.#child.stdin?.write(`${seed}\n`);
    const { value, done } = await this.#lines.next();
    clearTimeout(limit);
    if (done !== true) return JSON.parse(value) as PlayedStory;
    const error = this.#complaint.split('\n').find((line) => /error/i.test(line)) ?? this.#complaint;
    const what = isEndless ? `the model had not come back after ${storyLimitMs / 1000} s` : error.trim();
    return { seed, findings: [{ judge: 'machine', what }], ms: storyLimitMs, cpuMs: storyLimitMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), endLimitMs);
    await this.#closed;
    clearTimeout(limit);
  }
}
