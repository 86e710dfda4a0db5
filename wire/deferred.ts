/** A value whose change counts from the next picosecond on: whoever reads and changes it within one instant may do so in any order. */
import type { Picoseconds } from '../base/index.ts';

export class Deferred<Value> {
  /** As of the last change. */
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

  /** What it was before this instant. */
  at(nowPs: Picoseconds): Value {
    return nowPs > this.#changedPs ? this.latest : this.#before;
  }

  /** A new epoch: see TimeKeeper. @param shift of values that are instants themselves */
  rebase(ps: Picoseconds, shift: (value: Value) => Value = (value) => value): void {
    this.#changedPs -= ps;
    this.#before = shift(this.#before);
    this.latest = shift(this.latest);
  }
}
