/**
 * Time limits of connections: any number of them on at most one timer of the kernel that is due in time. Those that are
 * due run on a kernel thread, in the order in which they are due, and must not wait.
 */
import type { Cpu, DriverPlatform, Stopwatch } from '../platform.ts';

export interface CmTimer {
  /** It will not run any more. */
  cancel(): void;
}

interface Entry extends CmTimer {
  readonly duePs: number;
  run: ((cpu: Cpu) => void) | undefined;
}

export class CmTimers {
  readonly #platform: DriverPlatform;
  readonly #clock: Stopwatch;
  /** Sorted by when they are due; among equals, by when they were started. */
  readonly #entries: Entry[] = [];
  /** When the kernel's timer is due that is to be the next one. */
  #armedPs = Number.POSITIVE_INFINITY;

  constructor(platform: DriverPlatform) {
    this.#platform = platform;
    this.#clock = platform.stopwatch();
  }

  /** Runs `run` after this time. */
  after(delayPs: number, run: (cpu: Cpu) => void): CmTimer {
    const entry: Entry = {
      duePs: this.#clock.elapsedPs + delayPs,
      run,
      cancel: () => {
        entry.run = undefined;
      },
    };
    this.#entries.splice(this.#placeOf(entry.duePs), 0, entry);
    this.#arm();
    return entry;
  }

  /** Cancels all. */
  close(): void {
    for (const entry of this.#entries.splice(0)) entry.cancel();
  }

  /** Behind all entries that are due by then. */
  #placeOf(duePs: number): number {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#entries[middle]!.duePs > duePs) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The first entry that was not cancelled. */
  #first(): Entry | undefined {
    while (this.#entries.length > 0 && this.#entries[0]!.run === undefined) this.#entries.shift();
    return this.#entries[0];
  }

  #arm(): void {
    const duePs = this.#first()?.duePs ?? Number.POSITIVE_INFINITY;
    if (duePs >= this.#armedPs) return;
    this.#armedPs = duePs;
    const delayPs = Math.max(0, duePs - this.#clock.elapsedPs);
    this.#platform.startTimer?.(delayPs, () => this.#due(duePs), 'protocol');
  }

  /** A timer that an earlier one has replaced finds nothing to do. */
  #due(armedPs: number): void {
    if (armedPs !== this.#armedPs) return;
    this.#armedPs = Number.POSITIVE_INFINITY;
    const first = this.#first();
    if (first === undefined) return;
    if (first.duePs > this.#clock.elapsedPs) this.#arm();
    else this.#platform.spawn('ib_cm', (cpu) => this.#run(cpu));
  }

  async #run(cpu: Cpu): Promise<void> {
    await cpu.settle();
    for (let first = this.#first(); first !== undefined; first = this.#first()) {
      if (first.duePs > this.#clock.elapsedPs) break;
      this.#entries.shift();
      first.run?.(cpu);
      await cpu.settle();
    }
    this.#arm();
  }
}
