/**
 * A packet as a record of a wire channel (see sim/channel.ts). Offsets from the record's start:
 *
 *     +0   f64  arrival, ps: the last symbol      +32  f64  virtual address (RETH, AtomicETH)
 *     +8   i32  record bytes                      +40  i32  R_Key
 *     +12  i32  kind                              +44  i32  DMA length
 *     +16  i32  BTH opcode                        +48  i32  AETH: syndrome << 24 | MSN
 *     +20  i32  destination QPN                   +52  i32  immediate (or R_Key of IETH, source QPN of DETH)
 *     +24  i32  PSN                               +56  i32  payload bytes
 *     +28  i32  flags                             +60  i32  LIDs: source << 16 | destination
 *     +64  payload; the operands of an atomic (swap or add, then compare) or the original value of its answer come
 *          first, as two or one little-endian 64-bit numbers, and count as header bytes
 *     then the GRH, if there is one, at the next multiple of 4, byte for byte (headers.ts)
 *
 * A datagram (UD) uses the words of RETH and AETH for its own headers: WORD_DATAGRAM_ below. The P_Key of a connection's packet
 * stands in a word of which its direction has no use: WORD_REQUEST_PKEY and WORD_RESPONSE_PKEY.
 *
 * Flags: FLAG_ below; bits 8 and 9 pad count, 12 to 15 virtual lane, 16 to 31 packet bytes from LRH to VCRC.
 */
import { RECORD_HEADER_BYTES } from '../sim/channel.ts';

/** Kinds of record on a wire channel. */
export const PACKET = 1;
export const FLOW_CONTROL = 2;
export const LINK_TRAINING = 3;
/** Never was on the wire: written by a port whose link is down, and skipped by the reader. */
export const DISCARDED = 4;

/** Places in a record, as indices into `words` from `offset >> 2`. */
export const WORD_OPCODE = 4;
export const WORD_DESTINATION_QPN = 5;
export const WORD_PSN = 6;
export const WORD_PACKET_FLAGS = 7;
export const WORD_RKEY = 10;
export const WORD_DMA_LENGTH = 11;
export const WORD_AETH = 12;
export const WORD_IMMEDIATE = 13;
export const WORD_PAYLOAD_BYTES = 14;
export const WORD_LIDS = 15;
/** P_Key of a connection's packet: a request has no AETH, a response no immediate. */
export const WORD_REQUEST_PKEY = WORD_AETH;
export const WORD_RESPONSE_PKEY = WORD_IMMEDIATE;
/** Of a datagram: P_Key and, in bits 16 to 19, service level; Q_Key and source QPN of the DETH. */
export const WORD_DATAGRAM_PKEY = 8;
export const WORD_DATAGRAM_QKEY = WORD_RKEY;
export const WORD_DATAGRAM_SOURCE_QPN = WORD_DMA_LENGTH;
export const SERVICE_LEVEL_SHIFT = 16;
/** Place in a record, as an index into `floats` from `offset >> 3`. */
export const FLOAT_VIRTUAL_ADDRESS = 4;
/** Place of the payload (or operands), in bytes from `offset`. */
export const PACKET_PAYLOAD_OFFSET = RECORD_HEADER_BYTES;

export const FLAG_ACK_REQUEST = 1 << 0;
export const FLAG_SOLICITED = 1 << 1;
/** The packet has a GRH. */
export const FLAG_GRH = 1 << 2;
/** Sent before: counted apart. Not a bit of the packet. */
export const FLAG_RETRANSMISSION = 1 << 3;
/** Set by a fault: a bit error on the cable. The receiving port finds a wrong VCRC and discards the packet. */
export const FLAG_CORRUPTED = 1 << 4;

/** A GRH behind the payload, and the most that aligning it costs. */
export const GRH_ROOM_BYTES = 40 + 3;
/** Place of the GRH, in bytes from the record's start, behind so many bytes of operands and payload. */
export const grhPlace = (offset: number, bytesBefore: number): number =>
  offset + PACKET_PAYLOAD_OFFSET + ((bytesBefore + 3) & ~3);

export const PAD_SHIFT = 8;
export const VIRTUAL_LANE_SHIFT = 12;
export const PACKET_BYTES_SHIFT = 16;

export const virtualLaneOf = (flags: number): number => (flags >> VIRTUAL_LANE_SHIFT) & 0xf;
export const packetBytesIn = (flags: number): number => flags >>> PACKET_BYTES_SHIFT;

/** The lane of subnet management packets: without flow control (7.9.1). */
export const MANAGEMENT_LANE = 15;

/** Words of a FLOW_CONTROL record, as of the flow control packet of 7.9.4.1. */
export const WORD_FC_VIRTUAL_LANE = WORD_OPCODE;
export const WORD_FC_TOTAL_BLOCKS_SENT = WORD_DESTINATION_QPN;
export const WORD_FC_CREDIT_LIMIT = WORD_PSN;
/** Word of a LINK_TRAINING record. */
export const WORD_TRAINING_STEP = WORD_OPCODE;
