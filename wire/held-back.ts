/** Packets that a cable's faults hold back: a copy that follows later, or a packet that others overtake. The sender asks which are due. */
import { NEVER, type Picoseconds } from '../base/index.ts';

/** Limit of waiting copies. */
const COPIES_MAX = 256;

export interface Held {
  /** A copy of a packet that has left; or the packet itself. */
  readonly isCopy: boolean;
  /** Latest instant at which it leaves, if room is available. */
  duePs: Picoseconds;
}

export class HeldBack<Item extends Held> {
  /** Items in the order in which they were held. */
  protected readonly items: Item[] = [];
  #copyCount = 0;

  /** The overtaken packet: at most one at a time. */
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

  /** The first due packet, in the order in which they became due. */
  firstDue(nowPs: Picoseconds): Item | undefined {
    let first: Item | undefined;
    for (const item of this.items)
      if (item.duePs <= nowPs && (first === undefined || item.duePs < first.duePs)) first = item;
    return first;
  }

  /** It was put on the link. */
  release(item: Item): void {
    this.items.splice(this.items.indexOf(item), 1);
    if (item.isCopy) this.#copyCount--;
  }

  /** The link went down: none of them will leave. */
  clear(): void {
    this.items.length = 0;
    this.#copyCount = 0;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const item of this.items) item.duePs -= ps;
  }
}
