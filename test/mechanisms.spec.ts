/** The table of mechanisms in docs/explanation/architecture.md: a reader of the specifications finds each by folder and file. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const textOf = (path: string): string => readFileSync(`${root}${path}`, 'utf8');
const quoted = (cell: string): readonly string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text!);

const [, section = ''] = textOf('docs/explanation/architecture.md').split('## Where to find a mechanism\n');
const rows = section
  .split('\n## ')[0]!
  .split('\n')
  .filter((line) => line.startsWith('| ') && !/^\| (mechanism|---)/.test(line))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, mechanism, files, names]) => ({
    mechanism: mechanism!,
    files: quoted(files!),
    names: quoted(names!),
  }));

describe('the table of mechanisms', () => {
  it('has the twelve that readers look for', () => {
    expect(rows.length).toBeGreaterThanOrEqual(12);
  });

  it.each(rows)('names files that there are, and a name in each: $mechanism', ({ files, names }) => {
    expect(files.length).toBe(names.length);
    for (const [index, file] of files.entries()) {
      expect(existsSync(`${root}${file}`), file).toBe(true);
      expect(textOf(file)).toMatch(new RegExp(`\\b${names[index]}\\b`));
    }
  });
});
