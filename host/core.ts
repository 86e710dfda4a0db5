/**
 * A core: its clock, its own time, and its current thread.
 *
 *     interrupts ─┐
 *     kernel ─────┤ highest level first ──> current thread ──> store buffer ──> memory, bus
 *     program ────┘                            │
 *                                              └─ cycles by cause
 *
 * The core's own time (`localCycle`) runs ahead of simulated time while a thread charges cycles, and simulated time catches up
 * while it waits. A thread of a higher level preempts a busy or spinning one at the instant it becomes ready: the lower
 * thread's charged cycles that have not elapsed yet elapse when it has the core again, and its stores of that time are delayed
 * with them. Not preempted: a thread stalled by a load, one with a store that the bus does not accept, and one that keeps the
 * core for a while (keepCore). A thread leaves the core only when its stores are out.
 *
 * At most one thread of a host runs code at any time, because an event resumes at most one. Inputs of a core at one instant are
 * first collected (in the hardware half of the instant) and then handled, so that their order does not matter: interrupts
 * first, then kernel threads, then the program.
 */
import type { Cycles, Picoseconds, Wide } from '../base/index.ts';
import {
  type BlockState,
  type Clock,
  type LogicalProcess,
  PHASE_HARDWARE,
  PHASE_SOFTWARE,
} from '../sim/index.ts';
import { CoreCode } from './core-code.ts';
import { CoreSpins } from './core-spins.ts';
import { CoreStores } from './core-stores.ts';
import { type AfterBusy, CoreThread, levelInterrupt, levelKernel, levelProgram } from './core-thread.ts';
import { CoreWaits } from './core-waits.ts';
import { CpuAccount, type CpuReport, causeIndexOf, cpuReportOf } from './cpu-account.ts';
import type { CostConfig } from './host-parameters.ts';
import { ReadyQueue } from './ready-queue.ts';
import type { StoreTarget } from './store-buffer.ts';

export interface CoreOptions {
  readonly index: number;
  readonly process: LogicalProcess;
  readonly clock: Clock;
  readonly target: StoreTarget;
  readonly cost: CostConfig;
  readonly storeBufferEntries: number;
  readonly storeSpaceBytes: number;
  readonly kernel: CoreKernel;
}

/** The kernel, as an interrupted core enters it. */
export interface CoreKernel {
  /** Serves an interrupt vector in the core's interrupt context. */
  serveInterrupt(vector: number, cpu: CoreThread): Promise<void>;
}

export interface CorePorts {
  readonly memoryBus: {
    /** Picoseconds for which other masters have had the bus so far. */
    heldPsAt(nowPs: Picoseconds): number;
  };
}

const kernelStoreSpaceBytes = 65_536;
/** Phases of one instant: stores leave, the core stalls for those that cannot, threads continue. */
const PHASES_OF_CORE = 3;

export class Core {
  readonly index: number;
  readonly process: LogicalProcess;
  readonly clock: Clock;
  readonly target: StoreTarget;
  readonly cost: CostConfig;
  /** Cores that run at one instant do so in the order of their numbers, because their software shares a kernel. */
  readonly softwarePhase: number;
  /** Earlier phases of an instant: first stores leave if they can, then the core stalls for those that cannot. */
  readonly storePhase: number;
  readonly account = new CpuAccount();
  readonly code = new CoreCode(this);
  readonly waits: CoreWaits;
  /** The core's own time in cycles of its clock. */
  localCycle = 0;
  /** The current thread of the core. */
  current: CoreThread | undefined;
  /** The thread whose code runs now. */
  running: CoreThread | undefined;
  /** Times a thread was switched in, without interrupts. */
  contextSwitchCount = 0;

  /** The bus to memory, which a DMA controller may occupy: work of the core meanwhile is delayed by that time. */
  memoryBus: CorePorts['memoryBus'] | undefined;
  readonly #storeSpaceBytes: number;
  readonly #kernel: CoreKernel;
  readonly #threads: CoreThread[] = [];
  readonly #freeSlots: number[] = [];
  readonly #ready = new ReadyQueue();
  readonly #interruptThread: CoreThread;
  readonly #stores: CoreStores;
  readonly #spins: CoreSpins;
  /** Cause of the cycles of a stall: a load, or stores that the bus does not accept. */
  stallCause = 0;
  #attentionRef: Wide = 0;
  /** Time that the bus had been unavailable when the present stretch of work began. */
  #busHeldPs = 0;

  readonly #busyHandler: number;
  readonly #readyHandler: number;
  readonly #loadHandler: number;
  readonly #attentionHandler: number;

  constructor(options: CoreOptions) {
    this.index = options.index;
    this.process = options.process;
    this.clock = options.clock;
    this.target = options.target;
    this.cost = options.cost;
    this.#storeSpaceBytes = options.storeSpaceBytes;
    this.#kernel = options.kernel;
    this.storePhase = PHASE_SOFTWARE + 1 + PHASES_OF_CORE * options.index;
    this.softwarePhase = this.storePhase + PHASES_OF_CORE - 1;
    const { queue } = this.process;
    this.waits = new CoreWaits(this);
    this.#readyHandler = queue.addHandler((slot) => this.makeReady(this.threadAt(slot)), PHASE_HARDWARE);
    this.#busyHandler = queue.addHandler((slot) => this.#busyEnded(this.threadAt(slot)), this.softwarePhase);
    this.#loadHandler = queue.addHandler((slot) => this.#loadEnded(this.threadAt(slot)), this.softwarePhase);
    this.#attentionHandler = queue.addHandler(() => this.#attend(), this.softwarePhase);
    this.#interruptThread = this.newThread(`interrupts of core ${options.index}`, levelInterrupt);
    this.#spins = new CoreSpins(this);
    this.#stores = new CoreStores(this, options.storeBufferEntries);
  }

  /** An unconnected core has the bus to memory for itself. */
  connect({ memoryBus }: CorePorts): void {
    this.memoryBus = memoryBus;
  }

  /** The thread of an event. */
  threadAt(slot: number): CoreThread {
    return this.#threads[slot]!;
  }

  // Services for the core's threads.

  /** Whether another thread waits for the core. */
  get isWanted(): boolean {
    return this.#ready.highestLevel >= 0;
  }

  /** A thread without work yet; see {@link start}. */
  newThread(name: string, level: number): CoreThread {
    const slot = this.#freeSlots.pop() ?? this.#threads.length;
    const spaceBytes = level === levelProgram ? this.#storeSpaceBytes : kernelStoreSpaceBytes;
    const thread = new CoreThread(this, name, level, slot, spaceBytes);
    this.#threads[slot] = thread;
    return thread;
  }

  /** Makes a new thread compete for the core from `atPs` on. */
  start(thread: CoreThread, atPs: Picoseconds, body: () => Promise<void>, ended?: () => void): void {
    thread.body = body;
    thread.ended = ended;
    thread.needsSwitch = thread.level === levelKernel;
    this.process.queue.schedule(atPs, this.#readyHandler, thread.slot);
  }

  /** Makes the thread keep the core until simulated time has reached its own time. */
  stayBusy(thread: CoreThread, after: AfterBusy): void {
    thread.mode = 'busy';
    thread.after = after;
    if (this.memoryBus !== undefined) this.#busHeldPs = this.memoryBus.heldPsAt(this.process.nowPs);
    thread.busyRef = this.schedule(this.localCycle, this.#busyHandler, thread);
  }

  /** A commit was added to the thread's store buffer. */
  committed(thread: CoreThread): void {
    this.#stores.committed(thread);
  }

  /**
   * Interrupts the core now, in the hardware half of the instant; the caller has checked that the vector is not pending here
   * yet. The highest pending vector is served first, as by a local APIC.
   */
  interrupt(vector: number): void {
    this.#ready.addVector(vector);
    this.#callAttention();
  }

  /** A page on which the thread spins was written. */
  spinHit(thread: CoreThread): void {
    this.#spins.hit(thread);
  }

  /** Carries out the thread's stores that are due. */
  drain(thread: CoreThread): void {
    this.#stores.drain(thread);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    const cycles = this.clock.cyclesOf(ps);
    this.localCycle -= cycles;
    for (const thread of this.#threads) thread.rebase(ps, cycles);
  }

  // Accounts.

  /** The core's account up to now. */
  report(): CpuReport {
    const elapsed = this.clock.cyclesElapsed(this.process.nowPs);
    const total = this.process.epochUs * this.clock.frequencyMHz + elapsed;
    const cycles = this.account.cycles.slice();
    const open = elapsed - this.localCycle;
    if (open > 0) {
      const cause = this.#openCause();
      cycles[cause] = cycles[cause]! + open;
    }
    let ahead = Math.max(0, -open);
    for (const thread of this.#threads) if (thread.mode !== 'ended') ahead += thread.owedCycles;
    return cpuReportOf(cycles, total, ahead);
  }

  /** The current thread, the waiting threads, and each unfinished one, by index and name. */
  inspect(): BlockState {
    const elapsed = this.clock.cyclesElapsed(this.process.nowPs);
    const { current } = this;
    const isAlive = (thread: CoreThread): boolean =>
      thread === this.#interruptThread ? thread === current : thread.mode !== 'ended';
    return {
      current: current?.name ?? 'none',
      aheadCycles: Math.max(0, this.localCycle - elapsed),
      ready: this.#ready.inspect(),
      threads: Object.fromEntries(
        this.#threads.filter(isAlive).map((thread) => [`${thread.slot} ${thread.name}`, thread.inspect()]),
      ),
      writeCombining: this.target.writeCombining.inspect(),
    };
  }

  /** The program's unfinished thread, if any. */
  get program(): CoreThread | undefined {
    return this.#threads.find(({ level, mode }) => level === levelProgram && mode !== 'ended');
  }

  /** Whether all threads except programs have ended, and no interrupt is being served. */
  get hasOnlyPrograms(): boolean {
    const isDone = (thread: CoreThread): boolean =>
      thread === this.#interruptThread
        ? thread !== this.current && thread.body === undefined
        : thread.level === levelProgram || thread.mode === 'ended';
    return this.running === undefined && this.#threads.every(isDone);
  }

  /** Name of the unfinished program, if any. */
  get programName(): string | undefined {
    return this.program?.name;
  }

  #openCause(): number {
    const current = this.current;
    if (current === undefined) return causeIndexOf.idle;
    if (current.isFrozen || current.awaitsDrain || current.mode !== 'spinning') return this.stallCause;
    return causeIndexOf.poll;
  }

  // Which thread has the core.

  /** The thread competes for the core from now on. */
  makeReady(thread: CoreThread): void {
    this.#ready.add(thread, this.process.nowPs);
    this.#callAttention();
  }

  #callAttention(): void {
    this.#callAttentionAt(this.process.nowPs);
  }

  /** Called once per instant: until the end of a kept interval, no other call makes a difference. */
  #callAttentionAt(atPs: Picoseconds): void {
    if (this.#attentionRef !== 0) return;
    this.#attentionRef = this.process.queue.schedule(atPs, this.#attentionHandler);
  }

  #attend(): void {
    this.#attentionRef = 0;
    this.dispatch();
  }

  /** An input arrived at the instant at which the current thread is about to continue: it is handled first. */
  losesCore(thread: CoreThread): boolean {
    if (this.#attentionRef === 0) return false;
    this.dispatch();
    return this.current !== thread;
  }

  /** Gives the core to the highest waiting thread, if it is higher than the current one. */
  dispatch(): void {
    const level = this.#ready.highestLevel;
    if (level < 0) return;
    if (this.current === undefined) this.#endIdle();
    else if (level <= this.current.level || !this.#preempt(this.current, level)) return;
    this.#enter(level === levelInterrupt ? this.#takeInterrupt() : this.#ready.take(level));
  }

  #takeInterrupt(): CoreThread {
    const vector = this.#ready.takeVector();
    const thread = this.#interruptThread;
    thread.body = () => this.#kernel.serveInterrupt(vector, thread);
    return thread;
  }

  #endIdle(): void {
    const cycle = this.clock.cycleAtOrAfter(this.process.nowPs);
    if (cycle <= this.localCycle) return;
    this.account.add(causeIndexOf.idle, cycle - this.localCycle);
    this.localCycle = cycle;
  }

  /** Preempts a thread. @returns false if it cannot be preempted now */
  #preempt(thread: CoreThread, byLevel: number): boolean {
    if (thread.isBlocked || (thread.mode !== 'busy' && thread.mode !== 'spinning')) return false;
    if (thread.keptUntilCycle > this.clock.cycleAtOrAfter(this.process.nowPs)) {
      this.#callAttentionAt(this.clock.edgePs(thread.keptUntilCycle));
      return false;
    }
    this.drain(thread);
    if (thread.isBlocked) return false;
    this.halt(thread, this.clock.cycleAtOrAfter(this.process.nowPs));
    thread.mode = 'ready';
    thread.needsSwitch = byLevel !== levelInterrupt;
    this.#ready.putBack(thread);
    this.current = undefined;
    return true;
  }

  /** Stops a busy or spinning thread at `cycle`, and records its remaining cycles. */
  halt(thread: CoreThread, cycle: Cycles): void {
    if (thread.mode === 'spinning') this.#spins.halt(thread, cycle);
    else if (this.memoryBus !== undefined) this.localCycle += this.#waitForBus();
    thread.owedCycles = Math.max(0, this.localCycle - cycle);
    thread.leftCycle = cycle;
    this.localCycle = cycle;
    thread.busyRef = this.cancel(thread.busyRef);
    thread.evaluateRef = this.cancel(thread.evaluateRef);
    thread.drainRef = this.cancel(thread.drainRef);
  }

  /** Makes a halted thread continue at the core's own time: all of its pending actions are delayed by the missed time. */
  goOn(thread: CoreThread): void {
    const missed = this.localCycle - thread.leftCycle;
    if (thread.keptUntilCycle > thread.leftCycle) thread.keptUntilCycle += missed;
    this.#stores.shift(thread, missed);
    this.localCycle += thread.owedCycles;
    thread.owedCycles = 0;
    if (thread.isSpinPending) this.#spins.goOn(thread, missed);
    else this.stayBusy(thread, thread.after);
  }

  #enter(thread: CoreThread): void {
    this.current = thread;
    if (thread.needsSwitch) {
      thread.needsSwitch = false;
      this.contextSwitchCount++;
      this.account.add(causeIndexOf.contextSwitch, this.cost.contextSwitch);
      thread.operation?.spend(causeIndexOf.contextSwitch, this.cost.contextSwitch);
      this.localCycle += this.cost.contextSwitch;
    }
    const body = thread.body;
    if (body === undefined) {
      this.goOn(thread);
      return;
    }
    thread.body = undefined;
    this.code.begin(thread, body);
  }

  #leave(thread: CoreThread): void {
    if (thread.isWoken) {
      thread.isWoken = false;
      thread.after = 'resume';
      this.code.resume(thread);
      return;
    }
    thread.mode = 'waiting';
    this.current = undefined;
    this.dispatch();
  }

  #end(thread: CoreThread): void {
    thread.mode = 'ended';
    this.current = undefined;
    if (thread !== this.#interruptThread) this.#freeSlots.push(thread.slot);
    thread.ended?.();
    this.dispatch();
  }

  // Events.

  #busyEnded(thread: CoreThread): void {
    if (this.losesCore(thread)) return;
    thread.busyRef = 0;
    if (this.memoryBus !== undefined) {
      const waitCycles = this.#waitForBus();
      if (waitCycles > 0) {
        this.localCycle += waitCycles;
        this.stayBusy(thread, thread.after);
        return;
      }
    }
    this.drain(thread);
    if (thread.isBlocked && thread.after !== 'resume') {
      thread.awaitsDrain = true;
      return;
    }
    if (thread.after === 'resume') this.code.resume(thread);
    else if (thread.after === 'leave') this.#leave(thread);
    else if (thread.after === 'end') this.#end(thread);
    else this.#load(thread);
  }

  /** Charges the cycles for which the bus was unavailable during the present stretch of work. */
  #waitForBus(): number {
    const { nowPs } = this.process;
    const heldPs = this.memoryBus!.heldPsAt(nowPs);
    const cycles = this.clock.cycleAtOrAfter(heldPs) - this.clock.cycleAtOrAfter(this.#busHeldPs);
    this.#busHeldPs = heldPs;
    if (cycles > 0) {
      this.account.add(causeIndexOf.busWait, cycles);
      this.current?.operation?.spend(causeIndexOf.busWait, cycles);
    }
    return cycles;
  }

  #load(thread: CoreThread): void {
    thread.mode = 'loading';
    this.stallCause = thread.loadCause;
    thread.issueLoad!((status, value) => {
      thread.accessDone(status, value);
      this.process.queue.schedule(this.process.nowPs, this.#loadHandler, thread.slot);
    });
  }

  #loadEnded(thread: CoreThread): void {
    this.endStall();
    this.stayBusy(thread, 'resume');
    this.dispatch();
  }

  /** The core stalled until now. */
  endStall(): void {
    const cycle = this.clock.cycleAtOrAfter(this.process.nowPs);
    if (cycle <= this.localCycle) return;
    this.account.add(this.stallCause, cycle - this.localCycle);
    this.current?.operation?.spend(this.stallCause, cycle - this.localCycle);
    this.localCycle = cycle;
  }

  /** Schedules a registered event at a cycle, now if that is past. */
  schedule(cycle: Cycles, handler: number, thread: CoreThread): number {
    const { process } = this;
    const edgePs = this.clock.edgePs(cycle);
    return process.queue.schedule(edgePs < process.nowPs ? process.nowPs : edgePs, handler, thread.slot);
  }

  /** Cancels an event; returns the reference that names none. */
  cancel(ref: number): 0 {
    if (ref !== 0) this.process.queue.cancel(ref);
    return 0;
  }
}
