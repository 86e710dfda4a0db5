/**
 * A packet as a record of a wire channel (see sim/channel.ts), declared field by field: the transport headers that a receiver
 * needs, unpacked. The payload follows the record. Before the payload are the operands of an atomic (swap or add, compare,
 * masks of both) or the original value of its response, as little-endian 64-bit numbers, counted as header bytes. After it
 * follow, each at the next multiple of 4 if present, the XRCETH of an XRC request as a word, and the GRH, byte for byte
 * (headers.ts).
 *
 * A packet of an Ethernet port (RoCE) always has the 40 bytes of the GRH: a GRH, an IPv6 header, or 20 zeros and an IPv4
 * header. The rest of its addresses follows, {@link roceRoute}.
 *
 * A datagram (UD) uses the words of RETH and AETH for its own headers. P_Key and service level of a connection's packet use a
 * word that its direction does not need: a request has no AETH, a response no immediate.
 */
import { bits8, bits32, bytes, f64, floatIndexOf, layout, u16, u32, wordIndexOf } from '../base/index.ts';
import { RECORD_HEADER_BYTES, recordHeaderFields } from '../sim/index.ts';

/** Kinds of record on a wire channel. */
export const PACKET = 1;
export const FLOW_CONTROL = 2;
export const LINK_TRAINING = 3;
/** Never on the wire: written by a port whose link is down, and skipped by the reader. */
export const DISCARDED = 4;

const header = {
  sizeBytes: RECORD_HEADER_BYTES,
  byteOrder: 'little',
  source: 'IBTA vol 1, chapters 7 to 9',
} as const;

/** Fields of all packets' records. */
const packetFields = {
  ...recordHeaderFields,
  opcode: u32(0x10, 'BTH'),
  destinationQpn: u32(0x14),
  psn: u32(0x18),
  hasAckRequest: bits32(0x1c, 0, 0),
  isSolicited: bits32(0x1c, 1, 1),
  hasGrh: bits32(0x1c, 2, 2),
  isRetransmission: bits32(0x1c, 3, 3, 'sent before: counted apart. Not a bit of the packet'),
  isCorrupted: bits32(0x1c, 4, 4, 'set by a fault: a bit error on the cable'),
  isMigrated: bits32(0x1c, 5, 5, 'BTH MigReq'),
  isCongested: bits32(0x1c, 6, 6, 'BTH FECN'),
  isDamagedInside: bits32(0x1c, 7, 7, 'the bit error came before the last VCRC: only the ICRC is wrong'),
  padCount: bits32(0x1c, 9, 8),
  damagePlace: bits32(0x1c, 11, 10, 'where the bit error strikes: damage.ts'),
  virtualLane: bits32(0x1c, 15, 12),
  packetBytes: bits32(0x1c, 31, 16, 'from LRH to VCRC'),
  payloadBytes: u32(0x38),
  sourceLid: bits32(0x3c, 31, 16),
  destinationLid: bits32(0x3c, 15, 0),
} as const;

/** Record of a connection's request. */
export const requestRecord = layout('request packet record', header, {
  ...packetFields,
  virtualAddress: f64(0x20, 'RETH, AtomicETH, without its top'),
  rKey: u32(0x28),
  dmaLength: u32(0x2c),
  partitionKey: bits32(0x30, 15, 0),
  serviceLevel: bits32(0x30, 19, 16),
  virtualAddressTop: bits32(0x30, 31, 20, 'see base/address.ts'),
  immediate: u32(0x34, 'or the R_Key of IETH'),
});

/** Record of a connection's response. */
export const responseRecord = layout('response packet record', header, {
  ...packetFields,
  syndrome: bits32(0x30, 31, 24, 'AETH'),
  messageSequenceNumber: bits32(0x30, 23, 0),
  partitionKey: bits32(0x34, 15, 0),
  serviceLevel: bits32(0x34, 19, 16),
  isCongestedBack: bits32(0x34, 20, 20, 'BTH BECN; a request has none'),
});

/** Record of a datagram. */
export const datagramRecord = layout('datagram record', header, {
  ...packetFields,
  partitionKey: bits32(0x20, 15, 0),
  serviceLevel: bits32(0x20, 19, 16),
  queueKey: u32(0x28, 'DETH'),
  sourceQpn: u32(0x2c),
  immediate: u32(0x34),
});

/** After the GRH of an Ethernet port's packet: the other fields of its frame before the BTH, without lengths and types. */
export const roceRoute = layout(
  'RoCE route',
  { sizeBytes: 20, byteOrder: 'big', source: 'IBTA vol 1, annexes A16 and A17' },
  {
    destinationMac: bytes(0x00, 6),
    sourceMac: bytes(0x06, 6),
    vlanTag: u16(0x0c, 'control information, IEEE 802.1Q'),
    hasTag: bits8(0x0e, 0, 0),
    isRoutable: bits8(0x0e, 1, 1, 'version 2: by IP and UDP'),
    udpSourcePort: u16(0x10),
  },
);

/** Record of a flow control packet, 7.9.4.1. */
export const flowControlRecord = layout('flow control record', header, {
  ...recordHeaderFields,
  virtualLane: u32(0x10),
  totalBlocksSent: u32(0x14),
  creditLimit: u32(0x18),
});

/** Record of a step of link training. */
export const trainingRecord = layout('link training record', header, {
  ...recordHeaderFields,
  step: u32(0x10),
});

const { fields: request } = requestRecord;
const { fields: response } = responseRecord;
const { fields: datagram } = datagramRecord;
const { fields: flowControl } = flowControlRecord;

/** Positions in a record, as indices into `words` from `offset >> 2`. */
export const WORD_OPCODE = wordIndexOf(request.opcode);
export const WORD_DESTINATION_QPN = wordIndexOf(request.destinationQpn);
export const WORD_PSN = wordIndexOf(request.psn);
export const WORD_PACKET_FLAGS = wordIndexOf(request.hasAckRequest);
export const WORD_RKEY = wordIndexOf(request.rKey);
export const WORD_DMA_LENGTH = wordIndexOf(request.dmaLength);
export const WORD_AETH = wordIndexOf(response.syndrome);
export const WORD_IMMEDIATE = wordIndexOf(request.immediate);
export const WORD_PAYLOAD_BYTES = wordIndexOf(request.payloadBytes);
export const WORD_LIDS = wordIndexOf(request.sourceLid);
export const WORD_REQUEST_PKEY = wordIndexOf(request.partitionKey);
export const WORD_RESPONSE_PKEY = wordIndexOf(response.partitionKey);
/** BTH BECN, in the word of a response's P_Key. */
export const RESPONSE_BECN = response.isCongestedBack.mask;
/** Words of a datagram: P_Key and service level; Q_Key and source QPN of the DETH. */
export const WORD_DATAGRAM_PKEY = wordIndexOf(datagram.partitionKey);
export const WORD_DATAGRAM_QKEY = wordIndexOf(datagram.queueKey);
export const WORD_DATAGRAM_SOURCE_QPN = wordIndexOf(datagram.sourceQpn);
export const SERVICE_LEVEL_SHIFT = datagram.serviceLevel.shift;
/**
 * Shift, in the word of a request's P_Key, of the top of the address of a RETH or AtomicETH, whose lower part is a
 * float.
 */
export const ADDRESS_TOP_SHIFT = request.virtualAddressTop.shift;
/** Position in a record, as an index into `floats` from `offset >> 3`. */
export const FLOAT_VIRTUAL_ADDRESS = floatIndexOf(request.virtualAddress);
/** Offset of the payload (or operands) from `offset`, in bytes. */
export const PACKET_PAYLOAD_OFFSET = RECORD_HEADER_BYTES;

export const FLAG_ACK_REQUEST = request.hasAckRequest.mask;
export const FLAG_SOLICITED = request.isSolicited.mask;
/** The packet has a GRH. */
export const FLAG_GRH = request.hasGrh.mask;
/** A retransmission: counted separately. Not a bit of the packet. */
export const FLAG_RETRANSMISSION = request.isRetransmission.mask;
/** Flag set by a fault: a bit error on this cable. The receiving port finds a wrong VCRC and discards the packet. */
export const FLAG_CORRUPTED = request.isCorrupted.mask;
/**
 * A switch has damaged the packet and sent a right VCRC over it: only the ICRC is wrong. With FLAG_CORRUPTED the fault occurred on
 * this cable; without it on an earlier one, from which a switch passed the packet on.
 */
export const FLAG_DAMAGED_INSIDE = request.isDamagedInside.mask;
/** BTH MigReq: the sender's path is migrated, as is that of a QP that never had another. */
export const FLAG_MIGRATED = request.isMigrated.mask;
/** BTH FECN: marked on the way because of congestion. */
export const FLAG_CONGESTION = request.isCongested.mask;
export const DAMAGE_PLACE_SHIFT = request.damagePlace.shift;
/** Bits of the damage's place; they mean nothing without damage. */
export const DAMAGE_PLACE = request.damagePlace.mask;

/** Bytes of a GRH after the payload, and the most for its alignment. */
export const GRH_ROOM_BYTES = 40 + 3;
/** Bytes of an XRCETH after the payload, and the most for its alignment. */
export const XRCETH_ROOM_BYTES = 4 + 3;
/** Offset of the GRH from the record's start in bytes, after this many bytes of operands, payload and XRCETH. */
export const grhPlace = (offset: number, bytesBefore: number): number =>
  offset + PACKET_PAYLOAD_OFFSET + ((bytesBefore + 3) & ~3);
/** Position of the XRCETH, after this many bytes of operands and payload, as an index into `words`. */
export const xrcethWord = (offset: number, bytesBefore: number): number => grhPlace(offset, bytesBefore) >> 2;

/** Position of RoCE's route, after the GRH at `grh`. */
export const roceRoutePlace = (grh: number): number => grh + 40;

export const PAD_SHIFT = request.padCount.shift;
export const VIRTUAL_LANE_SHIFT = request.virtualLane.shift;
export const PACKET_BYTES_SHIFT = request.packetBytes.shift;

export const virtualLaneOf = (flags: number): number => (flags >> VIRTUAL_LANE_SHIFT) & 0xf;
export const isDamagedInside = (flags: number): boolean => (flags & FLAG_DAMAGED_INSIDE) !== 0;
export const packetBytesIn = (flags: number): number => flags >>> PACKET_BYTES_SHIFT;

/** The lane of subnet management packets: without flow control (7.9.1). */
export const MANAGEMENT_LANE = 15;

/** Words of a FLOW_CONTROL record. */
export const WORD_FC_VIRTUAL_LANE = wordIndexOf(flowControl.virtualLane);
export const WORD_FC_TOTAL_BLOCKS_SENT = wordIndexOf(flowControl.totalBlocksSent);
export const WORD_FC_CREDIT_LIMIT = wordIndexOf(flowControl.creditLimit);
/** Word of a LINK_TRAINING record. */
export const WORD_TRAINING_STEP = wordIndexOf(trainingRecord.fields.step);
