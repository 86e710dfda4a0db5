/**
 * A queue that threads block on: completion channels and asynchronous events. Items come in arrival order; each goes to
 * one thread. Its length is bounded by what it holds: at most one completion event per CQ in flight after each arming.
 */
import type { Cpu, Signal, Stopwatch } from './platform.ts';

export class BlockingQueue<T> {
  private readonly items: T[] = [];
  private readonly filled: Signal;
  private readonly stopwatch: () => Stopwatch;
  private isClosed = false;

  constructor(newSignal: () => Signal, stopwatch: () => Stopwatch) {
    this.filled = newSignal();
    this.stopwatch = stopwatch;
  }

  get length(): number {
    return this.items.length;
  }

  push(item: T): void {
    this.items.push(item);
    this.filled.raise();
  }

  /** The oldest item; undefined after `timeoutPs`, or if the queue is closed while the thread waits. */
  async take(cpu: Cpu, timeoutPs?: number): Promise<T | undefined> {
    await cpu.settle();
    const watch = this.stopwatch();
    while (this.items.length === 0 && !this.isClosed) {
      if (timeoutPs === undefined) await this.filled.wait(cpu);
      else if (!(await this.filled.wait(cpu, Math.max(0, timeoutPs - watch.elapsedPs)))) break;
    }
    return this.items.shift();
  }

  /** Drops the items that `isStale` names. @returns how many */
  drop(isStale: (item: T) => boolean): number {
    const kept = this.items.filter((item) => !isStale(item));
    const dropped = this.items.length - kept.length;
    this.items.splice(0, this.items.length, ...kept);
    return dropped;
  }

  /** Wakes all waiting threads; they receive no item. */
  close(): void {
    this.isClosed = true;
    this.items.length = 0;
    this.filled.raise();
  }
}
