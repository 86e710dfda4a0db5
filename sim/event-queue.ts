/**
 * The timing wheel: every event of one logical process that is not a clock edge or a record from another one.
 *
 *     delay < 4.19 us   wheel: 4096 slots of 1024 ps, each a sorted ring of events; a two-level bitmap
 *                       finds the next occupied slot
 *     longer            binary heap, drained into the wheel as time comes near
 *
 * Promises: events run in order of (time, phase, schedule order); a cancelled event never runs and its
 * cancellation touches no other event; nothing is allocated per event. Time is an integer count of picoseconds
 * held in a float64.
 */
import { InvariantError } from '../base/assert.ts';
import { FLOAT_ZERO } from '../base/float-zero.ts';
import { EventHeap } from './event-heap.ts';
import * as eventRows from './event-rows.ts';
import { isBefore } from './event-rows.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { LINE_SHIFT, FLOATS_SHIFT, WORDS_SHIFT } = eventRows;
const { TIME, ORDER, A, B } = eventRows;
const { HANDLER, NEXT, PREVIOUS, PLACE, GENERATION, FREE, IN_HEAP } = eventRows;

/** An event's effect. `a` and `b` are whatever was given to {@link EventQueue.schedule}. */
export type EventHandler = (a: number, b: number) => void;

/** Names one scheduled event, and only that one. 0 names none. */
export type EventRef = number;

/**
 * Which part of an instant an event belongs to: all hardware of an instant precedes its software. Software that shares
 * state (the cores of a host share a kernel) does not commute, so higher numbers are phases too: one for each core.
 */
export const PHASE_HARDWARE = 0;
export const PHASE_SOFTWARE = 1;
const PHASE_COUNT_MAX = 128;

const SLOT_SHIFT = 10;
const SLOT_PS = 1 << SLOT_SHIFT;
const SLOT_COUNT = 4096;
const SLOT_MASK = SLOT_COUNT - 1;
const HORIZON_PS = SLOT_PS * SLOT_COUNT;
const NEVER = Number.POSITIVE_INFINITY;
const NONE = 0;
const NO_SLOT = -1;
const INDEX_BITS = 20;
const INDEX_COUNT_MAX = 1 << INDEX_BITS;
const GENERATION_MAX = 0x7fff_ffff;

/**
 * One memory holds everything, in words: per slot the first event of its ring or 0, one bit per occupied slot,
 * one bit per word of those, then the events from FIRST on. (Few arrays, few bounds to check.)
 */
const BITMAP = SLOT_COUNT;
const SUMMARY = BITMAP + SLOT_COUNT / 32;
const SUMMARY_MASK = SLOT_COUNT / 1024 - 1;
const FIRST = (SUMMARY + 16) >> 4;

/** Events of one queue, and of one phase: 7 × 10^13. */
const PHASE_ORDER = 2 ** 53 / PHASE_COUNT_MAX;

export class EventQueue {
  /** Time of the earliest pending event, or Infinity. Kept current by every operation; only the queue changes it. */
  nextPs = NEVER;
  /** Events run so far. */
  firedCount = 0;
  /** Number of events waiting. */
  pendingCount = 0;

  private handlers: EventHandler[] = [];
  private phaseOrders: number[] = [];
  private capacity: number;
  private floats: Float64Array;
  private words: Int32Array;
  private freeHead = NONE;
  /** The earliest pending event, or NONE. */
  private nextIndex = NONE;
  private sequence = 0;
  /** Slot of the cursor and the picosecond at which that slot begins. */
  private cursor = 0;
  private cursorPs = FLOAT_ZERO;
  private readonly heap: EventHeap;
  private readonly shuffle: (() => number) | undefined;

  /**
   * @param capacity events that may be pending before the pool grows (it doubles, below 2^20)
   * @param shuffle when given, orders events of one instant and phase by its values (from 0 to 1) instead of by
   *   schedule order: the test that no block relies on that order
   */
  constructor(capacity = 1024, shuffle?: () => number) {
    this.capacity = capacity;
    this.shuffle = shuffle;
    const memory = new ArrayBuffer((FIRST + capacity) << LINE_SHIFT);
    this.floats = new Float64Array(memory);
    this.words = new Int32Array(memory);
    this.heap = new EventHeap(capacity, this.floats, this.words);
    this.linkFree(FIRST, FIRST + capacity);
  }

  /** Whether the earliest pending event is hardware or software. The caller has checked that there is one. */
  get nextPhase(): number {
    const order = this.floats[(this.nextIndex << FLOATS_SHIFT) + ORDER]!;
    return order < PHASE_ORDER ? PHASE_HARDWARE : PHASE_SOFTWARE;
  }

  /** Registers an effect and returns the number by which events name it. */
  addHandler(handler: EventHandler, phase: number = PHASE_HARDWARE): number {
    this.handlers.push(handler);
    this.phaseOrders.push(phase * PHASE_ORDER);
    return this.handlers.length - 1;
  }

  /**
   * Schedules `handler(a, b)` at `atPs`, a whole number that does not lie before the last event run.
   * @throws InvariantError for a time that is past or broken
   */
  schedule(atPs: number, handler: number, a = 0, b = 0): EventRef {
    const delayPs = atPs - this.cursorPs;
    const isNear = delayPs < HORIZON_PS;
    if (isNear ? delayPs >>> 0 !== delayPs : !Number.isSafeInteger(delayPs)) refuseTime(atPs, this.cursorPs);
    if (this.freeHead === NONE) this.grow();
    const index = this.freeHead;
    const word = index << WORDS_SHIFT;
    const float = index << FLOATS_SHIFT;
    const words = this.words;
    const floats = this.floats;
    this.freeHead = words[word + NEXT]!;
    const sequence = this.shuffle === undefined ? this.sequence++ : this.shuffledSequence();
    floats[float + TIME] = atPs;
    floats[float + ORDER] = this.phaseOrders[handler]! + sequence;
    floats[float + A] = a;
    floats[float + B] = b;
    words[word + HANDLER] = handler;
    this.pendingCount++;
    if (isNear) this.insertInWheel(index, (this.cursor + (delayPs >> SLOT_SHIFT)) & SLOT_MASK);
    else this.heap.add(index);
    const nextPs = this.nextPs;
    if (atPs < nextPs || (atPs === nextPs && isBefore(this.floats, index, this.nextIndex))) {
      this.nextPs = atPs;
      this.nextIndex = index;
    }
    return words[word + GENERATION]! * INDEX_COUNT_MAX + index;
  }

  /** Takes back one event. False when it has run or was cancelled already. */
  cancel(ref: EventRef): boolean {
    const generation = Math.floor(ref / INDEX_COUNT_MAX);
    const index = (ref - generation * INDEX_COUNT_MAX) | 0;
    const word = index << WORDS_SHIFT;
    if (index < FIRST || index >= FIRST + this.capacity || this.words[word + GENERATION] !== generation)
      return false;
    const place = this.words[word + PLACE]!;
    if (place === FREE) return false;
    if (place === IN_HEAP) this.heap.remove(index);
    else this.unlink(index, place);
    this.release(word, index);
    this.pendingCount--;
    if (index === this.nextIndex) this.findNext();
    return true;
  }

  /** Runs the earliest event. The caller has checked that there is one. */
  runNext(): void {
    const index = this.nextIndex;
    const words = this.words;
    const word = index << WORDS_SHIFT;
    const float = index << FLOATS_SHIFT;
    const nowPs = this.nextPs;
    if (nowPs - this.cursorPs >= SLOT_PS) this.moveCursorTo(nowPs);
    const after = words[word + NEXT]!;
    if (after === index) {
      this.vacate(this.cursor);
      this.release(word, index);
      this.findNext();
    } else {
      const last = words[word + PREVIOUS]!;
      words[(last << WORDS_SHIFT) + NEXT] = after;
      words[(after << WORDS_SHIFT) + PREVIOUS] = last;
      words[this.cursor] = after;
      this.release(word, index);
      this.nextIndex = after;
      this.nextPs = this.floats[(after << FLOATS_SHIFT) + TIME]!;
    }
    this.pendingCount--;
    this.firedCount++;
    this.handlers[words[word + HANDLER]!]!(this.floats[float + A]!, this.floats[float + B]!);
  }

  private insertInWheel(index: number, slot: number): void {
    const words = this.words;
    const word = index << WORDS_SHIFT;
    words[word + PLACE] = slot;
    if (words[slot] !== NONE) {
      this.insertInRing(index, slot);
      return;
    }
    words[word + NEXT] = index;
    words[word + PREVIOUS] = index;
    this.occupy(slot, index);
  }

  /** Puts the event behind all of its slot that precede it; most often it is the last. */
  private insertInRing(index: number, slot: number): void {
    const words = this.words;
    const head = words[slot]!;
    let after = words[(head << WORDS_SHIFT) + PREVIOUS]!;
    while (isBefore(this.floats, index, after)) {
      const previous = words[(after << WORDS_SHIFT) + PREVIOUS]!;
      if (after === head) words[slot] = index;
      after = previous;
      if (words[slot] === index) break;
    }
    const word = index << WORDS_SHIFT;
    const before = words[(after << WORDS_SHIFT) + NEXT]!;
    words[word + PREVIOUS] = after;
    words[word + NEXT] = before;
    words[(after << WORDS_SHIFT) + NEXT] = index;
    words[(before << WORDS_SHIFT) + PREVIOUS] = index;
  }

  private unlink(index: number, slot: number): void {
    const words = this.words;
    const word = index << WORDS_SHIFT;
    const after = words[word + NEXT]!;
    if (after === index) {
      this.vacate(slot);
      return;
    }
    const before = words[word + PREVIOUS]!;
    words[(before << WORDS_SHIFT) + NEXT] = after;
    words[(after << WORDS_SHIFT) + PREVIOUS] = before;
    if (words[slot] === index) words[slot] = after;
  }

  private occupy(slot: number, index: number): void {
    const words = this.words;
    const bits = BITMAP + (slot >> 5);
    const wordBits = SUMMARY + (slot >> 10);
    words[slot] = index;
    words[bits] = words[bits]! | (1 << slot);
    words[wordBits] = words[wordBits]! | (1 << (slot >> 5));
  }

  private vacate(slot: number): void {
    const words = this.words;
    const bits = BITMAP + (slot >> 5);
    words[slot] = NONE;
    words[bits] = words[bits]! & ~(1 << slot);
    if (words[bits] !== 0) return;
    const wordBits = SUMMARY + (slot >> 10);
    words[wordBits] = words[wordBits]! & ~(1 << (slot >> 5));
  }

  private release(word: number, index: number): void {
    const words = this.words;
    const generation = words[word + GENERATION]!;
    words[word + GENERATION] = generation === GENERATION_MAX ? 1 : generation + 1;
    words[word + PLACE] = FREE;
    words[word + NEXT] = this.freeHead;
    this.freeHead = index;
  }

  /** Every event in the heap lies a horizon or more past the cursor, hence behind every event in the wheel. */
  private findNext(): void {
    const slot = this.occupiedSlot();
    const index = slot === NO_SLOT ? (this.heap.count > 0 ? this.heap.first : NONE) : this.words[slot]!;
    this.nextIndex = index;
    this.nextPs = index === NONE ? NEVER : this.floats[(index << FLOATS_SHIFT) + TIME]!;
  }

  /** The first occupied slot from the cursor's on, round the wheel, or NO_SLOT. */
  private occupiedSlot(): number {
    const words = this.words;
    const cursor = this.cursor;
    let word = cursor >> 5;
    let bits = words[BITMAP + word]! & (-1 << cursor);
    if (bits === 0) {
      let group = cursor >> 10;
      let wordBits = words[SUMMARY + group]! & (-2 << word);
      for (let step = 0; wordBits === 0; step++) {
        if (step > SUMMARY_MASK) return NO_SLOT;
        group = (group + 1) & SUMMARY_MASK;
        wordBits = words[SUMMARY + group]!;
      }
      word = (group << 5) + 31 - Math.clz32(wordBits & -wordBits);
      bits = words[BITMAP + word]!;
    }
    return (word << 5) + 31 - Math.clz32(bits & -bits);
  }

  private moveCursorTo(atPs: number): void {
    const aheadPs = atPs - this.cursorPs;
    if (aheadPs < HORIZON_PS) {
      const slots = aheadPs >> SLOT_SHIFT;
      this.cursor = (this.cursor + slots) & SLOT_MASK;
      this.cursorPs += slots << SLOT_SHIFT;
    } else {
      // The wheel is empty, so any slot may become the one of this instant.
      this.cursorPs = atPs;
    }
    if (this.heap.count > 0) this.drainHeap();
  }

  /** Brings delays that have come within the horizon into the wheel. */
  private drainHeap(): void {
    const { heap } = this;
    while (heap.count > 0) {
      const delayPs = heap.firstPs - this.cursorPs;
      if (delayPs >= HORIZON_PS) return;
      const index = heap.first;
      heap.remove(index);
      this.insertInWheel(index, (this.cursor + (delayPs >> SLOT_SHIFT)) & SLOT_MASK);
    }
  }

  private shuffledSequence(): number {
    return Math.floor(this.shuffle!() * PHASE_ORDER);
  }

  private linkFree(from: number, to: number): void {
    for (let index = from; index < to; index++) {
      const word = index << WORDS_SHIFT;
      this.words[word + NEXT] = index + 1 < to ? index + 1 : NONE;
      this.words[word + PLACE] = FREE;
      this.words[word + GENERATION] = 1;
    }
    this.freeHead = from;
  }

  private grow(): void {
    const old = this.capacity;
    const capacity = old * 2;
    if (FIRST + capacity > INDEX_COUNT_MAX) throw new RangeError(`more than ${old} events pending`);
    const memory = new ArrayBuffer((FIRST + capacity) << LINE_SHIFT);
    const words = new Int32Array(memory);
    words.set(this.words);
    this.words = words;
    this.floats = new Float64Array(memory);
    this.heap.moveTo(capacity, this.floats, words);
    this.capacity = capacity;
    this.linkFree(FIRST + old, FIRST + capacity);
  }
}

function refuseTime(atPs: number, fromPs: number): never {
  throw new InvariantError('time of an event in ps', atPs, `a whole number of at least ${fromPs}`);
}
