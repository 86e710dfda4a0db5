/**
 * Interrupt causes, their masks, and when a vector's message leaves.
 *
 *     cause ─► ICR ─(rises in ICR & IMS)─► raised ─┬─ interval over, or count reached ─► message ─► ICR &= ~EIAC
 *                                                  └─ else waits for one of the two                IMS &= ~IAM
 *
 * Moderation by time is the minimum interval between two messages of a vector (EITR), so that the first one after a quiet time
 * is sent at once; moderation by count ends the wait early (EICT). Without MSI-X the pin follows ICR & IMS. Promise: raised =
 * messages + moderated + forgotten + those waiting. A cause that is set while it is masked is not lost: enabling it raises.
 * Source: 82574 datasheet, 7.4; abi/nic/interrupts.ts.
 */

import { eitrUnitNs, nicBits, nicCauseGroup, nicCausesAll, nicMsix } from '../../abi/nic/index.ts';
import { type Cycles, fieldOf } from '../../base/index.ts';
import type { BlockState, ClockDomain } from '../../sim/index.ts';
import type { NicCounters } from './nic-counters.ts';

const NO_VECTOR = -1;
const PS_PER_NS = 1000;

/** The interrupts of the PCIe function. */
export interface NicInterruptPort {
  readonly msixEnabled: boolean;
  /** Returns false without room: then nothing has happened, and the caller asks again in a later cycle. */
  requestInterrupt(vector: number, cycle: Cycles): boolean;
  setIntx(isAsserted: boolean, cycle: Cycles): void;
}

export interface NicInterruptsSetup {
  readonly domain: ClockDomain;
  readonly port: NicInterruptPort;
  /** A pin's message is not ordered after writes: it waits until no write is on its way to the link. */
  readonly writes: { readonly isIdle: boolean };
  readonly counters: NicCounters;
}

export class NicInterrupts {
  readonly eitr = new Uint16Array(nicMsix.vectorCount);
  readonly eict = new Uint16Array(nicMsix.vectorCount);
  /** Messages by vector. */
  readonly messages = new Float64Array(nicMsix.vectorCount);

  readonly #domain: ClockDomain;
  readonly #port: NicInterruptPort;
  readonly #writes: NicInterruptsSetup['writes'];
  readonly #counters: NicCounters;
  readonly #stage: number;
  #icr = 0;
  #ims = 0;
  #eiac = 0;
  #iam = 0;
  #isPinAsserted = false;
  /**
   * State by vector: its causes, whether a message is due, events since the last message, and the time of that message.
   */
  readonly #causes = new Int32Array(nicMsix.vectorCount);
  readonly #isRaised = new Uint8Array(nicMsix.vectorCount);
  readonly #events = new Int32Array(nicMsix.vectorCount);
  readonly #lastCycle = new Float64Array(nicMsix.vectorCount).fill(Number.NEGATIVE_INFINITY);

  constructor({ domain, port, writes, counters }: NicInterruptsSetup) {
    this.#domain = domain;
    this.#port = port;
    this.#writes = writes;
    this.#counters = counters;
    this.#stage = domain.addStage(this.#run, this);
  }

  /** Causes occur, in a cycle at or after the edge being run. */
  set(causes: number, cycle: Cycles): void {
    const risen = causes & ~this.#icr & this.#ims;
    this.#icr |= causes;
    for (let vector = 0; vector < nicMsix.vectorCount; vector++) {
      if ((causes & this.#ims & this.#causes[vector]!) !== 0)
        this.#events[vector] = this.#events[vector]! + 1;
    }
    this.#raise(risen, cycle);
    if (causes !== 0) this.#domain.wake(this.#stage, cycle + 1);
  }

  // ---- registers ----

  /** ICR: a read clears all causes. */
  readCauses(cycle: Cycles): number {
    const causes = this.#icr;
    this.clear(nicCausesAll, cycle);
    return causes;
  }

  /** ICR: writing ones clears those. */
  clear(causes: number, cycle: Cycles): void {
    this.#icr &= ~causes;
    this.#domain.wake(this.#stage, cycle + 1);
  }

  get mask(): number {
    return this.#ims;
  }

  enable(causes: number, cycle: Cycles): void {
    const risen = causes & nicCausesAll & ~this.#ims & this.#icr;
    this.#ims |= causes & nicCausesAll;
    this.#raise(risen, cycle);
    this.#domain.wake(this.#stage, cycle + 1);
  }

  disable(causes: number, cycle: Cycles): void {
    this.#ims &= ~causes;
    this.#domain.wake(this.#stage, cycle + 1);
  }

  get autoClear(): number {
    return this.#eiac;
  }

  set autoClear(causes: number) {
    this.#eiac = causes & nicCausesAll;
  }

  get autoMask(): number {
    return this.#iam;
  }

  set autoMask(causes: number) {
    this.#iam = causes & nicCausesAll;
  }

  /** IVAR: the vector of each group. */
  assignVectors(value: number): void {
    const field = nicBits.ivar;
    this.#causes.fill(0);
    this.#assign(
      nicCauseGroup.receive,
      fieldOf(value, field.receiveValid) === 1,
      fieldOf(value, field.receiveVector),
    );
    this.#assign(
      nicCauseGroup.transmit,
      fieldOf(value, field.transmitValid) === 1,
      fieldOf(value, field.transmitVector),
    );
    this.#assign(
      nicCauseGroup.other,
      fieldOf(value, field.otherValid) === 1,
      fieldOf(value, field.otherVector),
    );
  }

  /** EITR or EICT of a vector was written: its wait may be over. */
  moderationChanged(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle + 1);
  }

  reset(cycle: Cycles): void {
    for (let vector = 0; vector < nicMsix.vectorCount; vector++) this.#forget(vector);
    this.#icr = 0;
    this.#ims = 0;
    this.#eiac = 0;
    this.#iam = 0;
    this.assignVectors(0);
    this.eitr.fill(0);
    this.eict.fill(0);
    this.#lastCycle.fill(Number.NEGATIVE_INFINITY);
    this.#drivePin(cycle);
  }

  /** Vectors whose message is due and has not left. */
  get waitingCount(): number {
    return this.#isRaised.reduce((sum, isRaised) => sum + isRaised, 0);
  }

  inspect(): BlockState {
    return {
      icr: this.#icr,
      ims: this.#ims,
      eiac: this.#eiac,
      iam: this.#iam,
      isPinAsserted: this.#isPinAsserted,
      eitr: [...this.eitr],
      eict: [...this.eict],
      causes: [...this.#causes],
      isRaised: [...this.#isRaised],
      events: [...this.#events],
      hasSent: [...this.#lastCycle].map(Number.isFinite),
    };
  }

  // ---- inside ----

  #assign(group: number, isValid: boolean, vector: number): void {
    const at = isValid && vector < nicMsix.vectorCount ? vector : NO_VECTOR;
    if (at !== NO_VECTOR) this.#causes[at] = this.#causes[at]! | group;
  }

  #raise(risen: number, cycle: Cycles): void {
    if (risen === 0 || !this.#port.msixEnabled) return;
    for (let vector = 0; vector < nicMsix.vectorCount; vector++) {
      if ((risen & this.#causes[vector]!) === 0) continue;
      this.#counters.interruptsRaised++;
      if (this.#isRaised[vector] === 1) this.#counters.interruptsModerated++;
      this.#isRaised[vector] = 1;
      this.#domain.wake(this.#stage, cycle + 1);
    }
  }

  #run(cycle: Cycles): void {
    for (let vector = 0; vector < nicMsix.vectorCount; vector++) {
      if (this.#isRaised[vector] === 1) this.#consider(vector, cycle);
    }
    this.#drivePin(cycle);
  }

  #consider(vector: number, cycle: Cycles): void {
    if ((this.#icr & this.#ims & this.#causes[vector]!) === 0) {
      this.#forget(vector);
      return;
    }
    const dueCycle = this.#lastCycle[vector]! + this.#intervalCycles(vector);
    const count = this.eict[vector]!;
    const isCounted = count > 0 && this.#events[vector]! >= count;
    if (cycle < dueCycle && !isCounted) {
      this.#domain.wake(this.#stage, dueCycle);
      return;
    }
    if (!this.#port.requestInterrupt(vector, cycle)) {
      this.#domain.wake(this.#stage, cycle + 1);
      return;
    }
    this.#isRaised[vector] = 0;
    this.#events[vector] = 0;
    this.#lastCycle[vector] = cycle;
    this.messages[vector] = this.messages[vector]! + 1;
    this.#counters.interruptMessages++;
    this.#icr &= ~(this.#eiac & this.#causes[vector]!);
    this.#ims &= ~(this.#iam & this.#causes[vector]!);
  }

  #forget(vector: number): void {
    this.#events[vector] = 0;
    if (this.#isRaised[vector] === 0) return;
    this.#isRaised[vector] = 0;
    this.#counters.interruptsForgotten++;
  }

  #intervalCycles(vector: number): number {
    return Math.ceil((this.eitr[vector]! * eitrUnitNs * PS_PER_NS * this.#domain.clock.frequencyMHz) / 1e6);
  }

  /** INTA follows the enabled causes; its message must not pass the write-back that it announces. */
  #drivePin(cycle: Cycles): void {
    const isWanted = !this.#port.msixEnabled && (this.#icr & this.#ims) !== 0;
    if (isWanted === this.#isPinAsserted) return;
    if (isWanted && !this.#writes.isIdle) {
      this.#domain.wake(this.#stage, cycle + 1);
      return;
    }
    this.#isPinAsserted = isWanted;
    if (isWanted) this.#counters.pinAssertions++;
    this.#port.setIntx(isWanted, cycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (let vector = 0; vector < this.#lastCycle.length; vector++)
      this.#lastCycle[vector] = this.#lastCycle[vector]! - cycles;
  }
}
