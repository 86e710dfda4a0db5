/**
 * A signal between threads of a host: raised by one (often an interrupt handler), awaited by others.
 *
 * It takes effect at the raising thread's own time. Raised while no thread waits, it lets the next waiting thread pass at once;
 * several raises before that count as one.
 */
import { InvariantError, type Picoseconds, psPerUs } from '../base/index.ts';
import type { Core } from './core.ts';
import { CoreThread } from './core-thread.ts';

const notRaised = Number.POSITIVE_INFINITY;

/** The clock of a host: instants count from the epoch. */
export interface HostClock {
  readonly epochUs: number;
  /** Own time of the thread whose code runs, or simulated time. */
  readonly nowPs: Picoseconds;
}

export class Signal {
  readonly #clock: HostClock;
  readonly #waiting: CoreThread[] = [];
  /** Instant at which it was raised without a waiting thread, in the epoch of that time. */
  #raisedPs = notRaised;
  #raisedUs = 0;

  constructor(clock: HostClock) {
    this.#clock = clock;
  }

  raise(): void {
    const { epochUs, nowPs: atPs } = this.#clock;
    // A thread whose time has passed may not have left the list yet.
    const waiting = this.#waiting.filter(({ isAwaiting }) => isAwaiting);
    this.#waiting.length = 0;
    if (waiting.length === 0) {
      this.#raisedPs = Math.min(this.#raisedIn(epochUs), atPs);
      this.#raisedUs = epochUs;
      return;
    }
    for (const thread of waiting) thread.core.waits.wakeAt(thread, atPs);
  }

  /**
   * Yields the core until the signal is raised, or for `timeoutPs`: then it returns false.
   * @param cpu a thread of this host
   */
  async wait(cpu: unknown, timeoutPs?: Picoseconds): Promise<boolean> {
    const thread = threadOf(cpu);
    const raisedPs = this.#raisedIn(this.#clock.epochUs);
    const nowPs = thread.ownPs;
    if (raisedPs <= nowPs) {
      this.#raisedPs = notRaised;
      return true;
    }
    if (raisedPs !== notRaised && (timeoutPs === undefined || raisedPs - nowPs <= timeoutPs)) {
      this.#raisedPs = notRaised;
      thread.core.waits.wakeAt(thread, raisedPs);
      return thread.waitForWake();
    }
    this.#waiting.push(thread);
    let isRaised = false;
    try {
      isRaised = await thread.waitForWake(timeoutPs);
    } finally {
      const at = isRaised ? -1 : this.#waiting.indexOf(thread);
      if (at >= 0) this.#waiting.splice(at, 1);
    }
    return isRaised;
  }

  /** Instant at which it was raised, in the epoch that begins at `epochUs`. */
  #raisedIn(epochUs: number): number {
    return this.#raisedPs - (epochUs - this.#raisedUs) * psPerUs;
  }
}

/** The thread of a `cpu` that the driver or the library passes back. */
export function threadOf(cpu: unknown): CoreThread {
  if (cpu instanceof CoreThread) return cpu;
  throw new InvariantError('cpu', cpu, 'a thread of this host');
}

/** Own time of the thread whose code runs on one of these cores, or simulated time: in the epoch. */
export function instantOf(cores: readonly Core[]): number {
  for (const core of cores) if (core.running !== undefined) return core.running.ownPs;
  return cores[0]!.process.nowPs;
}
