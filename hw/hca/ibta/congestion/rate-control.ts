/**
 * The seam between congestion control and its algorithms: three functions. One object controls the rate of one QP, from its first
 * feedback on; before that the QP sends at line rate.
 *
 *     CNP, round trip ─▶ onFeedback ─┐
 *     packets ─────────▶ onSent ─────┴─▶ rateMbps ─▶ distance of the QP's packets (ReactionPoint)
 *
 * An object schedules no events: each call passes the present instant, which never decreases, and the object first applies
 * the timer expirations since the last call. Rates count all bytes of a packet's frame.
 */
import type { Picoseconds } from '../../../../base/index.ts';

/** Signals of the network to a sender. A BECN counts as a CNP. */
export const CNP = 0;
/** A message was acknowledged: `roundTripPs` after its last packet had left. */
export const ROUND_TRIP = 1;
export type Feedback = typeof CNP | typeof ROUND_TRIP;

export interface RateControl {
  /** The network has given a signal of the kind that the algorithm uses. */
  onFeedback(atPs: Picoseconds, roundTripPs: Picoseconds): void;
  /** The QP has sent that many bytes. */
  onSent(bytes: number, atPs: Picoseconds): void;
  /** The rate from now on, at most the line rate. */
  rateMbps(atPs: Picoseconds): number;
  /** A new epoch: see EdgeKeeper. */
  rebase(ps: Picoseconds): void;
}
