/**
 * Packets that faults of the cable hold back: a copy that follows its packet later, and a packet that others pass. Each is put
 * on the link by its sender when it is due, with credits of its own.
 *
 * A packet is held before its record is filled in, so its words and bytes are taken from the ring later: at the next instant
 * at the latest, when all of them are there and nothing can have been written over them.
 */
import { RECORD_HEADER_BYTES } from '../sim/index.ts';
import { type Held, HeldBack } from './held-back.ts';

/** Time and size of a record stand before the words that are the protocol's own. */
const OWN_WORDS_OFFSET = 16;

export interface HeldPacket extends Held {
  readonly opcode: number;
  readonly payloadBytes: number;
  readonly flags: number;
  readonly virtualLane: number;
  readonly packetBytes: number;
  /** Bytes of the record behind its header. */
  readonly bodyBytes: number;
  /** Place of the record in the ring. */
  readonly offset: number;
  /** Packets of its lane that pass it in all, and yet. */
  readonly passes: number;
  passesLeft: number;
  /** What else faults do to it, for a capture. */
  readonly remark: string;
  /** The record from its own words on; undefined while it is only in the ring. */
  content: Uint8Array | undefined;
}

export class HeldPackets extends HeldBack<HeldPacket> {
  /** Takes what is only in the ring out of it. */
  capture(ring: Uint8Array): void {
    for (const packet of this.items) packet.content ??= contentIn(ring, packet);
  }

  /** Fills the record at `offset` in as the one that was held. */
  fill(packet: HeldPacket, ring: Uint8Array, offset: number): void {
    ring.set(packet.content ?? contentIn(ring, packet), offset + OWN_WORDS_OFFSET);
  }
}

const contentIn = (ring: Uint8Array, { offset, bodyBytes }: HeldPacket): Uint8Array =>
  ring.slice(offset + OWN_WORDS_OFFSET, offset + RECORD_HEADER_BYTES + bodyBytes);
