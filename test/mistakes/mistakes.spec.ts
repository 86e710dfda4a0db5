import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sceneNames } from '../../torture/index.ts';
import { allMistakes } from './index.ts';
import { mistakeKinds } from './mistake.ts';
import { repositoryRoot, withMistake } from './source-tree.ts';
import { unknownNames } from './unknown-names.ts';

describe('seeded mistakes', () => {
  it('have a name each', () => {
    expect(new Set(allMistakes.map(({ name }) => name)).size).toBe(allMistakes.length);
  });

  it.each(allMistakes.map((mistake) => [mistake.name, mistake] as const))(
    '%s changes one place of its file, by names that the file has',
    (_, mistake) => {
      const source = readFileSync(join(repositoryRoot, mistake.file), 'utf8');
      expect(withMistake(source, mistake)).not.toBe(source);
      expect(unknownNames(source, mistake)).toEqual([]);
    },
  );

  it('name existing scenes', () => {
    const names = new Set(sceneNames);
    expect(allMistakes.flatMap(({ scene }) => scene ?? []).filter((name) => !names.has(name))).toEqual([]);
  });

  it('name existing specs', () => {
    const specs = allMistakes.flatMap(({ spec }) => spec ?? []);
    expect(specs.filter((spec) => !existsSync(join(repositoryRoot, spec)))).toEqual([]);
  });

  it('are at least sixty, of all kinds, and in every area of the model', () => {
    expect(allMistakes.length).toBeGreaterThanOrEqual(60);
    expect(new Set(allMistakes.map(({ kind }) => kind))).toEqual(new Set(mistakeKinds));
    const files = allMistakes.map(({ file }) => file);
    for (const area of [
      'hw/pcie/',
      'hw/dma/',
      'hw/hca/',
      'wire/',
      'host/',
      'driver/',
      'userlib/',
      'machine/report/',
    ])
      expect(
        files.some((file) => file.startsWith(area)),
        area,
      ).toBe(true);
  });
});
