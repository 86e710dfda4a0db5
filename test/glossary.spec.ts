/** Identifiers of the sources contain no word that docs/reference/glossary.md says differently. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const folders = [
  ...[
    'base',
    'sim',
    'abi',
    'wire',
    'hw',
    'host',
    'driver',
    'userlib',
    'net',
    'protocol',
    'analyser',
    'build',
    'runtime',
  ],
  ...['lab', 'bench', 'machine', 'experiments', 'explain', 'guests', 'cli'],
];

interface Rule {
  readonly say: string;
  readonly except: ReadonlySet<string>;
}

/** The last table of the page: a row for words that mean one thing. */
function rulesOf(page: string): ReadonlyMap<string, Rule> {
  const [, section = ''] = page.split('## Words that identifiers do not contain');
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !/^\| (not|---)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  return new Map(
    rows.flatMap(([, words, say, except]) => {
      const kept = new Set([...except!.matchAll(/`(\w+)`/g)].map(([, name]) => name!));
      return words!.split(', ').map((word) => [word, { say: say!, except: kept }] as const);
    }),
  );
}

const rules = rulesOf(readFileSync(`${root}docs/reference/glossary.md`, 'utf8'));

/** Names in a source, without those in comments and strings. */
function identifiersIn(source: string): ReadonlySet<string> {
  const code = source
    .replace(/\/\*[\s\S]*?\*\//g, ' ')
    .replace(/(^|\s)\/\/.*$/gm, ' ')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, "''")
    .replace(/`(?:[^`\\]|\\.)*`/g, (text) =>
      [...text.matchAll(/\$\{([^}]*)\}/g)].map(([, part]) => part).join(' '),
    );
  return new Set(code.match(/[A-Za-z_]\w*/g));
}

const wordsOf = (name: string): readonly string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .split('_');

const offencesIn = (source: string): string[] =>
  [...identifiersIn(source)].flatMap((name) =>
    wordsOf(name).flatMap((word) => {
      const rule = rules.get(word);
      return rule === undefined || rule.except.has(name) ? [] : [`${name}: not "${word}" but ${rule.say}`];
    }),
  );

const isSource = (path: string): boolean => /\.ts$/.test(path) && !/\.spec\.ts$/.test(path);

describe('identifiers', () => {
  it('have the words of the glossary', () => {
    expect(rules.size).toBeGreaterThan(30);
    const files = folders.flatMap((folder) =>
      readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
        .filter(isSource)
        .map((path) => `${folder}/${path}`),
    );
    expect(files.length).toBeGreaterThan(400);
    const offences = files.flatMap((file) =>
      offencesIn(readFileSync(`${root}${file}`, 'utf8')).map((offence) => `${file}: ${offence}`),
    );
    expect(offences).toEqual([]);
  });

  it('are found in code only, whole or in parts, but for those that the glossary excepts', () => {
    expect(
      offencesIn(`
        /** What is lent. */ // nobody
        const isLent = 'stray' + \`\${vainLooks} loans\`;
        class { firstByte = LENT_BYTES; lookUp() {} }
      `).map((offence) => offence.split(':')[0]),
    ).toEqual(['isLent', 'vainLooks', 'vainLooks', 'LENT_BYTES']);
  });
});
