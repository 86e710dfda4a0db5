/**
 * The far events of an event queue: a binary heap of the numbers of their rows, the earliest first. Each row knows its
 * place in the heap, so that any can be taken out.
 */
import { FLOATS_SHIFT, HEAP_POSITION, IN_HEAP, isBefore, PLACE, TIME, WORDS_SHIFT } from './event-rows.ts';

export class EventHeap {
  /** Events in the heap. */
  count = 0;
  private items: Int32Array;
  private floats: Float64Array;
  private words: Int32Array;

  /** @param floats of the rows, @param words of the same memory */
  constructor(capacity: number, floats: Float64Array, words: Int32Array) {
    this.items = new Int32Array(capacity);
    this.floats = floats;
    this.words = words;
  }

  /** The earliest event. The caller has checked that there is one. */
  get first(): number {
    return this.items[0]!;
  }

  /** Time of the earliest event. */
  get firstPs(): number {
    return this.floats[(this.items[0]! << FLOATS_SHIFT) + TIME]!;
  }

  /** Goes on with more rows, to which the old ones were copied. */
  moveTo(capacity: number, floats: Float64Array, words: Int32Array): void {
    const items = new Int32Array(capacity);
    items.set(this.items);
    this.items = items;
    this.floats = floats;
    this.words = words;
  }

  add(index: number): void {
    this.words[(index << WORDS_SHIFT) + PLACE] = IN_HEAP;
    this.siftUp(this.count++, index);
  }

  /** Takes out an event that is in the heap. */
  remove(index: number): void {
    const position = this.words[(index << WORDS_SHIFT) + HEAP_POSITION]!;
    const last = this.items[--this.count]!;
    if (position === this.count) return;
    this.siftDown(position, last);
    this.siftUp(this.words[(last << WORDS_SHIFT) + HEAP_POSITION]!, last);
  }

  private siftUp(position: number, index: number): void {
    let at = position;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = this.items[parent]!;
      if (!isBefore(this.floats, index, other)) break;
      this.setItem(at, other);
      at = parent;
    }
    this.setItem(at, index);
  }

  private siftDown(position: number, index: number): void {
    let at = position;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.count) break;
      const right = child + 1;
      if (right < this.count && isBefore(this.floats, this.items[right]!, this.items[child]!)) child = right;
      const other = this.items[child]!;
      if (isBefore(this.floats, index, other)) break;
      this.setItem(at, other);
      at = child;
    }
    this.setItem(at, index);
  }

  private setItem(position: number, index: number): void {
    this.items[position] = index;
    this.words[(index << WORDS_SHIFT) + HEAP_POSITION] = position;
  }
}
