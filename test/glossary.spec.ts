/**
 * Identifiers of the sources contain no word that docs/reference/glossary.md says differently, and comments have no more of some phrases than
 * they had: plain English has another word for each.
 */
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

const isSpec = (path: string): boolean => /\.spec\.ts$/.test(path);

const filesOf = (all: readonly string[]): readonly string[] =>
  all.flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => `${folder}/${path}`),
  );

const textOf = (file: string): string => readFileSync(`${root}${file}`, 'utf8');

/** Comments of a source, each on one line and without its marks. Lines that begin with two slashes in a row are one. */
const commentsIn = (source: string): readonly string[] =>
  [...source.matchAll(/\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|[ \t]\/\/ .*/gm)].map(([comment]) =>
    comment
      .replace(/^[ \t]*(?:\/\*\*?|\/\/|\*(?!\/))|\*\/$/gm, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  );

const phrases = {
  'for ever': /\bfor ever\b/i,
  whoever: /\bwhoever\b/i,
  'there is none': /\bthere is none\b/i,
  'What at the beginning': /^What\b/,
  'Of at the beginning of a sentence': /(?:^|\. )Of\b/,
  'Those at the beginning': /^(?:Those|That of)\b/,
  behind: /\bbehind\b/i,
} as const;
type Phrase = keyof typeof phrases;

/**
 * Number of comments that may have the phrase: two say "behind" of topology, where it is right. Write instead: indefinitely; the name of the
 * actor; absent; a sentence that begins with its subject; the thing of which it says something; after.
 */
const allowed: Readonly<Record<Phrase, number>> = {
  'for ever': 0,
  whoever: 0,
  'there is none': 0,
  'What at the beginning': 0,
  'Of at the beginning of a sentence': 0,
  'Those at the beginning': 0,
  behind: 2,
};

describe('identifiers', () => {
  it('have the words of the glossary', () => {
    expect(rules.size).toBeGreaterThan(30);
    const files = filesOf(folders).filter((file) => !isSpec(file));
    expect(files.length).toBeGreaterThan(400);
    const offences = files.flatMap((file) =>
      offencesIn(textOf(file)).map((offence) => `${file}: ${offence}`),
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

describe('comments', () => {
  const comments = filesOf([...folders, 'userlib', 'torture', 'test', 'examples', 'reference'])
    .filter((file) => file !== 'test/glossary.spec.ts')
    .flatMap((file) => commentsIn(textOf(file)));

  it.each(Object.keys(phrases) as Phrase[])('have no more of this phrase than they had: %s', (phrase) => {
    expect(comments.length).toBeGreaterThan(10_000);
    const found = comments.filter((comment) => phrases[phrase].test(comment));
    expect(found.length, found.join('\n')).toBeLessThanOrEqual(allowed[phrase]);
  });

  it('are found with the phrases that they have, over the ends of lines', () => {
    const source = `
      /** What is lent for
       * ever. */
      const waits = 'whoever'; // There is none behind it.
      // An address of whoever asks:
      // What comes next is no beginning.
      const url = 'http://behind';
      /** Of a READ: the last segment. */
      /** Queues. Of two
       * rows, one counts. */
      /** Those of the card. */ // That of the WQE.
      // Bytes of a request, and those of its answer. Often none.
    `;
    const found = commentsIn(source).map((comment) =>
      Object.entries(phrases).flatMap(([phrase, pattern]) => (pattern.test(comment) ? [phrase] : [])),
    );
    expect(found).toEqual([
      ...[['for ever', 'What at the beginning'], ['there is none', 'behind'], ['whoever']],
      ...[['Of at the beginning of a sentence'], ['Of at the beginning of a sentence']],
      ...[['Those at the beginning'], ['Those at the beginning'], []],
    ]);
  });
});
