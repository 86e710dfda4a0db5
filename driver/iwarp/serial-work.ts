/** Work of the kernel that may wait for commands: one piece at a time, in the order of the requests (alloc_ordered_workqueue). */
import { KernelError } from '../kernel-error.ts';
import type { Cpu, DriverPlatform, Signal } from '../platform.ts';

type Work = (cpu: Cpu) => Promise<void>;
type Platform = Pick<DriverPlatform, 'spawn' | 'log' | 'newSignal'>;

export class SerialWork {
  readonly #platform: Platform;
  readonly #name: string;
  /** At most one piece for each event of a connection that has no answer yet: the device sends none before. */
  readonly #waiting: Work[] = [];
  /** Signals of the threads that wait for the end of a piece. */
  readonly #awaited = new Set<Signal>();
  #isRunning = false;
  #isClosed = false;

  /** @param name of the kernel thread */
  constructor(platform: Platform, name: string) {
    this.#platform = platform;
    this.#name = name;
  }

  /** Runs `work` after everything requested before. An error of the kernel ends that piece and goes to the kernel's log. */
  run(work: Work): void {
    if (this.#isClosed) return;
    this.#waiting.push(work);
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#platform.spawn(this.#name, (cpu) => this.#runAll(cpu));
  }

  /** Runs `work` likewise, and returns when it has ended or was dropped. @throws KernelError of the work */
  async runToEnd(cpu: Cpu, work: Work): Promise<void> {
    if (this.#isClosed) return;
    const ended = this.#platform.newSignal();
    // An object: machine images hold no variable that a closure changes (test/machine-image.spec.ts).
    const outcome: { failure?: KernelError } = {};
    this.#awaited.add(ended);
    this.run(async (thread) => {
      try {
        await work(thread);
      } catch (error) {
        if (!(error instanceof KernelError)) throw error;
        outcome.failure = error;
      } finally {
        ended.raise();
      }
    });
    await ended.wait(cpu);
    this.#awaited.delete(ended);
    if (outcome.failure !== undefined) throw outcome.failure;
  }

  /** Work that has not begun is dropped. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    for (const ended of this.#awaited) ended.raise();
  }

  async #runAll(cpu: Cpu): Promise<void> {
    await cpu.settle();
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      try {
        await next(cpu);
      } catch (error) {
        if (!(error instanceof KernelError)) throw error;
        this.#platform.log?.(`${this.#name}: ${error.message}`);
      }
      await cpu.settle();
    }
    this.#isRunning = false;
  }
}
