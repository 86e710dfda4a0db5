/**
 * A packet's record (packet.ts) and its bytes on an InfiniBand link: each is built from the other. The record is the source of
 * the bytes: it holds everything that a packet carries, and {@link RecordBytes.pack} builds its bytes at any time.
 *
 *     LRH · [GRH] · BTH · [extended headers] · payload · pad · ICRC · VCRC
 *
 * Source: IBTA vol 1, chapters 7 to 9.
 */
import { addressAt, addressTopAt, putAddress, viewOf } from '../base/index.ts';
import { invariantCrc, variantCrc } from './crc.ts';
import {
  bth,
  deth,
  type ExtendedHeaderName,
  extendedHeaders,
  GRH_BYTES,
  grh,
  ICRC_BYTES,
  immDt,
  lrh,
  NEXT_HEADER_BTH,
  VCRC_BYTES,
} from './headers.ts';
import {
  bytesBeforeGrh,
  hasPayload,
  isKnownOpcode,
  isRequest,
  opcodeRow,
  operandBytes,
  transportHeaderBytes,
} from './opcodes.ts';
import {
  ADDRESS_TOP_SHIFT,
  FLAG_ACK_REQUEST,
  FLAG_CONGESTION,
  FLAG_GRH,
  FLAG_MIGRATED,
  FLAG_RETRANSMISSION,
  FLAG_SOLICITED,
  FLOAT_VIRTUAL_ADDRESS,
  grhPlace,
  PACKET_BYTES_SHIFT,
  PACKET_PAYLOAD_OFFSET,
  PAD_SHIFT,
  packetBytesIn,
  RESPONSE_BECN,
  SERVICE_LEVEL_SHIFT,
  VIRTUAL_LANE_SHIFT,
  virtualLaneOf,
  WORD_AETH,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_QKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_DESTINATION_QPN,
  WORD_DMA_LENGTH,
  WORD_IMMEDIATE,
  WORD_LIDS,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
  WORD_PSN,
  WORD_REQUEST_PKEY,
  WORD_RESPONSE_PKEY,
  WORD_RKEY,
  xrcethWord,
} from './packet.ts';

const {
  RETH: reth,
  AtomicETH: atomicEth,
  MaskedAtomicETH: maskedAtomicEth,
  AETH: aeth,
  AtomicAckETH: atomicAckEth,
  IETH: ieth,
  XRCETH: xrceth,
} = extendedHeaders;

/** MTUCap of a port: a packet with more payload is invalid. */
const PAYLOAD_BYTES_MAX = 4096;
/** The longest packet: payload and every possible header. */
export const PACKET_BYTES_MAX = PAYLOAD_BYTES_MAX + 128;
const IP_VERSION = 6;

const LNH_BTH = 2;
const LNH_GRH = 3;
const PKEY_MASK = 0xffff;
const SERVICE_LEVEL_MASK = 0xf;

/** Results of a receiving port's check of a packet's bytes. */
export const PACKET_RIGHT = 0;
export const VCRC_WRONG = 1;
export const ICRC_WRONG = 2;
/** Right CRCs, but invalid versions, next headers, lane or length. */
export const PACKET_MALFORMED = 3;

/** A channel's ring as its ends see it. */
export interface RecordArea {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
}

export class RecordBytes {
  readonly #area: RecordArea;

  constructor(area: RecordArea) {
    this.#area = area;
  }

  /** Writes the bytes of the packet whose record is at `offset`; returns their number. */
  pack(offset: number, into: Uint8Array, at: number): number {
    const { words } = this.#area;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    const flags = words[word + WORD_PACKET_FLAGS]!;
    const packetBytes = packetBytesIn(flags);
    const hasGrh = (flags & FLAG_GRH) !== 0;
    const view = viewOf(into);
    const end = at + packetBytes - VCRC_BYTES;
    const base = at + lrh.sizeBytes + (hasGrh ? GRH_BYTES : 0);
    this.#packRoute(word, opcode, flags, view, at, packetBytes);
    if (hasGrh) this.#copyGrh(offset, into, at + lrh.sizeBytes);
    this.packTransport(offset, into, base);
    view.setUint32(
      end - ICRC_BYTES,
      invariantCrc(into, at, end - ICRC_BYTES, hasGrh ? 'localWithGrh' : 'local'),
      true,
    );
    view.setUint16(end, variantCrc(into, at, end), true);
    return packetBytes;
  }

  /** Writes the bytes that no link layer changes: BTH, extended headers, payload and pad, at `base`. Returns the offset of the ICRC. */
  packTransport(offset: number, into: Uint8Array, base: number): number {
    const { words, bytes } = this.#area;
    const word = offset >> 2;
    const opcode = words[word + WORD_OPCODE]!;
    const flags = words[word + WORD_PACKET_FLAGS]!;
    const view = viewOf(into);
    this.#packBase(word, opcode, flags, view, base);
    this.#packHeaders(offset, opcode, view, base + bth.sizeBytes);
    const payloadBytes = words[word + WORD_PAYLOAD_BYTES]!;
    const from = offset + PACKET_PAYLOAD_OFFSET + operandBytes(opcode);
    const payloadEnd = base + transportHeaderBytes(opcode) + payloadBytes;
    into.set(bytes.subarray(from, from + payloadBytes), payloadEnd - payloadBytes);
    const icrcAt = payloadEnd + padCountIn(flags);
    into.fill(0, payloadEnd, icrcAt);
    return icrcAt;
  }

  #packRoute(
    word: number,
    opcode: number,
    flags: number,
    view: DataView,
    at: number,
    packetBytes: number,
  ): void {
    const { words } = this.#area;
    const lids = words[word + WORD_LIDS]!;
    const { fields } = lrh;
    view.setUint32(at, 0);
    view.setUint32(at + 4, 0);
    fields.virtualLane.set(view, at, virtualLaneOf(flags));
    fields.serviceLevel.set(
      view,
      at,
      (words[word + placeOfPkey(opcode)]! >> SERVICE_LEVEL_SHIFT) & SERVICE_LEVEL_MASK,
    );
    fields.linkNextHeader.set(view, at, (flags & FLAG_GRH) === 0 ? LNH_BTH : LNH_GRH);
    fields.destinationLid.set(view, at, lids & 0xffff);
    fields.packetLength.set(view, at, (packetBytes - VCRC_BYTES) >> 2);
    fields.sourceLid.set(view, at, lids >>> 16);
  }

  #packBase(word: number, opcode: number, flags: number, view: DataView, at: number): void {
    const { words } = this.#area;
    const { fields } = bth;
    for (let byte = 0; byte < bth.sizeBytes; byte += 4) view.setUint32(at + byte, 0);
    fields.opcode.set(view, at, opcode);
    fields.solicitedEvent.set(view, at, flags & FLAG_SOLICITED ? 1 : 0);
    fields.migrationRequest.set(view, at, flags & FLAG_MIGRATED ? 1 : 0);
    fields.padCount.set(view, at, padCountIn(flags));
    const place = placeOfPkey(opcode);
    fields.partitionKey.set(view, at, words[word + place]! & PKEY_MASK);
    fields.fecn.set(view, at, flags & FLAG_CONGESTION ? 1 : 0);
    const becn = place === WORD_RESPONSE_PKEY ? words[word + place]! & RESPONSE_BECN : 0;
    fields.becn.set(view, at, becn === 0 ? 0 : 1);
    fields.destinationQp.set(view, at, words[word + WORD_DESTINATION_QPN]!);
    fields.ackRequest.set(view, at, flags & FLAG_ACK_REQUEST ? 1 : 0);
    fields.psn.set(view, at, words[word + WORD_PSN]!);
  }

  #packHeaders(offset: number, opcode: number, view: DataView, from: number): void {
    let at = from;
    for (const name of opcodeRow(opcode)?.headers ?? []) {
      this.#packHeader(name, offset, view, at);
      at += extendedHeaders[name].sizeBytes;
    }
  }

  #packHeader(name: ExtendedHeaderName, offset: number, view: DataView, at: number): void {
    const { words } = this.#area;
    const word = offset >> 2;
    switch (name) {
      case 'RETH':
        this.#packAddress(offset, view, at);
        reth.fields.dmaLength.set(view, at, words[word + WORD_DMA_LENGTH]!);
        return;
      case 'AtomicETH':
        this.#packAddress(offset, view, at);
        this.#packOperand(word, 0, view, at + atomicEth.fields.swapOrAdd.wordOffset);
        this.#packOperand(word, 2, view, at + atomicEth.fields.compare.wordOffset);
        return;
      case 'MaskedAtomicETH':
        this.#packAddress(offset, view, at);
        this.#packOperand(word, 0, view, at + maskedAtomicEth.fields.swap.wordOffset);
        this.#packOperand(word, 2, view, at + maskedAtomicEth.fields.compare.wordOffset);
        this.#packOperand(word, 4, view, at + maskedAtomicEth.fields.swapMask.wordOffset);
        this.#packOperand(word, 6, view, at + maskedAtomicEth.fields.compareMask.wordOffset);
        return;
      case 'AtomicAckETH':
        this.#packOperand(word, 0, view, at + atomicAckEth.fields.originalData.wordOffset);
        return;
      case 'AETH':
        view.setInt32(at, words[word + WORD_AETH]!);
        return;
      case 'DETH':
        view.setUint32(at + deth.fields.sourceQp.wordOffset, 0);
        deth.fields.queueKey.set(view, at, words[word + WORD_DATAGRAM_QKEY]!);
        deth.fields.sourceQp.set(view, at, words[word + WORD_DATAGRAM_SOURCE_QPN]!);
        return;
      case 'ImmDt':
        immDt.fields.immediate.set(view, at, words[word + WORD_IMMEDIATE]!);
        return;
      case 'IETH':
        ieth.fields.rKey.set(view, at, words[word + WORD_IMMEDIATE]!);
        return;
      case 'XRCETH':
        view.setUint32(at, 0);
        xrceth.fields.sharedReceiveQueue.set(view, at, words[this.#xrcethWord(offset)]!);
        return;
      default:
        // The headers of services without records are zero.
        for (let byte = 0; byte < extendedHeaders[name].sizeBytes; byte += 4) view.setUint32(at + byte, 0);
    }
  }

  /** Virtual address and R_Key, the first fields of RETH and AtomicETH. */
  #packAddress(offset: number, view: DataView, at: number): void {
    const address = this.#area.floats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS]!;
    const top = this.#area.words[(offset >> 2) + WORD_REQUEST_PKEY]! >>> ADDRESS_TOP_SHIFT;
    putAddress(view, at, address, top);
    reth.fields.rKey.set(view, at, this.#area.words[(offset >> 2) + WORD_RKEY]!);
  }

  /** A 64-bit operand: two words of the record, the low one first. */
  #packOperand(word: number, index: number, view: DataView, at: number): void {
    const { words } = this.#area;
    const from = word + (PACKET_PAYLOAD_OFFSET >> 2) + index;
    view.setInt32(at, words[from + 1]!);
    view.setInt32(at + 4, words[from]!);
  }

  #copyGrh(offset: number, into: Uint8Array, at: number): void {
    const from = this.grhPlaceIn(offset);
    into.set(this.#area.bytes.subarray(from, from + GRH_BYTES), at);
  }

  /**
   * Fills in the record at `offset` from a packet's bytes, if they are right. Everything is overwritten except the time and
   * size that a channel gives each record, and the retransmission flag, which the bytes do not contain.
   * @returns PACKET_RIGHT, or the error: the record is then unchanged
   */
  unpack(from: Uint8Array, at: number, packetBytes: number, offset: number): number {
    const end = at + packetBytes - VCRC_BYTES;
    const view = viewOf(from);
    if (view.getUint16(end, true) !== variantCrc(from, at, end)) return VCRC_WRONG;
    if (!this.#isRouted(view, at, packetBytes, offset)) return PACKET_MALFORMED;
    const hasGrh = lrh.fields.linkNextHeader.get(view, at) === LNH_GRH;
    const icrcAt = end - ICRC_BYTES;
    if (view.getUint32(icrcAt, true) !== invariantCrc(from, at, icrcAt, hasGrh ? 'localWithGrh' : 'local'))
      return ICRC_WRONG;
    const base = at + lrh.sizeBytes + (hasGrh ? GRH_BYTES : 0);
    if (!this.unpackTransport(from, base, icrcAt, offset)) return PACKET_MALFORMED;
    this.#unpackRoute(view, at, packetBytes, offset);
    if (hasGrh) {
      const grh = at + lrh.sizeBytes;
      this.#area.bytes.set(from.subarray(grh, grh + GRH_BYTES), this.grhPlaceIn(offset));
    }
    return PACKET_RIGHT;
  }

  /**
   * Fills in the record from BTH, extended headers and payload, which end before the ICRC. The link's fields become zero.
   * @returns false for an invalid packet: the record is then unchanged
   */
  unpackTransport(from: Uint8Array, base: number, icrcAt: number, offset: number): boolean {
    const view = viewOf(from);
    const opcode = bth.fields.opcode.get(view, base);
    const payload = base + transportHeaderBytes(opcode);
    const payloadBytes = icrcAt - payload - bth.fields.padCount.get(view, base);
    const payloadMax = isKnownOpcode(opcode) && !hasPayload(opcode) ? 0 : PAYLOAD_BYTES_MAX;
    // On an InfiniBand link its length determines this; for RoCE nothing else does (9.2).
    const isInDwords = ((icrcAt - payload) & 3) === 0;
    const isTransport = bth.fields.transportVersion.get(view, base) === 0 && isInDwords;
    if (!isTransport || payloadBytes < 0 || payloadBytes > payloadMax) return false;
    this.#unpackBase(view, base, payloadBytes, offset);
    this.#unpackHeaders(view, base + bth.sizeBytes, opcode, offset);
    const to = offset + PACKET_PAYLOAD_OFFSET + operandBytes(opcode);
    this.#area.bytes.set(from.subarray(payload, payload + payloadBytes), to);
    return true;
  }

  /** Position of the GRH in a record whose opcode and payload are present. */
  grhPlaceIn(offset: number): number {
    const { words } = this.#area;
    const word = offset >> 2;
    return grhPlace(offset, bytesBeforeGrh(words[word + WORD_OPCODE]!, words[word + WORD_PAYLOAD_BYTES]!));
  }

  /**
   * Checks of the link and of global routes: version, lane (that of the packet's buffer), next header, length; version and next
   * header of a GRH (7.7, 8.3, 9.6.1.1).
   */
  #isRouted(view: DataView, at: number, packetBytes: number, offset: number): boolean {
    const { linkVersion, virtualLane, linkNextHeader, packetLength } = lrh.fields;
    const lane = virtualLaneOf(this.#area.words[(offset >> 2) + WORD_PACKET_FLAGS]!);
    const next = linkNextHeader.get(view, at);
    const routeBytes = lrh.sizeBytes + (next === LNH_GRH ? GRH_BYTES : 0);
    if (
      linkVersion.get(view, at) !== 0 ||
      virtualLane.get(view, at) !== lane ||
      packetLength.get(view, at) * 4 + VCRC_BYTES !== packetBytes ||
      next < LNH_BTH ||
      packetBytes < routeBytes + bth.sizeBytes + ICRC_BYTES + VCRC_BYTES
    )
      return false;
    const route = at + lrh.sizeBytes;
    return (
      next !== LNH_GRH ||
      (grh.fields.ipVersion.get(view, route) === IP_VERSION &&
        grh.fields.nextHeader.get(view, route) === NEXT_HEADER_BTH)
    );
  }

  #unpackRoute(view: DataView, at: number, packetBytes: number, offset: number): void {
    const { words } = this.#area;
    const word = offset >> 2;
    words[word + WORD_PACKET_FLAGS]! |=
      (lrh.fields.linkNextHeader.get(view, at) === LNH_GRH ? FLAG_GRH : 0) |
      (lrh.fields.virtualLane.get(view, at) << VIRTUAL_LANE_SHIFT) |
      (packetBytes << PACKET_BYTES_SHIFT);
    words[word + WORD_LIDS] =
      (lrh.fields.sourceLid.get(view, at) << 16) | lrh.fields.destinationLid.get(view, at);
    words[word + placeOfPkey(words[word + WORD_OPCODE]!)]! |=
      lrh.fields.serviceLevel.get(view, at) << SERVICE_LEVEL_SHIFT;
  }

  #unpackBase(view: DataView, base: number, payloadBytes: number, offset: number): void {
    const { words } = this.#area;
    const { fields } = bth;
    const word = offset >> 2;
    const wasSentBefore = words[word + WORD_PACKET_FLAGS]! & FLAG_RETRANSMISSION;
    for (let own = WORD_OPCODE; own < PACKET_PAYLOAD_OFFSET >> 2; own++) words[word + own] = 0;
    const opcode = fields.opcode.get(view, base);
    words[word + WORD_OPCODE] = opcode;
    words[word + WORD_DESTINATION_QPN] = fields.destinationQp.get(view, base);
    words[word + WORD_PSN] = fields.psn.get(view, base);
    words[word + WORD_PACKET_FLAGS] =
      wasSentBefore |
      (fields.ackRequest.get(view, base) !== 0 ? FLAG_ACK_REQUEST : 0) |
      (fields.solicitedEvent.get(view, base) !== 0 ? FLAG_SOLICITED : 0) |
      (fields.migrationRequest.get(view, base) !== 0 ? FLAG_MIGRATED : 0) |
      (fields.fecn.get(view, base) !== 0 ? FLAG_CONGESTION : 0) |
      (fields.padCount.get(view, base) << PAD_SHIFT);
    words[word + WORD_PAYLOAD_BYTES] = payloadBytes;
    const place = placeOfPkey(opcode);
    const becn = place === WORD_RESPONSE_PKEY && fields.becn.get(view, base) !== 0 ? RESPONSE_BECN : 0;
    words[word + place] = fields.partitionKey.get(view, base) | becn;
  }

  #unpackHeaders(view: DataView, from: number, opcode: number, offset: number): void {
    let at = from;
    for (const name of opcodeRow(opcode)?.headers ?? []) {
      this.#unpackHeader(name, view, at, offset);
      at += extendedHeaders[name].sizeBytes;
    }
  }

  #unpackHeader(name: ExtendedHeaderName, view: DataView, at: number, offset: number): void {
    const { words } = this.#area;
    const word = offset >> 2;
    switch (name) {
      case 'RETH':
        this.#unpackAddress(view, at, offset);
        words[word + WORD_DMA_LENGTH] = reth.fields.dmaLength.get(view, at);
        return;
      case 'AtomicETH':
        this.#unpackAddress(view, at, offset);
        this.#unpackOperand(view, at + atomicEth.fields.swapOrAdd.wordOffset, word, 0);
        this.#unpackOperand(view, at + atomicEth.fields.compare.wordOffset, word, 2);
        return;
      case 'MaskedAtomicETH':
        this.#unpackAddress(view, at, offset);
        this.#unpackOperand(view, at + maskedAtomicEth.fields.swap.wordOffset, word, 0);
        this.#unpackOperand(view, at + maskedAtomicEth.fields.compare.wordOffset, word, 2);
        this.#unpackOperand(view, at + maskedAtomicEth.fields.swapMask.wordOffset, word, 4);
        this.#unpackOperand(view, at + maskedAtomicEth.fields.compareMask.wordOffset, word, 6);
        return;
      case 'AtomicAckETH':
        this.#unpackOperand(view, at + atomicAckEth.fields.originalData.wordOffset, word, 0);
        return;
      case 'AETH':
        words[word + WORD_AETH] = aeth.fields.syndrome.get(view, at) << 24;
        words[word + WORD_AETH]! |= aeth.fields.messageSequenceNumber.get(view, at);
        return;
      case 'DETH':
        words[word + WORD_DATAGRAM_QKEY] = deth.fields.queueKey.get(view, at);
        words[word + WORD_DATAGRAM_SOURCE_QPN] = deth.fields.sourceQp.get(view, at);
        return;
      case 'ImmDt':
        words[word + WORD_IMMEDIATE] = immDt.fields.immediate.get(view, at);
        return;
      case 'IETH':
        words[word + WORD_IMMEDIATE] = ieth.fields.rKey.get(view, at);
        return;
      case 'XRCETH':
        words[this.#xrcethWord(offset)] = xrceth.fields.sharedReceiveQueue.get(view, at);
        return;
      default:
    }
  }

  /** Returns the index of the XRCETH in a record whose opcode and payload bytes are filled in. */
  #xrcethWord(offset: number): number {
    const { words } = this.#area;
    const word = offset >> 2;
    return xrcethWord(offset, operandBytes(words[word + WORD_OPCODE]!) + words[word + WORD_PAYLOAD_BYTES]!);
  }

  #unpackAddress(view: DataView, at: number, offset: number): void {
    this.#area.floats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS] = addressAt(view, at);
    this.#area.words[(offset >> 2) + WORD_REQUEST_PKEY]! |= addressTopAt(view, at) << ADDRESS_TOP_SHIFT;
    this.#area.words[(offset >> 2) + WORD_RKEY] = reth.fields.rKey.get(view, at);
  }

  #unpackOperand(view: DataView, at: number, word: number, index: number): void {
    const { words } = this.#area;
    const to = word + (PACKET_PAYLOAD_OFFSET >> 2) + index;
    words[to + 1] = view.getInt32(at);
    words[to] = view.getInt32(at + 4);
  }
}

const padCountIn = (flags: number): number => (flags >> PAD_SHIFT) & 3;

/** Word of P_Key and service level: a word that the packet's direction or service does not use (packet.ts). */
export function placeOfPkey(opcode: number): number {
  if ((opcode & SERVICE_MASK) === DATAGRAM_SERVICE) return WORD_DATAGRAM_PKEY;
  return isRequest(opcode) ? WORD_REQUEST_PKEY : WORD_RESPONSE_PKEY;
}

const SERVICE_MASK = 0xe0;
const DATAGRAM_SERVICE = 0x60;
