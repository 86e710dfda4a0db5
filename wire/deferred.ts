/** A value whose change counts from the next picosecond on: reads and changes within one instant may occur in any order. */
import type { Picoseconds } from '../base/index.ts';

export class Deferred<Value> {
  /** Instant of the last change. */
  latest: Value;
  #before: Value;
  #changedPs = -1;

  constructor(value: Value) {
    this.latest = value;
    this.#before = value;
  }

  set(value: Value, nowPs: Picoseconds): void {
    if (nowPs > this.#changedPs) {
      this.#before = this.latest;
      this.#changedPs = nowPs;
    }
    this.latest = value;
  }

  /** Value before this instant. */
  at(nowPs: Picoseconds): Value {
    return nowPs > this.#changedPs ? this.latest : this.#before;
  }

  /** Handles a new epoch: see TimeKeeper. @param shift of values that are instants themselves */
  rebase(ps: Picoseconds, shift: (value: Value) => Value = (value) => value): void {
    this.#changedPs -= ps;
    this.#before = shift(this.#before);
    this.latest = shift(this.latest);
  }
}
