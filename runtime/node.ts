/**
 * Node.js as the model's runtime. To be imported first by whatever starts a process or a thread in which machines are made: the
 * library, commands, workers, benches.
 */
import { Worker } from 'node:worker_threads';
import { useRuntime } from '../base/runtime.ts';
import { endpointOf } from './endpoint.ts';
import { readSmallFile } from './files.ts';
import { allowMoreInlining } from './inlining.ts';
import { TraceFile } from './trace-file.ts';

/** This module's own ending: workers are `.ts` in the repository and compiled in the package. */
const partWorkerUrl = new URL(
  import.meta.url.endsWith('.ts') ? './part-worker.ts' : './part-worker.js',
  import.meta.url,
);

const engineCopy = Buffer.prototype.copy;

allowMoreInlining();

useRuntime({
  version: process.version,
  defer: (action) => void setImmediate(action),
  copyBytes: (to, toOffset, from, fromOffset, lengthBytes) =>
    void engineCopy.call(from, to, toOffset, fromOffset, fromOffset + lengthBytes),
  readText: readSmallFile,
  openLog: (file, sizeBytes) => new TraceFile(file, sizeBytes),
  startPart(order) {
    const worker = new Worker(partWorkerUrl, { workerData: order });
    return Object.assign(worker, { endpoint: endpointOf(worker) });
  },
});
