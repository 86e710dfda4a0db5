/**
 * The timing wheel: every event of one domain that is not a clock edge or a message from another domain.
 *
 * Promises: events run in order of (time, phase, schedule order); a cancelled event never runs and its
 * cancellation touches no other event; nothing is allocated per event. Events within the wheel's horizon
 * are kept in per-slot sorted lists found through a two-level bitmap; longer delays wait in a binary heap.
 * Time is an integer count of picoseconds held in a float64.
 */

/** An event's effect. `a` and `b` are whatever was given to {@link EventQueue.schedule}. */
export type EventHandler = (a: number, b: number) => void;

/** Names one scheduled event, and only that one. 0 names none. */
export type EventRef = number;

/** Which half of an instant an event belongs to: all hardware of an instant precedes its software. */
export const PHASE_HARDWARE = 0;
export const PHASE_SOFTWARE = 1;

const SLOT_SHIFT = 10;
const SLOT_PS = 1 << SLOT_SHIFT;
const SLOT_COUNT = 4096;
const SLOT_MASK = SLOT_COUNT - 1;
const HORIZON_PS = SLOT_PS * SLOT_COUNT;
const NONE = -1;
const IN_HEAP = -2;
const INDEX_BITS = 20;
const INDEX_COUNT_MAX = 1 << INDEX_BITS;

export class EventQueue {
  /** Time of the earliest pending event, or Infinity. Kept current by every operation. */
  nextPs = Number.POSITIVE_INFINITY;
  /** Events run so far. */
  firedCount = 0;

  #handlers: EventHandler[] = [];
  #phases: number[] = [];
  #capacity: number;
  #key: Float64Array;
  #sequence: Float64Array;
  #handler: Int32Array;
  #a: Float64Array;
  #b: Float64Array;
  #next: Int32Array;
  #previous: Int32Array;
  /** Slot index while in the wheel, IN_HEAP while in the heap, NONE while free. */
  #place: Int32Array;
  #heapPosition: Int32Array;
  #generation: Int32Array;
  #freeHead = 0;
  #pendingCount = 0;
  #sequenceCounter = 0;
  readonly #slotHead = new Int32Array(SLOT_COUNT).fill(NONE);
  readonly #slotTail = new Int32Array(SLOT_COUNT).fill(NONE);
  readonly #bitmap = new Int32Array(SLOT_COUNT / 32);
  readonly #summary = new Int32Array(SLOT_COUNT / 1024);
  /** Slot of the cursor and the picosecond at which that slot begins. */
  #cursor = 0;
  #cursorPs = 0;
  #heap: Int32Array;
  #heapCount = 0;
  readonly #shuffle: (() => number) | undefined;

  /**
   * @param capacity events that may be pending before the pool grows (it doubles, up to 2^20)
   * @param shuffle when given, orders events of one instant and phase by its values instead of by
   *   schedule order: the test that no block relies on that order
   */
  constructor(capacity = 1024, shuffle?: () => number) {
    this.#capacity = capacity;
    this.#shuffle = shuffle;
    this.#key = new Float64Array(capacity);
    this.#sequence = new Float64Array(capacity);
    this.#handler = new Int32Array(capacity);
    this.#a = new Float64Array(capacity);
    this.#b = new Float64Array(capacity);
    this.#next = new Int32Array(capacity);
    this.#previous = new Int32Array(capacity);
    this.#place = new Int32Array(capacity).fill(NONE);
    this.#heapPosition = new Int32Array(capacity);
    this.#generation = new Int32Array(capacity).fill(1);
    this.#heap = new Int32Array(capacity);
    this.#linkFree(0, capacity);
  }

  /** Number of events waiting. */
  get pendingCount(): number {
    return this.#pendingCount;
  }

  /** Phase of the earliest pending event. The caller has checked that there is one. */
  get nextPhase(): number {
    const distance = this.#pendingCount === this.#heapCount ? NONE : this.#distanceToOccupiedSlot();
    const index = distance === NONE ? this.#heap[0]! : this.#slotHead[(this.#cursor + distance) & SLOT_MASK]!;
    return this.#key[index]! % 2;
  }

  /** Registers an effect and returns the number by which events name it. */
  addHandler(handler: EventHandler, phase: number = PHASE_HARDWARE): number {
    this.#handlers.push(handler);
    this.#phases.push(phase);
    return this.#handlers.length - 1;
  }

  /** Schedules `handler(a, b)` at `atPs`, which must not lie before the last event run. */
  schedule(atPs: number, handler: number, a = 0, b = 0): EventRef {
    if (this.#freeHead === NONE) this.#grow();
    const index = this.#freeHead;
    this.#freeHead = this.#next[index]!;
    this.#key[index] = atPs * 2 + this.#phases[handler]!;
    this.#sequence[index] = this.#shuffle === undefined ? this.#sequenceCounter++ : this.#shuffle();
    this.#handler[index] = handler;
    this.#a[index] = a;
    this.#b[index] = b;
    this.#pendingCount++;
    if (atPs - this.#cursorPs < HORIZON_PS) this.#insertInWheel(index, atPs);
    else this.#insertInHeap(index);
    if (atPs < this.nextPs) this.nextPs = atPs;
    return this.#generation[index]! * INDEX_COUNT_MAX + index;
  }

  /** Takes back one event. False when it has run or was cancelled already. */
  cancel(ref: EventRef): boolean {
    const index = ref % INDEX_COUNT_MAX;
    if (ref === 0 || this.#generation[index] !== (ref - index) / INDEX_COUNT_MAX) return false;
    const place = this.#place[index]!;
    if (place === NONE) return false;
    if (place === IN_HEAP) this.#removeFromHeap(this.#heapPosition[index]!);
    else this.#unlink(index, place);
    this.#release(index);
    this.#findNext();
    return true;
  }

  /** Runs the earliest event. The caller has checked that there is one. */
  runNext(): void {
    this.#moveCursorTo(this.nextPs);
    const index = this.#slotHead[this.#cursor]!;
    this.#unlink(index, this.#cursor);
    const handler = this.#handler[index]!;
    const a = this.#a[index]!;
    const b = this.#b[index]!;
    this.#release(index);
    this.#findNext();
    this.firedCount++;
    this.#handlers[handler]!(a, b);
  }

  #insertInWheel(index: number, atPs: number): void {
    const slot = (this.#cursor + ((atPs - this.#cursorPs) >> SLOT_SHIFT)) & SLOT_MASK;
    this.#place[index] = slot;
    const key = this.#key[index]!;
    const sequence = this.#sequence[index]!;
    let after = this.#slotTail[slot]!;
    while (after !== NONE && this.#isBefore(key, sequence, after)) after = this.#previous[after]!;
    const before = after === NONE ? this.#slotHead[slot]! : this.#next[after]!;
    this.#previous[index] = after;
    this.#next[index] = before;
    if (after === NONE) this.#slotHead[slot] = index;
    else this.#next[after] = index;
    if (before === NONE) this.#slotTail[slot] = index;
    else this.#previous[before] = index;
    const word = slot >> 5;
    this.#bitmap[word] = this.#bitmap[word]! | (1 << (slot & 31));
    this.#summary[word >> 5] = this.#summary[word >> 5]! | (1 << (word & 31));
  }

  #isBefore(key: number, sequence: number, other: number): boolean {
    const otherKey = this.#key[other]!;
    return key < otherKey || (key === otherKey && sequence < this.#sequence[other]!);
  }

  #unlink(index: number, slot: number): void {
    const before = this.#previous[index]!;
    const after = this.#next[index]!;
    if (before === NONE) this.#slotHead[slot] = after;
    else this.#next[before] = after;
    if (after === NONE) this.#slotTail[slot] = before;
    else this.#previous[after] = before;
    if (this.#slotHead[slot] !== NONE) return;
    const word = slot >> 5;
    const bits = this.#bitmap[word]! & ~(1 << (slot & 31));
    this.#bitmap[word] = bits;
    if (bits === 0) this.#summary[word >> 5] = this.#summary[word >> 5]! & ~(1 << (word & 31));
  }

  #release(index: number): void {
    this.#place[index] = NONE;
    this.#generation[index] = (this.#generation[index]! + 1) & 0x7fffffff;
    this.#next[index] = this.#freeHead;
    this.#freeHead = index;
    this.#pendingCount--;
  }

  /** Sets {@link nextPs}. The cursor stays: events may still be scheduled before the next one. */
  #findNext(): void {
    const distance = this.#pendingCount === this.#heapCount ? NONE : this.#distanceToOccupiedSlot();
    const index =
      distance !== NONE
        ? this.#slotHead[(this.#cursor + distance) & SLOT_MASK]!
        : this.#heapCount > 0
          ? this.#heap[0]!
          : NONE;
    this.nextPs = index === NONE ? Number.POSITIVE_INFINITY : Math.floor(this.#key[index]! / 2);
  }

  /** Every event in the heap lies a horizon or more past the cursor, hence behind every event in the wheel. */
  #moveCursorTo(atPs: number): void {
    const slots = Math.floor((atPs - this.#cursorPs) / SLOT_PS);
    if (slots === 0) return;
    this.#cursor = (this.#cursor + (slots % SLOT_COUNT)) & SLOT_MASK;
    this.#cursorPs += slots * SLOT_PS;
    if (this.#heapCount > 0) this.#drainHeap();
  }

  /** Brings delays that have come within the horizon into the wheel. */
  #drainHeap(): void {
    while (this.#heapCount > 0) {
      const index = this.#heap[0]!;
      const atPs = Math.floor(this.#key[index]! / 2);
      if (atPs - this.#cursorPs >= HORIZON_PS) return;
      this.#removeFromHeap(0);
      this.#insertInWheel(index, atPs);
    }
  }

  #distanceToOccupiedSlot(): number {
    const cursor = this.#cursor;
    const firstWord = cursor >> 5;
    const masked = this.#bitmap[firstWord]! & (-1 << (cursor & 31));
    if (masked !== 0) return (firstWord << 5) + lowestBit(masked) - cursor;
    for (let step = 1; step <= this.#bitmap.length; step++) {
      const word = (firstWord + step) & (this.#bitmap.length - 1);
      if ((word & 31) === 0 && this.#summary[word >> 5] === 0) {
        step += 31;
        continue;
      }
      const bits = this.#bitmap[word]!;
      if (bits !== 0) return ((word << 5) + lowestBit(bits) - cursor) & SLOT_MASK;
    }
    return NONE;
  }

  #insertInHeap(index: number): void {
    this.#place[index] = IN_HEAP;
    this.#siftUp(this.#heapCount++, index);
  }

  #removeFromHeap(position: number): void {
    const last = this.#heap[--this.#heapCount]!;
    if (position === this.#heapCount) return;
    this.#siftDown(position, last);
    this.#siftUp(this.#heapPosition[last]!, last);
  }

  #siftUp(position: number, index: number): void {
    const key = this.#key[index]!;
    const sequence = this.#sequence[index]!;
    let at = position;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = this.#heap[parent]!;
      if (!this.#isBefore(key, sequence, other)) break;
      this.#setHeap(at, other);
      at = parent;
    }
    this.#setHeap(at, index);
  }

  #siftDown(position: number, index: number): void {
    const key = this.#key[index]!;
    const sequence = this.#sequence[index]!;
    let at = position;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= this.#heapCount) break;
      const right = child + 1;
      if (right < this.#heapCount) {
        const candidate = this.#heap[right]!;
        if (this.#isBefore(this.#key[candidate]!, this.#sequence[candidate]!, this.#heap[child]!))
          child = right;
      }
      const other = this.#heap[child]!;
      if (this.#isBefore(key, sequence, other)) break;
      this.#setHeap(at, other);
      at = child;
    }
    this.#setHeap(at, index);
  }

  #setHeap(position: number, index: number): void {
    this.#heap[position] = index;
    this.#heapPosition[index] = position;
  }

  #linkFree(from: number, to: number): void {
    for (let index = from; index < to; index++) this.#next[index] = index + 1 < to ? index + 1 : NONE;
    this.#freeHead = from;
  }

  #grow(): void {
    const old = this.#capacity;
    const capacity = old * 2;
    if (capacity > INDEX_COUNT_MAX) throw new RangeError(`more than ${INDEX_COUNT_MAX} events pending`);
    this.#key = enlarged(this.#key, new Float64Array(capacity));
    this.#sequence = enlarged(this.#sequence, new Float64Array(capacity));
    this.#a = enlarged(this.#a, new Float64Array(capacity));
    this.#b = enlarged(this.#b, new Float64Array(capacity));
    this.#handler = enlarged(this.#handler, new Int32Array(capacity));
    this.#next = enlarged(this.#next, new Int32Array(capacity));
    this.#previous = enlarged(this.#previous, new Int32Array(capacity));
    this.#place = enlarged(this.#place, new Int32Array(capacity).fill(NONE));
    this.#heapPosition = enlarged(this.#heapPosition, new Int32Array(capacity));
    this.#generation = enlarged(this.#generation, new Int32Array(capacity).fill(1));
    this.#heap = enlarged(this.#heap, new Int32Array(capacity));
    this.#capacity = capacity;
    this.#linkFree(old, capacity);
  }
}

function lowestBit(bits: number): number {
  return 31 - Math.clz32(bits & -bits);
}

function enlarged<T extends Float64Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
