/**
 * Times at which work requests were posted and their CQEs left the device. This is instrumentation beside the model, in
 * memory that a host and its HCA share, so that the ledger of operations can follow a request across the PCIe link.
 *
 *     host: posted ──► entry: posted ──► HCA: stages of the request
 *     HCA: CQE issued ──► entry: issued ──► host: time until software took the completion
 *
 *     directory   a word for each QPN, at most 2^24: where the entries of its send queue begin, and how many there are
 *     entries     as many for a send queue as requests of it can be under way; a request's is its WQE counter modulo that.
 *                 Those of 32 queues of one size lie in turns, so that 100,000 queues of which each has posted a little take little:
 *
 *                     queue 0: request 0 │ queue 1: request 0 │ … │ queue 31: request 0 │ queue 0: request 1 │ …
 *
 * The model does not depend on it. An entry belongs to one QP, named by its whole QPN. It is reused that many requests
 * later, once the completion of the earlier request was polled; so it is read before it is written again, in any
 * partition. If no entries are left, further queues have none, and their requests count as untimed. The host grows both
 * memories as queues are created; the HCA makes new views when a queue lies beyond its present ones.
 */
import { log2Ceil, psPerUs } from '../../base/index.ts';

const QPN_COUNT = 1 << 24;
const ENTRY_COUNT = 1 << 24;
/** A directory word is 0, or the shifted index of the first entry plus the binary logarithm of their number plus one. */
const LOG_BITS = 5;
const LOG_MASK = (1 << LOG_BITS) - 1;
const NO_ENTRY = -1;
/**
 * Number of queues whose entries are interleaved, as a binary logarithm; queues with more entries than this are stored
 * alone, because they fill pages anyway.
 */
const LOG_TURNS = 5;
const LOG_IN_TURNS_MAX = 10;
/** Distance between entries of a queue's successive requests, as a binary logarithm. */
const logStepOf = (log: number): number => (log <= LOG_IN_TURNS_MAX ? LOG_TURNS : 0);

/**
 * Layout of an entry: two float64, the times of post and issue; four words, the epochs of both, the opcode, and the
 * marked operation.
 */
const ENTRY_BYTES = 32;
const FLOATS = ENTRY_BYTES / Float64Array.BYTES_PER_ELEMENT;
const WORDS = ENTRY_BYTES / Int32Array.BYTES_PER_ELEMENT;
const EPOCHS_AT = 4;
const OPCODE_AT = 6;
const OPERATION_AT = 7;
/** Index of an entry's time. */
const POSTED = 0;
const ISSUED = 1;
type Which = typeof POSTED | typeof ISSUED;
/** Initial capacity of each memory, which doubles as needed. */
const ROOM_AT_FIRST = 1024;

/** The memory that one node's host and HCA share. */
export interface OperationTimesMemory {
  readonly directory: SharedArrayBuffer;
  readonly entries: SharedArrayBuffer;
}

export const operationTimesMemory = (): OperationTimesMemory => ({
  directory: growing(QPN_COUNT, Int32Array.BYTES_PER_ELEMENT),
  entries: growing(ENTRY_COUNT, ENTRY_BYTES),
});

const growing = (countMax: number, bytes: number): SharedArrayBuffer =>
  new SharedArrayBuffer(ROOM_AT_FIRST * bytes, { maxByteLength: countMax * bytes });

/** Makes room for at least `count` elements of `bytes` each. */
function makeRoom(memory: SharedArrayBuffer, count: number, bytes: number): void {
  if (memory.byteLength < count * bytes) memory.grow(2 ** log2Ceil(count) * bytes);
}

export class OperationTimes {
  readonly #memory: OperationTimesMemory;
  /** Views of the memory's extent when they were made: faster than length-tracking views. */
  #directory!: Int32Array;
  /** Picoseconds of an epoch. */
  #times!: Float64Array;
  /** Epoch numbers, from 1 (0: no time was noted); and opcodes. */
  #words!: Int32Array;
  /** Entries that the views cover. */
  #room = 0;
  /**
   * The host's free lists: start of the entries never allocated; for each logarithm of the number of entries, start of
   * the free interleaved ones, and of the freed ones.
   */
  #unused = 0;
  readonly #fresh: number[][] = Array.from({ length: LOG_MASK }, () => []);
  readonly #free: number[][] = Array.from({ length: LOG_MASK }, () => []);
  /** The present epoch, and the start of each in microseconds. Host and HCA begin the same epochs between the same runs. */
  #epoch = 1;
  readonly #epochUs: number[] = [0, 0];

  constructor(memory: OperationTimesMemory) {
    this.#memory = memory;
    this.#search();
  }

  /** Makes views of the whole present memory. */
  #search(): void {
    const { directory, entries } = this.#memory;
    this.#room = entries.byteLength / ENTRY_BYTES;
    this.#directory = new Int32Array(directory, 0, directory.byteLength / Int32Array.BYTES_PER_ELEMENT);
    this.#times = new Float64Array(entries, 0, this.#room * FLOATS);
    this.#words = new Int32Array(entries, 0, this.#room * WORDS);
  }

  /** Starts a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#epochUs.push(this.#epochUs[this.#epoch]! + ps / psPerUs);
    this.#epoch++;
  }

  /** Allocates entries for a new send queue, `requestCount` of them (a power of two). Only the host may call it. */
  open(qpn: number, requestCount: number): void {
    this.close(qpn);
    const log = log2Ceil(requestCount);
    const given = this.#free[log]!.pop();
    if (given !== undefined) this.#clear(given, log);
    const first = given ?? this.#fresh[log]!.pop() ?? this.#begin(log);
    if (first === NO_ENTRY) return;
    makeRoom(this.#memory.directory, qpn + 1, Int32Array.BYTES_PER_ELEMENT);
    makeRoom(this.#memory.entries, this.#unused, ENTRY_BYTES);
    if (qpn >= this.#directory.length || this.#unused > this.#room) this.#search();
    this.#directory[qpn] = (first << LOG_BITS) | (log + 1);
  }

  /** Allocates entries never used before: returns the first queue's; the ones interleaved with it become free. */
  #begin(log: number): number {
    const first = this.#unused;
    const logStep = logStepOf(log);
    const end = first + (1 << (log + logStep));
    if (end > ENTRY_COUNT) return NO_ENTRY;
    this.#unused = end;
    for (let turn = (1 << logStep) - 1; turn > 0; turn--) this.#fresh[log]!.push(first + turn);
    return first;
  }

  /** Clears the notes of the queue that had these entries. */
  #clear(first: number, log: number): void {
    for (let request = 0; request < 1 << log; request++) {
      const word = WORDS * (first + (request << logStepOf(log)));
      this.#words.fill(0, word, word + WORDS);
    }
  }

  /** Frees the entries of a QP, if it has any. Only the host may call it. */
  close(qpn: number): void {
    const word = this.#wordOf(qpn);
    if (word === 0) return;
    this.#free[(word & LOG_MASK) - 1]!.push(word >>> LOG_BITS);
    this.#directory[qpn] = 0;
  }

  /** The entry of a request; -1 if its QP has none. */
  entryOf(qpn: number, wqeCounter: number): number {
    const word = this.#wordOf(qpn);
    if (word === 0) return NO_ENTRY;
    const log = (word & LOG_MASK) - 1;
    const entry = (word >>> LOG_BITS) + ((wqeCounter & ((1 << log) - 1)) << logStepOf(log));
    if (entry >= this.#room) this.#search();
    return entry;
  }

  /** A QP's directory word: 0 if it has no entries. */
  #wordOf(qpn: number): number {
    if (qpn < this.#directory.length) return this.#directory[qpn]!;
    this.#search();
    return qpn < this.#directory.length ? this.#directory[qpn]! : 0;
  }

  /** Records, at the host, that the request became visible to the device. */
  notePosted(entry: number, opcode: number, atPs: number, operation = 0): void {
    this.#times[FLOATS * entry] = atPs;
    this.#words[WORDS * entry + EPOCHS_AT] = this.#epoch;
    this.#words[WORDS * entry + OPCODE_AT] = opcode;
    this.#words[WORDS * entry + OPERATION_AT] = operation;
  }

  /** Returns, at the HCA, the marked operation of a request; 0 if none. */
  operationOf(qpn: number, wqeCounter: number): number {
    const entry = this.entryOf(qpn, wqeCounter);
    return entry === NO_ENTRY ? 0 : this.#words[WORDS * entry + OPERATION_AT]!;
  }

  opcodeAt(entry: number): number {
    return this.#words[WORDS * entry + OPCODE_AT]!;
  }

  /** Picosecond of {@link notePosted} in the present epoch, NaN if none was noted. */
  postedPsAt(entry: number): number {
    return this.#psAt(entry, POSTED);
  }

  /** Picosecond of {@link cqeIssued} in the present epoch, NaN if none was noted. */
  issuedPsAt(entry: number): number {
    return this.#psAt(entry, ISSUED);
  }

  /** The exact {@link postedPsAt}, even if a number is not precise enough. A time must have been noted. */
  exactPostedPsAt(entry: number): bigint {
    return this.#exactPsAt(entry, POSTED);
  }

  /** The exact {@link issuedPsAt}. A time must have been noted. */
  exactIssuedPsAt(entry: number): bigint {
    return this.#exactPsAt(entry, ISSUED);
  }

  /**
   * Returns the exact {@link postedPs}. A time must have been noted.
   */
  exactPostedPs(qpn: number, wqeCounter: number): bigint {
    return this.#exactPsAt(this.entryOf(qpn, wqeCounter), POSTED);
  }

  /**
   * Returns {@link postedPsAt} for the request of a QP with this WQE counter; NaN if it has no entry.
   */
  postedPs(qpn: number, wqeCounter: number): number {
    const entry = this.entryOf(qpn, wqeCounter);
    return entry === NO_ENTRY ? Number.NaN : this.#psAt(entry, POSTED);
  }

  /** Records, at the HCA, that the request's CQE was handed to the link. */
  cqeIssued(qpn: number, wqeCounter: number, atPs: number): void {
    const entry = this.entryOf(qpn, wqeCounter);
    if (entry === NO_ENTRY) return;
    this.#times[FLOATS * entry + ISSUED] = atPs;
    this.#words[WORDS * entry + EPOCHS_AT + ISSUED] = this.#epoch;
  }

  #exactPsAt(entry: number, which: Which): bigint {
    const epoch = this.#words[WORDS * entry + EPOCHS_AT + which]!;
    const us = this.#epochUs[this.#epoch]! - this.#epochUs[epoch]!;
    return BigInt(this.#times[FLOATS * entry + which]!) - BigInt(us) * BigInt(psPerUs);
  }

  #psAt(entry: number, which: Which): number {
    const epoch = this.#words[WORDS * entry + EPOCHS_AT + which]!;
    const ps = this.#times[FLOATS * entry + which]!;
    if (epoch === this.#epoch) return ps;
    if (epoch === 0) return Number.NaN;
    return ps - (this.#epochUs[this.#epoch]! - this.#epochUs[epoch]!) * psPerUs;
  }
}
