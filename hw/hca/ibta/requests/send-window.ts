/**
 * Selective repeat, the sender's side of one QP: a map of its packets in flight, by PSN.
 *
 *     lastAckedPsn        cumulativePsn       evidencePsn         madePsn
 *          │ accepted by the peer │   sent, and older   │ sent, and    │ never made
 *          ▼                      ▼ than one that came  ▼ may be under way
 *     ─────┼──P──P─────P──────────┼────H──H─────H───────┼──────────────┼─────▶ PSN
 *
 *     H   a request that the peer holds until the gap before it is filled
 *     P   a READ response or atomic result that is placed
 *
 * A request after `cumulativePsn` without H, or a response without P, is lost if it is before `evidencePsn`. It is sent again
 * once: `repeatFromPsn` is after it then. Only a timeout moves that back. Source: IRN, 3.1.
 */
import type { Picoseconds } from '../../../../base/index.ts';
import { psnAdd, psnDistance } from '../../../../wire/index.ts';

export const HELD = 1;
export const PLACED = 2;

const NONE = -1;

export class SendWindow {
  /** PSN of the next packet that is made for the first time. */
  madePsn: number;
  /** Newest PSN that the peer has accepted with all before it. */
  cumulativePsn: number;
  /** What is older than this PSN was sent before something that has arrived. */
  evidencePsn: number;
  /** PSN from which lost packets are looked for. */
  repeatFromPsn: number;
  /** Newest PSN made when the timeout expired, until the peer answers again; -1 for none. */
  timedOutPsn = NONE;
  /** PSN after the newest packet that requested an acknowledgement for the sake of the window. */
  askedPsn: number;
  /** Instant from which the next retry of the QP counts. */
  chargedPs: Picoseconds;
  /** Packets of the window. */
  readonly size: number;
  readonly #marks: Uint8Array;

  /**
   * @param size a power of two
   * @param firstPsn of the first packet
   */
  constructor(size: number, firstPsn: number, nowPs: Picoseconds) {
    this.size = size;
    this.#marks = new Uint8Array(size);
    this.madePsn = firstPsn;
    this.cumulativePsn = psnAdd(firstPsn, -1);
    this.evidencePsn = firstPsn;
    this.repeatFromPsn = firstPsn;
    this.askedPsn = firstPsn;
    this.chargedPs = nowPs;
  }

  has(psn: number, mark: number): boolean {
    return (this.#marks[psn & (this.size - 1)]! & mark) !== 0;
  }

  set(psn: number, mark: number): void {
    this.#marks[psn & (this.size - 1)]! |= mark;
  }

  /** Forgets the marks of `count` PSNs from `psn` on. */
  clear(psn: number, count: number): void {
    for (let index = Math.min(count, this.size) - 1; index >= 0; index--)
      this.#marks[(psn + index) & (this.size - 1)] = 0;
  }

  /** The peer has accepted everything up to `psn`. */
  accepted(psn: number): void {
    if (psnDistance(psn, this.cumulativePsn) > 0) this.cumulativePsn = psn;
  }

  /** An answer has arrived that was sent after all before `psn`; the first one after a timeout, after all that was made by then. */
  answered(psn: number): void {
    this.sentBefore(psn);
    if (this.timedOutPsn === NONE) return;
    this.sentBefore(psnAdd(this.timedOutPsn, 1));
    this.timedOutPsn = NONE;
  }

  /** Something that was sent after all before `psn` has arrived. */
  sentBefore(psn: number): void {
    if (psnDistance(psn, this.evidencePsn) > 0) this.evidencePsn = psn;
  }

  /** The packet is lost, although it may have arrived. */
  lose(psn: number): void {
    this.#marks[psn & (this.size - 1)] = 0;
    if (psnDistance(psn, this.repeatFromPsn) < 0) this.repeatFromPsn = psn;
    this.sentBefore(psnAdd(psn, 1));
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: Picoseconds): void {
    this.chargedPs -= ps;
  }
}
