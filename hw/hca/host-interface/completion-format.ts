/** CQEs and the doorbell records of CQs as the completion writer uses them. */
import type { PostedCompletion } from '../completion/index.ts';
import type { QueuePair } from '../objects/index.ts';

export interface CompletionFormat {
  /** Bytes of a CQE: a power of two. */
  readonly entryBytes: number;
  /**
   * Writes the CQE of `completion` at `offset`, where all is zero.
   * @param pass 0 or 1: parity of the pass over the CQ
   * @param clockCycles core clock for a CQE with a timestamp; -1 for one without
   */
  encode(
    view: DataView,
    offset: number,
    completion: PostedCompletion,
    pass: number,
    pair: QueuePair,
    clockCycles: number,
  ): void;
  /** Writes the CQE that sends software to the CQ's new buffer. */
  encodeResize(view: DataView, offset: number, pass: number): void;
  /** Bytes of a doorbell record. */
  readonly recordBytes: number;
  /** 24-bit consumer counter in the doorbell record at `at`. */
  consumerAt(view: DataView, at: number): number;
}
