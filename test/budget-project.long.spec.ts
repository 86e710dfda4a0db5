/** The project of examples/budget-project, in a separate folder with the packed package: budgets from JavaScript and TypeScript. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { installPacked, repository } from './packed-package.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 480_000 });

const require = createRequire(import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'hca-budgets-'));
const baseline = join(folder, '__budgets__', 'store.json');

/** The available compilers: the repository's, and the JavaScript one used by its schema generator. */
const compilers = [repository, require.resolve('ts-json-schema-generator')].map((from) => {
  const manifest = createRequire(join(from, 'from.js')).resolve('typescript/package.json');
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  return [version, dirname(manifest)] as const;
});

interface Ended {
  readonly status: number | null;
  readonly text: string;
}

function run(script: string, args: readonly string[], environment: Record<string, string> = {}): Ended {
  const { VITEST: _vitest, VITEST_POOL_ID: _pool, VITEST_WORKER_ID: _worker, ...inherited } = process.env;
  const env = { ...inherited, CI: 'true', NO_COLOR: '1', ...environment };
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...args], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  return { status, text: `${stdout}${stderr}` };
}

const vitest = join(folder, 'node_modules', 'vitest', 'vitest.mjs');
const tests = (args: readonly string[] = [], environment = {}): Ended =>
  run(vitest, ['run', ...args], environment);

let ended: Ended | undefined;
/** All cases that must fail, in one run: operations that exceed their budgets, and empty budgets. */
function dearer(): Ended {
  if (ended !== undefined) return ended;
  const empty = join(folder, 'empty.test.js');
  writeFileSync(
    empty,
    `import { expect, test } from 'hca-emulator/vitest';
    test('no operation', () => expect([]).toCost({ mmioWrites: 1 }));
    test('no cost', () => expect({}).toCost({ mmioWrites: 1 }));`,
  );
  ended = tests(['store.test.js', 'empty.test.js'], { PUTS: '2' });
  rmSync(empty);
  return ended;
}

beforeAll(() => {
  cpSync(join(repository, 'examples', 'budget-project'), folder, { recursive: true });
  installPacked(folder, ['vitest']);
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('a project with budgets', () => {
  it('has its operations checked against them, from JavaScript and from TypeScript', () => {
    const { status, text } = tests();
    expect(text).toContain('3 passed');
    expect(status).toBe(0);
  });

  it.each(compilers)('has types that TypeScript %s takes at its strictest', (_version, compiler) => {
    const { status, text } = run(join(compiler, 'bin', 'tsc'), ['--noEmit']);
    expect(text).toBe('');
    expect(status).toBe(0);
  });

  it('fails when an operation exceeds its budget, and names the figure, the operation and its parts', () => {
    const before = readFileSync(baseline, 'utf8');
    const { status, text } = dearer();
    expect(status).not.toBe(0);
    // Only -u writes the baseline.
    expect(readFileSync(baseline, 'utf8')).toBe(before);
    expect(text).toContain('operation put (number 1 of 4) costs otherwise:');
    expect(text).toMatch(/mmioWrites +expected 1, counted 2/);
    expect(text).toMatch(/dmaReads +expected 2, counted 4/);
    expect(text).not.toMatch(/systemCalls +expected/);
    expect(text).toContain('reads: wqeRead 2, payloadRead 2; writes: cqe 2');
    // The baseline as a diff.
    expect(text).toMatch(/-\s+"mmioWrites": 1,\n\s*\+\s+"mmioWrites": 2,/);
  });

  it('has its baseline written by -u', () => {
    const before = readFileSync(baseline, 'utf8');
    expect(tests(['store.test.js', '-t', 'baseline', '-u'], { PUTS: '2' }).status).toBe(0);
    expect(JSON.parse(readFileSync(baseline, 'utf8'))).toMatchObject({
      put: [{ operations: 4, workRequests: 2, mmioWrites: 2 }],
      get: [{ operations: 4, workRequests: 1, mmioWrites: 1 }],
    });
    writeFileSync(baseline, before);
  });

  it('reports budgets without an operation or cost', () => {
    const { text } = dearer();
    expect(text).toContain('no operation of this kind was marked');
    expect(text).toContain('expected an operation, or a list of them');
    expect(text).toMatch(/FAIL +empty.test.js > no operation/);
    expect(text).toMatch(/FAIL +empty.test.js > no cost/);
  });
});
