/**
 * Milestones of a request that a byte stream of the card carries, in addition to those of {@link SendRecord}: waits for TCP, in core cycles.
 *
 *     started ─ windowCycles ─► gathered ─► framed ─► transmitted: TCP has it          a WRITE or SEND is complete
 *                                                        └─► sent ─► resent ─► handed to placement ─► acknowledged          a READ
 */
import type { Cycles, Wide } from '../../../base/index.ts';

/** In place of a milestone that was not reached. */
export const NOT_REACHED = Number.NEGATIVE_INFINITY;

/** When TCP has formed the frame of a segment. */
export class SegmentTimes {
  /** The first time; and the last time that it was sent again. */
  sentCycle = NOT_REACHED;
  resentCycle = NOT_REACHED;

  note(isSentAgain: boolean, cycle: Cycles): void {
    if (isSentAgain) this.resentCycle = cycle;
    else this.sentCycle = cycle;
  }
}

export class StreamMilestones {
  isUsed = false;
  /** Cycles for which TCP had no room for the next segment, and since when it has none. */
  windowCycles: Wide = 0;
  #blockedCycle = NOT_REACHED;
  /** The transmitter has begun to write the last FPDU. */
  framedCycle = NOT_REACHED;
  /** Times of a READ's request in TCP. Each READ has an object of its own: TCP may still hold the segment when the record is reused. */
  times: SegmentTimes | undefined = undefined;
  /** TCP has handed the last segment of a READ's response to placement. */
  handedCycle = NOT_REACHED;

  begin(): void {
    this.isUsed = true;
    this.windowCycles = 0;
    this.#blockedCycle = NOT_REACHED;
    this.framedCycle = NOT_REACHED;
    this.times = undefined;
    this.handedCycle = NOT_REACHED;
  }

  /** The next segment finds no room. */
  blocked(cycle: Cycles): void {
    if (this.#blockedCycle === NOT_REACHED) this.#blockedCycle = cycle;
  }

  /** The next segment has its place. */
  opened(cycle: Cycles): void {
    if (this.#blockedCycle === NOT_REACHED) return;
    this.windowCycles += cycle - this.#blockedCycle;
    this.#blockedCycle = NOT_REACHED;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#blockedCycle -= cycles;
    this.framedCycle -= cycles;
    this.handedCycle -= cycles;
    if (this.times === undefined) return;
    this.times.sentCycle -= cycles;
    this.times.resentCycle -= cycles;
  }
}
