/**
 * The model in a page of headless Chromium. Where the browser cannot be had (no apt, another platform) the test is skipped and says
 * why; under CI a browser that cannot be had fails.
 */
import { expect, it } from 'vitest';
import { SimulatorError } from '../../base/assert.ts';
import { bundledWorker } from './bundle.ts';
import { chromiumTree, showPage } from './chromium.ts';
import { allRuns } from './runs.ts';

const page = `<!doctype html><title>model</title><script type="module">
const send = (text) => fetch('/outcome', { method: 'POST', body: text });
const worker = new Worker('/worker.js', { type: 'module' });
worker.onmessage = ({ data }) => send(data);
worker.onerror = ({ message }) => send(JSON.stringify({ error: message }));
</script>`;
const pageLimitMs = 240_000;

/** Folder of the browser, or why there is none. */
async function browser(): Promise<{ readonly tree: string } | { readonly reason: string }> {
  try {
    return { tree: await chromiumTree() };
  } catch (error) {
    if (!(error instanceof SimulatorError)) throw error;
    return { reason: error.message };
  }
}

const found = await browser();
if ('tree' in found)
  it('a page computes the same reports and logs as Node.js, byte for byte', async () => {
    const files = {
      '/': ['text/html', page],
      '/worker.js': ['text/javascript', await bundledWorker()],
    } as const;
    const outcome: unknown = JSON.parse(await showPage(found.tree, files, pageLimitMs));
    expect(outcome).toEqual(await allRuns());
  });
else if (process.env['CI'] === 'true') it('has a browser', () => expect.fail(found.reason));
else it.skip(`needs a browser: ${found.reason}`);
