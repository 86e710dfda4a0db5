/**
 * Memory of received packets of a port with several data lanes. The channel's ring is freed in the order of arrival, which a lane that
 * waits would hold up for the others: so each record is copied out of it as it arrives.
 *
 * Slots have three sizes, each with as many as the credits allow packets that need it.
 */
import { RECORD_HEADER_BYTES } from '../sim/index.ts';
import { blocksOf } from './link-credits.ts';
import { packetShapes } from './opcodes.ts';
import { packetBytesIn, WORD_OPCODE, WORD_PACKET_FLAGS, WORD_PAYLOAD_BYTES } from './packet.ts';
import type { WireConfig } from './parameters.ts';
import { bodyBytesOf } from './wire-observer.ts';
import { dataLanesOf, laneBlocksOf } from './wire-sizing.ts';

/** Largest packets of each size, in blocks of credit: the last holds the longest. */
const sizesBlocks = [2, 8, 68] as const;
const BLOCK_BYTES = 64;

/** Slots of one size, one after the other. */
interface SlotClass {
  readonly firstByte: number;
  readonly lengthBytes: number;
  /** Offsets of free slots. */
  readonly free: number[];
}

const slotClassOf = (firstByte: number, count: number, slotBytes: number): SlotClass => ({
  firstByte,
  lengthBytes: count * slotBytes,
  free: Array.from({ length: count }, (_, slot) => firstByte + (count - 1 - slot) * slotBytes),
});

/** A channel's records. */
interface Ring {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
}

export class LaneRecords {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
  readonly #classes: readonly SlotClass[];

  constructor(config: WireConfig) {
    const blocks = laneBlocksOf(config) * dataLanesOf(config);
    const classes: SlotClass[] = [];
    let bytes = 0;
    for (const [index, size] of sizesBlocks.entries()) {
      const least = index === 0 ? 1 : sizesBlocks[index - 1]! + 1;
      const count = Math.floor(blocks / least) + config.managementBufferPackets;
      const slots = slotClassOf(bytes, count, RECORD_HEADER_BYTES + size * BLOCK_BYTES);
      classes.push(slots);
      bytes += slots.lengthBytes;
    }
    this.#classes = classes;
    this.bytes = new Uint8Array(bytes);
    this.words = new Int32Array(this.bytes.buffer);
    this.floats = new Float64Array(this.bytes.buffer);
  }

  /** Copies a packet's record out of a ring. @returns its offset here */
  keep(ring: Ring, offset: number): number {
    const word = offset >> 2;
    const flags = ring.words[word + WORD_PACKET_FLAGS]!;
    const shape = packetShapes[ring.words[word + WORD_OPCODE]!]!;
    const bodyBytes = bodyBytesOf(shape, ring.words[word + WORD_PAYLOAD_BYTES]!, flags);
    const place = this.#classOf(flags).free.pop()!;
    this.bytes.set(ring.bytes.subarray(offset, offset + RECORD_HEADER_BYTES + bodyBytes), place);
    return place;
  }

  /** A kept packet is no longer needed. */
  release(offset: number): void {
    this.#classes.findLast(({ firstByte }) => offset >= firstByte)!.free.push(offset);
  }

  #classOf(flags: number): SlotClass {
    const blocks = blocksOf(packetBytesIn(flags));
    return this.#classes[sizesBlocks.findIndex((size) => blocks <= size)]!;
  }
}
