/**
 * Threads that want a core: interrupt vectors, kernel threads, the program.
 *
 * The order does not depend on the order of events within one instant: of pending vectors the highest is served first, as by a
 * local APIC; threads queue by the instant at which they became ready, then by their slots. A thread that lost the core is
 * first in its level.
 */
import type { Picoseconds } from '../base/index.ts';
import type { BlockState } from '../sim/index.ts';
import { type CoreThread, levelInterrupt, levelKernel, levelProgram } from './core-thread.ts';

const noThread = -1;

export class ReadyQueue {
  readonly #threads: readonly [CoreThread[], CoreThread[]] = [[], []];
  readonly #vectors: number[] = [];

  /** Level of the first waiting thread, -1 if no thread waits. */
  get highestLevel(): number {
    if (this.#vectors.length > 0) return levelInterrupt;
    if (this.#threads[levelKernel].length > 0) return levelKernel;
    return this.#threads[levelProgram].length > 0 ? levelProgram : noThread;
  }

  addVector(vector: number): void {
    this.#vectors.push(vector);
  }

  inspect(): BlockState {
    const namesOf = (level: 0 | 1): string[] => this.#threads[level].map(({ name }) => name);
    const vectors = [...this.#vectors].sort((one, other) => one - other);
    return { vectors, kernel: namesOf(levelKernel), program: namesOf(levelProgram) };
  }

  /** Takes the highest pending vector. */
  takeVector(): number {
    const vector = Math.max(...this.#vectors);
    this.#vectors.splice(this.#vectors.indexOf(vector), 1);
    return vector;
  }

  /** Adds a thread that becomes ready at `nowPs`. */
  add(thread: CoreThread, nowPs: Picoseconds): void {
    const queue = this.#queueOf(thread.level);
    thread.readyPs = nowPs;
    let at = queue.length;
    while (at > 0 && queue[at - 1]!.readyPs === nowPs && queue[at - 1]!.slot > thread.slot) at--;
    queue.splice(at, 0, thread);
  }

  /** Adds a thread that lost the core as the first of its level. */
  putBack(thread: CoreThread): void {
    thread.readyPs = Number.NEGATIVE_INFINITY;
    this.#queueOf(thread.level).unshift(thread);
  }

  /** Takes the first thread of a non-empty level. */
  take(level: number): CoreThread {
    return this.#queueOf(level).shift()!;
  }

  #queueOf(level: number): CoreThread[] {
    return level === levelKernel ? this.#threads[levelKernel] : this.#threads[levelProgram];
  }
}
