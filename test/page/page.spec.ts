/** The model in a page of Chromium and of Firefox; and a picture of the lab in Firefox, since the other tests of the lab use Chromium. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect } from 'vitest';
import { labInto } from '../../build/lab.ts';
import { serveLab } from '../../cli/lab/lab-server.ts';
import { timeText } from '../../explain/text/format.ts';
import { operation } from '../../lab/worker/operation/picture.ts';
import { inBrowser } from './browser.ts';
import { bundledWorker } from './bundle.ts';
import { showPage } from './chromium.ts';
import { drivenFirefox } from './firefox.ts';
import { allRuns } from './runs.ts';

const page = `<!doctype html><title>model</title><script type="module">
const send = (text) => fetch('/outcome', { method: 'POST', body: text });
const worker = new Worker('/worker.js', { type: 'module' });
worker.onmessage = ({ data }) => send(data);
worker.onerror = ({ message }) => send(JSON.stringify({ error: message }));
</script>`;
const limitMs = 240_000;

let worker = '';
let inNode: Record<string, string> = {};
beforeAll(async () => {
  worker = await bundledWorker();
  inNode = await allRuns();
}, limitMs);

inBrowser('a page computes the same reports and logs as Node.js, byte for byte', async (tree) => {
  const files = { '/': ['text/html', page], '/worker.js': ['text/javascript', worker] } as const;
  expect(JSON.parse(await showPage(tree, files, limitMs))).toEqual(inNode);
});

inBrowser('Firefox computes the same reports and logs, and draws the instants of Node.js', async (tree) => {
  const folder = mkdtempSync(join(tmpdir(), 'hca-lab-'));
  try {
    await labInto(folder);
    writeFileSync(join(folder, 'runs.js'), worker);
    await using server = await serveLab(folder, 0);
    await using driven = await drivenFirefox(tree);
    const shown = await driven.browser.newPage();
    await shown.goto(`${server.url}#size=4096&caches=warm`);
    await shown.waitForFunction(`/Milestones/.test(document.body.innerText)`, { timeout: limitMs });
    const text = ((await shown.evaluate('document.body.innerText')) as string).replace(/\s+/g, ' ');
    const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };
    const picture = await operation({
      machine,
      scenario: 'write',
      sizeBytes: 4096,
      mtuBytes: 0,
      isWarm: true,
    });
    expect(text).toContain(`${timeText(picture.latencyPs)} from the post to the completion, status SUCCESS`);
    for (const { atPs, text: milestone } of picture.milestones)
      expect(text).toContain(`${(atPs / 1000).toFixed(3)} ns ${milestone}`);

    const outcome = await shown.evaluate(
      `new Promise((resolve, reject) => {
        const worker = new Worker('/runs.js', { type: 'module' });
        worker.onmessage = ({ data }) => resolve(data);
        worker.onerror = ({ message }) => reject(new Error(message));
      })`,
    );
    expect(JSON.parse(outcome as string)).toEqual(inNode);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
