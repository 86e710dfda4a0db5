/**
 * Requests of each requester, and the waiting times of its TLPs by reason.
 *
 * The engine as a whole stalls for tags or for the link; the {@link StallClock} adds those cycles up. A TLP's own waiting is
 * measured from the cycle at which it could have been sent: the engine's stalls within that time are its waits for tags and
 * link; the rest is waiting for other TLPs (arbitration or order).
 */
import type { Cycles } from '../../base/index.ts';
import { stallReasons } from '../../sim/index.ts';

export class DmaRequesterCounters {
  requests = 0;
  bytes = 0;
  tlps = 0;
  /** Requests that ended with an error status, or were dropped. */
  failedRequests = 0;
  waitTagCycles = 0;
  waitLinkCycles = 0;
  waitArbitrationCycles = 0;
}

export const readStalls = stallReasons('link', 'tags');
/** Stall reasons of the write engine; the link has the same number as for reads. */
export const writeStalls = stallReasons('link');
export const { link: STALL_LINK, tags: STALL_TAGS } = readStalls;

const NONE = -1;

export class StallClock {
  /** Cycles stalled for link and tags, without a stall in progress: exact while the engine does not wait. */
  linkCycles = 0;
  tagCycles = 0;
  #reason = NONE;
  #sinceCycle = 0;

  get isStalled(): boolean {
    return this.#reason !== NONE;
  }

  isStalledFor(reason: number): boolean {
    return this.#reason === reason;
  }

  /** Why the engine waits, by name; undefined while it does not. */
  get reason(): string | undefined {
    return Object.keys(readStalls)[this.#reason];
  }

  /** Begins to wait for this reason at `cycle`. */
  begin(reason: number, cycle: Cycles): void {
    if (this.#reason === reason) return;
    this.end(cycle);
    this.#reason = reason;
    this.#sinceCycle = cycle;
  }

  /** Ends the wait at `cycle`. */
  end(cycle: Cycles): void {
    if (this.#reason === NONE) return;
    if (this.#reason === STALL_LINK) this.linkCycles += cycle - this.#sinceCycle;
    else this.tagCycles += cycle - this.#sinceCycle;
    this.#reason = NONE;
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#sinceCycle -= cycles;
  }

  /** Cycles stalled for the link until `cycle`. */
  linkCyclesAt(cycle: Cycles): number {
    return this.linkCycles + this.#lasting(STALL_LINK, cycle);
  }

  /** Cycles stalled for tags until `cycle`. */
  tagCyclesAt(cycle: Cycles): number {
    return this.tagCycles + this.#lasting(STALL_TAGS, cycle);
  }

  #lasting(reason: number, cycle: Cycles): number {
    return this.#reason === reason && cycle > this.#sinceCycle ? cycle - this.#sinceCycle : 0;
  }
}
