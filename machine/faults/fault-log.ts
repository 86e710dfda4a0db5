/**
 * How often each fault of a plan has happened in one part of a machine: counted where it is injected, so that a report can
 * say of every fault what became of it. Faults are distinguished by identity: all parts of a thread share the plan's objects.
 */
import type { Nth } from './fields.ts';
import type { Fault } from './kinds.ts';

export class FaultLog {
  readonly #faults: readonly Fault[];
  readonly #fired = new Map<Fault, number>();
  readonly #derived = new Map<Fault, () => number>();

  /** @param faults all of the plan, in its order */
  constructor(faults: readonly Fault[]) {
    this.#faults = faults;
  }

  /** The fault has happened once. */
  fired(fault: Fault): void {
    this.#fired.set(fault, (this.#fired.get(fault) ?? 0) + 1);
  }

  /** The fault concerns events that are numbered anyway: `counted` says how many there have been so far. */
  firesOnNth(fault: Fault, { first, last }: Nth, counted: () => number): void {
    this.#derived.set(fault, () => Math.max(0, Math.min(counted(), last) - first + 1));
  }

  /** Times that each fault of the plan has happened here. */
  counts(): number[] {
    return this.#faults.map((fault) => (this.#fired.get(fault) ?? 0) + (this.#derived.get(fault)?.() ?? 0));
  }
}
