/**
 * Turns for the event loop of the thread in which a machine runs: without them timers, signals and messages would wait until the
 * run ends. Real time decides when, and nothing simulated depends on it: a run pauses between two turns of its processes.
 */
import { runtime } from '../../base/index.ts';

/** Real time that a run may keep the thread (ms). A turn of the loop costs some ten microseconds. */
const sliceMs = 20;

export class LoopTurns {
  #sinceMs = performance.now();

  /** @returns what to await when the slice is used up; undefined before */
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
