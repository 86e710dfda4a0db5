/**
 * Costs of the lab for a reader: `npm run bench:lab`. In headless Chromium: from the navigation to the first picture, a step of
 * an operation, a slider of "What if", and memory after ten machines. Figures depend on this computer and its load.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';
import { labInto } from '../../build/lab.ts';
import { serveLab } from '../../cli/lab/lab-server.ts';
import { scenarioNames } from '../../lab/protocol.ts';
import { drivenBrowser } from './chromium.ts';
import { browsersTree } from './tree.ts';

const rounds = 7;
const stepCount = 60;
const machineCount = 10;
const limitMs = 120_000;

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;

const summary = (values: readonly number[]): string =>
  `median ${median(values).toFixed(0)} ms, shortest ${Math.min(...values).toFixed(0)}, longest ${Math.max(...values).toFixed(0)}`;

const isDrawn = `document.querySelector('.operation')?.getAttribute('aria-busy') === 'false' && document.querySelector('.diagram') !== null`;

const untilDrawn = (page: Page): Promise<unknown> =>
  page.waitForFunction(isDrawn, { timeout: limitMs, polling: 'raf' });

/** Milliseconds of the page's clock since its navigation began, when the first picture is on the screen. */
async function firstPictureMs(page: Page, url: string): Promise<number> {
  await page.goto('about:blank');
  await page.goto(url);
  await untilDrawn(page);
  return (await page.evaluate('performance.now()')) as number;
}

/** Milliseconds from a click on Forward until it is drawn. */
const stepMs = (page: Page): Promise<number> =>
  page.evaluate(`new Promise((resolve) => {
    const began = performance.now();
    document.querySelector('.player button:nth-of-type(3)').click();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  })`) as Promise<number>;

/** Milliseconds from a change of a slider until the closed form is drawn, and until the first simulated point is. */
const sliderMs = (page: Page, direction: 1 | -1): Promise<[number, number]> =>
  page.evaluate(`new Promise((resolve) => {
    const words = () => document.querySelector('.verdict').innerText;
    const [first, began] = [words(), performance.now()];
    const slider = document.querySelector('input[aria-label="Cable length"]');
    slider.value = Number(slider.value) + ${direction};
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    let formMs;
    const look = () => {
      if (words() !== first) formMs ??= performance.now() - began;
      if (formMs !== undefined && / simulated/.test(words())) resolve([formMs, performance.now() - began]);
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  })`) as Promise<[number, number]>;

/** Memory of the browser's processes that run pages, including their share of shared memory. */
function rendererMiB(): number {
  let kib = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('chromium-headless-shell') || !command.includes('--type=renderer')) continue;
      kib += Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // The process has ended meanwhile.
    }
  }
  return kib / 1024;
}

const folder = mkdtempSync(join(tmpdir(), 'hca-lab-'));
try {
  await labInto(folder);
  await using server = await serveLab(folder, 0);
  await using driven = await drivenBrowser(await browsersTree());
  const page = await driven.browser.newPage();
  await page.setViewport({ width: 1300, height: 900 });
  console.log(`${cpus().length} × ${cpus()[0]?.model}; load ${loadavg()[0]?.toFixed(1)} of the last minute`);

  const first: number[] = [];
  for (let round = 0; round < rounds; round++) first.push(await firstPictureMs(page, server.url));
  console.log(`first picture after the navigation: ${summary(first)}`);

  const steps: number[] = [];
  for (let step = 0; step < stepCount; step++) steps.push(await stepMs(page));
  console.log(`a step, drawn: ${summary(steps)}, which is step ${steps.indexOf(Math.max(...steps)) + 1}`);

  await page.goto('about:blank');
  await page.goto(`${server.url}#view=what-if`);
  await page.waitForFunction(`/million messages a second/.test(document.body.innerText)`, {
    timeout: limitMs,
  });
  const turns: [number, number][] = [];
  for (const direction of [1, 1, 1, -1, 1] as const) turns.push(await sliderMs(page, direction));
  console.log(`a slider, closed form drawn: ${summary(turns.map(([form]) => form))}`);
  console.log(`a slider, the point simulated: ${summary(turns.map(([, point]) => point))}`);

  await page.goto('about:blank');
  await page.goto(server.url);
  await untilDrawn(page);
  for (const scenario of scenarioNames.slice(0, machineCount)) {
    await page.evaluate(`location.hash = 'operation=${scenario}&size=4096&caches=warm'`);
    await page.waitForFunction(`document.querySelector('.operation').getAttribute('aria-busy') === 'true'`, {
      polling: 'raf',
    });
    await untilDrawn(page);
  }
  console.log(`memory after ${machineCount} machines: ${rendererMiB().toFixed(0)} MiB`);
} finally {
  rmSync(folder, { recursive: true });
}
