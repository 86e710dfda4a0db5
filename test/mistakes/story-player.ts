/** Plays stories in a separate source tree, in a separate process, one after another. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Finding } from '../../torture/index.ts';
import type { SourceTree } from './source-tree.ts';

/** A story that takes longer is considered endless. */
const storyLimitMs = 120_000;

/** A process that must end does so by itself, and so leaves its compile cache to the next one; otherwise it is killed. */
const endLimitMs = 5000;

export interface PlayedStory {
  readonly findings: readonly Finding[];
  /** Processor time; including the start of the process for the first story. */
  readonly cpuMs: number;
}

/** A seed, alone or after the name of a scene, or after `served` or `fabric`. */
export type StoryName = number | `${string} ${number}`;

export class StoryPlayer implements AsyncDisposable {
  readonly #tree: SourceTree;
  #process: PlayingProcess | undefined;

  constructor(tree: SourceTree) {
    this.#tree = tree;
  }

  /** A process that crashes, or a story that does not end, is a finding; the next story gets a new process. */
  async play(seed: StoryName): Promise<PlayedStory> {
    this.#process ??= new PlayingProcess(this.#tree);
    const played = await this.#process.play(seed);
    if (typeof played !== 'string') return played;
    await this[Symbol.asyncDispose]();
    return { findings: [{ judge: 'machine', what: played }], cpuMs: storyLimitMs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.end();
    this.#process = undefined;
  }
}

class PlayingProcess {
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

  /** @returns why the process is no longer usable, if so */
  async play(seed: StoryName): Promise<PlayedStory | string> {
    let isEndless = false;
    const limit = setTimeout(() => {
      isEndless = true;
      this.#child.kill('SIGKILL');
    }, storyLimitMs);
    this.#child.stdin?.write(`${seed}\n`);
    const { value, done } = await this.#lines.next();
    clearTimeout(limit);
    if (done !== true) return JSON.parse(value) as PlayedStory;
    if (isEndless) return `the model had not come back after ${storyLimitMs / 1000} s`;
    const error = this.#complaint.split('\n').find((line) => /error/i.test(line)) ?? this.#complaint;
    return error.trim() || 'the process ended';
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), endLimitMs);
    await this.#closed;
    clearTimeout(limit);
  }
}
