/**
 * Packets on their way to the wire, in order: a ring of slots, each with room for one payload in the HCA's memory.
 *
 * A slot is opened by the requester or the response engine, filled by DMA reads in any order, and sent when it is
 * the oldest and nothing of it is outstanding. A slot whose QP has since been reset, failed or gone back carries an
 * old epoch and is dropped instead.
 */
export const PACKET_PAYLOAD_BYTES_MAX = 4096;

/** One packet. A field that begins as NaN may hold any number, the others hold 32-bit integers. */
export class PacketSlot {
  /** Number of the slot, and place of its payload in the HCA's memory. */
  readonly slot: number;
  readonly payloadOffset: number;
  qp = 0;
  epoch = 0;
  opcode = 0;
  psn = 0;
  flags = 0;
  address = Number.NaN;
  key = Number.NaN;
  dmaBytes = Number.NaN;
  aeth = 0;
  immediate = 0;
  payloadBytes = 0;
  /** DMA reads of the payload not yet complete; the slot is open while {@link isSealed} is 0. */
  pendingReads = 0;
  isSealed = 0;
  /** DMA status of a failed payload read, or 0. */
  failure = 0;
  /** Record of the send WQE, or -1 for a response; and whether this is the message's last packet. */
  record = 0;
  isLast = 0;
  /** True for a packet that was sent before. */
  isRepeat = 0;
  /** Cycle from which a complete packet can be sent. */
  readyCycle = Number.NaN;

  constructor(slot: number, payloadOffset: number) {
    this.slot = slot;
    this.payloadOffset = payloadOffset;
    this.address = 0;
    this.key = 0;
    this.dmaBytes = 0;
    this.readyCycle = 0;
  }
}

/** True when a packet has everything it needs. */
export const isComplete = (packet: PacketSlot): boolean => packet.isSealed === 1 && packet.pendingReads === 0;

export class PacketQueue {
  readonly capacity: number;
  readonly sramOffset: number;
  readonly rows: readonly PacketSlot[];
  /** Operands of an atomic request (4 words) or the result of an atomic (2 words). */
  readonly operands: Int32Array;
  /** The packet in the oldest slot; one that is never complete when there is none. */
  oldest: PacketSlot;
  #head = 0;
  #count = 0;
  readonly #none = new PacketSlot(-1, -1);

  /** @param sramOffset of capacity × {@link PACKET_PAYLOAD_BYTES_MAX} bytes */
  constructor(capacity: number, sramOffset: number) {
    this.capacity = capacity;
    this.sramOffset = sramOffset;
    this.rows = Array.from({ length: capacity }, (_, slot) => new PacketSlot(slot, this.payloadOffset(slot)));
    this.oldest = this.#none;
    this.operands = new Int32Array(capacity * 4);
  }

  get isFull(): boolean {
    return this.#count === this.capacity;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Opens a slot. The caller has checked {@link isFull}. */
  open(qp: number, epoch: number, record: number): number {
    let slot = this.#head + this.#count;
    if (slot >= this.capacity) slot -= this.capacity;
    const packet = this.rows[slot]!;
    if (this.#count === 0) this.oldest = packet;
    this.#count++;
    packet.qp = qp;
    packet.epoch = epoch;
    packet.record = record;
    packet.flags = 0;
    packet.payloadBytes = 0;
    packet.pendingReads = 0;
    packet.isSealed = 0;
    packet.failure = 0;
    packet.isLast = 0;
    packet.isRepeat = 0;
    packet.readyCycle = 0;
    return slot;
  }

  /** Frees the oldest slot. */
  close(): void {
    this.#head = this.#head + 1 === this.capacity ? 0 : this.#head + 1;
    this.#count--;
    this.oldest = this.#count === 0 ? this.#none : this.rows[this.#head]!;
  }

  payloadOffset(slot: number): number {
    return this.sramOffset + slot * PACKET_PAYLOAD_BYTES_MAX;
  }

  clear(): void {
    this.#head = 0;
    this.oldest = this.#none;
    this.#count = 0;
  }
}
