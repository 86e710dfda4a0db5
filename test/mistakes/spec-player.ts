/**
 * Runs one spec in a separate source tree, in a separate process. The spec finds a mistake if it fails in the tree with the
 * mistake, and passes in the unchanged tree.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import type { Trial } from './trial.ts';

/** A spec that takes longer is considered endless, which is a failure. */
const specLimitMs = 300_000;
const failurePattern = /^\s*FAIL\s+(.*)$/m;

/** The failures of specs in the unchanged source; each spec is run once. */
export class UnchangedSpecs {
  readonly #tree: SourceTree;
  readonly #failures = new Map<string, Promise<string | undefined>>();

  constructor(tree: SourceTree) {
    this.#tree = tree;
  }

  /**
   * Returns the first failure; undefined if the spec passes.
   * @throws Error if the spec did not run at all
   */
  failureOf(spec: string): Promise<string | undefined> {
    const known = this.#failures.get(spec) ?? failureIn(this.#tree, spec, specLimitMs);
    this.#failures.set(spec, known);
    return known;
  }
}

/**
 * Searches for a mistake by the spec that it names. A spec that fails in the unchanged source finds nothing.
 * @throws Error if the spec did not run at all
 */
export async function trySpec(
  mistake: Mistake & { readonly spec: string },
  tree: SourceTree,
  unchanged: UnchangedSpecs,
  limitMs: number = specLimitMs,
): Promise<Trial> {
  const { spec } = mistake;
  if ((await unchanged.failureOf(spec)) !== undefined)
    return { mistake, find: undefined, stories: 0, seconds: 0 };
  using _change = tree.make(mistake);
  const beganMs = performance.now();
  const what = await failureIn(tree, spec, limitMs);
  const seconds = (performance.now() - beganMs) / 1000;
  const find = what === undefined ? undefined : { by: 'spec', seed: 0, scene: spec, what };
  return { mistake, find, stories: 0, seconds };
}

/** Runs a spec in threads, so that the signal that ends an endless one leaves no process of a worker. */
async function failureIn({ folder }: SourceTree, spec: string, limitMs: number): Promise<string | undefined> {
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const options = ['--pool=threads', '--maxWorkers=1', '--bail=1'];
  const child = spawn(process.execPath, [vitest, 'run', spec, ...options], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', NODE_COMPILE_CACHE: join(folder, '.compiled') },
  });
  let isEndless = false;
  const limit = setTimeout(() => {
    isEndless = true;
    child.kill('SIGKILL');
  }, limitMs);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
  await once(child, 'close');
  clearTimeout(limit);
  if (child.exitCode === 0) return undefined;
  const what = isEndless ? `took longer than ${limitMs / 1000} s` : failurePattern.exec(text)?.[1];
  if (what === undefined) throw new Error(`${spec} did not run: ${text.slice(-2000)}`);
  return what;
}
