/** Detects that the cable's link came up or went down, and sets the cause LSC at the next edge. */

import { NicCause } from '../../abi/nic/index.ts';
import type { Cycles, Picoseconds } from '../../base/index.ts';
import type { BlockState, ClockDomain } from '../../sim/index.ts';

export interface LinkWatchPorts {
  readonly interrupts: { set(causes: number, cycle: Cycles): void };
}

export class LinkWatch {
  readonly #domain: ClockDomain;
  readonly #stage: number;
  #interrupts!: LinkWatchPorts['interrupts'];
  #isChanged = false;

  constructor(domain: ClockDomain) {
    this.#domain = domain;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect({ interrupts }: LinkWatchPorts): void {
    this.#interrupts = interrupts;
  }

  /** Called by the port. */
  linkChanged(_isUp: boolean, nowPs: Picoseconds): void {
    this.#isChanged = true;
    this.#domain.wakeAfter(this.#stage, nowPs);
  }

  reset(): void {
    this.#isChanged = false;
  }

  inspect(): BlockState {
    return { isChanged: this.#isChanged };
  }

  #run(cycle: Cycles): void {
    if (!this.#isChanged) return;
    this.#isChanged = false;
    this.#interrupts.set(NicCause.LSC, cycle);
  }
}
