/**
 * Threads that wait for something to happen to a socket. A wake-up is charged and counted if a thread waits; a woken thread
 * checks its condition again.
 */
import type { NetStatistics } from '../net-statistics.ts';
import type { Cpu, NetPlatform, Signal } from '../platform.ts';

export class WaitQueue {
  readonly #signal: Signal;
  readonly #counts: NetStatistics;
  readonly #wakeUpCycles: number;
  readonly #others = new Set<WaitQueue>();
  #waiters = 0;
  #isWoken = false;

  constructor(platform: NetPlatform, counts: NetStatistics, wakeUpCycles: number) {
    this.#signal = platform.newSignal();
    this.#counts = counts;
    this.#wakeUpCycles = wakeUpCycles;
  }

  /** Wakes the threads that wait here, and those of linked queues. */
  wake(cpu: Cpu): void {
    for (const other of this.#others) other.wake(cpu);
    if (this.#waiters === 0 || this.#isWoken) return;
    this.#isWoken = true;
    this.#counts.wakeUps += this.#waiters;
    cpu.charge('wakeUp', this.#wakeUpCycles * this.#waiters);
    this.#signal.raise();
  }

  /** Yields the core until woken, or for `timeoutPs`: then false. */
  async wait(cpu: Cpu, timeoutPs?: number): Promise<boolean> {
    this.#waiters++;
    this.#isWoken = false;
    this.#counts.contextSwitches++;
    try {
      return await this.#signal.wait(cpu, timeoutPs);
    } finally {
      this.#waiters--;
    }
  }

  /** Wakes another queue together with this one, until {@link ignore}. */
  forwardTo(other: WaitQueue): void {
    this.#others.add(other);
  }

  ignore(other: WaitQueue): void {
    this.#others.delete(other);
  }
}
