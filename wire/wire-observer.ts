/**
 * Bytes of packets: at both ends of a cable that carries bytes (`wire.packetForm`), and for a tap, which observes them.
 *
 *     record: header · operands, payload, GRH · [bytes, LRH to VCRC]
 *
 * If the cable carries bytes, the sender packs them after filling in the record, and the receiver uses only them: it checks the
 * CRCs and rebuilds the record. If it carries fields, bytes are built only for a tap. Without both, a port only makes one
 * comparison.
 */
import type { Picoseconds } from '../base/index.ts';
import { damagePacket } from './damage.ts';
import { joinedNotes, MARKED_NOTE } from './fault-notes.ts';
import type { PacketShape } from './opcodes.ts';
import { packetShapes } from './opcodes.ts';
import {
  DAMAGE_PLACE_SHIFT,
  FLAG_CONGESTION,
  FLAG_CORRUPTED,
  FLAG_DAMAGED_INSIDE,
  FLAG_GRH,
  GRH_ROOM_BYTES,
  PACKET_PAYLOAD_OFFSET,
  packetBytesIn,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from './packet.ts';
import type { WireConfig } from './parameters.ts';
import {
  ICRC_WRONG,
  PACKET_BYTES_MAX,
  PACKET_RIGHT,
  type RecordArea,
  RecordBytes,
  VCRC_WRONG,
} from './record-bytes.ts';

/** Fates of a packet: it leaves, perhaps twice; it leaves and is lost; it does not leave. */
export type Fate = 'sent' | 'copied' | 'lost' | 'nowhere';

/** Observes the bytes of packets at one end of a cable. */
export interface WireTap {
  /**
   * A packet has passed. Its bytes are valid during the call.
   * @param atPs when its last byte passed, since the process's epoch
   * @param note facts that the bytes do not show, or nothing
   */
  packetPassed(
    direction: 'inbound' | 'outbound',
    atPs: Picoseconds,
    bytes: Uint8Array,
    first: number,
    lengthBytes: number,
    note: string,
  ): void;
}

/** Bytes of a packet's record after the header, without the packet's own bytes. */
export function bodyBytesOf({ bodyBytes }: PacketShape, payloadBytes: number, flags: number): number {
  return payloadBytes + bodyBytes + ((flags & FLAG_GRH) !== 0 ? GRH_ROOM_BYTES : 0);
}

const rounded = (bytes: number): number => (bytes + 3) & ~3;

export class PacketObserver {
  readonly #area: RecordArea;
  readonly #codec: RecordBytes;
  readonly #latencyPs: Picoseconds;
  readonly #tailDelayPs: (packetBytes: number) => Picoseconds;
  /** The cable carries bytes. */
  readonly #isBytes: boolean;
  #tap: WireTap | undefined;
  /** No observer wants bytes. */
  isIdle: boolean;
  readonly #scratch = new Uint8Array(PACKET_BYTES_MAX);

  /**
   * @param latencyPs from this end until a record's time
   * @param tailDelayPs from a record's time until its packet's last byte
   */
  constructor(
    area: RecordArea,
    { packetForm }: WireConfig,
    latencyPs: Picoseconds,
    tailDelayPs: (packetBytes: number) => Picoseconds,
  ) {
    this.#area = area;
    this.#codec = new RecordBytes(area);
    this.#latencyPs = latencyPs;
    this.#tailDelayPs = tailDelayPs;
    this.#isBytes = packetForm === 'bytes';
    this.isIdle = !this.#isBytes;
  }

  set tap(tap: WireTap | undefined) {
    this.#tap = tap;
    this.isIdle = tap === undefined && !this.#isBytes;
  }

  /** Bytes of a record after its header, for this size of body and packet. */
  recordBytes(bodyBytes: number, packetBytes: number): number {
    return this.#isBytes ? rounded(bodyBytes) + packetBytes : bodyBytes;
  }

  /** A record of this end was filled in. @param remark on faults that do not change its bytes, or nothing */
  filled(offset: number, fate: Fate, remark: string): void {
    if (fate === 'nowhere') return;
    if (this.#tap !== undefined) {
      const packetBytes = this.#codec.pack(offset, this.#scratch, 0);
      if (!this.#isStruckHere(offset)) this.#damage(offset, this.#scratch, 0, packetBytes);
      const atPs = this.#area.floats[offset >> 3]! - this.#latencyPs + this.#tailDelayPs(packetBytes);
      this.#tap.packetPassed(
        'outbound',
        atPs,
        this.#scratch,
        0,
        packetBytes,
        joinedNotes(notes[fate], remark),
      );
    }
    if (!this.#isBytes || fate === 'lost') return;
    const place = this.#bytesPlace(offset);
    const packetBytes = this.#codec.pack(offset, this.#area.bytes, place);
    this.#damage(offset, this.#area.bytes, place, packetBytes);
  }

  /** A record has arrived. @returns PACKET_RIGHT, or its error */
  received(offset: number): number {
    const { words, floats, bytes } = this.#area;
    const flags = words[(offset >> 2) + WORD_PACKET_FLAGS]!;
    const isDamaged = verdictOf(flags) !== PACKET_RIGHT;
    const from = this.#isBytes ? bytes : this.#scratch;
    const place = this.#isBytes ? this.#bytesPlace(offset) : 0;
    const packetBytes = packetBytesIn(flags);
    if (!this.#isBytes) {
      this.#codec.pack(offset, from, 0);
      this.#damage(offset, from, 0, packetBytes);
    }
    if (this.#tap !== undefined) {
      const note = joinedNotes(
        isDamaged ? 'damaged on its way by a fault' : '',
        (flags & FLAG_CONGESTION) === 0 ? '' : MARKED_NOTE,
      );
      const atPs = floats[offset >> 3]! + this.#tailDelayPs(packetBytes);
      this.#tap.packetPassed('inbound', atPs, from, place, packetBytes, note);
    }
    if (this.#isBytes) return this.#codec.unpack(from, place, packetBytes, offset);
    return verdictOf(flags);
  }

  /** Whether the bit error occurs on this cable, after the packet has left this end. */
  #isStruckHere(offset: number): boolean {
    return (this.#area.words[(offset >> 2) + WORD_PACKET_FLAGS]! & FLAG_CORRUPTED) !== 0;
  }

  /** Flips the bit hit by a fault, on this cable or an earlier one. */
  #damage(offset: number, bytes: Uint8Array, at: number, packetBytes: number): void {
    const flags = this.#area.words[(offset >> 2) + WORD_PACKET_FLAGS]!;
    if (verdictOf(flags) === PACKET_RIGHT) return;
    const place = (flags >> DAMAGE_PLACE_SHIFT) & 3;
    damagePacket(bytes, at, packetBytes, place, (flags & FLAG_DAMAGED_INSIDE) !== 0);
  }

  /** Position of a packet's bytes in its record. */
  #bytesPlace(offset: number): number {
    const { words } = this.#area;
    const word = offset >> 2;
    const shape = packetShapes[words[word + WORD_OPCODE]!]!;
    const bodyBytes = bodyBytesOf(shape, words[word + WORD_PAYLOAD_BYTES]!, words[word + WORD_PACKET_FLAGS]!);
    return offset + PACKET_PAYLOAD_OFFSET + rounded(bodyBytes);
  }
}

/** Error of a packet of which only fields travel: the effect of a fault. */
export function verdictOf(flags: number): number {
  if ((flags & FLAG_DAMAGED_INSIDE) !== 0) return ICRC_WRONG;
  return (flags & FLAG_CORRUPTED) === 0 ? PACKET_RIGHT : VCRC_WRONG;
}

const notes: Readonly<Record<Fate, string>> = {
  sent: '',
  copied: 'a copy, made by a fault',
  lost: 'lost on its way by a fault',
  nowhere: '',
};
