import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTemporaryFolder } from './temporary-folder.ts';

let folder: string;
let before: string | undefined;

beforeEach(() => {
  before = process.env['TMPDIR'];
  folder = mkdtempSync(join(tmpdir(), 'temporary-'));
  process.env['TMPDIR'] = folder;
});
afterEach(() => {
  if (before === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = before;
  rmSync(folder, { recursive: true });
});

/** A process that creates a folder and prints its path; then it waits to be killed, or ends by itself. */
async function makerOf(
  end: string,
): Promise<{ path: string; kill: (signal: NodeJS.Signals) => Promise<void> }> {
  const module = join(import.meta.dirname, 'temporary-folder.ts');
  const text = `import { makeTemporaryFolder } from ${JSON.stringify(module)};
console.log(makeTemporaryFolder('kind-').path); ${end}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  const [bytes] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    path: bytes.toString().trim(),
    kill: async (signal) => {
      child.kill(signal);
      await ended;
    },
  };
}
const waits = 'setInterval(() => {}, 1000)';

describe('a temporary folder', { timeout: 60_000 }, () => {
  it('is removed on request, and when its process ends', async () => {
    const { path, remove } = makeTemporaryFolder('kind-');
    mkdirSync(join(path, 'inner'));
    remove();
    remove();
    expect(existsSync(path)).toBe(false);
    const child = await makerOf('');
    await child.kill('SIGCONT');
    expect(existsSync(child.path)).toBe(false);
  });

  it('of a killed process is removed by the next process that creates one, others are not', async () => {
    const [dead, alive] = [await makerOf(waits), await makerOf(waits)];
    const foreign = mkdtempSync(join(folder, 'kind-'));
    const elsewhere = mkdtempSync(join(folder, 'kind-'));
    await dead.kill('SIGKILL');
    expect(existsSync(dead.path)).toBe(true);
    const owner = JSON.parse(readFileSync(join(dead.path, 'owner'), 'utf8')) as object;
    writeFileSync(join(elsewhere, 'owner'), JSON.stringify({ ...owner, namespace: 'pid:[1]' }));
    const { remove } = makeTemporaryFolder('kind-');
    expect([dead.path, alive.path, foreign, elsewhere].map((path) => existsSync(path))).toEqual([
      false,
      true,
      true,
      true,
    ]);
    remove();
    await alive.kill('SIGKILL');
  });

  it('of a dead process whose number another process now has is removed', () => {
    const mine = makeTemporaryFolder('kind-');
    const owner = JSON.parse(readFileSync(join(mine.path, 'owner'), 'utf8')) as object;
    writeFileSync(join(mine.path, 'owner'), JSON.stringify({ ...owner, started: '1' }));
    makeTemporaryFolder('kind-').remove();
    expect(existsSync(mine.path)).toBe(false);
    mine.remove();
  });
});
