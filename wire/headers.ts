/**
 * The headers of an InfiniBand packet, bit for bit, and their sizes.
 *
 *     LRH · [GRH] · BTH · [extended headers] · payload · pad · ICRC · VCRC
 *
 * Packets travel the modelled wire as records (packet.ts), not as these bytes; the sizes derived from here are what
 * the link carries. Source: InfiniBand Architecture Specification, volume 1, release 1.3: LRH 7.7, GRH 8.3, the others
 * chapter 9 (9.2 to 9.5).
 */
import { bits8, bits16, bits32, bytes, layout, reserved, u8, u16, u32, u64 } from '../base/index.ts';

/** Local route header, 7.7. */
export const lrh = layout(
  'LRH',
  { sizeBytes: 8, byteOrder: 'big', source: 'IBTA vol 1, 7.7' },
  {
    virtualLane: bits8(0, 7, 4),
    linkVersion: bits8(0, 3, 0),
    serviceLevel: bits8(1, 7, 4),
    reserved1: reserved(bits8(1, 3, 2)),
    linkNextHeader: bits8(1, 1, 0, '2: BTH follows, 3: GRH follows'),
    destinationLid: u16(2),
    reserved4: reserved(bits16(4, 15, 11)),
    packetLength: bits16(4, 10, 0, 'dwords from LRH to ICRC'),
    sourceLid: u16(6),
  },
);

/** Global route header, 8.3. */
export const grh = layout(
  'GRH',
  { sizeBytes: 40, byteOrder: 'big', source: 'IBTA vol 1, 8.3' },
  {
    ipVersion: bits32(0, 31, 28, '6'),
    trafficClass: bits32(0, 27, 20),
    flowLabel: bits32(0, 19, 0),
    payloadLength: u16(4, 'bytes behind the GRH, ICRC included'),
    nextHeader: u8(6, '0x1b: BTH'),
    hopLimit: u8(7),
    sourceGid: bytes(8, 16),
    destinationGid: bytes(24, 16),
  },
);

/** Base transport header, 9.2. */
export const bth = layout(
  'BTH',
  { sizeBytes: 12, byteOrder: 'big', source: 'IBTA vol 1, 9.2' },
  {
    opcode: u8(0),
    solicitedEvent: bits8(1, 7, 7),
    migrationRequest: bits8(1, 6, 6),
    padCount: bits8(1, 5, 4),
    transportVersion: bits8(1, 3, 0),
    partitionKey: u16(2),
    fecn: bits32(4, 31, 31, 'forward congestion notification, annex A10'),
    becn: bits32(4, 30, 30, 'backward congestion notification, annex A10'),
    reserved4: reserved(bits32(4, 29, 24)),
    destinationQp: bits32(4, 23, 0),
    ackRequest: bits32(8, 31, 31),
    reserved8: reserved(bits32(8, 30, 24)),
    psn: bits32(8, 23, 0),
  },
);

/** Datagram extended transport header, 9.3.2. */
export const deth = layout(
  'DETH',
  { sizeBytes: 8, byteOrder: 'big', source: 'IBTA vol 1, 9.3.2' },
  { queueKey: u32(0), reserved4: reserved(bits32(4, 31, 24)), sourceQp: bits32(4, 23, 0) },
);

/** Reliable datagram extended transport header, 9.3.1: the end-to-end context. */
const rdeth = layout(
  'RDETH',
  { sizeBytes: 4, byteOrder: 'big', source: 'IBTA vol 1, 9.3.1' },
  { reserved0: reserved(bits32(0, 31, 24)), endToEndContext: bits32(0, 23, 0) },
);

/** XRC extended transport header, annex A14: the shared receive queue of a request. */
const xrceth = layout(
  'XRCETH',
  { sizeBytes: 4, byteOrder: 'big', source: 'IBTA vol 1, annex A14' },
  { reserved0: reserved(bits32(0, 31, 24)), sharedReceiveQueue: bits32(0, 23, 0) },
);

/** Payload of a congestion notification packet after the BTH, annex A17: reserved. */
const congestionNotification = layout(
  'CNP',
  { sizeBytes: 16, byteOrder: 'big', source: 'IBTA vol 1, annex A17' },
  { reservedBytes: bytes(0, 16) },
);

/** RDMA extended transport header, 9.3.3. */
const reth = layout(
  'RETH',
  { sizeBytes: 16, byteOrder: 'big', source: 'IBTA vol 1, 9.3.3' },
  { virtualAddress: u64(0), rKey: u32(8), dmaLength: u32(12) },
);

/** Atomic extended transport header, 9.3.4. FETCH_ADD carries its addend in the swap field; a masked FETCH_ADD carries its boundaries after it. */
const atomicEth = layout(
  'AtomicETH',
  { sizeBytes: 28, byteOrder: 'big', source: 'IBTA vol 1, 9.3.4' },
  { virtualAddress: u64(0), rKey: u32(8), swapOrAdd: u64(12), compare: u64(20) },
);

/**
 * The same for a masked compare and swap. It is published that the further operands are in an extended transport header, but
 * not their offsets: here they are in the order of the WQE.
 */
const maskedAtomicEth = layout(
  'MaskedAtomicETH',
  { sizeBytes: 44, byteOrder: 'big', source: 'sheet 6.3' },
  {
    virtualAddress: u64(0),
    rKey: u32(8),
    swap: u64(12),
    compare: u64(20),
    swapMask: u64(28),
    compareMask: u64(36),
  },
);

/** Acknowledge extended transport header, 9.3.5. */
const aeth = layout(
  'AETH',
  { sizeBytes: 4, byteOrder: 'big', source: 'IBTA vol 1, 9.3.5' },
  { syndrome: bits32(0, 31, 24), messageSequenceNumber: bits32(0, 23, 0) },
);

/** Atomic acknowledge extended transport header, 9.5.3. */
const atomicAckEth = layout(
  'AtomicAckETH',
  { sizeBytes: 8, byteOrder: 'big', source: 'IBTA vol 1, 9.5.3' },
  { originalData: u64(0) },
);

/** Immediate data, 9.3.6. */
export const immDt = layout(
  'ImmDt',
  { sizeBytes: 4, byteOrder: 'big', source: 'IBTA vol 1, 9.3.6' },
  { immediate: u32(0) },
);

/** Invalidate extended transport header, 9.3.7. */
const ieth = layout(
  'IETH',
  { sizeBytes: 4, byteOrder: 'big', source: 'IBTA vol 1, 9.3.7' },
  { rKey: u32(0) },
);

/** Headers that may follow the BTH. */
export const extendedHeaders = {
  RDETH: rdeth,
  XRCETH: xrceth,
  DETH: deth,
  RETH: reth,
  AtomicETH: atomicEth,
  MaskedAtomicETH: maskedAtomicEth,
  AETH: aeth,
  AtomicAckETH: atomicAckEth,
  ImmDt: immDt,
  IETH: ieth,
  CNP: congestionNotification,
} as const;

export type ExtendedHeaderName = keyof typeof extendedHeaders;

/** Bytes of a GRH, for hot paths. */
export const GRH_BYTES = 40;
/** Next header of a GRH before a BTH, 8.3. */
export const NEXT_HEADER_BTH = 0x1b;
/** UDP port of RoCE v2, annex A17. */
export const ROCE_UDP_PORT = 4791;
/** Invariant CRC after the padded payload, 7.8.1. */
export const ICRC_BYTES = 4;
/** Variant CRC at the end of every data packet, 7.8.2. */
export const VCRC_BYTES = 2;
/** Flow control packet: 4 bytes of fields and a 2-byte CRC, 7.9.4. */
export const FLOW_CONTROL_PACKET_BYTES = 6;
