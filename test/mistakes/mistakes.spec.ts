import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allMistakes } from './index.ts';
import { mistakeKinds } from './mistake.ts';
import { repositoryRoot, withMistake } from './source-tree.ts';

describe('seeded mistakes', () => {
  it('have a name each', () => {
    expect(new Set(allMistakes.map(({ name }) => name)).size).toBe(allMistakes.length);
  });

  it.each(allMistakes.map((mistake) => [mistake.name, mistake] as const))(
    '%s changes one place of its file',
    (_, mistake) => {
      const source = readFileSync(join(repositoryRoot, mistake.file), 'utf8');
      expect(withMistake(source, mistake)).not.toBe(source);
    },
  );

  it('are in files of the model', () => {
    for (const { file, kind } of allMistakes) {
      expect(file).toMatch(/^[a-z]+\/[\w/-]+\.ts$/);
      expect(mistakeKinds).toContain(kind);
    }
  });
});
