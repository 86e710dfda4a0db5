/** Which event queue takes which type of event: what MAP_EQ has said (interface sheet 6.7). */
const NO_QUEUE = -1;
const EVENT_TYPES = 64;

export class EventRoutes {
  /** EQ that each type is mapped to, or -1. */
  readonly #eqnOfType = new Int32Array(EVENT_TYPES).fill(NO_QUEUE);

  /** EQ that events of a type go to, or -1. */
  eqnOf(type: number): number {
    return this.#eqnOfType[type]!;
  }

  /** The types whose bits are set in the mask go to this EQ from now on, or nowhere (eqn −1 takes them away). */
  map(maskHigh: number, maskLow: number, eqn: number): void {
    for (let type = 0; type < EVENT_TYPES; type++) {
      const word = type < 32 ? maskLow : maskHigh;
      if (((word >>> (type & 31)) & 1) === 1) this.#eqnOfType[type] = eqn;
    }
  }

  /** The EQ is gone: its types go nowhere. */
  forget(eqn: number): void {
    for (let type = 0; type < EVENT_TYPES; type++)
      if (this.#eqnOfType[type] === eqn) this.#eqnOfType[type] = NO_QUEUE;
  }

  reset(): void {
    this.#eqnOfType.fill(NO_QUEUE);
  }
}
