/** The model as one module, in a thread without the features of Node.js: the contents of test/page, without a browser. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, it } from 'vitest';
import { bundledWorker } from './page/bundle.ts';
import { allRuns } from './page/runs.ts';

/** Removes features that no page has. */
const asInPage = `
  const { parentPort } = require('node:worker_threads');
  globalThis.postMessage = (message) => parentPort.postMessage(message);
  for (const name of ['Buffer', 'process', 'setImmediate', 'clearImmediate', 'global']) delete globalThis[name];
`;

it('the model runs with the features of every runtime, and computes the same reports and logs', async () => {
  const source = `${asInPage}; (async (require, module, exports) => { ${await bundledWorker()} })();`;
  const worker = new Worker(source, { eval: true });
  const [outcome] = (await once(worker, 'message')) as [string];
  await worker.terminate();
  expect(JSON.parse(outcome)).toEqual(await allRuns());
});
