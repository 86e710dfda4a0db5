/**
 * Decides when an event queue interrupts: if it is armed and has entries to report, at once or after its moderation
 * period or count.
 *
 *   EQE written, or EQ armed with entries waiting ── a request
 *      no moderation ─────────────> message, EQ fired
 *      period not running ────────> starts it ── period over, or count reached ──> message, EQ fired
 *      period running ────────────> moderated (joins the message to come)
 *   CQE held back by the moderation of its CQ ── a request, moderated (joins the event to come)
 *
 * Promise, per vector: requested = moderated + messages + (1 while a period runs or a message waits for room). The PCIe
 * function accounts for the fate of a message (delivered, masked, coalesced). Without MSI-X the pin is asserted until
 * software writes the clear-interrupt register; a request that became an assertion no longer counts as a request of a
 * vector. Source: interface sheet 5.3, 6.10, 2.4.
 */

import { EqArmState, msix } from '../../../abi/index.ts';
import { type Cycles, NEVER } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { InterruptPort } from '../memory/index.ts';
import type { EqSlot } from '../objects/index.ts';
import type { EqTable } from './eq-table.ts';

export interface InterruptModerationPorts {
  readonly events: {
    /** True if no EQE is on its way to the link. */
    readonly hasAllLeft: boolean;
  };
}

export class InterruptModeration {
  /**
   * Counters per vector: reasons to interrupt, those that joined another, and messages requested from the PCIe
   * function.
   */
  readonly requestedCount = new Float64Array(msix.vectorCount);
  readonly moderatedCount = new Float64Array(msix.vectorCount);
  readonly messageCount = new Float64Array(msix.vectorCount);
  /** Times the interrupt pin was asserted. */
  pinAssertionCount = 0;
  /** First cycle at which a moderation period ends, or Infinity. */
  nextCycle = NEVER;
  readonly #eqs: EqTable;
  readonly #interrupts: InterruptPort;
  #events!: InterruptModerationPorts['events'];
  /** Vectors for whose message the function had no room, each once. */
  #waiting: number[] = [];

  constructor(eqs: EqTable, interrupts: InterruptPort) {
    this.#eqs = eqs;
    this.#interrupts = interrupts;
  }

  connect({ events }: InterruptModerationPorts): void {
    this.#events = events;
  }

  /** An entry was written to the EQ, or the EQ was armed: interrupts, or plans to, if the EQ is armed and not empty. */
  consider(slot: EqSlot, cycle: Cycles): void {
    const eqs = this.#eqs;
    if (eqs.armState[slot] === EqArmState.FIRED || eqs.unconsumed(slot) === 0) return;
    const vector = this.#vectorOf(slot);
    this.requestedCount[vector] = this.requestedCount[vector]! + 1;
    const periodCycles = eqs.moderationCycles[slot]!;
    if (periodCycles === 0) {
      this.#fire(slot, cycle);
      return;
    }
    const isRunning = eqs.interruptCycle[slot] !== NEVER;
    if (isRunning) this.moderatedCount[vector] = this.moderatedCount[vector]! + 1;
    const count = eqs.moderationCount[slot]!;
    if (count > 0 && eqs.unconsumed(slot) >= count) {
      this.#fire(slot, cycle);
      return;
    }
    if (isRunning) return;
    eqs.interruptCycle[slot] = cycle + periodCycles;
    if (eqs.interruptCycle[slot]! < this.nextCycle) this.nextCycle = eqs.interruptCycle[slot]!;
  }

  /** Counts reasons that joined an event before it was posted: CQEs that the moderation of their CQ held back. */
  joined(slot: EqSlot, count: number): void {
    const vector = this.#vectorOf(slot);
    this.requestedCount[vector] = this.requestedCount[vector]! + count;
    this.moderatedCount[vector] = this.moderatedCount[vector]! + count;
  }

  /** Interrupts for all EQs whose period has ended, and retries messages that had no room. */
  runTimers(cycle: Cycles): void {
    const { interruptCycle } = this.#eqs;
    this.nextCycle = NEVER;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const vector of waiting) this.#send(vector, cycle);
    for (let slot = 0; slot < interruptCycle.length; slot++) {
      if (interruptCycle[slot]! <= cycle) this.#fire(slot, cycle);
      if (interruptCycle[slot]! < this.nextCycle) this.nextCycle = interruptCycle[slot]!;
    }
  }

  /** HW2SW_EQ: a period that was running ends without a message. */
  forget(slot: EqSlot): void {
    const eqs = this.#eqs;
    if (eqs.interruptCycle[slot] === NEVER) return;
    const vector = this.#vectorOf(slot);
    this.moderatedCount[vector] = this.moderatedCount[vector]! + 1;
    eqs.interruptCycle[slot] = NEVER;
  }

  /** Periods that run, and messages that wait for room. */
  get heldCount(): number {
    return this.#waiting.length + this.#eqs.interruptCycle.filter((cycle) => cycle !== NEVER).length;
  }

  /** Software wrote the clear-interrupt register. */
  clearPin(cycle: Cycles): void {
    this.#interrupts.setIntx(false, cycle);
  }

  #fire(slot: EqSlot, cycle: Cycles): void {
    const eqs = this.#eqs;
    const vector = this.#vectorOf(slot);
    eqs.interruptCycle[slot] = NEVER;
    if (eqs.armState[slot] === EqArmState.ARMED) eqs.armState[slot] = EqArmState.FIRED;
    this.#send(vector, cycle);
  }

  #send(vector: number, cycle: Cycles): void {
    if (this.#isSent(vector, cycle)) return;
    if (this.#waiting.includes(vector)) this.moderatedCount[vector] = this.moderatedCount[vector]! + 1;
    else this.#waiting.push(vector);
    this.nextCycle = cycle + 1;
  }

  #isSent(vector: number, cycle: Cycles): boolean {
    if (this.#interrupts.msixEnabled) {
      const isSent = this.#interrupts.requestInterrupt(vector, cycle);
      if (isSent) this.messageCount[vector] = this.messageCount[vector]! + 1;
      return isSent;
    }
    // A pin's message is not ordered after EQEs that are still on their way to the link.
    if (!this.#events.hasAllLeft) return false;
    this.requestedCount[vector] = this.requestedCount[vector]! - 1;
    this.pinAssertionCount++;
    this.#interrupts.setIntx(true, cycle);
    return true;
  }

  /** Vectors that wait for room, and periods that run. See Block.inspect. */
  inspect(): BlockState {
    const periods = this.#eqs.interruptCycle.reduce((count, cycle) => count + (cycle === NEVER ? 0 : 1), 0);
    return { waiting: [...this.#waiting], periods };
  }

  /** Drops all pending interrupts. */
  reset(): void {
    this.#waiting = [];
    this.nextCycle = NEVER;
    this.#eqs.interruptCycle.fill(NEVER);
  }

  /** Interrupt numbers beyond the MSI-X table fall on its last entry. */
  #vectorOf(slot: EqSlot): number {
    return Math.min(this.#eqs.vector[slot]!, msix.vectorCount - 1);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    const { interruptCycle } = this.#eqs;
    this.nextCycle -= cycles;
    for (let slot = 0; slot < interruptCycle.length; slot++)
      interruptCycle[slot] = interruptCycle[slot]! - cycles;
  }
}
