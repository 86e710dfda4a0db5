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
  it('has the twenty-five that readers look for, each once', () => {
    const names = rows.map(({ mechanism }) => mechanism);
    expect(names).toHaveLength(25);
    expect(new Set(names).size).toBe(names.length);
  });

  /** The second step ends at the declaration of the name, not at a mention. */
  const declares = (text: string, name: string): boolean =>
    new RegExp(
      [
        `\\b(?:class|function\\*?|const|get|type|interface) ${name}\\b`,
        `^ *(?:readonly |async |static )*#?${name}(?:<.*>)?[(:?!]`,
        `^ *(?:readonly |static )*#?${name} =`,
      ].join('|'),
      'm',
    ).test(text);

  it.each(rows)('leads to a file, and to the declaration in it: $mechanism', ({ files, names }) => {
    expect(files.length).toBe(names.length);
    for (const [index, file] of files.entries()) {
      expect(existsSync(`${root}${file}`), file).toBe(true);
      expect(declares(textOf(file), names[index]!), `${names[index]} in ${file}`).toBe(true);
    }
  });
});
