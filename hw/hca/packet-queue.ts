/**
 * Packets on their way to the wire, in order: a ring of slots, each with room for one payload in the HCA's memory.
 *
 * A slot is opened by the requester or the response engine, filled by DMA reads in any order, and sent when it is
 * the oldest and nothing of it is outstanding. A slot whose QP has since been reset, failed or gone back carries an
 * old epoch and is dropped instead.
 */
export const PACKET_PAYLOAD_BYTES_MAX = 4096;

export class PacketQueue {
  readonly capacity: number;
  readonly sramOffset: number;
  readonly qp: Int32Array;
  readonly epoch: Int32Array;
  readonly opcode: Int32Array;
  readonly psn: Int32Array;
  readonly flags: Int32Array;
  readonly address: Float64Array;
  readonly key: Float64Array;
  readonly dmaBytes: Float64Array;
  readonly aeth: Int32Array;
  readonly immediate: Int32Array;
  /** Operands of an atomic request (4 words) or the result of an atomic (2 words). */
  readonly operands: Int32Array;
  readonly payloadBytes: Int32Array;
  /** DMA reads of the payload not yet complete; the slot is open while {@link isSealed} is 0. */
  readonly pendingReads: Int32Array;
  readonly isSealed: Uint8Array;
  /** DMA status of a failed payload read, or 0. */
  readonly failure: Uint8Array;
  /** Record of the send WQE, or -1 for a response; and whether this is the message's last packet. */
  readonly record: Int32Array;
  readonly isLast: Uint8Array;
  /** True for a packet that was sent before. */
  readonly isRepeat: Uint8Array;
  /** Cycle from which a complete packet can be sent. */
  readonly readyCycle: Float64Array;
  #head = 0;
  #count = 0;

  /** @param sramOffset of capacity × {@link PACKET_PAYLOAD_BYTES_MAX} bytes */
  constructor(capacity: number, sramOffset: number) {
    this.capacity = capacity;
    this.sramOffset = sramOffset;
    this.qp = new Int32Array(capacity);
    this.epoch = new Int32Array(capacity);
    this.opcode = new Int32Array(capacity);
    this.psn = new Int32Array(capacity);
    this.flags = new Int32Array(capacity);
    this.address = new Float64Array(capacity);
    this.key = new Float64Array(capacity);
    this.dmaBytes = new Float64Array(capacity);
    this.aeth = new Int32Array(capacity);
    this.immediate = new Int32Array(capacity);
    this.operands = new Int32Array(capacity * 4);
    this.payloadBytes = new Int32Array(capacity);
    this.pendingReads = new Int32Array(capacity);
    this.isSealed = new Uint8Array(capacity);
    this.failure = new Uint8Array(capacity);
    this.record = new Int32Array(capacity);
    this.isLast = new Uint8Array(capacity);
    this.isRepeat = new Uint8Array(capacity);
    this.readyCycle = new Float64Array(capacity);
  }

  get isFull(): boolean {
    return this.#count === this.capacity;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** The oldest slot. The caller has checked that there is one. */
  get head(): number {
    return this.#head;
  }

  /** True when the oldest slot has everything it needs. */
  get isHeadComplete(): boolean {
    const head = this.#head;
    return this.#count > 0 && this.isSealed[head] === 1 && this.pendingReads[head] === 0;
  }

  /** Opens a slot. The caller has checked {@link isFull}. */
  open(qp: number, epoch: number, record: number): number {
    const slot = (this.#head + this.#count) % this.capacity;
    this.#count++;
    this.qp[slot] = qp;
    this.epoch[slot] = epoch;
    this.record[slot] = record;
    this.flags[slot] = 0;
    this.payloadBytes[slot] = 0;
    this.pendingReads[slot] = 0;
    this.isSealed[slot] = 0;
    this.failure[slot] = 0;
    this.isLast[slot] = 0;
    this.isRepeat[slot] = 0;
    this.readyCycle[slot] = 0;
    return slot;
  }

  /** Frees the oldest slot. */
  close(): void {
    this.#head = this.#head + 1 === this.capacity ? 0 : this.#head + 1;
    this.#count--;
  }

  payloadOffset(slot: number): number {
    return this.sramOffset + slot * PACKET_PAYLOAD_BYTES_MAX;
  }

  clear(): void {
    this.#head = 0;
    this.#count = 0;
  }
}
