/**
 * The worker that simulates. The page's first script is this module alone: what the first picture waits for longest begins to load
 * before the page does. Views that ask other things first start it when they ask.
 */
let worker: Worker | undefined;

/** The page's only one. */
export function modelWorker(): Worker {
  worker ??= new Worker(new URL('./model.worker.js', import.meta.url), { type: 'module', name: 'model' });
  return worker;
}

if (globalThis.crossOriginIsolated && !/\bview=(?:what-if|program)\b/.test(location.hash)) modelWorker();
