/** README and pages name only existing commands, options, files and pages. */
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { anchorOf } from '../build/site/anchor.ts';
import { hca, hcaWithin } from '../cli/testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000 });

const root = fileURLToPath(new URL('..', import.meta.url));
const skipped = new Set(['node_modules', 'dist', '.git']);

/** Every file below the root, by its path from there. Skipped folders may change meanwhile: another spec builds the package. */
const tree = readdirSync(root, { withFileTypes: true })
  .filter(({ name }) => !skipped.has(name))
  .flatMap((top) => {
    if (!top.isDirectory()) return top.isFile() ? [top.name] : [];
    const below = readdirSync(join(root, top.name), { recursive: true, withFileTypes: true });
    return below
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length));
  });
const pages = tree.filter((path) => path.endsWith('.md'));
const textOf = (page: string): string => readFileSync(join(root, page), 'utf8');

/** Commands that a page tells the reader to type, word by word: `hca …`, in every form of starting it. */
function commandsOf(text: string): string[][] {
  const lines = [...text.matchAll(/(?:npx (hca)|npm (start)(?: --)?) +([^`\n·|]*)/g)];
  return lines.map(([, hca, , rest]) => {
    const bare = rest!.replace(/'[^']*'|"[^"]*"/g, 'QUOTED').replace(/\s#.*|\s{3,}.*|[;&)].*|←.*/s, '');
    return [...(hca === undefined ? ['move'] : []), ...bare.trim().split(/\s+/)];
  });
}

const helps = new Map<string, string>();
for (const name of (await hca('--help')).out.matchAll(/^ {2}(\w+) \[options\]/gm))
  helps.set(name[1]!, await helpOf(name[1]!));

/** Including the output of its subcommands. */
async function helpOf(...words: string[]): Promise<string> {
  const { out } = await hca(...words, '--help');
  const below = [...out.matchAll(/^ {2}(\w+) \[options\]/gm)].map(([, name]) => helpOf(...words, name!));
  return [out, ...(await Promise.all(below))].join('\n');
}

function unknownOptionsIn(text: string): string[] {
  return commandsOf(text).flatMap(([command, ...words]) => {
    if (!/^[a-z]+$/.test(command!)) return [];
    const help = helps.get(command!);
    if (help === undefined) return [`hca ${command}`];
    const options = words
      .filter((word) => /^--?[a-z]/i.test(word))
      .map((word) => word.replace(/[=.].*|,$/, ''));
    return options
      .filter((option) => !new RegExp(`^ +.*${option}[ ,]`, 'm').test(help))
      .map((option) => `hca ${command} ${option}`);
  });
}

function missingFilesIn(text: string, folder: string): string[] {
  const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)].map(([, target]) => target!);
  const files = [...text.matchAll(/`(\w[\w./-]*\.ts)`/g)].map(([, file]) => file!);
  return [
    ...links.filter((target) => !existsSync(join(root, folder, target))),
    ...files.filter(
      (file) =>
        !text.includes(`Save this as \`${file}\``) &&
        !tree.some((path) => path === file || path.endsWith(`/${file}`)),
    ),
  ];
}

/** Anchors of a page's headings, without blocks of code. */
const anchorsIn = (text: string): ReadonlySet<string> =>
  new Set(
    [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
      anchorOf(heading!),
    ),
  );

function missingSectionsIn(text: string, page: string): string[] {
  const links = [...text.matchAll(/\]\(([^)#:\s]*\.md)?#([^)]+)\)/g)];
  return links.flatMap(([, target, anchor]) => {
    const known = anchorsIn(target === undefined ? text : textOf(join(dirname(page), target)));
    return known.has(anchor!) ? [] : [`${target ?? ''}#${anchor}`];
  });
}

function missingTestsIn(text: string): string[] {
  const named = [...text.matchAll(/vitest run ([^`\n]*)/g)].flatMap(([, rest]) =>
    rest!.split(' -')[0]!.split(/\s+/),
  );
  return named.filter((word) => !tree.some((path) => path.includes(word) && path.endsWith('.spec.ts')));
}

describe('every page', () => {
  it('mentions only existing commands and options', () => {
    expect(helps.size).toBeGreaterThan(7);
    expect(pages.flatMap((page) => commandsOf(textOf(page))).length).toBeGreaterThan(40);
    expect(pages.flatMap((page) => unknownOptionsIn(textOf(page)).map((what) => `${page}: ${what}`))).toEqual(
      [],
    );
    expect(
      unknownOptionsIn('`npx hca perf write-lat --al`, `npx hca prof`, `npm start -- F --nope=1`'),
    ).toEqual(['hca perf --al', 'hca prof', 'hca move --nope']);
  });

  it('links only to existing pages and names only existing files', () => {
    const missing = pages.flatMap((page) =>
      missingFilesIn(textOf(page), dirname(page)).map((what) => `${page}: ${what}`),
    );
    expect(missing).toEqual([]);
    expect(missingFilesIn('[a](nowhere.md) [b](../README.md) `nothing.ts` `machine.ts`', 'docs')).toEqual([
      'nowhere.md',
      'nothing.ts',
    ]);
  });

  it('links to sections that exist', () => {
    const missing = pages.flatMap((page) =>
      missingSectionsIn(textOf(page), page).map((link) => `${page}: ${link}`),
    );
    expect(missing).toEqual([]);
    expect(missingSectionsIn('[a](#first) [b](#b) [c](README.md#as-a-library)\n## First', 'x.md')).toEqual([
      '#b',
    ]);
  });

  it('of docs/ is in the list of docs/README.md, by its kind', () => {
    const list = textOf('docs/README.md');
    const listed = pages.filter((page) => /^docs\/(?:tutorial|how-to|reference|explanation)\//.test(page));
    expect(listed.length).toBeGreaterThan(25);
    expect(listed.filter((page) => !list.includes(`](${page.slice('docs/'.length)})`))).toEqual([]);
  });

  it('names only existing tests', () => {
    expect(pages.flatMap((page) => missingTestsIn(textOf(page)).map((what) => `${page}: ${what}`))).toEqual(
      [],
    );
    expect(missingTestsIn('`npx vitest run test/docs test/nothing -t "a"`')).toEqual(['test/nothing']);
  });
});

/** A command with the output lines shown below it. */
interface Shown {
  readonly page: string;
  readonly words: readonly string[];
  /** TypeScript of the page's last block before the command: the program that the command runs. */
  readonly program: string | undefined;
  readonly lines: readonly string[];
}

/** Words of a command line, quotes removed. */
const wordsOf = (line: string): string[] =>
  (line.match(/'[^']*'|"[^"]*"|\S+/g) ?? []).map((word) => word.replace(/^(['"])(.*)\1$/, '$2'));

/** Every `$ npx …` and `$ npm start` of a page's blocks, each with the lines up to the next command or an empty line. */
function shownIn(page: string, text: string): Shown[] {
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)];
  return blocks.flatMap(([, language, block], at) => {
    if (language !== '') return [];
    const before = blocks.slice(0, at).findLast(([, kind]) => kind === 'ts')?.[2];
    return block!
      .replace(/^\$ npm start -- (.*)/gm, '$ npx hca move $1 --html dist/start.html')
      .split(/^\$ np[mx] /m)
      .slice(1)
      .map((command) => {
        const [line, ...lines] = command.split(/\n\n|\n$/)[0]!.split('\n');
        return {
          page,
          words: wordsOf(line!),
          program: before,
          lines: lines.filter((each) => !each.startsWith('…')),
        };
      });
  });
}

mkdirSync(join(root, 'dist'), { recursive: true });
const folder = mkdtempSync(join(root, 'dist', 'docs-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** The folder of a page's files. */
function folderOf(page: string): string {
  const own = join(folder, page.replaceAll('/', '-'));
  mkdirSync(own, { recursive: true });
  return own;
}

/** A word of a command that runs in the page's folder: files of the repository by their whole paths. */
const wordHere = (word: string): string =>
  tree.includes(word) || word.startsWith('dist/') ? join(root, word) : word;

/** Output of a command: on a terminal of 120 columns, or in a pipe if a line of the page is longer. */
async function printedBy({ page, words: [command, ...words], program, lines }: Shown): Promise<string[]> {
  if (command === 'hca') {
    const columns = lines.some((line) => line.length > 120) ? {} : { columns: 120 };
    const { out, err } = await hcaWithin({ cwd: folderOf(page), ...columns }, words.map(wordHere));
    return `${out}\n${err}`.split('\n');
  }
  expect(command).toBe('node');
  if (existsSync(join(root, words[0]!)))
    return execFileSync(process.execPath, words, { cwd: root, encoding: 'utf8' }).split('\n');
  const file = join(folderOf(page), words[0]!);
  writeFileSync(file, program!.replace("'./index.ts'", "'../../../index.ts'"));
  return execFileSync(process.execPath, [file], { encoding: 'utf8' }).split('\n');
}

/** A line with single spaces: pages have no tabs. */
const spaced = (line: string): string =>
  line
    .trimEnd()
    .replace(/(?<=\S)\s+/g, ' ')
    .replace(/^\s+/, ' ');

/** A line of a page as a pattern: `…` matches anything; wall time, version and hash match any value. */
const patternOf = (line: string): RegExp =>
  new RegExp(
    `^${spaced(line)
      .replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
      .replace(/ ?… ?/g, '.*')
      .replace(/(?<=(?:in|after) )\d+\\\.\d+ s/g, String.raw`\d+\.\d+ s`)
      .replace(/Node v.*/, String.raw`Node v[\d.]+ Configuration [\da-f]{12}\.`)}$`,
  );

/** Lines that are not among the printed ones, in this order. A page may name a file of the repository by its path there. */
function missingLines(lines: readonly string[], printed: readonly string[]): string[] {
  let from = 0;
  return lines.filter((line) => {
    const pattern = patternOf(line);
    const isShown = (text: string): boolean => pattern.test(text) || pattern.test(text.replaceAll(root, ''));
    const at = printed.findIndex((text, index) => index >= from && isShown(spaced(text)));
    if (at >= 0) from = at + 1;
    return at < 0;
  });
}

/** Leaves out `npm test`, which includes this run, and commands in a pipe, which need a program that may not be installed. */
const allShown = pages
  .flatMap((page) => shownIn(page, textOf(page)))
  .filter(({ words }) => words[0] !== 'test' && !words.includes('--all') && !words.includes('|'));

describe('every page shows the output of its commands', () => {
  it.each(allShown.map((shown) => [`${shown.page}: ${shown.words.join(' ')}`, shown] as const))(
    '%s',
    async (_, shown) => {
      const printed = await printedBy(shown);
      expect(missingLines(shown.lines, printed), printed.join('\n')).toEqual([]);
    },
  );

  it('in the tutorial under each command, and in most pages for users', () => {
    const tutorial = allShown.filter(({ page }) => page.startsWith('docs/tutorial/'));
    expect(tutorial.length).toBeGreaterThan(4);
    for (const { words, lines } of tutorial) expect(lines, words.join(' ')).not.toEqual([]);
    expect(allShown.length).toBeGreaterThan(20);
  });

  it('line by line, in order', () => {
    expect(missingLines(['a …', 'in 0.10 s'], ['a b', 'x', 'in 7.25 s'])).toEqual([]);
    expect(missingLines(['b', 'a', 'c.'], ['a', 'b', 'cd'])).toEqual(['a', 'c.']);
  });
});

describe('the README shows', () => {
  it('its subject on a first screen: a picture, both commands and their output within 40 lines', () => {
    const screen = textOf('README.md').split('\n').slice(0, 40).join('\n');
    expect(screen.match(/^!\[/gm)).toHaveLength(1);
    for (const command of [
      'npm ci && npm start',
      'npm ci && npm test',
      '$ npm start -- LICENSE',
      '$ npm test',
    ])
      expect(screen).toContain(command);
    const shown = (page: string): readonly string[] =>
      allShown.find((each) => each.page === page && each.words[1] === 'move')?.lines ?? [];
    expect(shown('README.md').length).toBeGreaterThan(3);
    expect(shown('docs/how-to/move.md').length).toBeGreaterThan(20);
  });
});

describe('the page of commands shows', () => {
  it('results of hca perf at three of all sizes', async () => {
    const command = '$ npx hca perf write-lat --all -m 2048 --iters 60\n';
    const [, block = ''] = textOf('docs/how-to/commands.md').split(command);
    const rows = block.split('\n```')[0]!.split('\n').slice(1);
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      const [size] = row.trim().split(/\s+/);
      const args = ['perf', 'write-lat', '-m', '2048', '--iters', '60', '--size', size!];
      const { out } = await hcaWithin({ cwd: root, columns: 120 }, args);
      expect(missingLines([row], out.split('\n'))).toEqual([]);
    }
  });
});

describe('lines of pages', () => {
  /** Tables, blocks of code, parts that a program wrote, and lines of one link or one piece of code may be longer. */
  const proseOf = (text: string): string[] =>
    text
      .replace(/^```[\s\S]*?^```$/gm, '')
      .replace(/^<!-- (\w+) -->$[\s\S]*?^<!-- \/\1 -->$/gm, '')
      .replace(/(?<=\n\n)(?: {4}.*\n)+/g, '')
      .split('\n')
      .filter((line) => !/^\s*(?:\||(?:[-*] )?\S*(?:`[^`]*`|\[[^\]]*\]\([^)]*\))\S*$)/.test(line));

  it('have at most 120 characters, except tables and code', () => {
    const long = pages.flatMap((page) =>
      proseOf(textOf(page))
        .filter((line) => line.length > 120)
        .map((line) => `${page}: ${line.slice(0, 60)}…`),
    );
    expect(long).toEqual([]);
    expect(
      proseOf(`| ${'x'.repeat(130)} |\n\`\`\`\n${'x'.repeat(130)}\n\`\`\`\n${'x '.repeat(65)}`),
    ).toContain('x '.repeat(65));
  });
});
