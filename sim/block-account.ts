/**
 * The cycle account of one clocked block: every cycle of its clock is busy, stalled for a named reason, or idle.
 *
 * Busy cycles are added when work is started; stalled and idle cycles are measured as the intervals between works. The three
 * are counted independently, so their sum is a check and not an identity.
 */

import type { Cycles, Wide } from '../base/index.ts';

/** The reasons for which a block stalls: their names in reports, and the numbers that the block uses. */
export type StallReasons<N extends string = string> = Readonly<Record<N, number>>;

/** Used instead of a reason: nothing blocks the work. */
export const NOT_STALLED = -1;

/** Declares them; the first is number 0: `const { link: STALL_LINK } = stallReasons('link', 'tags')`. */
export const stallReasons = <const N extends string>(...names: readonly N[]): StallReasons<N> =>
  Object.fromEntries(names.map((name, number) => [name, number])) as StallReasons<N>;

export class BlockAccount {
  readonly name: string;
  /** Names of the stall reasons, by number. */
  readonly stallReasons: readonly string[];
  busyCycles: Wide = 0;
  idleCycles: Wide = 0;
  readonly stalledCycles: Float64Array;
  /** Number of works started before the previous work had ended: a fault of the block. */
  overlapCount = 0;

  /** First cycle at which new work can start: no cycle from this one on is accounted for yet. */
  freeCycle = 0;
  /** Why the block has waited since {@link freeCycle}: a stall reason or IDLE. */
  #waitingFor = IDLE;

  constructor(name: string, reasons: StallReasons = {}) {
    this.name = name;
    this.stallReasons = Object.keys(reasons);
    this.stalledCycles = new Float64Array(this.stallReasons.length);
  }

  /** True while the block waits for the reason of this index: the neighbour that removes it wakes the block. */
  isStalledFor(reason: number): boolean {
    return this.#waitingFor === reason;
  }

  /** True while the block waits for work: {@link rest} would change nothing. */
  get isResting(): boolean {
    return this.#waitingFor === IDLE;
  }

  /** Starts work at `cycle` that occupies the block for `serviceCycles`. */
  serve(cycle: Cycles, serviceCycles: Cycles): void {
    if (this.#waitingFor === IDLE && cycle >= this.freeCycle) {
      this.idleCycles += cycle - this.freeCycle;
      this.busyCycles += serviceCycles;
      this.freeCycle = cycle + serviceCycles;
      return;
    }
    this.#close(cycle);
    this.#waitingFor = IDLE;
    this.serve(cycle, serviceCycles);
  }

  /** Notes that from `cycle` on the block has work that cannot proceed, for the reason of this index. */
  stall(cycle: Cycles, reason: number): void {
    if (this.#waitingFor === reason) return;
    if (cycle > this.freeCycle) this.#close(cycle);
    this.#waitingFor = reason;
  }

  /** Notes that from `cycle` on the block has no work. */
  rest(cycle: Cycles): void {
    this.stall(cycle, IDLE);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: Cycles): void {
    this.freeCycle -= cycles;
  }

  /** Brings the account up to `cycle`, the end of the run. Longer work is cut there. */
  close(cycle: Cycles): void {
    if (cycle < this.freeCycle) {
      this.busyCycles -= this.freeCycle - cycle;
      this.freeCycle = cycle;
      return;
    }
    this.#close(cycle);
  }

  /** The account as it would be if the run ended at `cycle`. This account continues: a report may be requested in mid-run. */
  closedAt(cycle: Cycles): BlockAccount {
    const closed = new BlockAccount(this.name, stallReasons(...this.stallReasons));
    closed.busyCycles = this.busyCycles;
    closed.idleCycles = this.idleCycles;
    closed.stalledCycles.set(this.stalledCycles);
    closed.overlapCount = this.overlapCount;
    closed.freeCycle = this.freeCycle;
    closed.#waitingFor = this.#waitingFor;
    closed.close(cycle);
    return closed;
  }

  #close(cycle: Cycles): void {
    const cycles = cycle - this.freeCycle;
    if (cycles < 0) this.overlapCount++;
    if (this.#waitingFor === IDLE) this.idleCycles += cycles;
    else this.stalledCycles[this.#waitingFor] = this.stalledCycles[this.#waitingFor]! + cycles;
    this.freeCycle = cycle;
  }
}

const IDLE = -1;
