/** Work of the kernel that may wait for commands: one piece at a time, in the order of the requests (alloc_ordered_workqueue). */
import { KernelError } from '../kernel-error.ts';
import type { Cpu, DriverPlatform } from '../platform.ts';

type Work = (cpu: Cpu) => Promise<void>;

export class SerialWork {
  readonly #platform: Pick<DriverPlatform, 'spawn' | 'log'>;
  readonly #name: string;
  /** At most one piece for each event of a connection that has no answer yet: the device sends none before. */
  readonly #waiting: Work[] = [];
  #isRunning = false;
  #isClosed = false;

  /** @param name of the kernel thread */
  constructor(platform: Pick<DriverPlatform, 'spawn' | 'log'>, name: string) {
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

  /** Work that has not begun is dropped. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
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
