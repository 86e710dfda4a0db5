/** The lab in headless Chromium: what its page shows is what the model says in Node.js, and nothing is cut. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect } from 'vitest';
import { labInto } from '../../build/lab.ts';
import { labPrograms } from '../../lab/page/programs.ts';
import { ProgramSession } from '../../lab/worker/program-session.ts';
import { estimate, latency } from '../../lab/worker/what-if.ts';
import { serveLab } from '../../system/lab-server/index.ts';
import { timeText } from '../../system/text/format.ts';
import { inBrowser } from './browser.ts';
import { drivenBrowser } from './chromium.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-lab-'));
beforeAll(() => labInto(folder), 240_000);
afterAll(() => rmSync(folder, { recursive: true }));

const limitMs = 100_000;
const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };

/** Shows an address of the lab; what the page complains of fails the test. */
async function atAddress(
  tree: string,
  hash: string,
  look: (page: Page, url: string) => Promise<void>,
): Promise<void> {
  await using server = await serveLab(folder, 0);
  await using driven = await drivenBrowser(tree);
  const page = await driven.browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()))
      complaints.push(request.url());
  });
  await page.goto(`${server.url}${hash}`);
  await look(page, server.url);
  expect(complaints).toEqual([]);
}

const textOf = (page: Page): Promise<string> => page.evaluate('document.body.innerText') as Promise<string>;
const untilText = (page: Page, pattern: RegExp): Promise<unknown> =>
  page.waitForFunction(`${pattern}.test(document.body.innerText)`, { timeout: limitMs });
const press = (page: Page, name: string): Promise<void> =>
  page.evaluate(
    `[...document.querySelectorAll('button')].find((each) => each.innerText === ${JSON.stringify(name)}).click()`,
  ) as Promise<void>;

inBrowser('"What if" shows the figures of the closed form and of the simulation', async (tree) => {
  const message = { verb: 'read', sizeBytes: 4096, mtuBytes: 0, inlineBytes: 0 } as const;
  const { totalPs } = estimate(machine, message);
  const { meanPs } = await latency(machine, message);
  await atAddress(tree, '#verb=read&size=4096', async (page) => {
    await untilText(page, /million messages a second/);
    const text = await textOf(page);
    expect(text).toContain(`${timeText(Math.round(totalPs))} by the closed form`);
    expect(text).toContain(`${timeText(Math.round(meanPs))} simulated`);
  });
});

inBrowser('a slider changes figures and address, and the address shows the same again', async (tree) => {
  await atAddress(tree, '', async (page, url) => {
    await untilText(page, /by the closed form/);
    const slider = 'input[aria-label="Cable length"]';
    await page.focus(slider);
    await page.keyboard.press('End');
    const set = { 'wire.cableMetres': 1000 };
    const { totalPs } = estimate(
      { ...machine, set },
      { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 },
    );
    const expected = `${timeText(Math.round(totalPs))} by the closed form`;
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(expected)})`, {
      timeout: limitMs,
    });
    await page.waitForFunction(`location.hash === '#set=wire.cableMetres:1000'`, { timeout: limitMs });
    await page.goto('about:blank');
    await page.goto(`${url}#set=wire.cableMetres:1000`);
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(expected)})`, {
      timeout: limitMs,
    });
  });
});

inBrowser('a program runs as in Node.js, and a mistake stands at its line', async (tree) => {
  const { text } = labPrograms.find(({ name }) => name === 'buffer-reused')!;
  const session = new ProgramSession();
  await session.load({ text, machine, faults: [] });
  let progress = await session.runFor(1e9);
  while (!progress.hasEnded) progress = await session.runFor(1e9);
  await atAddress(tree, '#view=program&program=buffer-reused', async (page) => {
    await press(page, 'Run');
    await untilText(page, /ended at/);
    const shown = await textOf(page);
    expect(shown).toContain(`ended at ${timeText(progress.atPs)}`);
    for (const { line, text: remark } of progress.remarks) expect(shown).toContain(`line ${line}: ${remark}`);
    for (const { text: line } of progress.log) expect(shown).toContain(line);
    expect(await page.$$('.cm-lint-marker-error')).toHaveLength(1);
  });
});

inBrowser('a program that never comes back is ended, and another runs after it', async (tree) => {
  const spinning = 'export async function host0() {\n  for (;;);\n}';
  await atAddress(tree, '#view=program', async (page) => {
    await page.waitForSelector('.cm-content');
    await page.evaluate(
      `(() => { const view = document.querySelector('.cm-content').cmTile?.view ?? document.querySelector('.cm-content').cmView.view;
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: ${JSON.stringify(spinning)} } }); })()`,
    );
    await untilText(page, /not started/);
    await press(page, 'Run');
    await untilText(page, /The program was ended/);
    await page.select('select', 'key-value');
    await untilText(page, /not started/);
    await press(page, 'Run');
    await untilText(page, /23 keys found/);
  });
});

inBrowser('nothing is wider than the window, from 400 to 2,500 pixels, light and dark', async (tree) => {
  for (const hash of ['', '#view=program'])
    await atAddress(tree, hash, async (page) => {
      await page.waitForSelector('main section');
      for (const width of [400, 800, 2500])
        for (const value of ['light', 'dark']) {
          await page.setViewport({ width, height: 900 });
          await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
          const excess = await page.evaluate(
            'document.documentElement.scrollWidth - document.documentElement.clientWidth',
          );
          expect(excess, `${hash} at ${width}`).toBe(0);
        }
    });
});

inBrowser('without the headers for shared memory the page says so', async (tree) => {
  await using driven = await drivenBrowser(tree);
  const plain = createServer((request, response) => {
    const name = request.url === '/' ? 'index.html' : request.url!.slice(1);
    const type =
      { html: 'text/html', js: 'text/javascript', css: 'text/css' }[name.split('.').at(-1)!] ?? 'text/plain';
    response.writeHead(200, { 'Content-Type': type }).end(readFileSync(join(folder, name)));
  });
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  try {
    const page = await driven.browser.newPage();
    await page.goto(`http://127.0.0.1:${(plain.address() as AddressInfo).port}/`);
    await untilText(page, /Cross-Origin-Opener-Policy/);
  } finally {
    plain.closeAllConnections();
    plain.close();
  }
});
