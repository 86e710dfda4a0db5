/** The far events of an event queue: a binary heap, the earliest first. Each event keeps its index in the heap, so that any event can be removed. */
import { IN_HEAP, isBefore, type QueuedEvent } from './queued-event.ts';

export class EventHeap {
  /** Events in the heap. */
  count = 0;
  /** The earliest event, if any: it is read far more often than it changes. */
  first: QueuedEvent;
  readonly #items: QueuedEvent[] = [];

  /** @param none value of {@link first} before the first event */
  constructor(none: QueuedEvent) {
    this.first = none;
  }

  add(event: QueuedEvent): void {
    event.place = IN_HEAP;
    const position = this.count++;
    if (position === this.#items.length) this.#items.push(event);
    this.#siftUp(position, event);
  }

  /** Removes an event that is in the heap. */
  remove(event: QueuedEvent): void {
    const position = event.heapPosition;
    const last = this.#items[--this.count]!;
    if (position === this.count) return;
    this.#siftDown(position, last);
    this.#siftUp(last.heapPosition, last);
  }

  #siftUp(position: number, event: QueuedEvent): void {
    let at = position;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = this.#items[parent]!;
      if (!isBefore(event, other)) break;
      this.#setItem(at, other);
      at = parent;
    }
    this.#setItem(at, event);
  }

  #siftDown(position: number, event: QueuedEvent): void {
    const items = this.#items;
    let at = position;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.count) break;
      const right = child + 1;
      if (right < this.count && isBefore(items[right]!, items[child]!)) child = right;
      const other = items[child]!;
      if (isBefore(event, other)) break;
      this.#setItem(at, other);
      at = child;
    }
    this.#setItem(at, event);
  }

  #setItem(position: number, event: QueuedEvent): void {
    this.#items[position] = event;
    if (position === 0) this.first = event;
    event.heapPosition = position;
  }
}
