/**
 * Says when host memory can no longer be reached by translations that have been forgotten: accesses to payload that were
 * begun before are done. Looked at again and again by the command that waits for it; nothing is added to the accesses.
 *
 * A packet slot with reads outstanding counts until it has been seen without: its reads, or those of a successor in the same
 * slot, so the fence may be passed late but never early.
 */
import type { PacketQueue } from './packet-queue.ts';
import type { PayloadWriter } from './payload-writer.ts';
import type { ResponseEngine } from './response-engine.ts';
import type { Transmitter } from './transmitter.ts';

export class PageFence {
  readonly #writer: PayloadWriter;
  readonly #responses: ResponseEngine;
  readonly #queues: readonly PacketQueue[];
  readonly #reading: Set<number>[];
  #writesBefore = 0;
  #isInAtomic = false;
  #atomicsBefore = 0;

  constructor(writer: PayloadWriter, responses: ResponseEngine, transmitter: Transmitter) {
    this.#writer = writer;
    this.#responses = responses;
    this.#queues = [transmitter.requests, transmitter.responses];
    this.#reading = this.#queues.map(() => new Set());
  }

  /** What is under way now must be done. */
  begin(): void {
    this.#writesBefore = this.#writer.requestedCount;
    this.#isInAtomic = this.#responses.isInAtomic;
    this.#atomicsBefore = this.#responses.atomicCount;
    for (const [index, { capacity, rows }] of this.#queues.entries()) {
      const slots = this.#reading[index]!;
      slots.clear();
      for (let slot = 0; slot < capacity; slot++) if (rows[slot]!.pendingReads !== 0) slots.add(slot);
    }
  }

  isPassed(): boolean {
    if (!this.#responses.isInAtomic || this.#responses.atomicCount !== this.#atomicsBefore)
      this.#isInAtomic = false;
    for (const [index, { rows }] of this.#queues.entries()) {
      const slots = this.#reading[index]!;
      for (const slot of slots) if (rows[slot]!.pendingReads === 0) slots.delete(slot);
      if (slots.size > 0) return false;
    }
    return !this.#isInAtomic && this.#writer.doneCount >= this.#writesBefore;
  }
}
