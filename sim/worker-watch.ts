/**
 * Watches worker threads from the thread that started them, so that a worker that fails to start, is terminated or runs out of
 * memory ends the run of all others. Otherwise they would wait for it.
 */
import type { RunError } from './run-errors.ts';
import { RunAbortedError } from './run-errors.ts';
import type { SharedControl } from './shared-control.ts';

/** The part of a worker thread that is used. */
export interface WatchedWorker {
  once(event: 'error', listener: (error: Error) => void): unknown;
  once(event: 'exit', listener: (exitCode: number) => void): unknown;
}

/**
 * Reports the loss of worker number `worker` to the others when it ends, for any reason. The caller starts watching before the
 * first run; after all runs, the end of a worker has no effect.
 * @returns a promise that never resolves, and rejects with the run's error when this worker ends: race it against
 *   the answer expected from the worker
 */
export function watchWorker(control: SharedControl, worker: number, thread: WatchedWorker): Promise<never> {
  const lost = new Promise<never>((_, reject) => {
    const report = (reason: string): void => {
      control.reportLost(worker, reason);
      reject(failureOf(control));
    };
    thread.once('error', (error) => report(`${error.name}: ${error.message}`));
    thread.once('exit', (exitCode) => report(`it ended with exit code ${exitCode}`));
  });
  // A worker that ends while no call races must not cause an unhandled rejection.
  lost.catch(() => undefined);
  return lost;
}

function failureOf(control: SharedControl): RunError {
  return control.failure ?? new RunAbortedError('another worker reports why');
}
