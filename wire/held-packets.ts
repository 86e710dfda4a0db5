/**
 * Packets that faults of the cable hold back: a copy that follows its packet later, and a packet that others overtake. Its
 * sender puts it on the link when it is due, with its own credits.
 *
 * A packet is held before its record is filled in, so its words and bytes are copied from the ring later: at the next instant
 * at the latest, when all of them are present and cannot have been overwritten yet.
 */
import { NEVER, type Picoseconds } from '../base/index.ts';
import { RECORD_HEADER_BYTES } from '../sim/index.ts';
import { type Held, HeldBack } from './held-back.ts';

/** Time and size of a record precede the protocol's own words. */
const OWN_WORDS_OFFSET = 16;

export interface HeldPacket extends Held {
  readonly opcode: number;
  readonly payloadBytes: number;
  readonly flags: number;
  readonly virtualLane: number;
  readonly packetBytes: number;
  /** Bytes of the record after its header. */
  readonly bodyBytes: number;
  /** Offset of the record in the ring. */
  readonly offset: number;
  /** Number of packets of its lane that overtake it in all, and still to come. */
  readonly passes: number;
  passesLeft: number;
  /** Other effects of faults on it, for a capture. */
  readonly remark: string;
  /** The record from its own words on; undefined while it is only in the ring. */
  content: Uint8Array | undefined;
}

export class HeldPackets extends HeldBack<HeldPacket> {
  /** The first due packet, in the order in which they became due, of other lanes than these, as bits. */
  firstDueBut(lanes: number, nowPs: Picoseconds): HeldPacket | undefined {
    if (lanes === 0) return this.firstDue(nowPs);
    let first: HeldPacket | undefined;
    for (const item of this.items)
      if (isBut(lanes, item) && item.duePs <= nowPs && (first === undefined || item.duePs < first.duePs))
        first = item;
    return first;
  }

  /** When the first packet of other lanes than these is due; Infinity without any. */
  duePsBut(lanes: number): Picoseconds {
    return this.items.reduce(
      (least, item) => (isBut(lanes, item) ? Math.min(least, item.duePs) : least),
      NEVER,
    );
  }

  /** Copies a record that is only in the ring out of it. */
  capture(ring: Uint8Array): void {
    for (const packet of this.items) packet.content ??= contentIn(ring, packet);
  }

  /** Fills in the record at `offset` from the held one. */
  fill(packet: HeldPacket, ring: Uint8Array, offset: number): void {
    ring.set(packet.content ?? contentIn(ring, packet), offset + OWN_WORDS_OFFSET);
  }
}

const isBut = (lanes: number, { virtualLane }: HeldPacket): boolean => (lanes & (1 << virtualLane)) === 0;

const contentIn = (ring: Uint8Array, { offset, bodyBytes }: HeldPacket): Uint8Array =>
  ring.slice(offset + OWN_WORDS_OFFSET, offset + RECORD_HEADER_BYTES + bodyBytes);
