/**
 * Counts how often each fault of a plan has occurred in one part of a machine. The counter is incremented at the
 * injection, so that a report can show the outcome of every fault. Faults are distinguished by identity: all parts of a
 * thread share the plan's objects.
 */
import type { Nth } from './fields.ts';
import type { Fault } from './kinds.ts';

export class FaultLog {
  readonly #faults: readonly Fault[];
  readonly #fired = new Map<Fault, number>();
  readonly #derived = new Map<Fault, () => number>();

  /** @param faults all faults of the plan, in order */
  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  /** Counts one occurrence of the fault. */
  fired(fault: Fault): void {
    this.#fired.set(fault, (this.#fired.get(fault) ?? 0) + 1);
  }

  /** Registers a fault of events that are numbered anyway: `counted` returns the number of occurrences so far. */
  firesOnNth(fault: Fault, { first, last }: Nth, counted: () => number): void {
    this.#derived.set(fault, () => Math.max(0, Math.min(counted(), last) - first + 1));
  }

  /** Occurrences of each fault of the plan in this part. */
  counts(): number[] {
    return this.#faults.map((fault) => (this.#fired.get(fault) ?? 0) + (this.#derived.get(fault)?.() ?? 0));
  }
}
