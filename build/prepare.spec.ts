/** Messages of a checkout without its build tools. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'hca-prepare-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('without development dependencies the builder names the missing one, and fails', () => {
  for (const name of ['build', 'package.json'])
    cpSync(join(root, name), join(folder, name), { recursive: true });
  const rest = readdirSync(root).filter(
    (name) => !/^\.|^(build|package\.json|node_modules|dist)$/.test(name),
  );
  for (const name of rest) symlinkSync(join(root, name), join(folder, name));
  const { status, stderr } = spawnSync(process.execPath, [join(folder, 'build/prepare.js')], {
    encoding: 'utf8',
  });
  expect(status).toBe(1);
  expect(stderr).toMatch(
    /^hca-emulator: not built\. Building takes rolldown, .* npm ci without --omit=dev .*\n$/,
  );
});
