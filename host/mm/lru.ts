/**
 * The lists that reclaim works through: for anonymous and for file pages an inactive and an active one, each from the
 * newest (head) to the oldest (tail), as in Linux's lruvec. Frames that must stay (queue memory, huge pages, the kernel's own)
 * are on none.
 */

export const inactiveAnonymous = 0;
export const activeAnonymous = 1;
export const inactiveFile = 2;
export const activeFile = 3;
const noList = 255;
const noFrame = -1;

export class LruLists {
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #listOf: Uint8Array;
  readonly #heads = new Int32Array(4).fill(noFrame);
  readonly #tails = new Int32Array(4).fill(noFrame);
  readonly #lengths = new Int32Array(4);

  constructor(frameCount: number) {
    this.#next = new Int32Array(frameCount);
    this.#previous = new Int32Array(frameCount);
    this.#listOf = new Uint8Array(frameCount).fill(noList);
  }

  lengthOf(list: number): number {
    return this.#lengths[list]!;
  }

  /** List of a frame, or -1. */
  listOf(frame: number): number {
    const list = this.#listOf[frame]!;
    return list === noList ? -1 : list;
  }

  /** The oldest of a list, or -1. */
  oldest(list: number): number {
    return this.#tails[list]!;
  }

  /** Puts a frame at the head of a list, from wherever it was. */
  put(frame: number, list: number): void {
    this.take(frame);
    const head = this.#heads[list]!;
    this.#next[frame] = head;
    this.#previous[frame] = noFrame;
    if (head === noFrame) this.#tails[list] = frame;
    else this.#previous[head] = frame;
    this.#heads[list] = frame;
    this.#listOf[frame] = list;
    this.#lengths[list] = this.#lengths[list]! + 1;
  }

  /** Takes a frame off its list, if it is on one. */
  take(frame: number): void {
    const list = this.#listOf[frame]!;
    if (list === noList) return;
    const next = this.#next[frame]!;
    const previous = this.#previous[frame]!;
    if (previous === noFrame) this.#heads[list] = next;
    else this.#next[previous] = next;
    if (next === noFrame) this.#tails[list] = previous;
    else this.#previous[next] = previous;
    this.#listOf[frame] = noList;
    this.#lengths[list] = this.#lengths[list]! - 1;
  }
}
