/**
 * Threads that yielded their core, and the ends of their waits.
 *
 *     sleep, signal.wait ──> waiting ──┬─ signal at its raiser's own time ──> true  ─┐
 *                                      └─ deadline ─────────────────────────> false ─┴─> ready: competes for the core
 *
 * The deadline of a spinning thread ends its spin. A wait that ends before the thread has left the core is recorded, and the
 * thread does not leave.
 */
import type { Picoseconds } from '../base/index.ts';
import { PHASE_HARDWARE } from '../sim/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';

/** The longest part of a wait: whole numbers of floats, whose difference is exact. */
const partPsMax = 2 ** 52;

export class CoreWaits {
  readonly #core: Core;
  readonly #deadlineHandler: number;
  readonly #wakeHandler: number;

  constructor(core: Core) {
    this.#core = core;
    const { queue } = core.process;
    this.#deadlineHandler = queue.addHandler(
      (slot) => this.#deadlinePassed(core.threadAt(slot)),
      PHASE_HARDWARE,
    );
    this.#wakeHandler = queue.addHandler((slot) => this.#signalled(core.threadAt(slot)), PHASE_HARDWARE);
  }

  /**
   * Ends the thread's wait with false after `durationPs` of its own time, unless it ended earlier. A wait longer than an
   * epoch's numbers is split: the thread sleeps throughout.
   */
  setTimeout(thread: CoreThread, durationPs: Picoseconds): void {
    this.#await(thread, thread.ownPs, durationPs);
  }

  #await(thread: CoreThread, fromPs: Picoseconds, durationPs: Picoseconds): void {
    const partPs = Math.min(durationPs, partPsMax);
    thread.deadlineRestPs = durationPs - partPs;
    thread.deadlineRef = this.#core.process.queue.schedule(
      fromPs + partPs,
      this.#deadlineHandler,
      thread.slot,
    );
  }

  /** Ends the thread's wait with true at an instant. */
  wakeAt(thread: CoreThread, atPs: Picoseconds): void {
    thread.signalRef = this.#core.process.queue.schedule(atPs, this.#wakeHandler, thread.slot);
  }

  #deadlinePassed(thread: CoreThread): void {
    if (thread.deadlineRestPs > 0) {
      this.#await(thread, this.#core.process.nowPs, thread.deadlineRestPs);
      return;
    }
    thread.deadlineRef = 0;
    if (thread.mode === 'spinning' || thread.isSpinPending) {
      thread.isSpinOver = true;
      this.#core.spinHit(thread);
      return;
    }
    // A signal raised earlier, by a thread whose own time is ahead, ends the wait at that thread's time.
    if (thread.signalRef === 0) this.#wake(thread, false);
  }

  #signalled(thread: CoreThread): void {
    thread.signalRef = 0;
    thread.deadlineRef = this.#core.cancel(thread.deadlineRef);
    this.#wake(thread, true);
  }

  #wake(thread: CoreThread, result: boolean): void {
    thread.wakeResult = result;
    if (thread.mode !== 'waiting') {
      thread.isWoken = true;
      return;
    }
    thread.mode = 'ready';
    thread.after = 'resume';
    thread.needsSwitch = true;
    thread.leftCycle = this.#core.localCycle;
    this.#core.makeReady(thread);
  }
}
