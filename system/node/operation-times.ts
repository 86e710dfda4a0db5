/**
 * When work requests were posted and when their CQEs left the device: instrumentation beside the machine, in memory
 * that a host and its HCA share, so that the ledger of operations can follow a request across the PCIe link.
 *
 *     host: posted ──► [qp, counter] posted ──► HCA: stages of the request's life
 *     HCA: CQE issued ──► [qp, counter] issued ──► host: time until software took the completion
 *
 * Nothing in the model depends on it. An entry is used again only 16384 requests of its QP later, more than a send
 * queue holds: so it is read before it is written again, in whatever thread the two are. Entries are by the low 10
 * bits of the QPN; memory that no request touches is never backed by the operating system.
 */
const QP_BITS = 10;
const COUNTER_BITS = 14;
const QP_MASK = (1 << QP_BITS) - 1;
const COUNTER_MASK = (1 << COUNTER_BITS) - 1;
const ENTRY_COUNT = 1 << (QP_BITS + COUNTER_BITS);

/** Bytes of memory that one node's host and HCA share. */
export const operationTimesBytes = 2 * ENTRY_COUNT * Float64Array.BYTES_PER_ELEMENT;

const indexOf = (qpn: number, wqeCounter: number): number =>
  ((qpn & QP_MASK) << COUNTER_BITS) | (wqeCounter & COUNTER_MASK);

export class OperationTimes {
  /** Picoseconds plus one: 0 says that nothing was noted. */
  readonly #posted: Float64Array;
  readonly #issued: Float64Array;

  constructor(buffer: SharedArrayBuffer) {
    this.#posted = new Float64Array(buffer, 0, ENTRY_COUNT);
    this.#issued = new Float64Array(buffer, ENTRY_COUNT * Float64Array.BYTES_PER_ELEMENT, ENTRY_COUNT);
  }

  /** The host's note: the request became visible to the device. */
  notePosted(qpn: number, wqeCounter: number, atPs: number): void {
    this.#posted[indexOf(qpn, wqeCounter)] = atPs + 1;
  }

  /** Picosecond of {@link notePosted}, or -1. */
  postedPs(qpn: number, wqeCounter: number): number {
    return this.#posted[indexOf(qpn, wqeCounter)]! - 1;
  }

  /** The HCA's note: the request's CQE was handed to the link. */
  cqeIssued(qpn: number, wqeCounter: number, atPs: number): void {
    this.#issued[indexOf(qpn, wqeCounter)] = atPs + 1;
  }

  /** Picosecond of {@link cqeIssued}, or -1. */
  issuedPs(qpn: number, wqeCounter: number): number {
    return this.#issued[indexOf(qpn, wqeCounter)]! - 1;
  }
}
