/**
 * Runs due callbacks of promises within a call: for a thread that does not return to its event loop but must continue async
 * programs.
 *
 * Node.js does so by itself when a callback of the event loop returns, and has no documented function for it. This is its
 * internal one: `process._tickCallback`, which exists in all supported versions, and whose behaviour a spec checks.
 */
import { ConfigurationError } from '../base/index.ts';

/** Undefined in another runtime, where no simulated host is next to a guest, and so none needs this. */
const tick = (globalThis as { readonly process?: NodeJS.Process & { readonly _tickCallback?: () => void } })
  .process?._tickCallback;

/**
 * Runs all due callbacks of promises, and those that they make due. Does nothing if called from such a callback.
 * @returns whether they were run
 * @throws ConfigurationError in a runtime that cannot
 */
export function runMicrotasks(): boolean {
  if (tick === undefined)
    throw new ConfigurationError('runtime', process.version, 'Node.js with process._tickCallback');
  let hasRun = false;
  queueMicrotask(() => {
    hasRun = true;
  });
  tick.call(process);
  return hasRun;
}
