/** Runs one spec in a separate source tree: it is to fail there, because of the mistake in the tree. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Mistake } from './mistake.ts';
import type { SourceTree } from './source-tree.ts';
import type { Trial } from './trial.ts';

/** A spec that takes longer is considered endless, and so has found the mistake. */
const specLimitMs = 300_000;
const failurePattern = /^\s*FAIL\s+(.*)$/m;

/** @throws Error if the spec did not run at all */
export async function trySpec(
  mistake: Mistake & { readonly spec: string },
  tree: SourceTree,
): Promise<Trial> {
  using _change = tree.make(mistake);
  const beganMs = performance.now();
  const { exitCode, text } = await runSpec(mistake.spec, tree);
  const seconds = (performance.now() - beganMs) / 1000;
  const what = failurePattern.exec(text)?.[1];
  if (exitCode !== 0 && what === undefined)
    throw new Error(`${mistake.spec} did not run: ${text.slice(-2000)}`);
  const find = exitCode === 0 ? undefined : { by: 'spec', seed: 0, scene: mistake.spec, what: what! };
  return { mistake, find, stories: 0, seconds };
}

async function runSpec(
  spec: string,
  { folder }: SourceTree,
): Promise<{ readonly exitCode: number | null; readonly text: string }> {
  const vitest = join(folder, 'node_modules/vitest/vitest.mjs');
  const child = spawn(process.execPath, [vitest, 'run', spec, '--maxWorkers=1', '--bail=1'], {
    cwd: folder,
    env: { ...process.env, NO_COLOR: '1', NODE_COMPILE_CACHE: join(folder, '.compiled') },
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), specLimitMs);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
  await once(child, 'close');
  clearTimeout(limit);
  return { exitCode: child.exitCode, text };
}
