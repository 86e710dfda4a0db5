/** Send WQEs as the fetch, the requester and the flusher use them. Places are offsets in the HCA's memory. */
import type { QueuePair, SendRecord, WqeLine } from '../objects/index.ts';

export interface SendFormat {
  /**
   * Tells whether software has posted the WQE at `at`.
   * @param pass 0 or 1: parity of the pass over the ring in which the WQE would be valid
   */
  isPosted(view: DataView, at: number, pass: number): boolean;
  /** Bytes of the WQE at `at`. */
  bytesAt(view: DataView, at: number): number;
  /** Operation of the WQE at `at`, by the numbers of WqeOpcode. */
  opcodeAt(view: DataView, at: number): number;
  /** Tells whether the WQE at `at` waits for READs and atomics before it (IBTA vol 1, 10.8.3.3). */
  isFencedAt(view: DataView, at: number): boolean;
  /**
   * Fills the operation, its operands and its data in `request` from the WQE at `at`, in `line`. The caller sets the
   * record's QP, counter and packets, except for a packet whose headers software has written.
   * @returns 0, or the CQE syndrome of a WQE that is in error
   */
  decode(at: number, line: WqeLine, request: SendRecord, pair: QueuePair): number;
}
