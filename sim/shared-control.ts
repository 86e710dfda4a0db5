/**
 * The memory by which worker threads run one machine together. It holds nothing of the model: only how long each logical
 * process has promised to be silent, which workers sleep, and why the run was ended.
 *
 *     line     owner            words
 *     global   everyone         abort state · epoch · barrier arrivals and phase · abort record and its text
 *     worker   others | itself  signal and parked | sleep sequence (odd: asleep) · arguments of the run
 *     process  its worker       promise (ring of 8 times) | ended, end time, next time (valid while asleep)
 *     channel  writer | reader  sent, from, to, latency | consumed (valid while asleep)
 *
 * Every line has one writer at a time and is 64 bytes, so that threads do not steal lines from one another. An instant takes
 * two 32-bit words; readers detect torn pairs by the counter stored after them.
 */

import { ConfigurationError, NEVER, type Picoseconds } from '../base/index.ts';
import { numberChannel } from './channel.ts';
import { exactPs } from './epoch.ts';
import { ProcessFailedError, RunAbortedError, type RunError, WorkerLostError } from './run-errors.ts';

const LINE = 16;
const GLOBAL_WORDS = 20 * LINE;
const WORKER_WORDS = 2 * LINE;
const PROCESS_WORDS = 3 * LINE;
const CHANNEL_WORDS = 2 * LINE;

const ABORT = 0;
const EPOCH = 2;
const BARRIER_ARRIVED = LINE;
const BARRIER_PHASE = 2 * LINE;
const ABORT_KIND = 3 * LINE;
const ABORT_PROCESS = ABORT_KIND + 1;
const ABORT_TEXT_BYTES = ABORT_KIND + 2;
const ABORT_TIME = ABORT_KIND + 4;
const ABORT_TEXT = 4 * LINE;
const TEXT_BYTES_MAX = (GLOBAL_WORDS - ABORT_TEXT) * 4;

/** The phase grows by this at every barrier; its lowest bit tells that the run was ended. */
const PHASE_STEP = 2;
const PHASE_ABORTED = 1;

const ABORT_NONE = 0;
const ABORT_COMPLETE = 2;
const KIND_NONE = 0;
const KIND_FAILED = 1;
const KIND_LOST = 2;

const SIGNAL = 0;
const PARKED = 1;
const SLEEP = LINE;
const RUN_DRAIN = LINE + 2;
const RUN_LIMIT = LINE + 4;

const PROMISE_COUNT = 0;
const PROMISE_SLOTS = LINE;
const PROMISE_SLOT_MASK = 7;
const ENDED = 2 * LINE;
const ENDED_TIME = 2 * LINE + 2;
const NEXT_TIME = 2 * LINE + 4;

const SENT = 0;
const FROM = 1;
const TO = 2;
const LATENCY = 4;
const CONSUMED = LINE;

/** A waiting thread checks this often even if it is not woken. */
const PARK_MS = 500;
const WORD = 2 ** 32;

/** Plain data from which every thread builds its {@link SharedControl}. */
export interface SharedControlPlan {
  readonly buffer: SharedArrayBuffer;
  /** Names of the logical processes of each worker. */
  readonly workers: readonly (readonly string[])[];
  readonly channelCount: number;
}

/**
 * Lays out the control memory of a machine and numbers its channels.
 * @param workers names of the logical processes of each worker
 * @param channels the memory of every channel of the machine
 */
export function planSharedControl(
  workers: readonly (readonly string[])[],
  channels: readonly SharedArrayBuffer[],
): SharedControlPlan {
  const names = workers.flat();
  if (new Set(names).size !== names.length) {
    throw new ConfigurationError(
      'names of logical processes',
      names.join(', '),
      'different from one another',
    );
  }
  const words =
    GLOBAL_WORDS +
    workers.length * WORKER_WORDS +
    names.length * PROCESS_WORDS +
    channels.length * CHANNEL_WORDS;
  channels.forEach((channel, index) => {
    numberChannel(channel, index);
  });
  return { buffer: new SharedArrayBuffer(words * 4), workers, channelCount: channels.length };
}

export class SharedControl {
  readonly processNames: readonly string[];
  readonly workerCount: number;
  readonly channelCount: number;
  /** Worker of each process. */
  readonly workerOf: readonly number[];
  readonly #words: Int32Array;
  readonly #processBase: number;
  readonly #channelBase: number;

  constructor(plan: SharedControlPlan) {
    this.processNames = plan.workers.flat();
    this.workerOf = plan.workers.flatMap((names, worker) => names.map(() => worker));
    this.workerCount = plan.workers.length;
    this.channelCount = plan.channelCount;
    this.#words = new Int32Array(plan.buffer);
    this.#processBase = GLOBAL_WORDS + this.workerCount * WORKER_WORDS;
    this.#channelBase = this.#processBase + this.processNames.length * PROCESS_WORDS;
  }

  /** Start of the epoch in microseconds: every worker stores the same value, between two runs. All other instants count from there. */
  get epochUs(): number {
    return this.#timeAt(EPOCH);
  }

  set epochUs(us: number) {
    this.#setTimeAt(EPOCH, us);
  }

  /** Instant of the epoch that every process has reached, in picoseconds: for a progress display. */
  get progressPs(): Picoseconds {
    let reachedPs = NEVER;
    for (let index = 0; index < this.processNames.length; index++) {
      reachedPs = Math.min(reachedPs, this.promisePs(index));
    }
    return reachedPs;
  }

  // Promises of processes.

  /** Promises that the process does nothing before `ps` except actions that are already visible. */
  promise(process: number, ps: number): void {
    const words = this.#words;
    const base = this.#processBase + process * PROCESS_WORDS;
    const count = (words[base + PROMISE_COUNT]! + 1) | 0;
    const slot = base + PROMISE_SLOTS + (count & PROMISE_SLOT_MASK) * 2;
    words[slot] = ps | 0;
    words[slot + 1] = ps === NEVER ? -1 : ps / WORD;
    Atomics.store(words, base + PROMISE_COUNT, count);
  }

  /** The last promise of the process. */
  promisePs(process: number): number {
    const words = this.#words;
    const base = this.#processBase + process * PROCESS_WORDS;
    for (;;) {
      const count = Atomics.load(words, base + PROMISE_COUNT);
      const ps = this.#timeAt(base + PROMISE_SLOTS + (count & PROMISE_SLOT_MASK) * 2);
      if (((Atomics.load(words, base + PROMISE_COUNT) - count) | 0) < PROMISE_SLOT_MASK) return ps;
    }
  }

  /** Publishes whether all members of the process have ended, and when the last one did. */
  setEnded(process: number, isEnded: boolean, endedPs: Picoseconds): void {
    const base = this.#processBase + process * PROCESS_WORDS;
    if (isEnded) this.#setTimeAt(base + ENDED_TIME, endedPs);
    Atomics.store(this.#words, base + ENDED, isEnded ? 1 : 0);
  }

  isEnded(process: number): boolean {
    return Atomics.load(this.#words, this.#processBase + process * PROCESS_WORDS + ENDED) === 1;
  }

  /** When the last member ended; valid once {@link isEnded}. */
  endedPs(process: number): number {
    return this.#timeAt(this.#processBase + process * PROCESS_WORDS + ENDED_TIME);
  }

  /** Next due instant of the process; valid while its worker sleeps, and after a run. */
  nextPs(process: number): number {
    return this.#timeAt(this.#processBase + process * PROCESS_WORDS + NEXT_TIME);
  }

  setNext(process: number, ps: number): void {
    this.#setTimeAt(this.#processBase + process * PROCESS_WORDS + NEXT_TIME, ps);
  }

  // Channels.

  /** The writing end's worker registers its process. */
  registerWriter(channel: number, from: number): void {
    this.#words[this.#channelWord(channel, FROM)] = from + 1;
  }

  /** The reading end's worker registers its process. */
  registerReader(channel: number, to: number, latencyPs: Picoseconds): void {
    this.#words[this.#channelWord(channel, TO)] = to + 1;
    this.#setTimeAt(this.#channelWord(channel, LATENCY), latencyPs);
  }

  /** The processes at the ends of a channel (-1: none yet) and its latency. */
  channelEnds(channel: number): { from: number; to: number; latencyPs: Picoseconds } {
    return {
      from: this.#words[this.#channelWord(channel, FROM)]! - 1,
      to: this.#words[this.#channelWord(channel, TO)]! - 1,
      latencyPs: this.#timeAt(this.#channelWord(channel, LATENCY)),
    };
  }

  /** The writer's tail, stored before the records become visible. */
  setSent(channel: number, tail: number): void {
    Atomics.store(this.#words, this.#channelWord(channel, SENT), tail);
  }

  /** The tail that the reader has seen, stored before its worker sleeps. */
  setConsumed(channel: number, tail: number): void {
    Atomics.store(this.#words, this.#channelWord(channel, CONSUMED), tail);
  }

  /** True if the reader, now asleep, had seen all sent records. */
  isConsumed(channel: number): boolean {
    const base = this.#channelWord(channel, 0);
    return Atomics.load(this.#words, base + SENT) === Atomics.load(this.#words, base + CONSUMED);
  }

  // Sleeping and waking.

  /** Odd while the worker is asleep; grows with every change. */
  sleepSequence(worker: number): number {
    return Atomics.load(this.#words, this.#workerWord(worker, SLEEP));
  }

  /** Goes to sleep or wakes; while asleep, {@link nextPs} and {@link isConsumed} of the worker hold. */
  toggleSleep(worker: number): void {
    Atomics.add(this.#words, this.#workerWord(worker, SLEEP), 1);
  }

  /** The value that the signal must still have when {@link park} begins to wait. */
  announceParking(worker: number): number {
    const signal = Atomics.load(this.#words, this.#workerWord(worker, SIGNAL));
    Atomics.store(this.#words, this.#workerWord(worker, PARKED), 1);
    return signal;
  }

  /** Waits until another worker wakes this one. */
  park(worker: number, signal: number): void {
    Atomics.wait(this.#words, this.#workerWord(worker, SIGNAL), signal, PARK_MS);
    this.unpark(worker);
  }

  /** Cancels {@link announceParking}. */
  unpark(worker: number): void {
    Atomics.store(this.#words, this.#workerWord(worker, PARKED), 0);
  }

  /** Wakes the worker if it is parked, or about to be. */
  wake(worker: number): void {
    const words = this.#words;
    const parked = this.#workerWord(worker, PARKED);
    if (Atomics.load(words, parked) === 0 || Atomics.exchange(words, parked, 0) === 0) return;
    const signal = this.#workerWord(worker, SIGNAL);
    Atomics.add(words, signal, 1);
    Atomics.notify(words, signal);
  }

  wakeAll(): void {
    for (let worker = 0; worker < this.workerCount; worker++) this.wake(worker);
  }

  /**
   * Waits until every worker has arrived here. Once all have, no later event keeps a worker from continuing.
   * @throws RunError if the run was ended before that
   */
  waitAtBarrier(): void {
    const words = this.#words;
    const phase = Atomics.load(words, BARRIER_PHASE) & ~PHASE_ABORTED;
    this.throwIfAborted();
    if (Atomics.add(words, BARRIER_ARRIVED, 1) + 1 === this.workerCount) {
      Atomics.store(words, BARRIER_ARRIVED, 0);
      Atomics.add(words, BARRIER_PHASE, PHASE_STEP);
      Atomics.notify(words, BARRIER_PHASE);
      return;
    }
    for (;;) {
      const now = Atomics.load(words, BARRIER_PHASE);
      if ((now & ~PHASE_ABORTED) !== phase) return;
      if (now !== phase) this.throwIfAborted();
      Atomics.wait(words, BARRIER_PHASE, now, PARK_MS);
    }
  }

  /** Publishes the run that this worker received. */
  setRun(worker: number, drainPs: Picoseconds, limitPs: Picoseconds): void {
    this.#setTimeAt(this.#workerWord(worker, RUN_DRAIN), drainPs);
    this.#setTimeAt(this.#workerWord(worker, RUN_LIMIT), limitPs);
  }

  /** True if the worker received the same run. */
  isSameRun(worker: number, drainPs: Picoseconds, limitPs: Picoseconds): boolean {
    return (
      this.#timeAt(this.#workerWord(worker, RUN_DRAIN)) === drainPs &&
      this.#timeAt(this.#workerWord(worker, RUN_LIMIT)) === limitPs
    );
  }

  // Ending a run early. The first report counts; later ones are dropped.

  /** Ends the run everywhere because code of this process threw an error. */
  reportFailure(process: number, instantPs: Picoseconds, reason: string): void {
    this.#abort(KIND_FAILED, process, instantPs, reason);
  }

  /** Ends the run everywhere because a worker ended, in whatever state. */
  reportLost(worker: number, reason: string): void {
    const process = this.workerOf.indexOf(worker);
    this.#abort(KIND_LOST, process, this.promisePs(process), reason);
  }

  /** Ends the run everywhere because the user requested it. */
  abort(reason: string): void {
    this.#abort(KIND_NONE, 0, 0, reason);
  }

  /** Error that ended the run early, if any. */
  get failure(): RunError | undefined {
    const words = this.#words;
    if (Atomics.load(words, ABORT) !== ABORT_COMPLETE) return undefined;
    const text = new Uint8Array(words.buffer, ABORT_TEXT * 4, words[ABORT_TEXT_BYTES]!);
    const reason = new TextDecoder().decode(text.slice());
    const name = this.processNames[words[ABORT_PROCESS]!]!;
    const instantPs = exactPs(this.epochUs, this.#timeAt(ABORT_TIME));
    if (words[ABORT_KIND] === KIND_FAILED) return new ProcessFailedError(name, instantPs, reason);
    if (words[ABORT_KIND] === KIND_LOST) return new WorkerLostError(name, instantPs, reason);
    return new RunAbortedError(reason);
  }

  /** The worker whose failure or loss ended the run; undefined if none did. Its own error has the most details. */
  get failedWorker(): number | undefined {
    const words = this.#words;
    if (Atomics.load(words, ABORT) !== ABORT_COMPLETE || words[ABORT_KIND] === KIND_NONE) return undefined;
    return this.workerOf[words[ABORT_PROCESS]!];
  }

  throwIfAborted(): void {
    if (Atomics.load(this.#words, ABORT) === ABORT_NONE) return;
    const failure = this.failure;
    if (failure !== undefined) throw failure;
  }

  #abort(kind: number, process: number, instantPs: Picoseconds, reason: string): void {
    const words = this.#words;
    if (Atomics.compareExchange(words, ABORT, ABORT_NONE, 1) !== ABORT_NONE) return;
    const text = new TextEncoder().encode(reason).subarray(0, TEXT_BYTES_MAX);
    new Uint8Array(words.buffer, ABORT_TEXT * 4).set(text);
    words[ABORT_TEXT_BYTES] = text.length;
    words[ABORT_KIND] = kind;
    words[ABORT_PROCESS] = process;
    this.#setTimeAt(ABORT_TIME, instantPs);
    Atomics.store(words, ABORT, ABORT_COMPLETE);
    this.wakeAll();
    Atomics.or(words, BARRIER_PHASE, PHASE_ABORTED);
    Atomics.notify(words, BARRIER_PHASE);
  }

  #workerWord(worker: number, word: number): number {
    return GLOBAL_WORDS + worker * WORKER_WORDS + word;
  }

  #channelWord(channel: number, word: number): number {
    return this.#channelBase + channel * CHANNEL_WORDS + word;
  }

  #timeAt(word: number): number {
    const high = Atomics.load(this.#words, word + 1);
    return high === -1 ? NEVER : high * WORD + (Atomics.load(this.#words, word) >>> 0);
  }

  #setTimeAt(word: number, ps: number): void {
    this.#words[word] = ps | 0;
    this.#words[word + 1] = ps === NEVER ? -1 : ps / WORD;
  }
}
