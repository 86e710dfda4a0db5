/**
 * Packets that faults of the cable hold back: a copy that follows its packet later, and a packet that others pass. Each is put
 * on the link by its sender when it is due, with credits of its own.
 *
 * A packet is held before its record is filled in, so its words and bytes are taken from the ring later: at the next instant
 * at the latest, when all of them are there and nothing can have been written over them.
 */
import type { Picoseconds } from '../base/index.ts';
import { RECORD_HEADER_BYTES } from '../sim/index.ts';

/** Time and size of a record stand before the words that are the protocol's own. */
const OWN_WORDS_OFFSET = 16;
const NEVER = Number.POSITIVE_INFINITY;

/** Copies that wait at once, at most. */
const COPIES_MAX = 256;

export interface HeldPacket {
  /** A copy of a packet that has left; else the packet itself. */
  readonly isCopy: boolean;
  readonly opcode: number;
  readonly payloadBytes: number;
  readonly flags: number;
  readonly virtualLane: number;
  readonly packetBytes: number;
  /** Bytes of the record behind its header. */
  readonly bodyBytes: number;
  /** Place of the record in the ring. */
  readonly offset: number;
  /** Packets of its lane that pass it yet. */
  passesLeft: number;
  /** When it leaves at the latest, if there is credit for it. */
  duePs: Picoseconds;
  /** The record from its own words on; undefined while it is only in the ring. */
  content: Uint8Array | undefined;
}

export class HeldPackets {
  /** By the time at which they were held. */
  readonly #packets: HeldPacket[] = [];
  #copyCount = 0;

  /** The packet that others pass: there is one at a time. */
  get passed(): HeldPacket | undefined {
    return this.#packets.length === this.#copyCount ? undefined : this.#packets.find(({ isCopy }) => !isCopy);
  }

  get count(): number {
    return this.#packets.length;
  }

  get canCopy(): boolean {
    return this.#copyCount < COPIES_MAX;
  }

  /** When the first of them is due; Infinity without any. */
  get duePs(): Picoseconds {
    return this.#packets.reduce((least, { duePs }) => Math.min(least, duePs), NEVER);
  }

  hold(packet: HeldPacket): void {
    this.#packets.push(packet);
    if (packet.isCopy) this.#copyCount++;
  }

  /** The first that is due, in the order in which they became so. */
  firstDue(nowPs: Picoseconds): HeldPacket | undefined {
    let first: HeldPacket | undefined;
    for (const packet of this.#packets)
      if (packet.duePs <= nowPs && (first === undefined || packet.duePs < first.duePs)) first = packet;
    return first;
  }

  /** The packet has been put on the link. */
  release(packet: HeldPacket): void {
    this.#packets.splice(this.#packets.indexOf(packet), 1);
    if (packet.isCopy) this.#copyCount--;
  }

  /** The link went down: none of them will leave. */
  clear(): void {
    this.#packets.length = 0;
    this.#copyCount = 0;
  }

  /** Takes what is only in the ring out of it. */
  capture(ring: Uint8Array): void {
    for (const packet of this.#packets) packet.content ??= contentIn(ring, packet);
  }

  /** Fills the record at `offset` in as the one that was held. */
  fill(packet: HeldPacket, ring: Uint8Array, offset: number): void {
    ring.set(packet.content ?? contentIn(ring, packet), offset + OWN_WORDS_OFFSET);
  }

  /** A new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const packet of this.#packets) packet.duePs -= ps;
  }
}

const contentIn = (ring: Uint8Array, { offset, bodyBytes }: HeldPacket): Uint8Array =>
  ring.slice(offset + OWN_WORDS_OFFSET, offset + RECORD_HEADER_BYTES + bodyBytes);
