/** The documentation site: it builds without dead links, and shows pages, searches and the lab in Chromium without a network. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Page } from 'puppeteer-core';
import { beforeAll, expect } from 'vitest';
import { serveSite } from '../../build/site/serve-site.ts';
import { inBrowser } from './browser.ts';
import { drivenBrowser } from './chromium.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const site = fileURLToPath(new URL('../../dist/site', import.meta.url));
const limitMs = 60_000;

beforeAll(() => {
  execFileSync(process.execPath, ['build/site/main.ts'], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
}, 240_000);

/** Shows a page of the site; an error of the page, a failed request or a request to another host fails the test. */
async function atPage(tree: string, path: string, look: (page: Page) => Promise<void>): Promise<void> {
  await using driven = await drivenBrowser(tree);
  await using server = await serveSite(site, 0);
  const page = await driven.browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
  page.on('response', (response) => {
    if (response.status() >= 400) complaints.push(`${response.url()}: ${response.status()}`);
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()))
      complaints.push(request.url());
  });
  await page.goto(`${server.url}${path}`, { waitUntil: 'networkidle0' });
  await look(page);
  expect(complaints).toEqual([]);
}

inBrowser('the front page leads to the tutorial', (tree) =>
  atPage(tree, '', async (page) => {
    expect(await page.$eval('h1', (heading) => heading.textContent)).toContain('HCA emulator');
    await page.locator('.VPNavBarMenu a::-p-text(Tutorial)').setTimeout(limitMs).click();
    await page.waitForFunction("document.title.includes('irst')", { timeout: limitMs });
  }),
);

inBrowser('the search finds a page by words of its text and opens it', (tree) =>
  atPage(tree, 'docs/how-to/wire.html', async (page) => {
    await page.locator('.VPNavBarSearchButton').setTimeout(limitMs).click();
    await page.locator('.VPLocalSearchBox input').setTimeout(limitMs).fill('registration cache');
    await page.locator('.VPLocalSearchBox .result').setTimeout(limitMs).click();
    await page.waitForFunction("location.pathname.endsWith('/docs/explanation/messaging.html')", {
      timeout: limitMs,
    });
  }),
);

inBrowser('the lab runs on the site', (tree) =>
  atPage(tree, 'lab-app/', async (page) => {
    await page.waitForFunction("document.querySelector('svg') !== null", { timeout: limitMs });
    expect(await page.evaluate('crossOriginIsolated')).toBe(true);
  }),
);
