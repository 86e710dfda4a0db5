/**
 * The near events of an event queue: 4096 slots of 1024 ps, each a sorted ring of events; a two-level bitmap finds the next
 * slot that has any. The cursor is at the slot of the last event run from the wheel: every event is in one of the 4096 slots
 * from there on.
 */
import type { Picoseconds } from '../base/index.ts';
import { isBefore, type QueuedEvent } from './queued-event.ts';

const SLOT_SHIFT = 10;
const SLOT_COUNT = 4096;
const SLOT_MASK = SLOT_COUNT - 1;
const HORIZON_PS = SLOT_COUNT << SLOT_SHIFT;
/** One bit per occupied slot, then one bit per word of those. */
const SUMMARY = SLOT_COUNT / 32;
const SUMMARY_COUNT = SUMMARY / 32;
const SUMMARY_MASK = SUMMARY_COUNT - 1;

export class EventWheel {
  /** Events in the wheel. */
  count = 0;
  /** Slot of the cursor, and the picosecond at which that slot begins. */
  #cursor = 0;
  #cursorPs = 0;
  /** Per slot the first event of its ring. */
  readonly #slots: (QueuedEvent | undefined)[] = new Array<undefined>(SLOT_COUNT).fill(undefined);
  readonly #bits = new Int32Array(SUMMARY + SUMMARY_COUNT);

  /** Adds an event at `nowPs` or later. Returns false, and adds nothing, if it is too far ahead. */
  add(event: QueuedEvent, nowPs: Picoseconds): boolean {
    if (this.count === 0) this.#cursorPs = nowPs;
    const delayPs = event.timePs - this.#cursorPs;
    if (delayPs >= HORIZON_PS) return false;
    const slot = (this.#cursor + (delayPs >> SLOT_SHIFT)) & SLOT_MASK;
    this.count++;
    event.place = slot;
    const first = this.#slots[slot];
    if (first === undefined) {
      event.next = event;
      event.previous = event;
      this.#occupy(slot, event);
    } else if (isBefore(event, first)) {
      linkAfter(first.previous, event);
      this.#slots[slot] = event;
    } else {
      let before = first.previous;
      while (isBefore(event, before)) before = before.previous;
      linkAfter(before, event);
    }
    return true;
  }

  /** Removes an event that is in the wheel. */
  remove(event: QueuedEvent): void {
    this.count--;
    const slot = event.place;
    const after = event.next;
    if (after === event) {
      this.#vacate(slot);
      return;
    }
    const before = event.previous;
    before.next = after;
    after.previous = before;
    if (this.#slots[slot] === event) this.#slots[slot] = after;
  }

  /** Moves the cursor to the slot of the event that runs next: none is earlier. */
  moveTo(slot: number): void {
    this.#cursorPs += ((slot - this.#cursor) & SLOT_MASK) << SLOT_SHIFT;
    this.#cursor = slot;
  }

  /** Handles a new epoch, which subtracts `ps` from the events' instants. */
  rebase(ps: number): void {
    this.#cursorPs -= ps;
  }

  /** The earliest event. The caller has checked that one is pending. */
  get first(): QueuedEvent {
    const bits = this.#bits;
    const cursor = this.#cursor;
    let word = cursor >> 5;
    let slots = bits[word]! & (-1 << cursor);
    if (slots === 0) {
      let group = cursor >> 10;
      let words = bits[SUMMARY + group]! & (-2 << word);
      while (words === 0) {
        group = (group + 1) & SUMMARY_MASK;
        words = bits[SUMMARY + group]!;
      }
      word = (group << 5) + 31 - Math.clz32(words & -words);
      slots = bits[word]!;
    }
    return this.#slots[(word << 5) + 31 - Math.clz32(slots & -slots)]!;
  }

  #occupy(slot: number, event: QueuedEvent): void {
    const bits = this.#bits;
    const word = slot >> 5;
    const group = SUMMARY + (slot >> 10);
    this.#slots[slot] = event;
    bits[word] = bits[word]! | (1 << slot);
    bits[group] = bits[group]! | (1 << word);
  }

  #vacate(slot: number): void {
    const bits = this.#bits;
    const word = slot >> 5;
    this.#slots[slot] = undefined;
    bits[word] = bits[word]! & ~(1 << slot);
    if (bits[word] !== 0) return;
    const group = SUMMARY + (slot >> 10);
    bits[group] = bits[group]! & ~(1 << word);
  }
}

function linkAfter(before: QueuedEvent, event: QueuedEvent): void {
  const after = before.next;
  event.previous = before;
  event.next = after;
  before.next = event;
  after.previous = event;
}
