/**
 * A ledger: counters by name, and balances that must hold between them at the end of a run.
 *
 * A balance compares two figures that were counted independently, at different places: it can therefore fail, and
 * does when something was lost, counted twice or invented. Counters are numbers in one array, so that counting costs
 * an addition; names are looked up once, when a block is built.
 */
import { ConfigurationError } from '../base/index.ts';

/** A balance that does not hold. */
export interface Imbalance {
  readonly balance: string;
  readonly left: number;
  readonly right: number;
}

type Figure = () => number;

export class Ledger {
  /** Values by counter number: `ledger.values[counter]! += amount`. Fetch anew after adding counters. */
  values = new Float64Array(64);
  readonly #names: string[] = [];
  readonly #balances: { readonly name: string; readonly left: Figure; readonly right: Figure }[] = [];

  /**
   * Adds a counter and returns its number.
   * @param name dotted words, like `toDevice.doorbell.bytes`
   */
  addCounter(name: string): number {
    if (this.#names.includes(name))
      throw new ConfigurationError('name of a counter', name, 'one not yet used');
    if (this.#names.length === this.values.length) {
      const values = new Float64Array(this.values.length * 2);
      values.set(this.values);
      this.values = values;
    }
    return this.#names.push(name) - 1;
  }

  /** Adds an amount to a counter. */
  add(counter: number, amount: number): void {
    this.values[counter] = this.values[counter]! + amount;
  }

  valueOf(counter: number): number {
    return this.values[counter]!;
  }

  /** Sum of the counters whose names begin with these words: `toDevice` covers `toDevice.doorbell.bytes`. */
  sumOf(words: string): number {
    let sum = 0;
    this.#names.forEach((name, counter) => {
      if (name === words || name.startsWith(`${words}.`)) sum += this.values[counter]!;
    });
    return sum;
  }

  /** Demands that two independently counted figures are equal when {@link imbalances} is asked. */
  addBalance(name: string, left: Figure, right: Figure): void {
    this.#balances.push({ name, left, right });
  }

  /** The balances that do not hold now. */
  imbalances(): Imbalance[] {
    return this.#balances
      .map(({ name, left, right }) => ({ balance: name, left: left(), right: right() }))
      .filter(({ left, right }) => left !== right);
  }

  /** All counters by name, in the order in which they were added. */
  toData(): Record<string, number> {
    return Object.fromEntries(this.#names.map((name, counter) => [name, this.values[counter]!]));
  }
}
