/**
 * Records of send WQEs that have been started and are not yet complete: they hold the data from which the requester
 * sends and retransmits their packets, and the acknowledgement side completes them.
 *
 * Records of one QP form a list in the order of their WQEs. The pool is bounded; the requester stalls when it is empty.
 */
import { DatagramAddresses } from './datagram-addresses.ts';
import { FrameOffloads } from './frame-offloads.ts';
import { INLINE_BYTES_MAX, noRecord, SendRecord } from './send-record.ts';

/** Records made at once: most machines never have more under way. */
const RECORDS_PER_CHUNK = 64;

export class SendRecords {
  readonly capacity: number;
  /** The records made so far, by their numbers. */
  readonly rows: SendRecord[] = [];
  /** Destinations of datagrams, by the numbers of their records. */
  readonly datagrams: DatagramAddresses;
  /** Offloads of frames, by the same numbers. */
  readonly frames: FrameOffloads;
  freeCount: number;
  #free: SendRecord = noRecord;

  constructor(capacity: number) {
    this.capacity = capacity;
    this.datagrams = new DatagramAddresses(capacity);
    this.frames = new FrameOffloads(capacity);
    this.freeCount = capacity;
  }

  /**
   * Frees all records, also those that only a CQE in flight referred to; nothing in flight may refer to them any more.
   */
  reset(): void {
    this.#free = noRecord;
    this.freeCount = this.capacity - this.rows.length;
    for (let number = this.rows.length - 1; number >= 0; number--) this.release(this.rows[number]!);
  }

  /**
   * Allocates a record. The caller has checked {@link freeCount}.
   */
  allocate(): SendRecord {
    if (this.#free === noRecord) this.#makeMore();
    const request = this.#free;
    this.#free = request.next;
    this.freeCount--;
    return request;
  }

  release(request: SendRecord): void {
    request.next = this.#free;
    this.#free = request;
    this.freeCount++;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    for (const request of this.rows) request.rebase(cycles);
  }

  /** Creates the next records; the first of them is allocated first. */
  #makeMore(): void {
    const { rows } = this;
    const from = rows.length;
    const count = Math.min(RECORDS_PER_CHUNK, this.capacity - from);
    const inlineData = new Uint8Array(count * INLINE_BYTES_MAX);
    for (let index = 0; index < count; index++) {
      const first = index * INLINE_BYTES_MAX;
      rows.push(new SendRecord(from + index, inlineData.subarray(first, first + INLINE_BYTES_MAX)));
    }
    for (let number = from + count - 1; number >= from; number--) {
      const made = rows[number]!;
      made.next = this.#free;
      this.#free = made;
    }
  }
}
