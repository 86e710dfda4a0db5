/**
 * The ends of send work requests: a CQE has left or the request ends without one, and requests that need no answer of the
 * peer (an error of this side, a NOP, a message of an unreliable service) complete as soon as there is room for their CQE.
 */
import type { DataPathParts } from './data-path-parts.ts';

export class RequestEnds {
  readonly #parts: DataPathParts;
  /** QPs whose oldest request waits for room for its CQE. */
  readonly #waitingForCompletion = new Set<number>();

  constructor(parts: DataPathParts) {
    this.#parts = parts;
  }

  recordDone(record: number, cycle: number, isSilent: boolean): void {
    this.#parts.operations.completed(record, cycle, isSilent);
    this.#parts.records.release(record);
    this.#parts.requester.recordFreed(cycle);
  }

  completeLocally(qp: number, cycle: number): void {
    if (!this.#parts.requestCompletion.completeLocally(qp, cycle)) this.#waitingForCompletion.add(qp);
  }

  /** A packet of an unreliable service has left: with its last one the message is complete. */
  sentForGood(record: number, qp: number, isLast: number, cycle: number): void {
    if (isLast === 0) return;
    this.#parts.records.rows[record]!.isDone = 1;
    this.completeLocally(qp, cycle);
  }

  completionSpace(cycle: number): void {
    this.#parts.receiver.completionSpace(cycle);
    this.#parts.flusher.completionSpace(cycle);
    if (this.#waitingForCompletion.size === 0) return;
    for (const qp of this.#waitingForCompletion) {
      if (!this.#parts.requestCompletion.completeLocally(qp, cycle)) return;
      this.#waitingForCompletion.delete(qp);
    }
  }

  /** The QP's oldest request completes when there is room for its CQE. */
  waits(qp: number): void {
    this.#waitingForCompletion.add(qp);
  }

  /** The CQE of a request has nowhere to go: nobody will know of its end. */
  discarded(record: number, cycle: number): void {
    this.#parts.records.release(record);
    this.#parts.requester.recordFreed(cycle);
  }

  reset(): void {
    this.#waitingForCompletion.clear();
  }
}
