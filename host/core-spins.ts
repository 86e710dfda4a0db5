/**
 * Spinning without an event for each round.
 *
 *     cycle   origin ─ round ─ round ─ round ─ round ─ …
 *                            ^ the device writes to the page
 *                                    └ evaluate here: the round that began before the write does not see it
 *
 * The condition can only have changed after a write to the page, so it is evaluated at the end of the round into which a write
 * falls, and nowhere else. A spin with a deadline ends at the end of the round that contains the deadline. An interrupted round
 * is finished later; the rounds after it begin there. Polling is charged when the spin ends or is interrupted, as its duration.
 */
import type { Cycles } from '../base/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';
import { causeIndexOf } from './cpu-account.ts';

export class CoreSpins {
  readonly #core: Core;
  readonly #evaluateHandler: number;

  constructor(core: Core) {
    this.#core = core;
    this.#evaluateHandler = core.process.queue.addHandler(
      (slot) => this.#evaluate(core.threadAt(slot)),
      core.softwarePhase,
    );
  }

  /** The page was written now. */
  hit(thread: CoreThread): void {
    const { clock, process, current } = this.#core;
    if (thread !== current || thread.isFrozen) {
      thread.isSpinHit = true;
      return;
    }
    if (thread.evaluateRef !== 0) return;
    const origin = thread.spinOriginCycle;
    const cycle = clock.cycleAtOrAfter(process.nowPs);
    const rounds = cycle <= origin ? 0 : Math.ceil((cycle - origin) / thread.spinRoundCycles);
    this.#evaluateAt(thread, origin + rounds * thread.spinRoundCycles);
  }

  /** The thread stops at `cycle`; its origin becomes the end of its current round. */
  halt(thread: CoreThread, cycle: Cycles): void {
    thread.isSpinPending = true;
    this.#chargeUntil(thread, cycle);
    const origin = thread.spinOriginCycle;
    if (cycle > origin) {
      const rounds = Math.ceil((cycle - origin) / thread.spinRoundCycles);
      thread.spinOriginCycle = origin + rounds * thread.spinRoundCycles;
    }
    if (thread.evaluateRef !== 0) thread.isSpinHit = true;
  }

  /** A halted thread continues to spin, `missedCycles` later. */
  goOn(thread: CoreThread, missedCycles: number): void {
    thread.isSpinPending = false;
    thread.mode = 'spinning';
    thread.spinOriginCycle += missedCycles;
    if (!thread.isSpinHit) return;
    thread.isSpinHit = false;
    this.#evaluateAt(thread, thread.spinOriginCycle);
  }

  #evaluateAt(thread: CoreThread, cycle: Cycles): void {
    thread.evaluateCycle = cycle;
    thread.evaluateRef = this.#core.schedule(cycle, this.#evaluateHandler, thread);
  }

  #evaluate(thread: CoreThread): void {
    const core = this.#core;
    if (core.losesCore(thread)) return;
    thread.evaluateRef = 0;
    if (!thread.isSpinOver && !thread.spinIsReady()) return;
    if (thread.deadlineRef !== 0) thread.deadlineRef = core.cancel(thread.deadlineRef);
    this.#chargeUntil(thread, thread.evaluateCycle);
    for (let left = thread.spinPageCount; left > 0; left--) core.target.memory.unwatch(thread);
    core.drain(thread);
    core.code.resumeWith(thread, thread.spinTake);
  }

  #chargeUntil({ operation }: CoreThread, cycle: Cycles): void {
    const core = this.#core;
    if (cycle <= core.localCycle) return;
    core.account.add(causeIndexOf.poll, cycle - core.localCycle);
    if (operation !== undefined) operation.spend(causeIndexOf.poll, cycle - core.localCycle);
    core.localCycle = cycle;
  }
}
