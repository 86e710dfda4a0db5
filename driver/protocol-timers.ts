/**
 * Time limits of a protocol of the kernel: any number of them share one kernel timer. Expired entries run on a kernel thread,
 * in order of expiry, and must not wait.
 */
import type { Cpu, Stopwatch } from './platform.ts';

/** Kernel timers are set for at most an hour: time codes reach five hours (IBTA vol 1, 12.7.20), a program's time-outs 24 days. */
const longestPs = 3600e12;

/** Time and threads that the kernel provides. @template Thread context in which entries run */
export interface TimerPlatform<Thread extends Cpu = Cpu> {
  stopwatch(): Stopwatch;
  startTimer?(delayPs: number, due: () => void, purpose: 'protocol'): void;
  spawn(name: string, body: (cpu: Thread) => Promise<void>): void;
}

export interface ProtocolTimer {
  /** Cancels it. */
  cancel(): void;
}

interface Entry<Thread extends Cpu> extends ProtocolTimer {
  /** Expiry in {@link ProtocolTimers}' own time. */
  readonly duePs: bigint;
  /** Number of timers started earlier. */
  readonly number: number;
  run: ((cpu: Thread) => void) | undefined;
}

/** @template Thread context in which they run */
export class ProtocolTimers<Thread extends Cpu = Cpu> {
  readonly #platform: TimerPlatform<Thread>;
  readonly #threadName: string;
  /** Counts for up to hours and is restarted in time: {@link #pastPs} holds the sum of earlier counts. */
  #clock: Stopwatch;
  #pastPs = 0n;
  /** Sorted by expiry; among equals, by start. */
  readonly #entries: Entry<Thread>[] = [];
  #startedCount = 0;
  /** Expiry of the kernel timer for the next entry, and the number of kernel timers set so far. */
  #armedPs: bigint | undefined;
  #armedCount = 0;

  /** @param threadName name of the kernel thread on which they run */
  constructor(platform: TimerPlatform<Thread>, threadName: string) {
    this.#platform = platform;
    this.#threadName = threadName;
    this.#clock = platform.stopwatch();
  }

  /** Without a waiting entry the clock was not read: it may have run for days. */
  #begin(): void {
    this.#clock = this.#platform.stopwatch();
    this.#armedPs = undefined;
  }

  /** Time since a fixed origin. While an entry waits it is read every hour. */
  get #nowPs(): bigint {
    const { elapsedPs } = this.#clock;
    const nowPs = this.#pastPs + BigInt(elapsedPs);
    if (elapsedPs >= longestPs) {
      this.#clock = this.#platform.stopwatch();
      this.#pastPs = nowPs;
    }
    return nowPs;
  }

  /** Runs `run` after this time, a whole number of picoseconds. */
  after(delayPs: number, run: (cpu: Thread) => void): ProtocolTimer {
    if (this.#entries.length === 0) this.#begin();
    const entry: Entry<Thread> = {
      duePs: this.#nowPs + BigInt(delayPs),
      number: this.#startedCount++,
      run,
      cancel: () => this.#remove(entry),
    };
    this.#entries.splice(this.#placeOf(entry), 0, entry);
    this.#arm();
    return entry;
  }

  /** Cancels all. */
  close(): void {
    for (const entry of this.#entries.splice(0)) entry.run = undefined;
  }

  /** A peer can restart a timer as often as it sends: cancelled entries are removed at once. */
  #remove(entry: Entry<Thread>): void {
    if (entry.run === undefined) return;
    entry.run = undefined;
    this.#entries.splice(this.#placeOf(entry), 1);
  }

  /** Index of an entry, or where it belongs: after all that expire earlier, and those of the same expiry that were started earlier. */
  #placeOf({ duePs, number }: Entry<Thread>): number {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#entries[middle]!;
      if (other.duePs < duePs || (other.duePs === duePs && other.number < number)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #arm(): void {
    const duePs = this.#entries[0]?.duePs;
    if (duePs === undefined || (this.#armedPs !== undefined && duePs >= this.#armedPs)) return;
    this.#armedPs = duePs;
    const delayPs = Math.min(longestPs, Math.max(0, Number(duePs - this.#nowPs)));
    const armed = ++this.#armedCount;
    this.#platform.startTimer?.(delayPs, () => this.#due(armed), 'protocol');
  }

  /** A timer replaced by an earlier one does nothing. */
  #due(armed: number): void {
    if (armed !== this.#armedCount) return;
    this.#armedPs = undefined;
    const [first] = this.#entries;
    if (first === undefined) return;
    if (first.duePs > this.#nowPs) this.#arm();
    else this.#platform.spawn(this.#threadName, (cpu) => this.#run(cpu));
  }

  async #run(cpu: Thread): Promise<void> {
    await cpu.settle();
    for (let first = this.#entries[0]; first !== undefined; first = this.#entries[0]) {
      if (first.duePs > this.#nowPs) break;
      this.#entries.shift();
      const { run } = first;
      first.run = undefined;
      run?.(cpu);
      await cpu.settle();
    }
    this.#arm();
  }
}
