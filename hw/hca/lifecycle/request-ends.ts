/**
 * The ends of send work requests: a CQE has left or the request ends without one, and requests that need no answer of the
 * peer (an error of this side, a NOP, a message of an unreliable service) complete as soon as there is room for their CQE.
 */
import type { Cycles } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { QueuePair, SendRecord, SendRecords } from '../objects/index.ts';
import type { RequestCompletion, Requester } from '../requester/index.ts';
import type { OperationLedger } from '../statistics/index.ts';

/** Blocks that may wait for room for a CQE. */
interface CompletionWaiter {
  completionSpace(cycle: Cycles): void;
}

export interface RequestEndPorts {
  readonly completion: RequestCompletion;
  readonly requester: Requester;
  readonly receiver: CompletionWaiter;
  readonly flusher: CompletionWaiter;
}

/** Parts of the device that {@link RequestEnds} uses. */
export interface RequestEndsSetup {
  readonly records: SendRecords;
  readonly operations: OperationLedger;
}

export class RequestEnds {
  readonly #records: SendRecords;
  readonly #operations: OperationLedger;
  #ports!: RequestEndPorts;
  /** QPs whose oldest request waits for room for its CQE. */
  readonly #waitingForCompletion = new Set<QueuePair>();

  constructor(setup: RequestEndsSetup) {
    this.#records = setup.records;
    this.#operations = setup.operations;
  }

  connect(ports: RequestEndPorts): void {
    this.#ports = ports;
  }

  /** The CQE of a request has left. */
  cqeIssued(record: number, cycle: Cycles): void {
    const request = this.#records.rows[record]!;
    this.#operations.completed(request, cycle, false);
    this.#release(request, cycle);
  }

  /** Handles completion of an unsignalled request. */
  completedSilently(request: SendRecord, cycle: Cycles): void {
    this.#operations.completed(request, cycle, true);
    this.#release(request, cycle);
  }

  completeLocally(pair: QueuePair, cycle: Cycles): void {
    if (!this.#ports.completion.completeLocally(pair, cycle)) this.#waitingForCompletion.add(pair);
  }

  /** A packet of an unreliable service has left: with its last one the message is complete. */
  completeOnSend(request: SendRecord, pair: QueuePair, isLast: boolean, cycle: Cycles): void {
    if (!isLast) return;
    request.isDone = 1;
    this.completeLocally(pair, cycle);
  }

  completionSpace(cycle: Cycles): void {
    this.#ports.receiver.completionSpace(cycle);
    this.#ports.flusher.completionSpace(cycle);
    if (this.#waitingForCompletion.size === 0) return;
    for (const pair of this.#waitingForCompletion) {
      if (!this.#ports.completion.completeLocally(pair, cycle)) return;
      this.#waitingForCompletion.delete(pair);
    }
  }

  /** The QP's oldest request completes when there is room for its CQE. */
  waits(pair: QueuePair): void {
    this.#waitingForCompletion.add(pair);
  }

  /** The CQE of a request is discarded because its CQ no longer exists. */
  cqeDiscarded(record: number, cycle: Cycles): void {
    this.#release(this.#records.rows[record]!, cycle);
  }

  reset(): void {
    this.#waitingForCompletion.clear();
  }

  inspect(): BlockState {
    return { waitingForCompletion: Array.from(this.#waitingForCompletion, ({ slot }) => slot) };
  }

  #release(request: SendRecord, cycle: Cycles): void {
    this.#records.release(request);
    this.#ports.requester.recordFreed(cycle);
  }
}
