/**
 * Citations in code and pages can be looked up: sections of the interface sheet, rows of the measurements and observations of
 * the captures lie in reference/, other documents are named in full in reference/sources.md.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { profileListing } from '../machine/profile/index.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const skipped = new Set(['node_modules', 'dist', '.git', 'reference']);
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8');

/** Every source and page outside reference/, by its path; without this file's own examples. */
const files = readdirSync(root, { withFileTypes: true })
  .filter(({ name }) => !skipped.has(name))
  .flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name];
    const below = readdirSync(join(root, entry.name), { recursive: true, encoding: 'utf8' });
    return below.map((path) => join(entry.name, path));
  })
  .filter((path) => /\.(ts|js|md)$/.test(path) && !path.endsWith('sources.spec.ts'));

/** The text of a file with each comment in one line. */
const flatTexts = new Map(
  files.map((path) => [path, textOf(path).replace(/\n[ \t]*(?:\*(?!\/)|\/\/)[ \t]?/g, ' ')]),
);

/** `file: what` for everything that `find` reports in all files. */
const inAllFiles = (find: (text: string) => string[]): string[] =>
  [...flatTexts].flatMap(([path, text]) => find(text).map((what) => `${path}: ${what}`));
/** The same in all files except specs, whose layouts are examples. */
const inAllSources = (find: (text: string) => string[]): string[] =>
  inAllFiles(find).filter((found) => !found.includes('.spec.ts: '));

const sections = new Set(
  [...textOf('reference/connectx3-interface.md').matchAll(/^#+ (\d+(?:\.\d+)*)\.? /gm)].map(([, n]) => n!),
);
const list = String.raw`\d+(?:\.\d+)*(?:(?:, | and | to |–)\d+(?:\.\d+)*)*`;
const numbersOf = (text: string): string[] => text.split(/, | and | to |–/);

/** Sections of the interface sheet that a text cites. */
function citedSections(text: string): string[] {
  const cited = text.matchAll(
    new RegExp(String.raw`(?:(?<!data ?)[Ss]heet|connectx3-interface\.md),? \(?(${list})`, 'g'),
  );
  return [...cited].flatMap(([, numbers]) => numbersOf(numbers!));
}
const missingSections = (text: string): string[] => citedSections(text).filter((n) => !sections.has(n));

const rows = new Set(
  [
    'measurements.csv',
    'measurements-second.csv',
    'measurements-third.csv',
    'fabric-measurements.csv',
  ].flatMap((name) =>
    textOf(`reference/${name}`)
      .split(/\r?\n/)
      .map((line) => line.split(',')[0]!),
  ),
);
const missingRows = (text: string): string[] =>
  [...text.matchAll(/(?<![\w-])([A-JTX]-\d{3}[a-z]?)\b/g)].map(([, id]) => id!).filter((id) => !rows.has(id));

const numbered = (page: string): Set<string> =>
  new Set([...textOf(page).matchAll(/^(\d+)\. /gm)].map(([, n]) => n!));
const observations = numbered('reference/golden/README.md');
const signatures = numbered('reference/measurements.md');
const missingNumbers = (word: string, known: ReadonlySet<string>) => (text: string) =>
  [...text.matchAll(new RegExp(String.raw`\b${word}s? (${list})`, 'g'))]
    .flatMap(([, numbers]) => numbersOf(numbers!))
    .filter((n) => !known.has(n));

/** The names in the first columns of reference/sources.md. */
const names = [...textOf('reference/sources.md').matchAll(/^\|(?! cited)([^|]*)\|/gm)]
  .flatMap(([, cell]) => [...cell!.matchAll(/`([^`]+)`/g)])
  .map(([, name]) => name!);
/** The part of a repository path that a citation begins with. */
const pathOf = (citation: string): string | undefined => /^(?:[\w-]+\/)+[\w.-]*/.exec(citation)?.[0];
const isThere = (path: string): boolean =>
  files.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, '')}/`));

/** Whether a citation begins with a name of the page, a manual page or a path of this repository. */
function isKnown(citation: string): boolean {
  if (names.some((name) => citation.startsWith(name) && !/^\w/.test(citation.slice(name.length))))
    return true;
  if (/^(?:what Linux|the stages named with each term$)/.test(citation)) return true;
  if (/^[\w.-]+\(\d\)/.test(citation)) return true;
  const path = pathOf(citation);
  return path !== undefined && isThere(path);
}

/** The citation after `Source:` and in `source: '…'`, and each of those after `Sources:`. */
function citationsIn(text: string): string[] {
  const comments = [...text.matchAll(/\bSource(s?): ((?:(?!\*\/|\.\s+[A-Z]|\.\s*\*\/|\.?\n).)+)/g)];
  const fields = [...text.matchAll(/\bsource(?: =|:) '([^']*)'(?! \|)/g)];
  return [
    ...comments.flatMap(([, many, cited]) => (many === 's' ? cited!.split(/; (?:and )?/) : [cited!])),
    ...fields.map(([, cited]) => cited!),
  ].map((citation) => citation.trim());
}

/** Beginning of a test title, as in `sheet 6.10: …`, if it is a name on the page or looks like one: it contains a number. */
function citationsInTitles(text: string): string[] {
  const titles = text.matchAll(/(?:\b(?:it|test)|\))\(\s*(['"`])((?:(?!\1)[^:\n])+): /g);
  return [...titles]
    .map(([, , start]) => start!)
    .filter(
      (start) => isKnown(start) || /^(?:[A-Z]|o\d|sheet|golden|observation|\d+[A-Z]?\b)[^,]*\d/.test(start),
    );
}

describe('every citation of', () => {
  it('the interface sheet names an existing section', () => {
    expect(sections.size).toBeGreaterThan(60);
    expect([...flatTexts.values()].flatMap(citedSections).length).toBeGreaterThan(150);
    expect(inAllFiles(missingSections)).toEqual([]);
    expect(missingSections('sheet 3.4, 3.99 to 6.1; interface sheet 11, connectx3-interface.md 1.1')).toEqual(
      ['3.99', '11'],
    );
    const rules = textOf('analyser/lint/rules.ts').matchAll(
      /'(?:error|warning|note)',\s*'(\d[\d.]*(?:(?:, |–)\d[\d.]*)*)'/g,
    );
    const ofRules = [...rules].flatMap(([, numbers]) => numbersOf(numbers!));
    expect(ofRules.length).toBeGreaterThan(30);
    expect(ofRules.filter((n) => !sections.has(n))).toEqual([]);
  });

  it('the measurements names an existing row or signature', () => {
    expect(inAllFiles(missingRows)).toEqual([]);
    expect(missingRows('measurements.csv C-161, F-001…F-999, SHA-256, I-002a')).toEqual(['F-999']);
    expect(inAllFiles(missingNumbers('signature', signatures))).toEqual([]);
    expect(missingNumbers('signature', signatures)('signature 1, signatures 2 and 9')).toEqual(['9']);
  });

  it('the captures names an existing observation of their page', () => {
    expect(inAllFiles(missingNumbers('observation', observations))).toEqual([]);
    expect(missingNumbers('observation', observations)('observations 1, 12 and 13')).toEqual(['13']);
  });

  it('another document names one that reference/sources.md lists in full', () => {
    expect(names.length).toBeGreaterThan(50);
    expect([...flatTexts.values()].flatMap(citationsIn).length).toBeGreaterThan(200);
    const unknown = (text: string): string[] => citationsIn(text).filter((citation) => !isKnown(citation));
    expect(inAllSources(unknown)).toEqual([]);
    expect(unknown('/** Sources: hearsay 3.1; RFC 791, 3.1. */')).toEqual(['hearsay 3.1']);
    expect(unknown("source: 'RFC 7911'")).toEqual(['RFC 7911']);
    expect(
      inAllFiles((text) =>
        [...text.matchAll(/\bRFC \d+/g)].map(([rfc]) => rfc).filter((rfc) => !names.includes(rfc)),
      ),
    ).toEqual([]);
  });

  it('a document in a test’s title names one that reference/sources.md lists, in most specs of hardware and wire', () => {
    const unknown = (text: string): string[] => citationsInTitles(text).filter((start) => !isKnown(start));
    expect(inAllFiles(unknown)).toEqual([]);
    expect(unknown("it('C9-105: a; b', () => {}); test.each(all)(`C9-999: %s`); it('PCJ 2.1: c')")).toEqual([
      'C9-999',
      'PCJ 2.1',
    ]);
    const specs = [...flatTexts].filter(([path]) => /^(?:hw|wire)\/.*\.spec\.ts$/.test(path));
    const citing = specs.filter(([, text]) => citationsInTitles(text).length > 0);
    expect(citing.length / specs.length).toBeGreaterThan(0.75);
  });

  it('a parameter names the source of its default', () => {
    const { parameters } = profileListing();
    expect(
      parameters.filter(({ source }) => !isKnown(source)).map(({ path, source }) => `${path}: ${source}`),
    ).toEqual([]);
    expect(parameters.flatMap(({ source }) => [...missingSections(source), ...missingRows(source)])).toEqual(
      [],
    );
  });
});
