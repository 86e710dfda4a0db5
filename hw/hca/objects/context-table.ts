/**
 * A table of contexts (QPC, CQC, EQC or SRQC): the device's own copy of every live context, as bytes in the format of
 * the interface, found by object number. The context cache decides which of them count as on chip.
 *
 * The bytes are authoritative for everything that software configured. The derived table and the blocks hold the fields
 * that change with every packet.
 *
 * Memory follows the number of live contexts, not the largest number: slots are allocated from 0 on, freed ones first,
 * with room for 64 initially. A full table doubles its room, and from 1,024 on grows by a quarter: unused room for
 * 100,000 QPs costs more than the copying. The state that the table's users keep by slot grows with it.
 */
import type { ObjectNumber, Slot } from './numbers.ts';

const NONE = -1;
const FIRST_SLOTS = 64;
/** Number of slots from which a table grows by a quarter. */
const MANY_SLOTS = 1024;
/** Object numbers have 24 bits; adjacent ones share a page of the directory. */
const OBJECT_NUMBERS = 1 << 24;
const PAGE_BITS = 10;
const PAGE_MASK = (1 << PAGE_BITS) - 1;

/** A block that keeps something by slot of a table. */
export interface SlotUser {
  /** Notifies a user of the number of slots: when the block is connected, and whenever the table has grown. */
  slotsGrown(slotCount: number): void;
}

/**
 * @typeParam Kind of the objects: the number by which software names one, and the slot that it has here, are units of it
 * @typeParam User names of those who keep something by slot
 */
export class ContextTable<Kind extends string = string, User extends string = string> {
  /** Bytes of a context in host memory. */
  readonly contextBytes: number;
  readonly #storedBytes: number;
  /** Contexts that can be live at once. */
  readonly capacity: number;
  /** Contexts by slot, `storedBytes` each; another array once the table has grown. */
  bytes: Uint8Array;
  view: DataView;
  /** Object number of each slot; -1 when the slot is free. Another array once the table has grown. */
  numberOf: Int32Array;
  /** Slot of each object number or -1, in pages that are made when a number of theirs is first used. */
  readonly #directory: (Int32Array | undefined)[] = [];
  /** Slots that were freed, and the number of slots ever allocated. */
  #free: number[] = [];
  #takenCount = 0;
  /** The last number looked up, and its slot; NONE after a change. */
  #lastNumber = NONE;
  #lastSlot = NONE;
  #users: readonly SlotUser[] = [];

  /**
   * @param capacity contexts that can be live at once; beyond it creation answers "limit exceeded"
   * @param storedBytes bytes of a context on chip, if the card keeps more there than it writes to host memory
   */
  constructor(contextBytes: number, capacity: number, storedBytes = contextBytes) {
    const slotCount = Math.min(capacity, FIRST_SLOTS);
    this.contextBytes = contextBytes;
    this.#storedBytes = storedBytes;
    this.capacity = capacity;
    this.bytes = new Uint8Array(storedBytes * slotCount);
    this.view = new DataView(this.bytes.buffer);
    this.numberOf = new Int32Array(slotCount).fill(NONE);
  }

  get liveCount(): number {
    return this.#takenCount - this.#free.length;
  }

  /** Slots there is room for now. */
  get slotCount(): number {
    return this.numberOf.length;
  }

  /** See Block.connect. */
  connect(users: Readonly<Record<User, SlotUser>>): void {
    this.#users = Object.values<SlotUser>(users);
    for (const user of this.#users) user.slotsGrown(this.slotCount);
  }

  /** Slot of an object number, or -1. */
  slotOf(objectNumber: ObjectNumber<Kind>): Slot<Kind> {
    if (objectNumber !== this.#lastNumber) {
      this.#lastNumber = objectNumber;
      this.#lastSlot = this.#find(objectNumber);
    }
    return this.#lastSlot;
  }

  /** Allocates a zeroed slot for an object number below 2^24 that has none. Returns -1 when the table is full. */
  allocate(objectNumber: ObjectNumber<Kind>): Slot<Kind> {
    const slot = this.#takeSlot();
    if (slot === NONE) return NONE;
    this.#forgetLast();
    this.numberOf[slot] = objectNumber;
    this.#pageOf(objectNumber)[objectNumber & PAGE_MASK] = slot;
    this.bytes.fill(0, slot * this.#storedBytes, (slot + 1) * this.#storedBytes);
    return slot;
  }

  free(slot: Slot<Kind>): void {
    const objectNumber = this.numberOf[slot]!;
    this.#forgetLast();
    this.#pageOf(objectNumber)[objectNumber & PAGE_MASK] = NONE;
    this.numberOf[slot] = NONE;
    this.#free.push(slot);
  }

  /** Reset: no context is live, and slots are allocated in the order of their numbers again. */
  clear(): void {
    for (const slot of this.liveSlots()) this.free(slot);
    this.#free = [];
    this.#takenCount = 0;
  }

  /** Byte offset of a slot's context in {@link bytes}. */
  offsetOf(slot: Slot<Kind>): number {
    return slot * this.#storedBytes;
  }

  /** Updates a slot's bytes before they are read, from the fields held outside of them. */
  sync(_slot: Slot<Kind>): void {}

  /** Slots in use, in ascending order. */
  liveSlots(): Slot<Kind>[] {
    const slots: Slot<Kind>[] = [];
    for (let slot = 0; slot < this.#takenCount; slot++) if (this.numberOf[slot] !== NONE) slots.push(slot);
    return slots;
  }

  #find(objectNumber: number): number {
    if (!(objectNumber >= 0 && objectNumber < OBJECT_NUMBERS)) return NONE;
    const page = this.#directory[objectNumber >>> PAGE_BITS];
    return page === undefined ? NONE : page[objectNumber & PAGE_MASK]!;
  }

  #pageOf(objectNumber: number): Int32Array {
    const index = objectNumber >>> PAGE_BITS;
    let page = this.#directory[index];
    if (page === undefined) {
      page = new Int32Array(1 << PAGE_BITS).fill(NONE);
      this.#directory[index] = page;
    }
    return page;
  }

  #takeSlot(): number {
    const freed = this.#free.pop();
    if (freed !== undefined) return freed;
    if (this.#takenCount === this.capacity) return NONE;
    if (this.#takenCount === this.slotCount) this.#grow();
    return this.#takenCount++;
  }

  #grow(): void {
    const before = this.slotCount;
    const slotCount = Math.min(this.capacity, before + (before < MANY_SLOTS ? before : before >> 2));
    this.bytes = enlarged(this.bytes, slotCount * this.#storedBytes);
    this.view = new DataView(this.bytes.buffer);
    this.numberOf = enlarged(this.numberOf, slotCount, NONE);
    this.enlarge(slotCount);
    for (const user of this.#users) user.slotsGrown(slotCount);
  }

  /** Enlarges the columns that a table of a kind keeps next to the bytes. */
  protected enlarge(_slotCount: number): void {}

  #forgetLast(): void {
    this.#lastNumber = NONE;
    this.#lastSlot = NONE;
  }
}

/** A longer array that begins with the elements of `array`, followed by `rest`. */
export function enlarged<T extends Uint8Array | Uint16Array | Int32Array | Float64Array>(
  array: T,
  length: number,
  rest = 0,
): T {
  const longer = new (array.constructor as new (length: number) => T)(length);
  longer.set(array);
  if (rest !== 0) longer.fill(rest, array.length);
  return longer;
}
