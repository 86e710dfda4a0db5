/**
 * Runs what promises have due, within a call: for a thread that blocks on something else than its event loop and yet has async
 * programs to carry on.
 *
 * Node.js does so by itself when a callback of the event loop returns, and has no documented function for it. This one is its own:
 * `process._tickCallback`, which is there for all versions that the package runs on, and which a spec holds to what is said here.
 */
import { ConfigurationError } from '../base/index.ts';

const { _tickCallback: tick } = process as NodeJS.Process & { readonly _tickCallback?: () => void };

/**
 * Runs all callbacks of promises that are due, and those that become due by them. Called out of one of them it does nothing.
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

/** Has `act` called by the event loop, where {@link runMicrotasks} works. */
export function outsideOfMicrotasks<T>(act: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    setImmediate(() => {
      try {
        resolve(act());
      } catch (error) {
        reject(error);
      }
    });
  });
}
