/**
 * A lock for threads that wait for simulated time: the device's command register, a table that maps pages while it grows.
 * Waiters are woken together and the first to run takes the lock; the order of the machine's threads is deterministic.
 */
import type { Cpu, Signal } from './platform.ts';

export class Mutex {
  private isHeld = false;
  private readonly released: Signal;

  constructor(newSignal: () => Signal) {
    this.released = newSignal();
  }

  /** Runs `body` while no other thread is inside; the lock is released even if the body throws. */
  async run<T>(cpu: Cpu, body: () => Promise<T>): Promise<T> {
    while (this.isHeld) await this.released.wait(cpu);
    this.isHeld = true;
    try {
      return await body();
    } finally {
      this.isHeld = false;
      this.released.raise();
    }
  }
}
