/**
 * A thread of control on one core: a program, a kernel thread, or the core's interrupt context. Software holds it as its `cpu`.
 *
 * A thread's code runs while simulated time stands still. It charges cycles, which moves the core's own time
 * ahead, and then waits for simulated time with settle, spin, sleep, a signal or a load. One wait at a time:
 *
 *     running ──settle──> busy ──> running          (core's own time reached)
 *             ──spin────> spinning ──> running      (condition holds at the end of a round)
 *             ──load────> busy ──> loading ──> running
 *             ──sleep───> busy ──> waiting ··· ready ──> running    (off the core in between)
 *     busy, spinning ──preempted──> ready ──> busy, spinning
 *
 * The core owns the fields; programs see a thread only through the interfaces of driver and userlib.
 */

import {
  asInteger,
  ConfigurationError,
  InvariantError,
  NEVER,
  type Picoseconds,
  type Wide,
} from '../base/index.ts';
import {
  type BlockState,
  type EventRef,
  type ExactPs,
  exactPs,
  numberOfPs,
  type Stopwatch,
  startStopwatch,
} from '../sim/index.ts';
import type { Core } from './core.ts';
import { type CpuCause, indexOfCause } from './cpu-account.ts';
import { type AccessDone, failedLoadValue } from './device-port.ts';
import type { MarkedOperation } from './marked-operation.ts';
import { StoreBuffer, storeToMemory, storeUncached, storeWriteCombining } from './store-buffer.ts';

/** Levels of threads: a higher one takes the core from a lower one. */
export const levelProgram = 0;
export const levelKernel = 1;
export const levelInterrupt = 2;

export type ThreadMode = 'running' | 'busy' | 'spinning' | 'loading' | 'ready' | 'waiting' | 'ended';

/** Next step when a busy thread's own time is reached. */
export type AfterBusy = 'resume' | 'load' | 'leave' | 'end';

const resolved: Promise<void> = Promise.resolve();
const holds = (): boolean => true;
const nothing = (): void => {};
const storeLimitBytes = 4096;
/** A sum of parts of 2^52 ps, also as a float. */
const sleepPsMax = 2 ** 72;
const combinedLimitBytes = 256;

/** Name of a thread's wait if no call has named one. */
const waitTexts: Readonly<Record<ThreadMode, string>> = {
  running: 'its own code',
  busy: 'its own code',
  spinning: 'a spin on memory',
  loading: 'a load from the device',
  ready: 'its own code, without a core',
  waiting: 'a signal',
  ended: 'nothing',
};

export class CoreThread {
  readonly name: string;
  readonly core: Core;
  readonly level: number;
  /** Index in the core's table, carried by its events. */
  readonly slot: number;
  readonly #storeSpaceBytes: number;
  #store: StoreBuffer | undefined;

  mode: ThreadMode = 'ready';
  after: AfterBusy = 'resume';
  /** Code to run when the thread first gets the core. */
  body: (() => Promise<void>) | undefined;
  /** Step after it has left the core permanently. */
  ended: (() => void) | undefined;

  /** Instant since which it wants the core; threads that lost the core are first. */
  readyPs = 0;
  /** Halted: whether it was spinning, its charged cycles that have not elapsed, and the cycle at which it stopped. */
  isSpinPending = false;
  owedCycles = 0;
  leftCycle = 0;
  /** Until this cycle of its own time no thread can preempt it: see {@link keepCore}. */
  keptUntilCycle = 0;
  /** Entering the core costs a context switch. */
  needsSwitch = false;
  /** The marked operation in which the program is. */
  operation: MarkedOperation | undefined;

  /** Spinning: a cycle at which a round ends, cycles per round, and the cycle of the next evaluation. */
  spinOriginCycle = 0;
  spinRoundCycles = 1;
  spinIsReady: () => boolean = holds;
  /** Called first when the condition holds. */
  spinTake: () => unknown = nothing;
  evaluateCycle = 0;
  isSpinHit = false;
  /** True when the spin's time limit has passed. */
  isSpinOver = false;
  /** Number of pages that the spin watches. */
  spinPageCount = 1;

  /** The bus accepts no more of the thread's stores. */
  isBlocked = false;
  /** The store buffer is full after a blocked store: the core stalls at {@link leftCycle}. */
  isFrozen = false;
  /** The thread can continue only after its stores have left. */
  awaitsDrain = false;

  /** Waiting: whether the wait has already ended, and its result. */
  isWoken = false;
  wakeResult = false;
  loadValue: Wide = 0;
  issueLoad: ((done: AccessDone) => void) | undefined;
  /** Cause of the cycles of that stall. */
  loadCause = 0;

  busyRef: EventRef = 0;
  drainRef: EventRef = 0;
  evaluateRef: EventRef = 0;
  overflowRef: EventRef = 0;
  deadlineRef: EventRef = 0;
  signalRef: EventRef = 0;
  /** Remaining time of a long wait after the queued deadline. */
  deadlineRestPs = 0;

  /** Names the library call in which the thread waits; undefined if none has named itself. */
  #describeWait: (() => string) | undefined;

  /** System calls in which the thread is: it is not killed there. */
  kernelDepth = 0;
  /** The process was killed: the program's waits end with this error. */
  killedBy: Error | undefined;

  resolve: (value?: unknown) => void = () => {};
  reject: (reason: unknown) => void = () => {};
  readonly #executor = (resolve: (value?: unknown) => void, reject: (reason: unknown) => void): void => {
    this.resolve = resolve;
    this.reject = reject;
  };

  constructor(core: Core, name: string, level: number, slot: number, storeSpaceBytes: number) {
    this.operation = undefined;
    this.core = core;
    this.name = name;
    this.level = level;
    this.slot = slot;
    this.#storeSpaceBytes = storeSpaceBytes;
  }

  get coreIndex(): number {
    return this.core.index;
  }

  /**
   * The core's own time in picoseconds since power-on.
   * @throws ConfigurationError from 2^53 on (2.5 hours): {@link instantPs} and {@link stopwatch} have no limit
   */
  get localPs(): Picoseconds {
    return numberOfPs('localPs', this.core.process.epochUs, this.ownPs);
  }

  /** The instant, exact even where a number is not. */
  get instantPs(): ExactPs {
    return exactPs(this.core.process.epochUs, this.ownPs);
  }

  /** Starts counting the core's own time: exact even after days. */
  stopwatch(): Stopwatch {
    const { core } = this;
    return startStopwatch({
      get epochUs() {
        return core.process.epochUs;
      },
      get nowPs() {
        return core.clock.edgePs(core.localCycle);
      },
    });
  }

  /** The core's own time in picoseconds of the epoch: for values that move with the epoch. */
  get ownPs(): Picoseconds {
    return this.core.clock.edgePs(this.core.localCycle);
  }

  get store(): StoreBuffer {
    this.#store ??= new StoreBuffer(this.core.target, this.#storeSpaceBytes);
    return this.#store;
  }

  /** The store buffer, if the thread has ever stored. */
  get storeIfAny(): StoreBuffer | undefined {
    return this.#store;
  }

  /** Whether it waits for a time or a signal, or is about to leave the core for that, and the wait has not ended. */
  get isAwaiting(): boolean {
    return (this.mode === 'waiting' || this.after === 'leave') && !this.isWoken;
  }

  inspect(): BlockState {
    const { level, mode, after, owedCycles, kernelDepth } = this;
    return {
      level,
      mode,
      after,
      owedCycles,
      kernelDepth,
      isSpinPending: this.isSpinPending,
      isBlocked: this.isBlocked,
      isFrozen: this.isFrozen,
      awaitsDrain: this.awaitsDrain,
      isWoken: this.isWoken,
      ...(this.#store === undefined ? {} : { store: this.#store.inspect() }),
    };
  }

  get storeBytes(): Uint8Array {
    return this.store.bytes;
  }

  get storeWords(): Int32Array {
    return this.store.words;
  }

  get storeView(): DataView {
    return this.store.view;
  }

  charge(cause: CpuCause, cycles: number): void {
    // One float here would turn the core's own time, and everything computed from it, into floats.
    this.#spend(indexOfCause(cause), asInteger(cycles));
  }

  #spend(causeIndex: number, cycles: number): void {
    const core = this.core;
    if (core.running !== this) throw core.code.misuse(this);
    if (!Number.isInteger(cycles) || cycles < 0)
      throw new ConfigurationError('cycles', cycles, 'a whole number');
    core.account.add(causeIndex, cycles);
    if (this.operation !== undefined) this.operation.spend(causeIndex, cycles);
    core.localCycle += cycles;
  }

  pushMemoryStore(physicalAddress: number, lengthBytes: number): number {
    if (!(lengthBytes >= 1 && lengthBytes <= storeLimitBytes)) {
      throw new ConfigurationError('memory store lengthBytes', lengthBytes, `1 to ${storeLimitBytes}`);
    }
    return this.store.push(storeToMemory, physicalAddress, lengthBytes);
  }

  pushDeviceStore(busAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number {
    if (kind === 'uncached') {
      if (lengthBytes !== 4 && lengthBytes !== 8) {
        throw new ConfigurationError('uncached store lengthBytes', lengthBytes, '4 or 8');
      }
      return this.store.push(storeUncached, busAddress, lengthBytes);
    }
    if (!(lengthBytes >= 1 && lengthBytes <= combinedLimitBytes)) {
      throw new ConfigurationError('combined store lengthBytes', lengthBytes, `1 to ${combinedLimitBytes}`);
    }
    return this.store.push(storeWriteCombining, busAddress, lengthBytes);
  }

  /** Charges `cycles`; the stores pushed since the last commit leave at the resulting own time of the core. */
  commit(cause: CpuCause, cycles: number): void {
    const causeIndex = indexOfCause(cause);
    this.#spend(causeIndex, cycles);
    this.store.commit(this.core.localCycle, causeIndex, this.operation);
    this.core.committed(this);
  }

  /**
   * Keeps the core until its present own time: an earlier interrupt or a thread of a higher level is served then. Linux'
   * spin_lock_irqsave and spin_unlock_irqrestore enclose code; here the code has already run, and only its time is left.
   */
  keepCore(): void {
    if (this.core.running !== this) throw this.core.code.misuse(this);
    this.keptUntilCycle = this.core.localCycle;
  }

  waitsIn(describe: (() => string) | undefined): void {
    this.#describeWait = describe;
  }

  /** State of the thread, and the reason of its wait, in words. */
  get waitText(): string {
    return this.#describeWait?.() ?? waitTexts[this.mode];
  }

  settle(): Promise<void> {
    const core = this.core;
    if (core.running !== this) throw core.code.misuse(this);
    if (this.ownPs <= core.process.nowPs) {
      if (this.#store !== undefined && !this.#store.isDrained) core.drain(this);
      return resolved;
    }
    return this.#wait('resume');
  }

  /**
   * Spins until `isReady` holds. Equals this loop in cycles and relevant evaluations, but costs one event for each write to the
   * page: `if (!isReady()) { await settle(); while (!isReady()) { charge('poll', roundCycles); await settle(); } }`.
   */
  spin(physicalAddress: number, roundCycles: number, isReady: () => boolean): Promise<void> {
    const core = this.core;
    if (core.running !== this) throw core.code.misuse(this);
    if (isReady()) return resolved;
    this.#describeWait = undefined;
    return this.#spin(physicalAddress, roundCycles, isReady, nothing);
  }

  /** {@link spin} over memory of several pages: the condition is evaluated after a write to any of them. */
  spinOver(pages: readonly number[], roundCycles: number, isReady: () => boolean): Promise<void> {
    const [first] = pages;
    if (first === undefined) throw new ConfigurationError('pages', 0, 'at least one address to spin on');
    const spun = this.spin(first, roundCycles, isReady);
    if (this.mode !== 'spinning') return spun;
    const { memory } = this.core.target;
    for (const page of pages.slice(1)) memory.watch(page, this);
    this.spinPageCount = pages.length;
    return spun;
  }

  /**
   * Settles, spins until `isReady` holds, and returns the result of `take`. `take` runs at the instant when the condition is
   * found to hold, as part of the thread's code: so a program that waits and then polls is resumed once instead of for each
   * step.
   * @param timeoutPs after this own time it ends at the end of a round, even if the condition does not hold
   */
  spinThen<T>(
    physicalAddress: number,
    roundCycles: number,
    isReady: () => boolean,
    take: () => T | Promise<T>,
    timeoutPs: Picoseconds = NEVER,
  ): Promise<T> {
    const core = this.core;
    if (core.running !== this) throw core.code.misuse(this);
    const isAhead = this.ownPs > core.process.nowPs;
    // Work is delayed by the time that the bus was unavailable; spinning is not.
    if (isAhead && core.memoryBus !== undefined)
      return this.settle().then(() => this.spinThen(physicalAddress, roundCycles, isReady, take, timeoutPs));
    if (!isAhead) void this.settle();
    const mayHold = isReady();
    if (mayHold && !isAhead) return new Promise((resolve) => resolve(take()));
    const promise = this.#spin(physicalAddress, roundCycles, isReady, take);
    if (mayHold) core.spinHit(this);
    else if (timeoutPs !== NEVER) core.waits.setTimeout(this, Math.max(0, Math.ceil(timeoutPs)));
    return promise;
  }

  #spin<T>(
    physicalAddress: number,
    roundCycles: number,
    isReady: () => boolean,
    take: () => T | Promise<T>,
  ): Promise<T> {
    const core = this.core;
    if (!Number.isInteger(roundCycles) || roundCycles < 1) {
      throw new ConfigurationError('roundCycles', roundCycles, 'a whole number of at least 1');
    }
    if (this.killedBy !== undefined && this.kernelDepth === 0) return Promise.reject(this.killedBy);
    const promise = new Promise<unknown>(this.#executor) as Promise<T>;
    core.code.suspend(this);
    this.mode = 'spinning';
    this.spinOriginCycle = core.localCycle;
    this.spinRoundCycles = roundCycles;
    this.spinIsReady = isReady;
    this.spinTake = take;
    this.isSpinHit = false;
    this.isSpinOver = false;
    this.spinPageCount = 1;
    core.target.memory.watch(physicalAddress, this);
    return promise;
  }

  /** Makes the thread's code end with `reason` at its next wait outside the kernel; its present wait ends now. */
  kill(reason: Error): void {
    this.killedBy = reason;
    if (this.kernelDepth > 0) return;
    if (this.mode === 'waiting' && this.signalRef === 0)
      this.core.waits.wakeAt(this, this.core.process.nowPs);
    // It is about to leave the core: it continues instead.
    if (this.after === 'leave' && this.mode !== 'waiting') this.isWoken = true;
    if (this.mode === 'spinning' || this.isSpinPending) {
      this.spinIsReady = holds;
      this.core.spinHit(this);
    }
  }

  /** Makes this waiting thread continue with `body` when its wait ends: the code that waited cannot be resumed again after its host is restored. */
  continueAs(body: () => Promise<void>): void {
    this.resolve = () => this.core.code.continueAs(this, body);
  }

  /** Called by the memory: a page on which this thread spins was written. */
  pageWritten(): void {
    this.core.spinHit(this);
  }

  /** Yields the core for `durationPs`, rounded up; beyond 2^53, e.g. a day, the float itself is used. */
  async sleep(durationPs: Picoseconds): Promise<void> {
    if (!(durationPs >= 0 && durationPs <= sleepPsMax))
      throw new ConfigurationError('durationPs', durationPs, `0 to ${sleepPsMax} (149 years)`);
    await this.waitForWake(durationPs);
  }

  /**
   * Yields the core until {@link CoreWaits.wakeAt} names this thread, or for a time, rounded up to a picosecond.
   * @returns false if the time passed first
   */
  async waitForWake(timeoutPs: Picoseconds = NEVER): Promise<boolean> {
    if (this.core.running !== this) throw this.core.code.misuse(this);
    if (this.level === levelInterrupt) {
      throw new InvariantError('wait in interrupt context', this.name, 'a thread that may give its core up');
    }
    if (this.killedBy !== undefined && this.kernelDepth === 0) throw this.killedBy;
    if (timeoutPs !== NEVER) this.core.waits.setTimeout(this, Math.ceil(timeoutPs));
    await this.#wait('leave');
    return this.wakeResult;
  }

  mmioRead32(address: number, cause: CpuCause = 'driver'): Promise<number> {
    if (this.operation !== undefined) this.operation.mmioReads++;
    return this.access(cause, this.core.cost.mmioLoad, (done) =>
      this.core.target.port.cpuLoad(address, 4, done),
    );
  }

  storeMemory(physicalAddress: number, bytes: Uint8Array): void {
    this.store.bytes.set(bytes, this.pushMemoryStore(physicalAddress, bytes.length));
  }

  mmioWrite32(address: number, value: number): void {
    const offset = this.pushDeviceStore(address, 4, 'uncached');
    this.store.view.setUint32(offset, value, true);
    this.commit(this.level === levelInterrupt ? 'interrupt' : 'driver', this.core.cost.mmioStore);
  }

  /**
   * One non-posted access: `cycles` to issue it, after all earlier stores; then the core stalls until it completes.
   * @returns the value read, all ones if the access failed
   */
  async access(cause: CpuCause, cycles: number, issue: (done: AccessDone) => void): Promise<number> {
    this.loadCause = indexOfCause(this.level === levelInterrupt ? 'interrupt' : cause);
    this.#spend(this.loadCause, cycles);
    this.issueLoad = issue;
    await this.#wait('load');
    return this.loadValue;
  }

  /** Handles the completion of an access. */
  accessDone(status: number, value: number): void {
    this.loadValue = status === 0 ? value >>> 0 : failedLoadValue;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number, cycles: number): void {
    this.readyPs -= ps;
    this.leftCycle -= cycles;
    this.keptUntilCycle -= cycles;
    this.spinOriginCycle -= cycles;
    this.evaluateCycle -= cycles;
    this.#store?.shiftAfter(Number.NEGATIVE_INFINITY, -cycles);
  }

  #wait(after: AfterBusy): Promise<void> {
    if (this.core.running !== this) throw this.core.code.misuse(this);
    if (this.killedBy !== undefined && this.kernelDepth === 0) return Promise.reject(this.killedBy);
    const promise = new Promise<unknown>(this.#executor) as Promise<void>;
    this.core.code.suspend(this);
    this.core.stayBusy(this, after);
    return promise;
  }
}
