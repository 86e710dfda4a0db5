/**
 * Records of send WQEs that have been taken up and are not yet complete: what the requester needs to send their
 * packets, once or again, and what the acknowledgement side needs to complete them.
 *
 * Records of one QP form a list in the order of their PSNs. The pool is bounded; the requester stalls when it is
 * empty. Times are core cycles of the milestones of the work request's life.
 */
import { DatagramAddresses } from './datagram-addresses.ts';
import * as qpTable from './qp-table.ts';
import { SendRecord } from './send-record.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { SEGMENTS_MAX } = qpTable;

/** Largest descriptor, hence most inline data. */
export const INLINE_BYTES_MAX = 1008;

/** The life of a send work request on chip, in order. Each interval is named after what was waited for. */
export const MILESTONE_FETCH_BEGUN = 0;
export const MILESTONE_FETCHED = 1;
export const MILESTONE_TAKEN_UP = 2;
export const MILESTONE_GATHERED = 3;
export const MILESTONE_TRANSMITTED = 4;
export const MILESTONE_ACKNOWLEDGED = 5;
export const MILESTONE_COUNT = 6;

export class SendRecords {
  readonly capacity: number;
  readonly rows: readonly SendRecord[];
  /** Operands of atomics as low and high words: swap or add, then compare. */
  readonly operands: Int32Array;
  readonly segmentAddress: Float64Array;
  readonly segmentKey: Float64Array;
  readonly segmentBytes: Float64Array;
  readonly inlineData: Uint8Array;
  /** Where datagrams go. */
  readonly datagrams: DatagramAddresses;
  readonly milestones: Float64Array;
  #free: Int32Array;
  #freeCount: number;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.rows = Array.from({ length: capacity }, () => new SendRecord());
    this.operands = new Int32Array(capacity * 4);
    this.segmentAddress = new Float64Array(capacity * SEGMENTS_MAX);
    this.segmentKey = new Float64Array(capacity * SEGMENTS_MAX);
    this.segmentBytes = new Float64Array(capacity * SEGMENTS_MAX);
    this.inlineData = new Uint8Array(capacity * INLINE_BYTES_MAX);
    this.datagrams = new DatagramAddresses(capacity);
    this.milestones = new Float64Array(capacity * MILESTONE_COUNT);
    this.#free = new Int32Array(capacity);
    this.#freeCount = capacity;
    for (let index = 0; index < capacity; index++) this.#free[index] = capacity - 1 - index;
  }

  get freeCount(): number {
    return this.#freeCount;
  }

  /** Takes a record. The caller has checked {@link freeCount}. */
  allocate(): number {
    return this.#free[--this.#freeCount]!;
  }

  release(record: number): void {
    this.#free[this.#freeCount++] = record;
  }

  /** PSN of the last packet of the message. */
  lastPsn(record: number): number {
    const request = this.rows[record]!;
    return (request.firstPsn + request.psnCount - 1) & 0xffffff;
  }

  setMilestone(record: number, milestone: number, cycle: number): void {
    this.milestones[record * MILESTONE_COUNT + milestone] = cycle;
  }

  /** The WQE's fetch was begun, it was there, and now it is taken up; with no payload to read it is gathered, too. */
  takenUp(record: number, fetchBegunCycle: number, fetchedCycle: number, cycle: number): void {
    const first = record * MILESTONE_COUNT;
    this.milestones[first + MILESTONE_FETCH_BEGUN] = fetchBegunCycle;
    this.milestones[first + MILESTONE_FETCHED] = fetchedCycle;
    this.milestones[first + MILESTONE_TAKEN_UP] = cycle;
    this.milestones[first + MILESTONE_GATHERED] = cycle;
  }
}
