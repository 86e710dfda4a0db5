/**
 * Records of send WQEs that have been started and are not yet complete: what the requester needs to send their
 * packets, once or again, and what the acknowledgement side needs to complete them.
 *
 * Records of one QP form a list in the order of their PSNs. The pool is bounded; the requester stalls when it is
 * empty.
 */
import { DatagramAddresses } from './datagram-addresses.ts';
import { INLINE_BYTES_MAX, noRecord, SendRecord } from './send-record.ts';

export class SendRecords {
  readonly capacity: number;
  /** All records by their numbers. */
  readonly rows: readonly SendRecord[];
  /** Where datagrams go, by the numbers of their records. */
  readonly datagrams: DatagramAddresses;
  freeCount: number;
  #free: SendRecord = noRecord;

  constructor(capacity: number) {
    const inlineData = new Uint8Array(capacity * INLINE_BYTES_MAX);
    this.capacity = capacity;
    this.rows = Array.from({ length: capacity }, (_, number) => {
      const first = number * INLINE_BYTES_MAX;
      return new SendRecord(number, inlineData.subarray(first, first + INLINE_BYTES_MAX));
    });
    this.datagrams = new DatagramAddresses(capacity);
    this.freeCount = 0;
    this.reset();
  }

  /** All are free, also those that only a CQE on its way knew of; nothing under way may speak of them any more. */
  reset(): void {
    this.#free = noRecord;
    this.freeCount = 0;
    for (let number = this.capacity - 1; number >= 0; number--) this.release(this.rows[number]!);
  }

  /** Takes a record. The caller has checked {@link freeCount}. */
  allocate(): SendRecord {
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
}
