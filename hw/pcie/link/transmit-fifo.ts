/**
 * The bounded transmit fifo of one flow: complete TLPs, including payload, that wait for credits or for the serialiser, in the
 * form of their channel records.
 */
import { RECORD_HEADER_BYTES } from '../../../sim/index.ts';
import { touchedDwords } from '../tlp/index.ts';
import { RecordMemory } from './record-memory.ts';

const RECORD_ALIGNMENT_BYTES = 16;

export class TransmitFifo {
  readonly capacity: number;
  readonly memory: RecordMemory;
  count = 0;
  readonly #slotBytes: number;
  /** Position in the port's order of sending. */
  readonly #sequence: Float64Array;
  /** Slot of the oldest TLP. */
  #head = 0;

  constructor(capacity: number, maxPayloadBytes: number) {
    this.capacity = capacity;
    const recordBytes = RECORD_HEADER_BYTES + touchedDwords(3, maxPayloadBytes) * 4;
    this.#slotBytes = (recordBytes + RECORD_ALIGNMENT_BYTES - 1) & -RECORD_ALIGNMENT_BYTES;
    this.memory = new RecordMemory(new Uint8Array(capacity * this.#slotBytes));
    this.#sequence = new Float64Array(capacity);
  }

  /** Offset of the oldest TLP's record. */
  get headOffset(): number {
    return this.#head * this.#slotBytes;
  }

  /** Sequence number of the oldest TLP's hand-over, among all flows. */
  get headSequence(): number {
    return this.#sequence[this.#head]!;
  }

  /** Reserves a free slot after the others, and returns the offset of its record. The caller has checked that a slot is free. */
  take(sequence: number): number {
    let slot = this.#head + this.count;
    if (slot >= this.capacity) slot -= this.capacity;
    this.count++;
    this.#sequence[slot] = sequence;
    return slot * this.#slotBytes;
  }

  /** Frees the oldest slot. */
  drop(): void {
    this.#head = this.#head + 1 === this.capacity ? 0 : this.#head + 1;
    this.count--;
  }
}
