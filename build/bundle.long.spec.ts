/** The built form behaves like the sources. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import { builtCheckout } from './checkout.ts';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'hca-bundle-'));
const built = builtCheckout()!;
afterAll(() => rmSync(folder, { recursive: true }));

/** The report of moving a file, run from the sources or from the built form. */
async function reportOf(main: string, partition: string): Promise<string> {
  const file = join(folder, `${main.replaceAll(/\W/g, '-')}.json`);
  const command = ['move', 'LICENSE', '--traditional', 'none', '--partition', partition, '--report', file];
  await promisify(execFile)(process.execPath, [main, ...command], { cwd: root });
  return readFileSync(file, 'utf8');
}

describe('the built form', () => {
  it('gives the same report as the sources, in one thread and in several', async () => {
    const source = await reportOf(join(root, 'cli/main.ts'), 'single');
    expect(JSON.parse(source)).toHaveProperty('checks.balanced', true);
    for (const partition of ['single', 'per-node'])
      expect(await reportOf(join(built, 'cli/main.js'), partition), partition).toBe(source);
  });

  it('holds each module once', () => {
    const files = ['model.js', 'rest.js', 'cli/main.js', 'runtime/part-worker.js'];
    const modules = files.flatMap(
      (file) => readFileSync(join(built, file), 'utf8').match(/^\/\/ \w[\w/-]*\.ts$/gm)!,
    );
    expect(modules).toContain('// hw/hca/hca.ts');
    expect(new Set(modules).size).toBe(modules.length);
  });
});
