/**
 * The QP contexts in the requester's own registers. A WQE of another QP first loads that QP's context from the cache, which
 * takes time even if it is on chip: so a requester that serves many QPs in turn is slower than one that serves few.
 */
import type { Cycles } from '../../../base/index.ts';
import { type QpSlot, SetAssociativeDirectory } from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';

export class ContextRegisters {
  readonly #held: SetAssociativeDirectory | undefined;
  readonly #loadCycles: Cycles;

  constructor({
    sendContextRegisters: count,
    sendContextLoadCycles,
  }: Pick<HcaConfig, 'sendContextRegisters' | 'sendContextLoadCycles'>) {
    this.#held = count === 0 ? undefined : new SetAssociativeDirectory(count, count, 'lru');
    this.#loadCycles = sendContextLoadCycles;
  }

  /** Cycles until the context of the QP is in a register, from the cache; the least recently used one leaves. */
  load(qp: QpSlot): Cycles {
    const held = this.#held;
    if (held === undefined) return 0;
    const found = held.find(qp);
    const register = found === -1 ? held.victimFor(qp) : found;
    if (found === -1) held.place(register, qp);
    held.touch(register);
    return found === -1 ? this.#loadCycles : 0;
  }

  reset(): void {
    this.#held?.clearAll();
  }
}
