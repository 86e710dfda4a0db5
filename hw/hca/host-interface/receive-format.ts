/** Receive WQEs and their doorbell records as the receive-WQE fetch and the scatter use them. */
import type { QpTable, QueuePair } from '../objects/index.ts';

export interface ReceiveFormat {
  /** Bytes of a shared receive queue's WQE before its scatter list. */
  readonly sharedHeaderBytes: number;
  /** Index of the WQE that follows the one at `at` in a shared receive queue. */
  nextIndexAt(view: DataView, at: number): number;
  /** Bytes of a doorbell record. */
  readonly recordBytes: number;
  /** 16-bit counter of posted WQEs in the doorbell record at `at`. */
  postedAt(view: DataView, at: number): number;
  /**
   * Reads the scatter list from `at` to `end` into the QP's segments ({@link QpTable.scatterListOf}).
   * @returns their count
   */
  loadList(view: DataView, at: number, end: number, qps: QpTable, pair: QueuePair): number;
}
