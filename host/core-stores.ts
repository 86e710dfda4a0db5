/**
 * When a core's stores leave it, and how a full bus stalls the core.
 *
 *     commits ── due ──> drain ──> memory, bus
 *                          │ the bus accepts no more
 *                          v
 *                       blocked ── more than the store buffer holds is due ──> frozen: the core stalls
 *                          └──────────── room again: drain on, thaw ───────────────┘
 *
 * One event is scheduled at a time, for the oldest commit. A blocked thread continues, since the store buffer hides the bus
 * from it, until a commit overfills the buffer. From that cycle on the core stalls until enough entries have left, and
 * everything the thread does later is delayed by that time.
 */
import { type Cycles, NEVER } from '../base/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';

export class CoreStores {
  readonly #core: Core;
  readonly #entryCount: number;
  readonly #drainHandler: number;
  readonly #overflowHandler: number;
  readonly #retryHandler: number;
  #retryRef = 0;

  /** @param entryCount entries of 8 bytes that the store buffer holds */
  constructor(core: Core, entryCount: number) {
    this.#core = core;
    this.#entryCount = entryCount;
    const { process, storePhase } = core;
    this.#drainHandler = process.queue.addHandler((slot) => this.#drainDue(core.threadAt(slot)), storePhase);
    this.#overflowHandler = process.queue.addHandler(
      (slot) => this.#freeze(core.threadAt(slot)),
      storePhase + 1,
    );
    this.#retryHandler = process.queue.addHandler(() => this.#retry(), storePhase);
    core.target.port.connect({ stores: this });
  }

  /** A commit was added to the thread's store buffer. */
  committed(thread: CoreThread): void {
    if (thread.isBlocked) this.#watchOverflow(thread);
    else if (thread.drainRef === 0 && !thread.store.isDrained) this.#scheduleDrain(thread);
  }

  /** Carries out the thread's stores that are due, and schedules the next. */
  drain(thread: CoreThread): void {
    const store = thread.storeIfAny;
    if (store === undefined || store.isDrained || thread.isBlocked) return;
    thread.isBlocked = !store.drain(thread.isFrozen ? thread.leftCycle : this.#lastDueCycle());
    if (thread.isBlocked) {
      this.#core.stallCause = store.headCause;
      this.#watchOverflow(thread);
    } else if (!store.isDrained && thread.drainRef === 0 && !thread.isFrozen) {
      this.#scheduleDrain(thread);
    }
  }

  /** The thread continues after it missed some cycles: its pending stores are delayed by as many. */
  shift(thread: CoreThread, missedCycles: number): void {
    const store = thread.storeIfAny;
    if (store === undefined || store.isDrained) return;
    store.shiftAfter(thread.isFrozen ? thread.leftCycle : Number.NEGATIVE_INFINITY, missedCycles);
    if (!thread.isBlocked) this.#scheduleDrain(thread);
  }

  #lastDueCycle(): Cycles {
    const { clock, process } = this.#core;
    return clock.cycleAfter(process.nowPs) - 1;
  }

  #scheduleDrain(thread: CoreThread): void {
    thread.drainRef = this.#core.schedule(thread.store.headCycle, this.#drainHandler, thread);
  }

  #drainDue(thread: CoreThread): void {
    thread.drainRef = 0;
    this.drain(thread);
  }

  /** The root complex accepts stores again: see DevicePort. */
  storeSpace(): void {
    const core = this.#core;
    if (core.current?.isBlocked !== true || this.#retryRef !== 0) return;
    this.#retryRef = core.process.queue.schedule(core.process.nowPs, this.#retryHandler);
  }

  #retry(): void {
    this.#retryRef = 0;
    const core = this.#core;
    const thread = core.current;
    if (thread?.isBlocked !== true) return;
    thread.isBlocked = false;
    thread.overflowRef = core.cancel(thread.overflowRef);
    this.drain(thread);
    if (thread.isFrozen) this.#thaw(thread);
    if (thread.isBlocked) return;
    if (thread.awaitsDrain) {
      thread.awaitsDrain = false;
      core.endStall();
      core.stayBusy(thread, thread.after);
    }
    core.dispatch();
  }

  /** Stalls the core from the commit that overfills the store buffer on. */
  #watchOverflow(thread: CoreThread): void {
    if (thread.overflowRef !== 0 || thread.isFrozen) return;
    const cycle = thread.store.overflowCycle(this.#entryCount);
    if (cycle !== NEVER) thread.overflowRef = this.#core.schedule(cycle, this.#overflowHandler, thread);
  }

  #freeze(thread: CoreThread): void {
    thread.overflowRef = 0;
    if (!thread.isBlocked || thread.awaitsDrain) return;
    this.#core.halt(thread, this.#core.clock.cycleAtOrAfter(this.#core.process.nowPs));
    thread.isFrozen = true;
  }

  #thaw(thread: CoreThread): void {
    if (thread.isBlocked && thread.store.overflowCycle(this.#entryCount) <= thread.leftCycle) return;
    this.#core.endStall();
    this.#core.goOn(thread);
    thread.isFrozen = false;
    if (thread.isBlocked) this.#watchOverflow(thread);
  }
}
