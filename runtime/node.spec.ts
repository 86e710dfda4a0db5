import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { expect, it } from 'vitest';

/** Number of cores that a separate process uses, for a value of the variable. */
function coresWith(variable: Record<string, string>): number {
  const { HCA_CORES: _inherited, ...environment } = process.env;
  const modules = ['base/index.ts', 'runtime/node.ts'].map((path) => new URL(`../${path}`, import.meta.url));
  const program = `await import('${modules[1]}'); const { runtime } = await import('${modules[0]}'); console.log(runtime().coreCount);`;
  const args = ['--input-type=module', '--eval', program];
  const env = { ...environment, ...variable };
  return Number(execFileSync(process.execPath, args, { env, encoding: 'utf8' }));
}

it('the cores available to threads are those of the computer, or as many as HCA_CORES gives', () => {
  expect(coresWith({})).toBe(availableParallelism());
  expect(coresWith({ HCA_CORES: '1' })).toBe(1);
});
