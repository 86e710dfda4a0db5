/**
 * The ends of send work requests: a CQE has left or the request ends without one, and requests that need no answer of the
 * peer (an error of this side, a NOP, a message of an unreliable service) complete as soon as there is room for their CQE.
 */
import type { DataPathParts } from '../data-path-parts.ts';
import type { QueuePair, SendRecord } from '../objects/index.ts';

export class RequestEnds {
  readonly #parts: DataPathParts;
  /** QPs whose oldest request waits for room for its CQE. */
  readonly #waitingForCompletion = new Set<QueuePair>();

  constructor(parts: DataPathParts) {
    this.#parts = parts;
  }

  recordDone(request: SendRecord, cycle: number, isSilent: boolean): void {
    this.#parts.operations.completed(request, cycle, isSilent);
    this.#parts.records.release(request);
    this.#parts.requester.recordFreed(cycle);
  }

  completeLocally(pair: QueuePair, cycle: number): void {
    if (!this.#parts.requestCompletion.completeLocally(pair, cycle)) this.#waitingForCompletion.add(pair);
  }

  /** A packet of an unreliable service has left: with its last one the message is complete. */
  sentForGood(request: SendRecord, pair: QueuePair, isLast: number, cycle: number): void {
    if (isLast === 0) return;
    request.isDone = 1;
    this.completeLocally(pair, cycle);
  }

  completionSpace(cycle: number): void {
    this.#parts.receiver.completionSpace(cycle);
    this.#parts.flusher.completionSpace(cycle);
    if (this.#waitingForCompletion.size === 0) return;
    for (const pair of this.#waitingForCompletion) {
      if (!this.#parts.requestCompletion.completeLocally(pair, cycle)) return;
      this.#waitingForCompletion.delete(pair);
    }
  }

  /** The QP's oldest request completes when there is room for its CQE. */
  waits(pair: QueuePair): void {
    this.#waitingForCompletion.add(pair);
  }

  /** The CQE of a request has nowhere to go: nobody will know of its end. */
  discarded(request: SendRecord, cycle: number): void {
    this.#parts.records.release(request);
    this.#parts.requester.recordFreed(cycle);
  }

  reset(): void {
    this.#waitingForCompletion.clear();
  }
}
