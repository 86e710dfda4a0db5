/** The built form does what the sources do. */
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

/** The report of a command, run from the sources or built. */
async function reportOf(main: string, command: readonly string[]): Promise<string> {
  const file = join(folder, `${main.replaceAll(/\W/g, '-')}.json`);
  await promisify(execFile)(process.execPath, [main, ...command, '--report', file], { cwd: root });
  return readFileSync(file, 'utf8');
}

describe('the built form', () => {
  it.each(['single', 'per-node'])('gives the report that the sources give, %s', async (partition) => {
    const command = ['move', 'LICENSE', '--traditional', 'none', '--partition', partition];
    const source = await reportOf(join(root, 'system/cli/main.ts'), command);
    expect(await reportOf(join(built, 'system/cli/main.js'), command)).toBe(source);
    expect(JSON.parse(source)).toHaveProperty('checks.balanced', true);
  });

  it('holds each module once', () => {
    const files = ['model.js', 'rest.js', 'system/cli/main.js', 'runtime/part-worker.js'];
    const modules = files.flatMap(
      (file) => readFileSync(join(built, file), 'utf8').match(/^\/\/ \w[\w/-]*\.ts$/gm)!,
    );
    expect(modules).toContain('// hw/hca/hca.ts');
    expect(new Set(modules).size).toBe(modules.length);
  });
});
