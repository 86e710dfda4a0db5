/** The model in a page of headless Chromium. */
import { expect } from 'vitest';
import { inBrowser } from './browser.ts';
import { bundledWorker } from './bundle.ts';
import { showPage } from './chromium.ts';
import { allRuns } from './runs.ts';

const page = `<!doctype html><title>model</title><script type="module">
const send = (text) => fetch('/outcome', { method: 'POST', body: text });
const worker = new Worker('/worker.js', { type: 'module' });
worker.onmessage = ({ data }) => send(data);
worker.onerror = ({ message }) => send(JSON.stringify({ error: message }));
</script>`;
const pageLimitMs = 240_000;

inBrowser('a page computes the same reports and logs as Node.js, byte for byte', async (tree) => {
  const files = {
    '/': ['text/html', page],
    '/worker.js': ['text/javascript', await bundledWorker()],
  } as const;
  const outcome: unknown = JSON.parse(await showPage(tree, files, pageLimitMs));
  expect(outcome).toEqual(await allRuns());
});
