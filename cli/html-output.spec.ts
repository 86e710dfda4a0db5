/** `--html` of each command: the command line is above, the results below, and the page loads nothing from elsewhere. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Script } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageNameAndVersion } from '../runtime/package-folder.ts';
import { rowsOf } from '../test/extent.ts';
import { hca } from './testing/in-process.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'hca-html-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The page of a command that has succeeded. */
async function pageOf(...words: string[]): Promise<{ readonly out: string; readonly page: string }> {
  const file = join(folder, 'page.html');
  rmSync(file, { force: true });
  const { code, out, err } = await hca(...words, '--html', file);
  expect([code, err]).toEqual([0, '']);
  expect(out).toContain('The same as a page: ');
  return { out, page: readFileSync(file, 'utf8') };
}

/** Visible text, without tags and scripts. */
const textOf = (page: string): string =>
  page
    .slice(page.indexOf('<body>'))
    .replace(/<script>[\s\S]*?<\/script>/g, '')
    .replace(/<[^>]+>/g, ' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&amp;', '&')
    .replace(/\s+/g, ' ');

const commandIn = (page: string): string[] => /<code>hca ([^<]*)<\/code>/.exec(page)![1]!.split(' ');

const capture = 'reference/wire/perftest-write-bw-mtu1024-ipv4.pcap';

it('a page is not mixed with the text on standard output', async () => {
  const { code, err } = await hca('devinfo', '--html', '-');
  expect([code, err]).toEqual([2, expect.stringContaining('expected a file')]);
});

describe('the page of', () => {
  const shown: readonly (readonly [line: string, ...words: string[]])[] = [
    ['perf write-bw --size 4096 --iters 50', 'Rates', 'What each block did', 'The ledgers balance'],
    ['perf read-lat --size 64 --odp --iters 4', 'The report of 64 B', 'The report of 64 B on demand'],
    ['explain write-lat --op 3 --iters 10', 'Step by step', 'all steps together', 'The whole run'],
    ['why write-bw --iters 5', 'Every send request of both hosts ended well.', 'PCIe'],
    ['devinfo', 'ibv_devinfo -v', 'max_qp_wr'],
    ['profiles', 'Parameters (--set path=value)', 'hca.mttCacheLines'],
    ['faults', 'Fields (* needed', 'catastrophic'],
    ['torture --seed 7', 'Nothing found.', 'story 7'],
    ['compare --sizes 64,256 --paths sockets,write --count 2', 'Latency of one message', 'Figures'],
    ['cutoff --sizes 64..128 --waiting poll', 'a channel goes by a cut-off of', 'One way of a message'],
  ];
  const others: typeof shown = [['torture --seeds 14..15', 'Requests by how they ended', '2 stories in']];
  it.each(rowsOf(shown, others))('hca %s', { timeout: 60_000 }, async (line, ...words) => {
    const { page } = await pageOf(...line.split(' '));
    const text = textOf(page);
    expect(text).toContain(`hca-emulator ${packageNameAndVersion().version}`);
    for (const word of words) expect(text).toContain(word);
    expect(page).not.toMatch(/(src|href)\s*=\s*["']?(https?:)?\/\//);
    for (const [, source] of page.matchAll(/<script>([\s\S]*?)<\/script>/g))
      expect(() => new Script(source!)).not.toThrow();
  });

  it('hca wire shows the conversations of a capture', async () => {
    const { out, page } = await pageOf('wire', capture);
    const [first] = out.split('\n').filter((line) => line.trim() !== '');
    expect(textOf(page)).toContain(first!.replace(/\s+/g, ' ').trim());
  });

  it('hca diff shows the differences at full width', async () => {
    const [before, after] = [join(folder, 'a.json'), join(folder, 'b.json')];
    await hca('perf', 'write-bw', '--iters', '5', '--json', before);
    await hca('perf', 'write-bw', '--iters', '6', '--json', after);
    const file = join(folder, 'diff.html');
    const { code } = await hca('diff', before, after, '--html', file);
    expect(code).toBe(1);
    expect(textOf(readFileSync(file, 'utf8'))).toContain('figures differ');
  });

  it('hca rerun reports that the result is the same', async () => {
    const json = join(folder, 'again.json');
    await hca('perf', 'write-lat', '--iters', '5', '--json', json);
    const { page } = await pageOf('rerun', json);
    expect(textOf(page)).toMatch(/All [\d,]+ figures are equal\./);
  });
});

describe('the head of a page', () => {
  it('is a command line that reproduces it, with the configuration', { timeout: 60_000 }, async () => {
    const set = ['--set', 'hca.mttCacheLines=16', '--fault', 'packet=corrupted,nth=3,node=1'];
    const { page } = await pageOf('perf', 'read-bw', '--size', '2048', '--iters', '30', ...set);
    const json = [join(folder, 'first.json'), join(folder, 'second.json')] as const;
    await hca('perf', 'read-bw', '--size', '2048', '--iters', '30', ...set, '--json', json[0]);
    await hca(...commandIn(page), '--json', json[1]);
    const [first, second] = json.map(
      (file) => JSON.parse(readFileSync(file, 'utf8')) as { configHash: string },
    );
    expect(second).toEqual(first);
    expect(textOf(page)).toContain(`configuration ${first!.configHash.slice(0, 12)}`);
  });

  it('has every axis and every parameter of a sweep, whose points are below', async () => {
    const vary = ['--vary', 'hca.mttCacheLines=16,32', '--vary', 'hca.sameQpIntervalCycles=20,77,90'];
    const words = ['--workload', 'write-bw,size=64,iters=60', ...vary, '--set', 'wire.cableMetres=3'];
    const { page } = await pageOf('sweep', ...words, '--out', join(folder, 'sweep.jsonl'));
    const line = commandIn(page).join(' ');
    for (const word of [...vary, '--set=wire.cableMetres=3']) expect(line).toContain(word);
    expect(page).toContain('Message rate over same QP interval (cycles)');
    expect(textOf(page)).toContain('6 of 6 points');
    expect(textOf(page)).toContain('hca.mttCacheLines changes none of these figures');
  });

  it('has each figure of a plot', async () => {
    const words = ['--x', 'sameQpIntervalCycles', '--y', 'messagesPerSecond', '--y', 'elapsedPs'];
    const file = join(folder, 'plot.html');
    const { code, err } = await hca('plot', join(folder, 'sweep.jsonl'), ...words, '--html', file);
    expect([code, err]).toEqual([0, '']);
    expect(commandIn(readFileSync(file, 'utf8')).slice(2)).toEqual(words);
    expect((await hca('plot', join(folder, 'sweep.jsonl'), '--x', 'elapsedPs')).err).toContain(
      "required option '--y <name>' not specified",
    );
  });

  it('names the parent of a subcommand', async () => {
    const { page } = await pageOf('sweep', 'merge', join(folder, 'sweep.jsonl'));
    expect(commandIn(page).slice(0, 2)).toEqual(['sweep', 'merge']);
  });

  it('states for a test with a warm-up which figures include it', async () => {
    const test = ['perf', 'write-bw', '--iters', '10'];
    const warmed = await pageOf(...test, '--warmup', '5');
    expect(textOf(warmed.page)).toContain('include the warm-up');
    expect(textOf((await pageOf(...test)).page)).not.toContain('include the warm-up');
  });

  it('repeats no option', async () => {
    const { page } = await pageOf('torture', '--seed', '7');
    expect(commandIn(page)).toEqual(['torture', '--seed', '7']);
  });

  it('contains no tag, for any file name', async () => {
    const file = join(folder, '<b>.json');
    writeFileSync(file, readFileSync(join(folder, 'again.json')));
    const { page } = await pageOf('diff', file, file);
    expect(page).not.toContain('<b>');
    expect(page).toContain('&lt;b&gt;.json');
  });

  it('rejects a page that cannot be written, before anything runs', async () => {
    const { code, err } = await hca('perf', 'write-bw', '--html', '/no/such/folder/page.html');
    expect([code, err]).toEqual([2, expect.stringContaining('a file that can be written')]);
  });
});
