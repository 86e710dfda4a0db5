/**
 * What the lab costs a reader: `npx node bench/lab.ts`. In headless Chromium: from the navigation to the first picture, a step of an operation,
 * and memory after ten machines.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';
import { labInto } from '../build/lab.ts';
import { scenarioNames } from '../lab/protocol.ts';
import { serveLab } from '../system/lab-server/index.ts';
import { chromiumTree, drivenBrowser } from '../test/page/chromium.ts';

const rounds = 5;
const stepCount = 40;
const machineCount = 10;

const median = (values: readonly number[]): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)]!;

const untilDrawn = (page: Page): Promise<unknown> =>
  page.waitForFunction(
    `document.querySelector('.operation')?.getAttribute('aria-busy') === 'false' && document.querySelector('.diagram') !== null`,
    { timeout: 120_000, polling: 'raf' },
  );

/** Milliseconds from a click on Forward until it is drawn. */
const stepMs = (page: Page): Promise<number> =>
  page.evaluate(`new Promise((resolve) => {
    const began = performance.now();
    document.querySelector('.player button:nth-of-type(3)').click();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - began)));
  })`) as Promise<number>;

/** Memory of the browser's processes that run pages, without what they share. */
function rendererMiB(): number {
  let kib = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!command.includes('chromium-headless-shell') || !command.includes('--type=renderer')) continue;
      kib += Number(/^Pss: +(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    } catch {
      // It has ended meanwhile.
    }
  }
  return kib / 1024;
}

const folder = mkdtempSync(join(tmpdir(), 'hca-lab-'));
try {
  await labInto(folder);
  await using server = await serveLab(folder, 0);
  await using driven = await drivenBrowser(await chromiumTree());
  const page = await driven.browser.newPage();
  await page.setViewport({ width: 1300, height: 900 });
  const first: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await page.goto('about:blank');
    const began = performance.now();
    await page.goto(server.url);
    await untilDrawn(page);
    first.push(performance.now() - began);
  }
  const steps: number[] = [];
  for (let step = 0; step < stepCount; step++) steps.push(await stepMs(page));
  for (const scenario of scenarioNames.slice(0, machineCount)) {
    await page.evaluate(`location.hash = 'operation=${scenario}&size=4096&caches=warm'`);
    await page.waitForFunction(`document.querySelector('.operation').getAttribute('aria-busy') === 'true'`, {
      polling: 'raf',
    });
    await untilDrawn(page);
  }
  console.log(
    `first picture: ${first.map((ms) => ms.toFixed(0)).join(', ')} ms, median ${median(first).toFixed(0)}`,
  );
  console.log(
    `a step, drawn: median ${median(steps).toFixed(1)} ms, longest ${Math.max(...steps).toFixed(1)} ms`,
  );
  console.log(`memory after ${machineCount} machines: ${rendererMiB().toFixed(0)} MiB`);
} finally {
  rmSync(folder, { recursive: true });
}
