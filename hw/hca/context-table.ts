/**
 * A table of contexts (QPC, CQC, EQC or SRQC): the device's own copy of every live context, as bytes in the
 * format of the interface, found by object number. Which of them would be on chip is the context cache's matter.
 *
 * The bytes are the truth for everything software configured. What changes with every packet is held beside them
 * in typed arrays by the table that extends this one.
 */
const NONE = -1;

export class ContextTable {
  readonly contextBytes: number;
  readonly capacity: number;
  /** Contexts by slot, `contextBytes` each. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Object number of each slot; -1 when the slot is free. */
  readonly numberOf: Int32Array;
  #slotOf = new Map<number, number>();
  #slotOfDense = new Int32Array(1 << 18).fill(-1);
  #free: number[] = [];
  /** What was asked for last, and its slot; NONE after a change. */
  #lastNumber = NONE;
  #lastSlot = NONE;

  /** @param capacity contexts that can be live at once; beyond it creation answers "limit exceeded" */
  constructor(contextBytes: number, capacity: number) {
    this.contextBytes = contextBytes;
    this.capacity = capacity;
    this.bytes = new Uint8Array(contextBytes * capacity);
    this.view = new DataView(this.bytes.buffer);
    this.numberOf = new Int32Array(capacity).fill(-1);
    for (let slot = capacity - 1; slot >= 0; slot--) this.#free.push(slot);
  }

  get liveCount(): number {
    return this.capacity - this.#free.length;
  }

  /** Slot of an object number, or -1. */
  slotOf(objectNumber: number): number {
    if (objectNumber !== this.#lastNumber) {
      this.#lastNumber = objectNumber;
      this.#lastSlot =
        objectNumber < this.#slotOfDense.length
          ? this.#slotOfDense[objectNumber]!
          : (this.#slotOf.get(objectNumber) ?? -1);
    }
    return this.#lastSlot;
  }

  /** Takes a zeroed slot for an object number that has none. Returns -1 when the table is full. */
  allocate(objectNumber: number): number {
    const slot = this.#free.pop();
    if (slot === undefined) return -1;
    this.#forgetLast();
    this.numberOf[slot] = objectNumber;
    if (objectNumber < this.#slotOfDense.length) this.#slotOfDense[objectNumber] = slot;
    else this.#slotOf.set(objectNumber, slot);
    this.bytes.fill(0, slot * this.contextBytes, (slot + 1) * this.contextBytes);
    return slot;
  }

  free(slot: number): void {
    const objectNumber = this.numberOf[slot]!;
    this.#forgetLast();
    if (objectNumber < this.#slotOfDense.length) this.#slotOfDense[objectNumber] = -1;
    else this.#slotOf.delete(objectNumber);
    this.numberOf[slot] = -1;
    this.#free.push(slot);
  }

  #forgetLast(): void {
    this.#lastNumber = NONE;
    this.#lastSlot = NONE;
  }

  /** Byte offset of a slot's context in {@link bytes}. */
  offsetOf(slot: number): number {
    return slot * this.contextBytes;
  }

  /** Slots in use, in ascending order. */
  liveSlots(): number[] {
    const slots: number[] = [];
    for (let slot = 0; slot < this.capacity; slot++) if (this.numberOf[slot] !== -1) slots.push(slot);
    return slots;
  }
}
