/**
 * The BTH opcodes of all services, one row each: the headers that follow, whether the packet begins or ends a message, and its
 * contents. Everything else (sizes, offsets, tests on an opcode) is derived from the rows. An operation is declared once, with
 * the services that have it; a service declares the headers of its requests and responses before the operation's own.
 *
 * Masked atomics have emulator-specific numbers that are free in the table: we know of no publication of the card's numbers.
 *
 * Source: InfiniBand Architecture Specification, volume 1, 9.2 (table of OpCode values), 9.4 and 9.5; XRC annex A14, CNP annexes A10 and A17.
 */
import { DeclarationError } from '../base/index.ts';
import {
  bth,
  type ExtendedHeaderName,
  extendedHeaders,
  GRH_BYTES,
  ICRC_BYTES,
  lrh,
  VCRC_BYTES,
} from './headers.ts';
import { XRCETH_ROOM_BYTES } from './packet.ts';

type Service = 'RC' | 'UC' | 'RD' | 'UD' | 'CNP' | 'XRC';

/** Numbers by name: the upper three bits are the service, the lower five the operation. */
export const Opcode = {
  RC_SEND_FIRST: 0x00,
  RC_SEND_MIDDLE: 0x01,
  RC_SEND_LAST: 0x02,
  RC_SEND_LAST_WITH_IMMEDIATE: 0x03,
  RC_SEND_ONLY: 0x04,
  RC_SEND_ONLY_WITH_IMMEDIATE: 0x05,
  RC_RDMA_WRITE_FIRST: 0x06,
  RC_RDMA_WRITE_MIDDLE: 0x07,
  RC_RDMA_WRITE_LAST: 0x08,
  RC_RDMA_WRITE_LAST_WITH_IMMEDIATE: 0x09,
  RC_RDMA_WRITE_ONLY: 0x0a,
  RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE: 0x0b,
  RC_RDMA_READ_REQUEST: 0x0c,
  RC_RDMA_READ_RESPONSE_FIRST: 0x0d,
  RC_RDMA_READ_RESPONSE_MIDDLE: 0x0e,
  RC_RDMA_READ_RESPONSE_LAST: 0x0f,
  RC_RDMA_READ_RESPONSE_ONLY: 0x10,
  RC_ACKNOWLEDGE: 0x11,
  RC_ATOMIC_ACKNOWLEDGE: 0x12,
  RC_COMPARE_SWAP: 0x13,
  RC_FETCH_ADD: 0x14,
  RC_SEND_LAST_WITH_INVALIDATE: 0x16,
  RC_SEND_ONLY_WITH_INVALIDATE: 0x17,
  RC_MASKED_COMPARE_SWAP: 0x18,
  RC_MASKED_FETCH_ADD: 0x19,
  UC_SEND_FIRST: 0x20,
  UC_SEND_MIDDLE: 0x21,
  UC_SEND_LAST: 0x22,
  UC_SEND_LAST_WITH_IMMEDIATE: 0x23,
  UC_SEND_ONLY: 0x24,
  UC_SEND_ONLY_WITH_IMMEDIATE: 0x25,
  UC_RDMA_WRITE_FIRST: 0x26,
  UC_RDMA_WRITE_MIDDLE: 0x27,
  UC_RDMA_WRITE_LAST: 0x28,
  UC_RDMA_WRITE_LAST_WITH_IMMEDIATE: 0x29,
  UC_RDMA_WRITE_ONLY: 0x2a,
  UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE: 0x2b,
  RD_SEND_FIRST: 0x40,
  RD_SEND_MIDDLE: 0x41,
  RD_SEND_LAST: 0x42,
  RD_SEND_LAST_WITH_IMMEDIATE: 0x43,
  RD_SEND_ONLY: 0x44,
  RD_SEND_ONLY_WITH_IMMEDIATE: 0x45,
  RD_RDMA_WRITE_FIRST: 0x46,
  RD_RDMA_WRITE_MIDDLE: 0x47,
  RD_RDMA_WRITE_LAST: 0x48,
  RD_RDMA_WRITE_LAST_WITH_IMMEDIATE: 0x49,
  RD_RDMA_WRITE_ONLY: 0x4a,
  RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE: 0x4b,
  RD_RDMA_READ_REQUEST: 0x4c,
  RD_RDMA_READ_RESPONSE_FIRST: 0x4d,
  RD_RDMA_READ_RESPONSE_MIDDLE: 0x4e,
  RD_RDMA_READ_RESPONSE_LAST: 0x4f,
  RD_RDMA_READ_RESPONSE_ONLY: 0x50,
  RD_ACKNOWLEDGE: 0x51,
  RD_ATOMIC_ACKNOWLEDGE: 0x52,
  RD_COMPARE_SWAP: 0x53,
  RD_FETCH_ADD: 0x54,
  RD_RESYNC: 0x55,
  UD_SEND_ONLY: 0x64,
  UD_SEND_ONLY_WITH_IMMEDIATE: 0x65,
  CNP_INFINIBAND: 0x80,
  CNP: 0x81,
  XRC_SEND_FIRST: 0xa0,
  XRC_SEND_MIDDLE: 0xa1,
  XRC_SEND_LAST: 0xa2,
  XRC_SEND_LAST_WITH_IMMEDIATE: 0xa3,
  XRC_SEND_ONLY: 0xa4,
  XRC_SEND_ONLY_WITH_IMMEDIATE: 0xa5,
  XRC_RDMA_WRITE_FIRST: 0xa6,
  XRC_RDMA_WRITE_MIDDLE: 0xa7,
  XRC_RDMA_WRITE_LAST: 0xa8,
  XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE: 0xa9,
  XRC_RDMA_WRITE_ONLY: 0xaa,
  XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE: 0xab,
  XRC_RDMA_READ_REQUEST: 0xac,
  XRC_RDMA_READ_RESPONSE_FIRST: 0xad,
  XRC_RDMA_READ_RESPONSE_MIDDLE: 0xae,
  XRC_RDMA_READ_RESPONSE_LAST: 0xaf,
  XRC_RDMA_READ_RESPONSE_ONLY: 0xb0,
  XRC_ACKNOWLEDGE: 0xb1,
  XRC_ATOMIC_ACKNOWLEDGE: 0xb2,
  XRC_COMPARE_SWAP: 0xb3,
  XRC_FETCH_ADD: 0xb4,
  XRC_SEND_LAST_WITH_INVALIDATE: 0xb6,
  XRC_SEND_ONLY_WITH_INVALIDATE: 0xb7,
} as const;

type OpcodeName = keyof typeof Opcode;

export interface OpcodeRow {
  readonly opcode: number;
  readonly name: OpcodeName;
  readonly service: Service;
  /** Headers after the BTH, in order. */
  readonly headers: readonly ExtendedHeaderName[];
  readonly startsMessage: boolean;
  readonly endsMessage: boolean;
  readonly hasPayload: boolean;
  readonly hasImmediate: boolean;
  /** False: a response. */
  readonly isRequest: boolean;
}

type Place = 'first' | 'middle' | 'last' | 'only';
type Content = 'payload' | 'headersOnly';
type Direction = 'request' | 'response';

/** Headers of a service's packets before an operation's own headers, by direction; and its code, in bits 7:5. */
interface ServiceRow {
  readonly code: number;
  readonly request: readonly ExtendedHeaderName[];
  readonly response: readonly ExtendedHeaderName[];
}

const services: Readonly<Record<Service, ServiceRow>> = {
  RC: { code: 0x00, request: [], response: [] },
  UC: { code: 0x20, request: [], response: [] },
  RD: { code: 0x40, request: ['RDETH', 'DETH'], response: ['RDETH'] },
  UD: { code: 0x60, request: ['DETH'], response: [] },
  CNP: { code: 0x80, request: [], response: [] },
  XRC: { code: 0xa0, request: ['XRCETH'], response: [] },
};

interface Operation {
  readonly name: string;
  readonly place: Place;
  readonly content: Content;
  readonly direction: Direction;
  readonly headers: readonly ExtendedHeaderName[];
}

const operation = (
  name: string,
  place: Place,
  content: Content,
  direction: Direction,
  headers: readonly ExtendedHeaderName[] = [],
): Operation => ({ name, place, content, direction, headers });

const datagrams = [
  operation('SEND_ONLY', 'only', 'payload', 'request'),
  operation('SEND_ONLY_WITH_IMMEDIATE', 'only', 'payload', 'request', ['ImmDt']),
];
const sendsAndWrites = [
  operation('SEND_FIRST', 'first', 'payload', 'request'),
  operation('SEND_MIDDLE', 'middle', 'payload', 'request'),
  operation('SEND_LAST', 'last', 'payload', 'request'),
  operation('SEND_LAST_WITH_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  ...datagrams,
  operation('RDMA_WRITE_FIRST', 'first', 'payload', 'request', ['RETH']),
  operation('RDMA_WRITE_MIDDLE', 'middle', 'payload', 'request'),
  operation('RDMA_WRITE_LAST', 'last', 'payload', 'request'),
  operation('RDMA_WRITE_LAST_WITH_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  operation('RDMA_WRITE_ONLY', 'only', 'payload', 'request', ['RETH']),
  operation('RDMA_WRITE_ONLY_WITH_IMMEDIATE', 'only', 'payload', 'request', ['RETH', 'ImmDt']),
];
const readsAndAtomics = [
  operation('RDMA_READ_REQUEST', 'only', 'headersOnly', 'request', ['RETH']),
  operation('RDMA_READ_RESPONSE_FIRST', 'first', 'payload', 'response', ['AETH']),
  operation('RDMA_READ_RESPONSE_MIDDLE', 'middle', 'payload', 'response'),
  operation('RDMA_READ_RESPONSE_LAST', 'last', 'payload', 'response', ['AETH']),
  operation('RDMA_READ_RESPONSE_ONLY', 'only', 'payload', 'response', ['AETH']),
  operation('ACKNOWLEDGE', 'only', 'headersOnly', 'response', ['AETH']),
  operation('ATOMIC_ACKNOWLEDGE', 'only', 'headersOnly', 'response', ['AETH', 'AtomicAckETH']),
  operation('COMPARE_SWAP', 'only', 'headersOnly', 'request', ['AtomicETH']),
  operation('FETCH_ADD', 'only', 'headersOnly', 'request', ['AtomicETH']),
];
const resynchronization = [operation('RESYNC', 'only', 'headersOnly', 'request')];
const invalidations = [
  operation('SEND_LAST_WITH_INVALIDATE', 'last', 'payload', 'request', ['IETH']),
  operation('SEND_ONLY_WITH_INVALIDATE', 'only', 'payload', 'request', ['IETH']),
];
const maskedAtomics = [
  operation('MASKED_COMPARE_SWAP', 'only', 'headersOnly', 'request', ['MaskedAtomicETH']),
  operation('MASKED_FETCH_ADD', 'only', 'headersOnly', 'request', ['AtomicETH']),
];

function row(service: Service, { name, place, content, direction, headers }: Operation): OpcodeRow {
  const fullName = (name === '' ? service : `${service}_${name}`) as OpcodeName;
  return {
    opcode: Opcode[fullName],
    name: fullName,
    service,
    headers: [...services[service][direction], ...headers],
    startsMessage: place === 'first' || place === 'only',
    endsMessage: place === 'last' || place === 'only',
    hasPayload: content === 'payload',
    hasImmediate: headers.includes('ImmDt'),
    isRequest: direction === 'request',
  };
}

const rowsOf = (service: Service, ...operations: readonly Operation[]): OpcodeRow[] =>
  operations.map((entry) => row(service, entry));

/** All opcodes in numerical order. */
export const opcodeTable: readonly OpcodeRow[] = [
  ...rowsOf('RC', ...sendsAndWrites, ...readsAndAtomics, ...invalidations, ...maskedAtomics),
  ...rowsOf('UC', ...sendsAndWrites),
  ...rowsOf('RD', ...sendsAndWrites, ...readsAndAtomics, ...resynchronization),
  ...rowsOf('UD', ...datagrams),
  // The CNP of InfiniBand ends with its BTH: Linux 6.1 drivers/infiniband/hw/hfi1/ud.c, return_cnp.
  ...rowsOf(
    'CNP',
    operation('INFINIBAND', 'only', 'headersOnly', 'response'),
    operation('', 'only', 'headersOnly', 'response', ['CNP']),
  ),
  ...rowsOf('XRC', ...sendsAndWrites, ...readsAndAtomics, ...invalidations),
];

const OPCODE_COUNT = 256;
/** Bits of an opcode that name the service. */
const SERVICE_MASK = 0xe0;
const ROUTE_AND_CRC_BYTES = lrh.sizeBytes + ICRC_BYTES + VCRC_BYTES;

/** Bytes of operands in headers with operands. */
const operandBytesOf: Readonly<Partial<Record<ExtendedHeaderName, number>>> = {
  AtomicETH: 16,
  MaskedAtomicETH: 32,
  AtomicAckETH: 8,
};

/** Parts of a packet of one opcode besides its payload. */
export class PacketShape {
  /** Bytes of BTH and extended headers. */
  readonly transportBytes: number;
  /** Bytes of all headers except the GRH, and of the CRCs. */
  readonly headerBytes: number;
  /** Header bytes that a record holds in its payload area: see {@link operandBytes}. */
  readonly operandBytes: number = 0;
  /** An XRC request: it has an XRCETH, which a record holds after the payload. */
  readonly hasXrceth: boolean;
  /** Limit of a record's bytes after its header, without payload and GRH. */
  readonly bodyBytes: number;

  constructor(names: readonly ExtendedHeaderName[]) {
    let bytes = bth.sizeBytes;
    for (const name of names) bytes += extendedHeaders[name].sizeBytes;
    this.transportBytes = bytes;
    this.headerBytes = ROUTE_AND_CRC_BYTES + bytes;
    for (const name of names) this.operandBytes += operandBytesOf[name] ?? 0;
    this.hasXrceth = names.includes('XRCETH');
    this.bodyBytes = this.operandBytes + (this.hasXrceth ? XRCETH_ROOM_BYTES : 0);
  }

  /** Bytes of a whole packet, from LRH to VCRC. */
  packetBytes(payloadBytes: number, hasGrh: boolean): number {
    const bytes = this.headerBytes + ((payloadBytes + 3) & ~3);
    return hasGrh ? bytes + GRH_BYTES : bytes;
  }
}

const IS_KNOWN = 1 << 0;
const STARTS_MESSAGE = 1 << 1;
const ENDS_MESSAGE = 1 << 2;
const HAS_PAYLOAD = 1 << 3;
const HAS_IMMEDIATE = 1 << 4;
const IS_REQUEST = 1 << 5;
const IS_DATAGRAM = 1 << 6;

const rowByOpcode: (OpcodeRow | undefined)[] = new Array(OPCODE_COUNT).fill(undefined);
const factsByOpcode = new Uint8Array(OPCODE_COUNT);

for (const entry of opcodeTable) {
  if ((entry.opcode & SERVICE_MASK) !== services[entry.service].code) {
    throw new DeclarationError('opcode', entry.opcode, `a number of ${entry.service}`);
  }
  if (rowByOpcode[entry.opcode] !== undefined) {
    throw new DeclarationError('opcode', entry.opcode, 'a number declared once');
  }
  rowByOpcode[entry.opcode] = entry;
  factsByOpcode[entry.opcode] =
    IS_KNOWN |
    (entry.startsMessage ? STARTS_MESSAGE : 0) |
    (entry.endsMessage ? ENDS_MESSAGE : 0) |
    (entry.hasPayload ? HAS_PAYLOAD : 0) |
    (entry.hasImmediate ? HAS_IMMEDIATE : 0) |
    (entry.isRequest ? IS_REQUEST : 0) |
    (entry.service === 'UD' ? IS_DATAGRAM : 0);
}

/** Shapes by opcode: for every number, so that any can be looked up. */
export const packetShapes: readonly PacketShape[] = Array.from(
  { length: OPCODE_COUNT },
  (_, opcode) => new PacketShape(rowByOpcode[opcode]?.headers ?? []),
);

/** The row of an opcode, or undefined for an unused number. */
export const opcodeRow = (opcode: number): OpcodeRow | undefined => rowByOpcode[opcode];

export const isKnownOpcode = (opcode: number): boolean => (factsByOpcode[opcode]! & IS_KNOWN) !== 0;
export const startsMessage = (opcode: number): boolean => (factsByOpcode[opcode]! & STARTS_MESSAGE) !== 0;
export const endsMessage = (opcode: number): boolean => (factsByOpcode[opcode]! & ENDS_MESSAGE) !== 0;
export const hasPayload = (opcode: number): boolean => (factsByOpcode[opcode]! & HAS_PAYLOAD) !== 0;
export const hasImmediate = (opcode: number): boolean => (factsByOpcode[opcode]! & HAS_IMMEDIATE) !== 0;
export const isDatagram = (opcode: number): boolean => (factsByOpcode[opcode]! & IS_DATAGRAM) !== 0;
export const isRequest = (opcode: number): boolean => (factsByOpcode[opcode]! & IS_REQUEST) !== 0;

/** Bytes of BTH and extended headers. */
export const transportHeaderBytes = (opcode: number): number => packetShapes[opcode]!.transportBytes;

/** Bytes of 64-bit operands of an atomic (16 bytes, or 32 with masks) or its response (8): header bytes that a record holds in its payload area. */
export const operandBytes = (opcode: number): number => packetShapes[opcode]!.operandBytes;

/** Bytes of a record from its payload area to its GRH: operands, payload, and the XRCETH at the next multiple of 4. */
export function bytesBeforeGrh(opcode: number, payloadBytes: number): number {
  const shape = packetShapes[opcode]!;
  const bytes = shape.operandBytes + payloadBytes;
  return shape.hasXrceth ? ((bytes + 3) & ~3) + extendedHeaders.XRCETH.sizeBytes : bytes;
}

/** Bytes added so that the payload ends on a dword (BTH PadCnt). */
export const padBytes = (payloadBytes: number): number => (4 - (payloadBytes & 3)) & 3;

/** Bytes of a whole packet, from LRH to VCRC. */
export const packetBytesOf = (opcode: number, payloadBytes: number, hasGrh: boolean): number =>
  packetShapes[opcode]!.packetBytes(payloadBytes, hasGrh);
