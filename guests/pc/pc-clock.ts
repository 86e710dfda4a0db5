/**
 * The clock of a PC: instructions times their cost, and everything else that takes its processor's time. The parts always add up
 * to the present instant.
 *
 *     now = executing + loads + stores + interrupts + waking + chance + idle
 */
import { psPerUs } from '../../base/index.ts';
import type { PcConfig } from './parameters.ts';

/** Picoseconds of each kind since power-on. */
export interface PcTimeAccount {
  /** Instructions. */
  readonly executingPs: number;
  /** Loads from the device, until their completion has come. */
  readonly loadsPs: number;
  readonly storesPs: number;
  readonly interruptsPs: number;
  readonly wakingPs: number;
  /** Added by chance (jitter.ts): 0 unless a seed asks for it. */
  readonly chancePs: number;
  /** Halted. */
  readonly idlePs: number;
}

const psPerMs = 1e9;

export class PcClock {
  /** Instructions since power-on. */
  instructionCount = 0;
  readonly cyclePs: number;
  readonly #instructionPs: number;
  readonly #config: PcConfig;
  readonly #spent = { loadsPs: 0, storesPs: 0, interruptsPs: 0, wakingPs: 0, chancePs: 0, idlePs: 0 };
  /** Sum of what was spent other than on instructions. */
  #otherPs = 0;
  #lastCount = 0;

  constructor(config: PcConfig) {
    this.#config = config;
    this.cyclePs = Math.round(psPerUs / config.coreMhz);
    this.#instructionPs = Math.max(1, Math.round(this.cyclePs * config.cyclesPerInstruction));
  }

  /** Picoseconds since power-on. */
  get nowPs(): number {
    return this.instructionCount * this.#instructionPs + this.#otherPs;
  }

  get nowMs(): number {
    return this.nowPs / psPerMs;
  }

  /** Time of all loads and stores. */
  get accessesPs(): number {
    return this.#spent.loadsPs + this.#spent.storesPs;
  }

  /** Instructions that fit into a duration, at least one. */
  instructionsIn(durationPs: number): number {
    return Math.max(1, Math.floor(durationPs / this.#instructionPs));
  }

  /** The core's counter of instructions, which wraps, has this value. */
  count(counter: number): void {
    this.instructionCount += (counter - this.#lastCount) >>> 0;
    this.#lastCount = counter;
  }

  /** A load has waited for the device until this instant. */
  loadedAt(instantPs: number): void {
    this.#advanceTo('loadsPs', instantPs);
  }

  /** The halted processor has slept until this instant. */
  sleptUntil(instantPs: number): void {
    this.#advanceTo('idlePs', instantPs);
  }

  stored(): void {
    this.#spend('storesPs', this.#config.storeCycles * this.cyclePs);
  }

  interrupted(): void {
    this.#spend('interruptsPs', this.#config.interruptCycles * this.cyclePs);
  }

  woke(): void {
    this.#spend('wakingPs', this.#config.wakeCycles * this.cyclePs);
  }

  /** Chance has taken this long. */
  delayed(ps: number): void {
    this.#spend('chancePs', ps);
  }

  get account(): PcTimeAccount {
    return this.accountAfter(0);
  }

  /** Returns the account after a number of further instructions, which are not yet counted. */
  accountAfter(instructions: number): PcTimeAccount {
    return { executingPs: (this.instructionCount + instructions) * this.#instructionPs, ...this.#spent };
  }

  /** Continues another clock's count, whose core has this value of its counter. */
  continueFrom(instructionCount: number, account: PcTimeAccount, counter: number): void {
    this.instructionCount = instructionCount;
    const { executingPs: _, ...spent } = account;
    Object.assign(this.#spent, spent);
    this.#otherPs = Object.values(spent).reduce((sum, ps) => sum + ps, 0);
    this.#lastCount = counter;
  }

  #advanceTo(kind: 'loadsPs' | 'idlePs', instantPs: number): void {
    if (instantPs > this.nowPs) this.#spend(kind, instantPs - this.nowPs);
  }

  #spend(kind: keyof Omit<PcTimeAccount, 'executingPs'>, ps: number): void {
    this.#spent[kind] += ps;
    this.#otherPs += ps;
  }
}
