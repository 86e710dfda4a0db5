/**
 * The way a packet takes when its destination is the port it would leave by: past the cable, back into the receiver.
 *
 *   transmitter ──> buffer of `loopbackBufferPackets` packets ──> receiver (its intake, like a packet from the cable)
 *
 * Promises:
 * - Packets arrive in the order sent, `loopbackLatencyCycles` after their last byte, which moves at
 *   `loopbackBytesPerCycle`. A packet keeps its buffer until all its payload has left for host memory; with the buffer
 *   full the transmitter waits. No cycle of waiting can close: the receiver never waits for the transmitter.
 * - They are counted here and nowhere else: the statistics of the cable do not count them.
 *
 * A packet is a record as on the wire (wire/packet.ts), in memory of the HCA.
 */
import type { Cycles } from '../../../../base/index.ts';
import type { BlockState } from '../../../../sim/index.ts';
import {
  FLAG_GRH,
  FLAG_RETRANSMISSION,
  openPacket,
  PACKET_PAYLOAD_OFFSET,
  PacketCounters,
  packetBytesIn,
  packetBytesOf,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from '../../../../wire/index.ts';
import type { HcaConfig } from '../../parameters.ts';

/** Header, operands, GRH, and the longest payload. */
export const SLOT_BYTES = PACKET_PAYLOAD_OFFSET + 4096 + 64;

export interface LoopbackPorts {
  readonly transmitter: {
    /** Room for a packet became free. */
    loopbackSpace(): void;
  };
  readonly receiver: {
    /** A packet was sent, and will have arrived at a cycle. */
    packetLooped(offset: number, arrivalCycle: Cycles): void;
  };
}

export class Loopback {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
  readonly capacity: number;
  /** Counters of first transmissions and of retransmissions, and of packets handed to the receiver. */
  readonly first = new PacketCounters();
  readonly retransmitted = new PacketCounters();
  readonly delivered = new PacketCounters();
  /** Packets that a reset has swept away. */
  droppedCount = 0;
  readonly #bytesPerCycle: Cycles;
  readonly #latencyCycles: number;
  readonly #free: Int32Array;
  /** Port of each place's packet, from 0. */
  readonly #portIndexes: Uint8Array;
  #freeCount = 0;
  /** Cycle from which the path can accept another byte. */
  freeCycle = 0;
  #ports!: LoopbackPorts;

  constructor(
    config: Pick<HcaConfig, 'loopbackBufferPackets' | 'loopbackBytesPerCycle' | 'loopbackLatencyCycles'>,
  ) {
    this.capacity = config.loopbackBufferPackets;
    this.#bytesPerCycle = config.loopbackBytesPerCycle;
    this.#latencyCycles = config.loopbackLatencyCycles;
    this.bytes = new Uint8Array(this.capacity * SLOT_BYTES);
    this.words = new Int32Array(this.bytes.buffer);
    this.floats = new Float64Array(this.bytes.buffer);
    this.#free = new Int32Array(this.capacity);
    this.#portIndexes = new Uint8Array(this.capacity);
    this.reset();
  }

  connect(ports: LoopbackPorts): void {
    this.#ports = ports;
  }

  /** True if a packet can be accepted now; otherwise the transmitter is notified when it should retry. */
  get hasRoom(): boolean {
    return this.#freeCount > 0;
  }

  /** Packets held: on their way, or not yet consumed. */
  get heldCount(): number {
    return this.capacity - this.#freeCount;
  }

  /**
   * Opens a packet whose first byte arrives at `cycle`; the caller has checked {@link hasRoom}, and fills it in at
   * once: opcode, flags and payload bytes are set, the other words hold leftovers.
   */
  begin(
    opcode: number,
    payloadBytes: number,
    flags: number,
    virtualLane: number,
    cycle: Cycles,
    portIndex = 0,
  ): number {
    const offset = this.#free[--this.#freeCount]!;
    this.#portIndexes[offset / SLOT_BYTES] = portIndex;
    const packetBytes = packetBytesOf(opcode, payloadBytes, (flags & FLAG_GRH) !== 0);
    openPacket(this.words, offset >> 2, opcode, payloadBytes, flags, virtualLane, packetBytes);
    const statistics = (flags & FLAG_RETRANSMISSION) === 0 ? this.first : this.retransmitted;
    statistics.count(opcode, packetBytes, payloadBytes);
    this.freeCycle = Math.max(this.freeCycle, cycle) + Math.ceil(packetBytes / this.#bytesPerCycle);
    this.#ports.receiver.packetLooped(offset, this.freeCycle + this.#latencyCycles);
    return offset;
  }

  /** The port of a packet that is held, from 0. */
  portIndexOf(offset: number): number {
    return this.#portIndexes[offset / SLOT_BYTES]!;
  }

  /** Notes that the receiver has begun the packet. */
  received(offset: number): void {
    const word = offset >> 2;
    const packetBytes = packetBytesIn(this.words[word + WORD_PACKET_FLAGS]!);
    this.delivered.count(
      this.words[word + WORD_OPCODE]!,
      packetBytes,
      this.words[word + WORD_PAYLOAD_BYTES]!,
    );
  }

  inspect(): BlockState {
    return { packets: this.heldCount, freeCycle: this.freeCycle };
  }

  /** Releases a packet's buffer. */
  consume(offset: number): void {
    this.#free[this.#freeCount++] = offset;
    if (this.#freeCount === 1) this.#ports.transmitter.loopbackSpace();
  }

  /** Forgets all packets: none of them may be consumed afterwards. */
  reset(): void {
    this.#freeCount = this.capacity;
    for (let slot = 0; slot < this.capacity; slot++)
      this.#free[slot] = (this.capacity - 1 - slot) * SLOT_BYTES;
    this.freeCycle = 0;
    const sent = this.first.packetTotal + this.retransmitted.packetTotal;
    this.droppedCount = sent - this.delivered.packetTotal;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.freeCycle -= cycles;
  }
}
