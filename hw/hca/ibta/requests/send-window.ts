/**
 * Selective repeat, the sender's side of one QP: a map of its packets in flight, by PSN.
 *
 *     lastAckedPsn         cumulativePsn         evidencePsn        madePsn
 *          │ accepted by the peer  │  sent before one     │ sent, and     │ never made
 *          ▼                       ▼  that has come       ▼ may be        ▼
 *     ─────┼──P──P─────P───────────┼────H──H─────H────────┼─ under way ───┼─────▶ PSN
 *
 *     H   a request that the peer holds until the gap before it is filled
 *     P   a READ response or atomic result that is placed
 *
 * A request after `cumulativePsn` without H, or a response before that without P, is lost if its PSN is before the evidence of its
 * kind. It is sent again once; only a timeout makes it lost a second time. Source: IRN, 3.1.
 */
import type { Picoseconds } from '../../../../base/index.ts';
import { psnAdd, psnDistance } from '../../../../wire/index.ts';

export const HELD = 1;
export const PLACED = 2;
/** A repetition of the request has left. */
const REPEATED = 4;

const NONE = -1;

/** Which PSNs of one kind, requests or responses, are lost unless they have come. */
class Losses {
  /** PSNs before this one were sent before something that has come. */
  evidencePsn: number;
  /** PSNs before this one have been sent again already. */
  repeatFromPsn: number;

  constructor(firstPsn: number) {
    this.evidencePsn = firstPsn;
    this.repeatFromPsn = firstPsn;
  }

  mayBeLost(psn: number): boolean {
    return psnDistance(psn, this.evidencePsn) < 0 && psnDistance(psn, this.repeatFromPsn) >= 0;
  }

  /** Something that was sent after all before `psn` has come. */
  sentBefore(psn: number): void {
    if (psnDistance(psn, this.evidencePsn) > 0) this.evidencePsn = psn;
  }

  /** All before this PSN has come: the numbers stay near it, so that their distances are right when PSNs wrap. */
  settledBefore(psn: number): void {
    this.sentBefore(psn);
    if (psnDistance(psn, this.repeatFromPsn) > 0) this.repeatFromPsn = psn;
  }

  /** The PSN is lost, although it may have been sent again. */
  lose(psn: number): void {
    this.mayRepeatFrom(psn);
    this.sentBefore(psnAdd(psn, 1));
  }

  /** PSNs from this one on may be sent again, although they have been. */
  mayRepeatFrom(psn: number): void {
    if (psnDistance(psn, this.repeatFromPsn) < 0) this.repeatFromPsn = psn;
  }
}

export class SendWindow {
  /** PSN of the next packet that is made for the first time. */
  madePsn: number;
  /** Newest PSN that the peer has accepted with all before it. */
  cumulativePsn: number;
  readonly requests: Losses;
  readonly responses: Losses;
  /** PSN after the newest packet that has left the card: packets up to `madePsn` wait in the transmit buffer. */
  leftPsn: number;
  /** Newest PSN that had left when the timeout expired, until the peer answers again; -1 for none. */
  timedOutPsn = NONE;
  /** The newest request that was sent again, until the peer accepts it; -1 for none. */
  #repeatedPsn = NONE;
  /** Timeouts since the peer's last answer. */
  timeoutCount = 0;
  /** PSN after the newest packet that requested an acknowledgement. */
  askedPsn: number;
  /** Instant from which the next retry of the QP counts. */
  chargedPs: Picoseconds;
  /** Packets of the window. */
  readonly size: number;
  readonly #marks: Uint8Array;
  /** PSN to which each mark belongs: a READ longer than the window has PSNs that share a place. */
  readonly #psns: Int32Array;
  /** `leftPsn` at the instant when the first repetition of the PSN at each place left. */
  readonly #leftPsns: Int32Array;

  /**
   * @param size a power of two
   * @param firstPsn of the first packet
   */
  constructor(size: number, firstPsn: number, nowPs: Picoseconds) {
    this.size = size;
    this.#marks = new Uint8Array(size);
    this.#psns = new Int32Array(size).fill(NONE);
    this.#leftPsns = new Int32Array(size);
    this.madePsn = firstPsn;
    this.leftPsn = firstPsn;
    this.cumulativePsn = psnAdd(firstPsn, -1);
    this.requests = new Losses(firstPsn);
    this.responses = new Losses(firstPsn);
    this.askedPsn = firstPsn;
    this.chargedPs = nowPs;
  }

  /** Whether the PSN is that of a request that the peer has accepted. */
  isAccepted(psn: number): boolean {
    return psnDistance(psn, this.cumulativePsn) <= 0;
  }

  has(psn: number, mark: number): boolean {
    const place = psn & (this.size - 1);
    return this.#psns[place] === psn && (this.#marks[place]! & mark) !== 0;
  }

  set(psn: number, mark: number): void {
    const place = psn & (this.size - 1);
    if (this.#psns[place] !== psn) this.#marks[place] = 0;
    this.#psns[place] = psn;
    this.#marks[place]! |= mark;
  }

  /** Forgets the marks of `count` PSNs from `psn` on. */
  clear(psn: number, count: number): void {
    for (let index = Math.min(count, this.size) - 1; index >= 0; index--) {
      const place = (psn + index) & (this.size - 1);
      if (psnDistance(this.#psns[place]!, psnAdd(psn, count)) < 0) this.#marks[place] = 0;
    }
  }

  /** A request is made again. */
  repeated(psn: number): void {
    this.#repeatedPsn = psn;
  }

  /** A packet leaves the card: a request, with the PSNs of its responses, for the first time or again. */
  left(psn: number, count: number): void {
    const endPsn = psnAdd(psn, count);
    if (psnDistance(endPsn, this.leftPsn) > 0) this.leftPsn = endPsn;
    else if (!this.isAccepted(psn) && !this.has(psn, REPEATED)) {
      this.set(psn, REPEATED);
      this.#leftPsns[psn & (this.size - 1)] = this.leftPsn;
    }
  }

  /**
   * The peer has accepted everything up to `psn`, including its oldest missing request. If a repetition of that request
   * has left, every packet that left before the repetition has arrived or is lost. Those without H are lost once the
   * peer has accepted each repetition, also those that it dropped for lack of room, for which it sends no NAK. Packets
   * that left later, or that still wait in the transmit buffer, are not: a repetition that was made in vain proves
   * nothing.
   */
  accepted(psn: number): void {
    const oldestPsn = psnAdd(this.cumulativePsn, 1);
    if (psnDistance(psn, this.cumulativePsn) > 0) this.cumulativePsn = psn;
    if (this.#repeatedPsn === NONE || !this.isAccepted(this.#repeatedPsn)) return;
    this.#repeatedPsn = NONE;
    if (!this.has(oldestPsn, REPEATED)) return;
    this.requests.mayRepeatFrom(psnAdd(this.cumulativePsn, 1));
    this.requests.sentBefore(this.#leftPsns[oldestPsn & (this.size - 1)]!);
  }

  /**
   * An answer has come that left after all responses before `psn`. The first one after a timeout shows what of all that
   * had left by then the peer lacks.
   */
  answered(psn: number): void {
    this.responses.sentBefore(psn);
    if (this.timedOutPsn === NONE) return;
    this.requests.sentBefore(psnAdd(this.timedOutPsn, 1));
    this.responses.sentBefore(psnAdd(this.timedOutPsn, 1));
    this.timedOutPsn = NONE;
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: Picoseconds): void {
    this.chargedPs -= ps;
  }
}
