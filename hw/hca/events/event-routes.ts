/** Maps each type of event to the event queue that MAP_EQ has selected (interface sheet 6.7). */
import type { BlockState } from '../../../sim/index.ts';

const NO_QUEUE = -1;
const EVENT_TYPES = 64;

export class EventRoutes {
  /** EQ that each type is mapped to, or -1. */
  readonly #eqnOfType = new Int32Array(EVENT_TYPES).fill(NO_QUEUE);

  /** EQ that events of a type go to, or -1. */
  eqnOf(type: number): number {
    return this.#eqnOfType[type]!;
  }

  /** Maps the types whose bits are set in the mask to this EQ from now on, or unmaps them (eqn −1). */
  map(maskHigh: number, maskLow: number, eqn: number): void {
    for (let type = 0; type < EVENT_TYPES; type++) {
      const word = type < 32 ? maskLow : maskHigh;
      if (((word >>> (type & 31)) & 1) === 1) this.#eqnOfType[type] = eqn;
    }
  }

  /** Forgets a destroyed EQ: its types are mapped nowhere. */
  forget(eqn: number): void {
    for (let type = 0; type < EVENT_TYPES; type++)
      if (this.#eqnOfType[type] === eqn) this.#eqnOfType[type] = NO_QUEUE;
  }

  /** The EQ of each type that is mapped. See Block.inspect. */
  inspect(): BlockState {
    return Object.fromEntries([...this.#eqnOfType.entries()].filter(([, eqn]) => eqn !== NO_QUEUE));
  }

  reset(): void {
    this.#eqnOfType.fill(NO_QUEUE);
  }
}
