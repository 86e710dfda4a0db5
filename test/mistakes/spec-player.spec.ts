import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Mistake } from './mistake.ts';
import { repositoryRoot, SourceTree } from './source-tree.ts';
import { trySpec, UnchangedSpecs } from './spec-player.ts';

const root = mkdtempSync(join(tmpdir(), 'hca-spec-player-'));
let tree: SourceTree;
let unchanged: UnchangedSpecs;

/** A mistake of a source of one line, and the spec that is to find it. */
function mistakeOf(replace: string, spec: string): Mistake & { readonly spec: string } {
  return {
    name: 'test',
    what: 'The double is wrong.',
    kind: 'wrong length',
    file: 'twice.ts',
    find: '2 * number',
    replace,
    spec,
  };
}

function writeSpec(name: string, expected: number): void {
  const head = "import { expect, it } from 'vitest';\nimport { twice } from './twice.ts';\n";
  writeFileSync(join(root, name), `${head}it('doubles', () => expect(twice(3)).toBe(${expected}));\n`);
}

beforeAll(() => {
  symlinkSync(join(repositoryRoot, 'node_modules'), join(root, 'node_modules'));
  writeFileSync(join(root, 'twice.ts'), 'export const twice = (number: number): number => 2 * number;\n');
  writeSpec('right.spec.ts', 6);
  writeSpec('red.spec.ts', 7);
  tree = new SourceTree(root);
  unchanged = new UnchangedSpecs(tree);
});

afterAll(() => {
  tree[Symbol.dispose]();
  rmSync(root, { recursive: true });
});

describe('a spec that a mistake names', () => {
  it('finds the mistake if it fails only with it', async () => {
    const { find } = await trySpec(mistakeOf('3 * number', 'right.spec.ts'), tree, unchanged);
    expect(find).toMatchObject({ by: 'spec', what: 'right.spec.ts > doubles' });
  });

  it('misses a mistake without an effect', async () => {
    const { find } = await trySpec(mistakeOf('number + number', 'right.spec.ts'), tree, unchanged);
    expect(find).toBeUndefined();
  });

  it('finds nothing if it fails in the unchanged source', async () => {
    const { find } = await trySpec(mistakeOf('3 * number', 'red.spec.ts'), tree, unchanged);
    expect(find).toBeUndefined();
    expect(await unchanged.failureOf('red.spec.ts')).toBe('red.spec.ts > doubles');
  });

  it('finds the mistake if it does not end', async () => {
    const endless = mistakeOf('{ for (;;); }', 'right.spec.ts');
    const { find } = await trySpec(endless, tree, unchanged, 5000);
    expect(find?.what).toBe('took longer than 5 s');
  });

  it('must run', async () => {
    await expect(unchanged.failureOf('absent.spec.ts')).rejects.toThrow('absent.spec.ts did not run');
  });
});
