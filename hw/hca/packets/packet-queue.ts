/**
 * Packets on their way to the wire, in order: a ring of slots, each with room for one payload in the HCA's memory.
 *
 * A slot is opened by the requester or the response engine, filled by DMA reads in any order, and sent when it is the
 * oldest and nothing of it is outstanding. A slot is dropped instead if its QP has since been reset, failed or rewound
 * (it carries an old send generation), or if its request has ended (an old generation): a late acknowledgement may
 * complete a request whose packets are being retransmitted. The slot itself is free only when all its reads have ended,
 * so no late read data meet another packet in it.
 */
import { noRecord, QueuePair, type SendRecord } from '../objects/index.ts';

export const PACKET_PAYLOAD_BYTES_MAX = 4096;
/** Generation of a response that must not leave: no QP and no other response has it. */
export const VOID_GENERATION = -1;

/** One packet, without the fields that its transport adds. Fields hold 32-bit integers. */
export class PacketSlot {
  /** Number of the slot, and place of its payload in the HCA's memory. */
  readonly slot: number;
  readonly payloadOffset: number;
  /** The slot that is opened after this one, of the same queue. */
  next: this;
  pair: QueuePair;
  sendGeneration = 0;
  /** Generation of {@link request} that the packet belongs to. */
  generation = 0;
  /** Number of the packet in its message, from 0 on, and place of its payload there. */
  index = 0;
  firstByte = 0;
  payloadBytes = 0;
  /** DMA reads of the payload not yet complete; the slot is open while {@link isSealed} is 0. */
  pendingReads = 0;
  isSealed = 0;
  /** DMA status of a failed payload read, or 0. */
  failure = 0;
  /** Record of the send WQE, {@link noRecord} for a response; and whether this is the message's last packet. */
  request: SendRecord;
  isLast = false;
  /** Cycle from which a complete packet can be sent. */
  readyCycle = 0;

  constructor(slot: number, payloadOffset: number, pair: QueuePair) {
    this.slot = slot;
    this.payloadOffset = payloadOffset;
    this.next = this;
    this.pair = pair;
    this.request = noRecord;
  }

  /** True when it has everything it needs. */
  get isComplete(): boolean {
    return this.isSealed === 1 && this.pendingReads === 0;
  }

  /** True while the packet's request has not ended; always true for a response. */
  get isOfRequest(): boolean {
    return this.generation === this.request.generation;
  }
}

/** @typeParam Packet slots, as the transport whose packets they hold has them */
export class PacketQueue<Packet extends PacketSlot = PacketSlot> {
  readonly capacity: number;
  readonly sramOffset: number;
  /** The slots by their numbers; each refers to the next one, the last to the first. */
  readonly rows: readonly Packet[];
  /** The packet in the oldest slot; a placeholder that is never complete while the queue is empty. */
  oldest: Packet;
  /** The slot to be opened next. */
  #free: Packet;
  #count = 0;
  readonly #none: Packet;
  readonly #slotBytes: number;

  /**
   * @param sramOffset of capacity × slotBytes bytes
   * @param makeSlot makes the slot with a number and the offset of its payload in the HCA's memory
   * @param slotBytes room for one payload
   */
  constructor(
    capacity: number,
    sramOffset: number,
    makeSlot: (slot: number, payloadOffset: number, pair: QueuePair) => Packet,
    slotBytes = PACKET_PAYLOAD_BYTES_MAX,
  ) {
    const noPair = new QueuePair();
    this.capacity = capacity;
    this.sramOffset = sramOffset;
    this.#slotBytes = slotBytes;
    this.#none = makeSlot(-1, -1, noPair);
    this.rows = Array.from({ length: capacity }, (_, slot) =>
      makeSlot(slot, sramOffset + slot * slotBytes, noPair),
    );
    for (const { slot } of this.rows) this.rows[slot]!.next = this.rows[(slot + 1) % capacity]!;
    this.#free = this.rows[0]!;
    this.oldest = this.#none;
  }

  get isFull(): boolean {
    return this.#count === this.capacity;
  }

  get isEmpty(): boolean {
    return this.#count === 0;
  }

  /** Slots in use. */
  get heldCount(): number {
    return this.#count;
  }

  /** Opens a slot for a packet of `pair`. The caller has checked {@link isFull}. */
  open(pair: QueuePair, sendGeneration: number, request: SendRecord): Packet {
    const packet = this.#free;
    this.#free = packet.next;
    if (this.#count === 0) this.oldest = packet;
    this.#count++;
    packet.pair = pair;
    packet.sendGeneration = sendGeneration;
    packet.request = request;
    packet.generation = request.generation;
    packet.payloadBytes = 0;
    packet.pendingReads = 0;
    packet.isSealed = 0;
    packet.failure = 0;
    packet.isLast = false;
    packet.readyCycle = 0;
    return packet;
  }

  /** Marks all responses of a QP, also an open one, to be dropped when they become the oldest. */
  voidResponses(pair: QueuePair): void {
    let packet = this.oldest;
    for (let left = this.#count; left > 0; left--) {
      if (packet.pair === pair) packet.sendGeneration = VOID_GENERATION;
      packet = packet.next;
    }
  }

  /** Frees the oldest slot. */
  close(): void {
    this.#count--;
    this.oldest = this.#count === 0 ? this.#none : this.oldest.next;
  }

  payloadOffset(slot: number): number {
    return this.sramOffset + slot * this.#slotBytes;
  }

  clear(): void {
    this.#free = this.rows[0]!;
    this.oldest = this.#none;
    this.#count = 0;
  }

  /** A new epoch: see EdgeKeeper. A packet that could have been sent before it can be sent from its beginning. */
  rebase(cycles: number): void {
    for (const packet of this.rows) packet.readyCycle = Math.max(0, packet.readyCycle - cycles);
  }
}
