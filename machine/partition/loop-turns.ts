/**
 * Lets the event loop run in a machine's thread: otherwise timers, signals and messages would wait until the run ends.
 * Real time decides when, and nothing simulated depends on it: a run pauses between two turns of its processes.
 */
import { runtime } from '../../base/index.ts';

/** Longest real time in ms that a run may keep the thread. A turn of the event loop costs some ten microseconds. */
const sliceMs = 20;

export class LoopTurns {
  #sinceMs = performance.now();

  /** @returns a promise to await once the time slice is used up; undefined before */
  due(): Promise<void> | undefined {
    if (performance.now() - this.#sinceMs < sliceMs) return undefined;
    return new Promise((resolve) => {
      runtime().defer(() => {
        this.#sinceMs = performance.now();
        resolve();
      });
    });
  }
}
