/**
 * When work requests were posted and when their CQEs left the device: instrumentation beside the machine, in memory
 * that a host and its HCA share, so that the ledger of operations can follow a request across the PCIe link.
 *
 *     host: posted ──► entry: posted ──► HCA: stages of the request's life
 *     HCA: CQE issued ──► entry: issued ──► host: time until software took the completion
 *
 *     directory   a word for each of the 2^24 QPNs: where the entries of its send queue begin, and how many there are
 *     entries     as many for a send queue as it has WQEs; a request's is its WQE counter modulo that
 *
 * Nothing in the model depends on it. An entry belongs to one QP, named by its whole QPN, and is used again one turn of
 * the send queue later, when the request before it has been taken: so it is read before it is written again, in
 * whatever thread the two are. When all entries are given out, further queues get none, and their requests are counted
 * as untimed. Memory that no queue touches is never backed by the operating system.
 */
import { log2Ceil, psPerUs } from '../../../base/units.ts';

const QPN_COUNT = 1 << 24;
const ENTRY_COUNT = 1 << 24;
/** A word of the directory is 0, or the first entry shifted, and the binary logarithm of their number plus one. */
const LOG_BITS = 5;
const LOG_MASK = (1 << LOG_BITS) - 1;
const directoryBytes = QPN_COUNT * Int32Array.BYTES_PER_ELEMENT;
const NO_ENTRY = -1;

/** Bytes of memory that one node's host and HCA share. */
const timesBytes = 2 * ENTRY_COUNT * Float64Array.BYTES_PER_ELEMENT;
const epochsBytes = 2 * ENTRY_COUNT * Int32Array.BYTES_PER_ELEMENT;
export const operationTimesBytes = directoryBytes + timesBytes + epochsBytes + ENTRY_COUNT;

export class OperationTimes {
  readonly #directory: Int32Array;
  /** Picoseconds of an epoch. Of each entry: posted, issued. */
  readonly #times: Float64Array;
  /** Number of that epoch, from 1: 0 says that nothing was noted. */
  readonly #epochs: Int32Array;
  readonly #opcodes: Uint8Array;
  /** Of the host's side: entries never given out begin here; those given back by the logarithm of their number. */
  #unused = 0;
  readonly #free: number[][] = Array.from({ length: LOG_MASK }, () => []);
  /** The epoch of now, and where each began in microseconds. Host and HCA begin the same epochs between the same runs. */
  #epoch = 1;
  readonly #epochUs: number[] = [0, 0];

  constructor(buffer: SharedArrayBuffer) {
    this.#directory = new Int32Array(buffer, 0, QPN_COUNT);
    this.#times = new Float64Array(buffer, directoryBytes, 2 * ENTRY_COUNT);
    this.#epochs = new Int32Array(buffer, directoryBytes + timesBytes, 2 * ENTRY_COUNT);
    this.#opcodes = new Uint8Array(buffer, directoryBytes + timesBytes + epochsBytes, ENTRY_COUNT);
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#epochUs.push(this.#epochUs[this.#epoch]! + ps / psPerUs);
    this.#epoch++;
  }

  /** Gives a new send queue of `wqeCount` WQEs (a power of two) its entries. To be called by the host alone. */
  open(qpn: number, wqeCount: number): void {
    this.close(qpn);
    const log = log2Ceil(wqeCount);
    const given = this.#free[log]!.pop();
    const first = given ?? this.#unused;
    if (given !== undefined) this.#epochs.fill(0, 2 * first, 2 * (first + wqeCount));
    else if (first + wqeCount <= ENTRY_COUNT) this.#unused = first + wqeCount;
    else return;
    this.#directory[qpn] = (first << LOG_BITS) | (log + 1);
  }

  /** Takes the entries of a QP back, if it has any. To be called by the host alone. */
  close(qpn: number): void {
    const word = this.#directory[qpn]!;
    if (word === 0) return;
    this.#free[(word & LOG_MASK) - 1]!.push(word >>> LOG_BITS);
    this.#directory[qpn] = 0;
  }

  /** The entry of a request; -1 when its QP has none. */
  entryOf(qpn: number, wqeCounter: number): number {
    const word = this.#directory[qpn]!;
    if (word === 0) return NO_ENTRY;
    return (word >>> LOG_BITS) + (wqeCounter & ((1 << ((word & LOG_MASK) - 1)) - 1));
  }

  /** The host's note: the request became visible to the device. */
  notePosted(entry: number, opcode: number, atPs: number): void {
    this.#times[2 * entry] = atPs;
    this.#epochs[2 * entry] = this.#epoch;
    this.#opcodes[entry] = opcode;
  }

  opcodeAt(entry: number): number {
    return this.#opcodes[entry]!;
  }

  /** Picosecond of {@link notePosted} in the epoch of now, NaN when nothing was noted. */
  postedPsAt(entry: number): number {
    return this.#psAt(2 * entry);
  }

  /** Picosecond of {@link cqeIssued} in the epoch of now, NaN when nothing was noted. */
  issuedPsAt(entry: number): number {
    return this.#psAt(2 * entry + 1);
  }

  /** {@link postedPsAt} exactly, also where a number would not be. There is one. */
  exactPostedPsAt(entry: number): bigint {
    return this.#exactPsAt(2 * entry);
  }

  /** {@link issuedPsAt} exactly. There is one. */
  exactIssuedPsAt(entry: number): bigint {
    return this.#exactPsAt(2 * entry + 1);
  }

  /** For the HCA: {@link exactPostedPsAt}. */
  exactPostedPs(qpn: number, wqeCounter: number): bigint {
    return this.#exactPsAt(2 * this.entryOf(qpn, wqeCounter));
  }

  /** For the HCA: {@link postedPsAt}. */
  postedPs(qpn: number, wqeCounter: number): number {
    const entry = this.entryOf(qpn, wqeCounter);
    return entry === NO_ENTRY ? Number.NaN : this.#psAt(2 * entry);
  }

  /** The HCA's note: the request's CQE was handed to the link. */
  cqeIssued(qpn: number, wqeCounter: number, atPs: number): void {
    const entry = this.entryOf(qpn, wqeCounter);
    if (entry === NO_ENTRY) return;
    this.#times[2 * entry + 1] = atPs;
    this.#epochs[2 * entry + 1] = this.#epoch;
  }

  #exactPsAt(place: number): bigint {
    const us = this.#epochUs[this.#epoch]! - this.#epochUs[this.#epochs[place]!]!;
    return BigInt(this.#times[place]!) - BigInt(us) * BigInt(psPerUs);
  }

  #psAt(place: number): number {
    const epoch = this.#epochs[place]!;
    if (epoch === this.#epoch) return this.#times[place]!;
    if (epoch === 0) return Number.NaN;
    return this.#times[place]! - (this.#epochUs[this.#epoch]! - this.#epochUs[epoch]!) * psPerUs;
  }
}
