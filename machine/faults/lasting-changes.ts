/**
 * Faults that change a place for a time: a port, a cable, an entry. While several change the same place, it is as the one that began last
 * has it; when that one ends, the one before it is in effect again.
 */
export class LastingChanges<ChangingFault> {
  readonly #placeOf: (fault: ChangingFault) => string;
  readonly #change: (fault: ChangingFault, isBeginning: boolean) => void;
  /** Faults that have begun and last, in the order of their beginnings. */
  readonly #active: ChangingFault[] = [];

  /** @param change makes the change of a fault, or restores the place */
  constructor(
    placeOf: (fault: ChangingFault) => string,
    change: (fault: ChangingFault, isBeginning: boolean) => void,
  ) {
    this.#placeOf = placeOf;
    this.#change = change;
  }

  begin(fault: ChangingFault): void {
    this.#active.push(fault);
    this.#change(fault, true);
  }

  /** Ends a fault that has begun. */
  end(fault: ChangingFault): void {
    this.#active.splice(this.#active.indexOf(fault), 1);
    const place = this.#placeOf(fault);
    const other = this.#active.findLast((each) => this.#placeOf(each) === place);
    if (other === undefined) this.#change(fault, false);
    else this.#change(other, true);
  }

  /** Makes the changes again of all faults that last: after something else has restored their places. */
  repeat(): void {
    for (const fault of this.#active) this.#change(fault, true);
  }
}
