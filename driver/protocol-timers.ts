/**
 * Time limits of a protocol of the kernel: any number of them on at most one timer of the kernel that is due in time. Those that are
 * due run on a kernel thread, in the order in which they are due, and must not wait.
 */
import type { Cpu, Stopwatch } from './platform.ts';

/** The kernel's timers are set for an hour at most: codes of time reach five (IBTA vol 1, 12.7.20), a program's time-outs 24 days. */
const longestPs = 3600e12;

/** What a kernel has of time and threads. @template Thread what runs */
export interface TimerPlatform<Thread extends Cpu = Cpu> {
  stopwatch(): Stopwatch;
  startTimer?(delayPs: number, due: () => void, purpose: 'protocol'): void;
  spawn(name: string, body: (cpu: Thread) => Promise<void>): void;
}

export interface ProtocolTimer {
  /** It will not run any more. */
  cancel(): void;
}

interface Entry<Thread extends Cpu> extends ProtocolTimer {
  /** By {@link ProtocolTimers}' own time. */
  readonly duePs: bigint;
  /** How many were started before it. */
  readonly number: number;
  run: ((cpu: Thread) => void) | undefined;
}

/** @template Thread what they run on */
export class ProtocolTimers<Thread extends Cpu = Cpu> {
  readonly #platform: TimerPlatform<Thread>;
  readonly #threadName: string;
  /** Counts for hours, and is started anew before they are over: {@link #pastPs} is what was counted by those before. */
  #clock: Stopwatch;
  #pastPs = 0n;
  /** Sorted by when they are due; among equals, by when they were started. */
  readonly #entries: Entry<Thread>[] = [];
  #startedCount = 0;
  /** When the kernel's timer is due that is to be the next one, and how many were set up to it. */
  #armedPs: bigint | undefined;
  #armedCount = 0;

  /** @param threadName of the kernel thread on which they run */
  constructor(platform: TimerPlatform<Thread>, threadName: string) {
    this.#platform = platform;
    this.#threadName = threadName;
    this.#clock = platform.stopwatch();
  }

  /** With nothing to wait for, nobody has read the clock: it may have run for days. */
  #begin(): void {
    this.#clock = this.#platform.stopwatch();
    this.#armedPs = undefined;
  }

  /** Time since some beginning. While an entry waits it is read every hour. */
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

  /** A peer may have a timer set anew as often as it sends: what is cancelled does not wait for its time. */
  #remove(entry: Entry<Thread>): void {
    if (entry.run === undefined) return;
    entry.run = undefined;
    this.#entries.splice(this.#placeOf(entry), 1);
  }

  /** Where an entry is, or belongs: behind all that are due sooner, or were started sooner and are due with it. */
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

  /** A timer that an earlier one has replaced finds nothing to do. */
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
