/**
 * A signal between threads of a host: raised by one (often an interrupt handler), awaited by others.
 *
 * It takes effect at the raising thread's own time. Raised while nobody waits, it lets the next thread that waits
 * through at once; several raises until then are one.
 */
import { InvariantError } from '../base/assert.ts';
import type { Core } from './core.ts';
import { CoreThread } from './core-thread.ts';

const notRaised = Number.POSITIVE_INFINITY;

export class Signal {
  readonly #instantPs: () => number;
  readonly #waiting: CoreThread[] = [];
  #raisedPs = notRaised;

  /** @param instantPs the own time of the thread whose code runs, else simulated time */
  constructor(instantPs: () => number) {
    this.#instantPs = instantPs;
  }

  raise(): void {
    const atPs = this.#instantPs();
    if (this.#waiting.length === 0) {
      this.#raisedPs = Math.min(this.#raisedPs, atPs);
      return;
    }
    for (const thread of this.#waiting) thread.core.waits.wakeAt(thread, atPs);
    this.#waiting.length = 0;
  }

  /**
   * Gives the core up until the signal is raised, or for `timeoutPs`: then it returns false.
   * @param cpu a thread of this host
   */
  async wait(cpu: unknown, timeoutPs?: number): Promise<boolean> {
    const thread = threadOf(cpu);
    const raisedPs = this.#raisedPs;
    const nowPs = thread.localPs;
    const deadlinePs = timeoutPs === undefined ? notRaised : nowPs + timeoutPs;
    if (raisedPs <= nowPs) {
      this.#raisedPs = notRaised;
      return true;
    }
    if (raisedPs !== notRaised && raisedPs <= deadlinePs) {
      this.#raisedPs = notRaised;
      thread.core.waits.wakeAt(thread, raisedPs);
      return thread.waitForWake();
    }
    this.#waiting.push(thread);
    let isRaised = false;
    try {
      isRaised = await thread.waitForWake(deadlinePs);
    } finally {
      const at = isRaised ? -1 : this.#waiting.indexOf(thread);
      if (at >= 0) this.#waiting.splice(at, 1);
    }
    return isRaised;
  }
}

/** The thread behind a `cpu` that the driver or the library hands back. */
export function threadOf(cpu: unknown): CoreThread {
  if (cpu instanceof CoreThread) return cpu;
  throw new InvariantError('cpu', cpu, 'a thread of this host');
}

/** Own time of the thread whose code runs on one of these cores, else simulated time. */
export function instantOf(cores: readonly Core[]): number {
  for (const core of cores) if (core.running !== undefined) return core.running.localPs;
  return cores[0]!.process.nowPs;
}
