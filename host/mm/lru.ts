/**
 * The lists that reclaim works through: for anonymous and for file pages an inactive and an active one, each from the newest
 * (head) to the oldest (tail), as in Linux's lruvec. Frames that must stay (queue memory, huge pages, kernel frames) are on no
 * list.
 */

import { FrameTable } from './frame-table.ts';

export const inactiveAnonymous = 0;
export const activeAnonymous = 1;
export const inactiveFile = 2;
export const activeFile = 3;
const noList = -1;
const noFrame = -1;

export class LruLists {
  readonly #next = new FrameTable(noFrame);
  readonly #previous = new FrameTable(noFrame);
  readonly #lists = new FrameTable(noList);
  readonly #heads = new Int32Array(4).fill(noFrame);
  readonly #tails = new Int32Array(4).fill(noFrame);
  readonly #lengths = new Int32Array(4);

  lengthOf(list: number): number {
    return this.#lengths[list]!;
  }

  /** List of a frame, or -1. */
  listOf(frame: number): number {
    return this.#lists.of(frame);
  }

  /** The oldest of a list, or -1. */
  oldest(list: number): number {
    return this.#tails[list]!;
  }

  /** Moves a frame to the head of a list, from any list. */
  put(frame: number, list: number): void {
    this.take(frame);
    const head = this.#heads[list]!;
    this.#next.set(frame, head);
    this.#previous.set(frame, noFrame);
    if (head === noFrame) this.#tails[list] = frame;
    else this.#previous.set(head, frame);
    this.#heads[list] = frame;
    this.#lists.set(frame, list);
    this.#lengths[list] = this.#lengths[list]! + 1;
  }

  /** Removes a frame from its list, if it is on one. */
  take(frame: number): void {
    const list = this.#lists.of(frame);
    if (list === noList) return;
    const next = this.#next.of(frame);
    const previous = this.#previous.of(frame);
    if (previous === noFrame) this.#heads[list] = next;
    else this.#next.set(previous, next);
    if (next === noFrame) this.#tails[list] = previous;
    else this.#previous.set(next, previous);
    this.#lists.set(frame, noList);
    this.#lengths[list] = this.#lengths[list]! - 1;
  }
}
