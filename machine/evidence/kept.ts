/** Keeps the first entries of a list, and counts the rest. */
export class Kept<T> {
  readonly list: T[] = [];
  omitted = 0;
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  add(item: T): void {
    if (this.list.length < this.#max) this.list.push(item);
    else this.omitted++;
  }
}
