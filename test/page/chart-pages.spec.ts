/**
 * Pages of charts, in headless Chromium, narrow and wide, light and dark: of lines with knees, heat maps and Pareto fronts
 * (`hca plot`), of `hca sweep`, `hca ask` and `hca cutoff`. All of a page is visible, nothing overlaps, and each point opens
 * its report. The figures are invented, so that knees, long names and many columns are hardest to draw: nothing is simulated.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import axe from 'axe-core';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { resultPage } from '../../cli/cutoff/cutoff-report.ts';
import { hca } from '../../cli/testing/in-process.ts';
import { studies } from '../../experiments/studies/index.ts';
import { checkedSpec, headerOf, pointsOf } from '../../experiments/sweep/index.ts';
import { inBrowser, inBrowserOfAll } from './browser.ts';
import { drivenBrowser } from './chromium.ts';
import { complaintsOf, looksOf, recordCanvasText } from './looks.ts';

const widths = [400, 700, 1000, 2500];
const schemes = ['light', 'dark'];

interface Row {
  readonly index: number;
  readonly axes: Readonly<Record<string, number | string>>;
  readonly figures: Readonly<Record<string, number>>;
}

/** Every combination of the values of axes, the last one fastest, with its own figures. */
function rowsOver(
  axes: Readonly<Record<string, readonly (number | string)[]>>,
  figuresOf: (place: Row['axes'], index: number) => Row['figures'],
): Row[] {
  const places = Object.entries(axes).reduce<Row['axes'][]>(
    (before, [axis, values]) =>
      before.flatMap((place) => values.map((value) => ({ ...place, [axis]: value }))),
    [{}],
  );
  return places.map((place, index) => ({ index, axes: place, figures: figuresOf(place, index) }));
}

/** Returns the results as `hca sweep` writes them. */
function resultsText(header: object, rows: readonly Row[]): string {
  const lines = rows.map((row) => ({ hash: `${row.index}`.padStart(64, '0'), status: 'done', ...row }));
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join('');
}

const headerOver = (rows: readonly Row[]): object => ({
  schema: 'hca-sweep/1',
  ...{ version: '0.1.0', sweep: '0'.repeat(64), pointCount: rows.length },
  ...{ axes: Object.keys(rows[0]!.axes), spec: {} },
});

const powers = (from: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => from * 2 ** at);

/** Six lines, each with its knee at a different point, and without a common point. */
const kneed = rowsOver(
  {
    'hca.mttCacheLines': powers(16, 8),
    'pcie.link.generation': [3, 4, 5],
    'wire.speed': ['QDR', 'FDR'],
  },
  ({ 'hca.mttCacheLines': lines, 'pcie.link.generation': generation, 'wire.speed': speed }, index) => {
    const knee = 32 * 2 ** ((Number(generation) - 3) * 2 + (speed === 'FDR' ? 1 : 0));
    const factor = 1 + Number(generation) + (speed === 'FDR' ? 0.4 : 0);
    const messagesPerSecond = Math.min(Number(lines), knee) * 2e4 * factor;
    return {
      messagesPerSecond,
      'bottleneck.next.core of host 0.share': 0.1 + index / 100,
      typicalPs: 1e6 + index * 2e5,
    };
  },
);

/** More columns than a narrow page has room for, with names longer than their figures. */
const wide = rowsOver(
  {
    'hca.mttCacheLines': Array.from({ length: 28 }, (_, at) => 1024 * (at + 1)),
    'pcie.link.generation': [1, 2, 3],
  },
  ({ 'hca.mttCacheLines': lines, 'pcie.link.generation': generation }) => ({
    messagesPerSecond: Number(lines) * Number(generation) * 321,
  }),
);
const named = rowsOver(
  {
    profile: ['connectx3-qdr', 'connectx3-fdr', 'connectx3-fdr-fitted', 'roce-40-gigabit', 'roce-10-gigabit'],
    qps: [1, 2],
  },
  (_place, index) => ({ messagesPerSecond: 1e6 * (index + 1) }),
);

const study = studies.find(({ name }) => name === 'inline')!;
const asked = pointsOf(checkedSpec(study.spec));

let folder: string;
/** Files of pages, by their contents. */
const files = new Map<string, string>();

async function made(name: string, ...words: string[]): Promise<void> {
  const file = join(folder, `${name}.html`);
  const { code, err } = await hca(...words, '--html', file);
  expect([code, err]).toEqual([0, '']);
  files.set(name, file);
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'hca-charts-'));
  const written = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text);
    return file;
  };
  const [kneedFile, wideFile, namedFile] = Object.entries({ kneed, wide, named }).map(([name, rows]) =>
    written(`${name}.jsonl`, resultsText(headerOver(rows), rows)),
  );
  const rate = ['--y', 'messagesPerSecond'];
  await made(
    'lines',
    'plot',
    kneedFile!,
    '--x',
    'mttCacheLines',
    ...rate,
    '--y',
    'bottleneck.next.core of host 0.share',
  );
  await made('words', 'plot', namedFile!, '--x', 'profile', ...rate);
  const onMap = ['--y', 'generation', '--z', 'messagesPerSecond'];
  await made('heat map', 'plot', kneedFile!, '--x', 'mttCacheLines', ...onMap);
  await made('wide heat map', 'plot', wideFile!, '--x', 'mttCacheLines', ...onMap);
  await made('Pareto front', 'plot', kneedFile!, '--x', 'typicalPs', ...rate, '--by', 'generation');
  await made('sweep', 'sweep', 'merge', kneedFile!, '--out', join(folder, 'merged.jsonl'));
  const answers = asked.map(({ hash, index, axes }) => ({
    ...{ hash, index, status: 'done', axes: axes as Row['axes'] },
    figures: { typicalPs: 1e6 * (1 + index), 'stages.transmit.share': 0.5 },
  }));
  const askedFile = written('asked.jsonl', resultsText(headerOf(checkedSpec(study.spec), asked), answers));
  await made('ask', 'ask', study.name, '--out', askedFile);
  files.set('cutoff', written('cutoff.html', cutoffPage()));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Two adjacent crossings, whose texts have no room next to each other. */
function cutoffPage(): string {
  const sizes = powers(64, 12);
  const ofWays = (factor: number) => ({
    eager: sizes.map((size) => factor * (1e6 + size * 1000)),
    onTheFly: sizes.map((size) => factor * (9e6 + size * 200)),
    cached: sizes.map((size) => factor * (3e6 + size * 200)),
  });
  const crossings = [
    { from: 'eager', to: 'cached', simulatedBytes: 2500, formulaBytes: 2600 },
    { from: 'eager', to: 'onTheFly', simulatedBytes: 10_000, formulaBytes: 10_100 },
  ] as const;
  const result = {
    waiting: 'poll',
    simulatedPs: ofWays(1),
    formulaPs: ofWays(1.1),
    crossings,
    cutoffBytes: 2500,
  } as const;
  return resultPage({ title: 'When to copy', command: 'hca cutoff', version: '0' }, sizes, [result]);
}

/** Opens one of these pages. */
const open = (page: Page, name: string): Promise<unknown> => page.goto(pathToFileURL(files.get(name)!).href);

inBrowser(
  'of a page of charts all is seen, nothing lies on anything else, and it needs nothing',
  async (tree) => {
    await using driven = await drivenBrowser(tree);
    const page = await driven.browser.newPage();
    const asked: string[] = [];
    const errors: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    page.on('console', (message) => errors.push(message.text()));
    page.on('pageerror', (error) => errors.push(String(error)));
    await page.evaluateOnNewDocument(recordCanvasText);
    for (const [name, file] of files)
      for (const width of widths) {
        await page.setViewport({ width, height: 900 });
        await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'light' }]);
        asked.length = 0;
        await open(page, name);
        const grounds = new Set<string>();
        for (const value of schemes) {
          await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
          // A change of colours is drawn before the second frame.
          await page.evaluate(
            'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))',
          );
          const looks = await looksOf(page);
          expect(complaintsOf(looks), `${name}, ${width} pixels, ${value}`).toEqual([]);
          expect(looks.groups.flatMap(({ texts }) => texts).length, name).toBeGreaterThan(10);
          grounds.add(looks.ground);
        }
        expect(grounds.size, `${name} has two grounds`).toBe(2);
        expect(asked, name).toEqual([pathToFileURL(file).href]);
        expect(errors, name).toEqual([]);
      }
  },
);

inBrowserOfAll('the text of a page of charts has contrast for everybody, light and dark', async (tree) => {
  await using driven = await drivenBrowser(tree);
  const page = await driven.browser.newPage();
  await page.setViewport({ width: 400, height: 900 });
  for (const name of files.keys()) {
    await open(page, name);
    await page.evaluate(axe.source);
    for (const value of schemes) {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
      const faint = await page.evaluate(
        `axe.run(document, { runOnly: ['color-contrast', 'nested-interactive', 'scrollable-region-focusable', 'label', 'link-name', 'aria-allowed-role'], resultTypes: ['violations'] }).then(({ violations }) =>
          violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html, any }) => id + ': ' + html.slice(0, 200) + ' ' + (any[0]?.message ?? ''))))`,
      );
      expect(faint, `${name}, ${value}`).toEqual([]);
    }
  }
});

/** Position in the window of a point of the first chart, after scrolling to that chart. */
const placeOf = async (
  page: Page,
  x: number,
  y: number,
): Promise<{ readonly x: number; readonly y: number }> =>
  (await page.evaluate(
    `(() => {
      const [plot] = plots;
      plot.over.scrollIntoView({ block: 'center' });
      const { left, top } = plot.over.getBoundingClientRect();
      return { x: left + plot.valToPos(${x}, 'x'), y: top + plot.valToPos(${y}, 'y') };
    })()`,
  )) as { x: number; y: number };

/** Numbers of the open reports; afterwards all are folded again. */
const openReports = async (page: Page): Promise<readonly number[]> =>
  (await page.evaluate(
    `[...document.querySelectorAll('details[open]')].map((each) => { each.open = false; return Number(each.id.slice('report-'.length)); })`,
  )) as number[];

const shownLimitMs = 20_000;

/** Waits until the head of a report is in the window and has the focus. */
const isShown = (page: Page, report: number): Promise<unknown> =>
  page.waitForFunction(
    `(() => {
      const head = document.querySelector('#report-${report} > summary');
      const { top, bottom } = head.getBoundingClientRect();
      return top >= -1 && bottom <= innerHeight + 1 && document.activeElement === head;
    })()`,
    { timeout: shownLimitMs },
  );

interface Tip {
  readonly text: string;
  readonly cursor: string;
  readonly isInside: boolean;
}

const tipOf = async (page: Page): Promise<Tip> =>
  (await page.evaluate(
    `(() => {
      const tip = document.querySelector('.tip');
      const { left, right } = tip.getBoundingClientRect();
      return { text: tip.innerText, cursor: plots[0].over.style.cursor, isInside: left >= 0 && right <= innerWidth && right > left };
    })()`,
  )) as Tip;

describe('a point of a chart shows its values and opens its report', () => {
  const charts = [
    ['lines', 'hca.mttCacheLines', 1],
    ['Pareto front', 'typicalPs', 1e6],
  ] as const;
  for (const [name, x, divisor] of charts)
    inBrowser(`of ${name}`, async (tree) => {
      await using driven = await drivenBrowser(tree);
      const page = await driven.browser.newPage();
      for (const width of widths) {
        await page.setViewport({ width, height: 900 });
        await open(page, name);
        for (const { index, axes, figures } of [kneed[0]!, kneed[20]!, kneed.at(-1)!]) {
          const [atX, rate] = [Number(axes[x] ?? figures[x]) / divisor, figures['messagesPerSecond']! / 1e6];
          const at = await placeOf(page, atX, rate);
          await page.mouse.move(at.x, at.y);
          const where = `MTT cache lines: ${axes['hca.mttCacheLines']}, PCIe link generation: ${axes['pcie.link.generation']}, wire speed: ${axes['wire.speed']}`;
          const { text, cursor, isInside } = await tipOf(page);
          expect(text).toContain(where);
          expect(text).toContain('Click for its report');
          expect([cursor, isInside]).toEqual(['pointer', true]);
          await page.mouse.click(at.x, at.y);
          await isShown(page, index);
          expect(await openReports(page)).toEqual([index]);
        }
        // A click between points opens nothing.
        const beside = await placeOf(page, Number(kneed[0]!.axes[x] ?? kneed[0]!.figures[x]! / divisor), 40);
        await page.mouse.click(beside.x, beside.y);
        expect(await openReports(page)).toEqual([]);
      }
    });
});

inBrowser(
  'words of a knee, cells of a heat map and figures of a table open reports, by mouse and by keyboard',
  async (tree) => {
    await using driven = await drivenBrowser(tree);
    const page = await driven.browser.newPage();
    const indexAt = (lines: number, generation: number, speed = 'QDR'): number =>
      kneed.find(
        ({ axes }) =>
          axes['hca.mttCacheLines'] === lines &&
          axes['pcie.link.generation'] === generation &&
          axes['wire.speed'] === speed,
      )!.index;
    for (const width of widths) {
      await page.setViewport({ width, height: 900 });
      const chosen: readonly (readonly [page: string, selector: string, report: number])[] = [
        ['lines', `#chart0 .marks a::-p-text(knee 32)`, indexAt(32, 3)],
        ['lines', `#chart0 ~ .scroll tbody tr:nth-child(2) td:nth-child(3) a`, indexAt(32, 3, 'FDR')],
        ['heat map', `#map0 tbody tr:nth-child(2) td:nth-child(4) a`, indexAt(64, 4)],
        ['Pareto front', `.scroll ~ .caption ~ .scroll tbody tr:nth-child(3) a`, 2],
        ['sweep', `#chart0 ~ .scroll tbody tr:nth-child(1) a`, 0],
      ];
      for (const [name, selector, report] of chosen) {
        await open(page, name);
        const link = (await page.$(selector))!;
        await link.click();
        await isShown(page, report);
        expect(await openReports(page)).toEqual([report]);
        await link.focus();
        await page.keyboard.press('Enter');
        await isShown(page, report);
        expect(await openReports(page)).toEqual([report]);
      }
    }
  },
);
