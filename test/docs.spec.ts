/** README and pages name only commands, options, files and pages that there are. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, vi } from 'vitest';
import { hca, hcaWithin } from '../cli/testing/in-process.ts';

vi.setConfig({ testTimeout: 120_000 });

const root = fileURLToPath(new URL('..', import.meta.url));
const skipped = new Set(['node_modules', 'dist', '.git']);

/** Every file below the root, by its path from there. What is skipped may change meanwhile: another spec builds the package. */
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

/** What a page says to type, word by word: `hca …`, however it is started. */
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

/** With that of the commands below it. */
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
    ...files.filter((file) => !tree.some((path) => path === file || path.endsWith(`/${file}`))),
  ];
}

function missingTestsIn(text: string): string[] {
  const named = [...text.matchAll(/vitest run ([^`\n]*)/g)].flatMap(([, rest]) =>
    rest!.split(' -')[0]!.split(/\s+/),
  );
  return named.filter((word) => !tree.some((path) => path.includes(word) && path.endsWith('.spec.ts')));
}

describe('every page', () => {
  it('says commands and options that there are', () => {
    expect(helps.size).toBeGreaterThan(7);
    expect(pages.flatMap((page) => commandsOf(textOf(page))).length).toBeGreaterThan(40);
    expect(pages.flatMap((page) => unknownOptionsIn(textOf(page)).map((what) => `${page}: ${what}`))).toEqual(
      [],
    );
    expect(
      unknownOptionsIn('`npx hca perf write-lat --al`, `npx hca prof`, `npm start -- F --nope=1`'),
    ).toEqual(['hca perf --al', 'hca prof', 'hca move --nope']);
  });

  it('links to pages and names files that there are', () => {
    const missing = pages.flatMap((page) =>
      missingFilesIn(textOf(page), dirname(page)).map((what) => `${page}: ${what}`),
    );
    expect(missing).toEqual([]);
    expect(missingFilesIn('[a](nowhere.md) [b](../README.md) `nothing.ts` `machine.ts`', 'docs')).toEqual([
      'nowhere.md',
      'nothing.ts',
    ]);
  });

  it('names tests that there are', () => {
    expect(pages.flatMap((page) => missingTestsIn(textOf(page)).map((what) => `${page}: ${what}`))).toEqual(
      [],
    );
    expect(missingTestsIn('`npx vitest run test/docs test/nothing -t "a"`')).toEqual(['test/nothing']);
  });
});

describe('the README shows', () => {
  const readme = textOf('README.md');
  const linesOf = async (words: readonly string[]): Promise<string[]> =>
    (await hcaWithin({ cwd: root, columns: 120 }, words)).out.split('\n');
  /** The lines below a command, up to an empty one or the end of the block. */
  const shownBelow = (command: string): string[] => {
    const [, block = ''] = readme.split(`$ ${command}\n`);
    return block.split(/\n\n|\n```/)[0]!.split('\n');
  };

  it('what npm start prints on a terminal of 120 columns, line by line, but for wall time and hash', async () => {
    const printed = await linesOf(['move', 'LICENSE', '--html', 'dist/start.html']);
    const shown = shownBelow('npm start -- LICENSE').filter((line) => !line.startsWith('…'));
    expect(shown.length).toBeGreaterThan(20);
    for (const line of shown) {
      const pattern = line
        .replace(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
        .replaceAll('…', '.*')
        .replace(/(?<=(?:in|after) )\d+\\\.\d+ s/g, String.raw`\d+\.\d+ s`)
        .replace(/Node v.*/, String.raw`Node v[\d.]+ Configuration [\da-f]{12}\.`);
      const at = printed.findIndex((text) => new RegExp(`^${pattern}$`).test(text));
      expect(at, line).toBeGreaterThanOrEqual(0);
      printed.splice(0, at + 1);
    }
  });

  it('what hca perf measures', async () => {
    const rows = shownBelow('npx hca perf write-lat --all -m 2048 --iters 60').slice(1);
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      const figures = row.trim().split(/\s+/).slice(0, 5);
      const args = ['perf', 'write-lat', '-m', '2048', '--iters', '60', '--size', figures[0]!];
      expect((await linesOf(args))[1]!.trim().split(/\s+/).slice(0, 5)).toEqual(figures);
    }
  });
});
