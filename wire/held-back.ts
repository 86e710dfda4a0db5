/**
 * What faults of a cable hold back: a copy that follows later, and one that others pass. Who sends them asks which are due.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';

/** Copies that wait at once, at most. */
const COPIES_MAX = 256;

export interface Held {
  /** A copy of one that has left; else that itself. */
  readonly isCopy: boolean;
  /** When it leaves at the latest, if there is room for it. */
  duePs: Picoseconds;
}

export class HeldBack<Item extends Held> {
  /** By the time at which they were held. */
  protected readonly items: Item[] = [];
  #copyCount = 0;

  /** The one that others pass: there is one at a time. */
  get passed(): Item | undefined {
    return this.items.length === this.#copyCount ? undefined : this.items.find(({ isCopy }) => !isCopy);
  }

  get count(): number {
    return this.items.length;
  }

  all(): readonly Item[] {
    return this.items;
  }

  get canCopy(): boolean {
    return this.#copyCount < COPIES_MAX;
  }

  /** When the first of them is due; Infinity without any. */
  get duePs(): Picoseconds {
    return this.items.reduce((least, { duePs }) => Math.min(least, duePs), NEVER);
  }

  hold(item: Item): void {
    this.items.push(item);
    if (item.isCopy) this.#copyCount++;
  }

  /** The first that is due, in the order in which they became so. */
  firstDue(nowPs: Picoseconds): Item | undefined {
    let first: Item | undefined;
    for (const item of this.items)
      if (item.duePs <= nowPs && (first === undefined || item.duePs < first.duePs)) first = item;
    return first;
  }

  /** It has been put on the link. */
  release(item: Item): void {
    this.items.splice(this.items.indexOf(item), 1);
    if (item.isCopy) this.#copyCount--;
  }

  /** The link went down: none of them will leave. */
  clear(): void {
    this.items.length = 0;
    this.#copyCount = 0;
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const item of this.items) item.duePs -= ps;
  }
}
