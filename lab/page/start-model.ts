/**
 * The simulating worker. The page's first script is this module alone, so that the slowest part of the first picture
 * loads before the page. Views that start with other questions start the worker when they first need it.
 */
let worker: Worker | undefined;

/** The only one of the page. */
export function modelWorker(): Worker {
  worker ??= new Worker(new URL('./model.worker.js', import.meta.url), { type: 'module', name: 'model' });
  return worker;
}

if (globalThis.crossOriginIsolated && !/\bview=(?:what-if|program|linux)\b/.test(location.hash))
  modelWorker();
