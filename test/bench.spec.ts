/** The benchmark's output as a script reads it. Its measurements are not asserted, since they depend on the computer. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it, vi } from 'vitest';

vi.setConfig({ testTimeout: 120_000 });

it('npm run bench prints each figure with name, value, unit and calibration, and nothing else on standard output', () => {
  const run = fileURLToPath(new URL('../build/run.ts', import.meta.url));
  const out = execFileSync(process.execPath, [run, 'bench/main', '--only', 'no benchmark', '--json', '-'], {
    encoding: 'utf8',
  });
  const figure = (name: string, unit: string): unknown => ({
    name,
    value: expect.any(Number) as number,
    unit: expect.stringContaining(unit) as string,
    calibration: expect.any(Number) as number,
  });
  expect(JSON.parse(out)).toEqual([figure('memory', 'MiB')]);
});
