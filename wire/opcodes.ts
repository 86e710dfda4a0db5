/**
 * The BTH opcodes of the RC, UC and UD services, one row each: which headers follow, whether the packet begins or
 * ends a message, and what it carries. Everything else (sizes, offsets, tests on an opcode) is derived from the rows.
 *
 * Source: InfiniBand Architecture Specification, volume 1, 9.2 (table of OpCode values), 9.4 and 9.5.
 */
import { DeclarationError } from '../base/assert.ts';
import {
  bth,
  type ExtendedHeaderName,
  extendedHeaders,
  grh,
  ICRC_BYTES,
  lrh,
  VCRC_BYTES,
} from './headers.ts';

export type Service = 'RC' | 'UC' | 'UD';

/** Reliable connection: bits 7:5 are 000. */
export const RcOpcode = {
  SEND_FIRST: 0x00,
  SEND_MIDDLE: 0x01,
  SEND_LAST: 0x02,
  SEND_LAST_IMMEDIATE: 0x03,
  SEND_ONLY: 0x04,
  SEND_ONLY_IMMEDIATE: 0x05,
  RDMA_WRITE_FIRST: 0x06,
  RDMA_WRITE_MIDDLE: 0x07,
  RDMA_WRITE_LAST: 0x08,
  RDMA_WRITE_LAST_IMMEDIATE: 0x09,
  RDMA_WRITE_ONLY: 0x0a,
  RDMA_WRITE_ONLY_IMMEDIATE: 0x0b,
  RDMA_READ_REQUEST: 0x0c,
  RDMA_READ_RESPONSE_FIRST: 0x0d,
  RDMA_READ_RESPONSE_MIDDLE: 0x0e,
  RDMA_READ_RESPONSE_LAST: 0x0f,
  RDMA_READ_RESPONSE_ONLY: 0x10,
  ACKNOWLEDGE: 0x11,
  ATOMIC_ACKNOWLEDGE: 0x12,
  COMPARE_SWAP: 0x13,
  FETCH_ADD: 0x14,
  SEND_LAST_INVALIDATE: 0x16,
  SEND_ONLY_INVALIDATE: 0x17,
} as const;

/** Unreliable connection: bits 7:5 are 001. */
export const UcOpcode = {
  SEND_FIRST: 0x20,
  SEND_MIDDLE: 0x21,
  SEND_LAST: 0x22,
  SEND_LAST_IMMEDIATE: 0x23,
  SEND_ONLY: 0x24,
  SEND_ONLY_IMMEDIATE: 0x25,
  RDMA_WRITE_FIRST: 0x26,
  RDMA_WRITE_MIDDLE: 0x27,
  RDMA_WRITE_LAST: 0x28,
  RDMA_WRITE_LAST_IMMEDIATE: 0x29,
  RDMA_WRITE_ONLY: 0x2a,
  RDMA_WRITE_ONLY_IMMEDIATE: 0x2b,
} as const;

/** Unreliable datagram: bits 7:5 are 011. */
export const UdOpcode = { SEND_ONLY: 0x64, SEND_ONLY_IMMEDIATE: 0x65 } as const;

export type OpcodeName =
  | `RC ${keyof typeof RcOpcode}`
  | `UC ${keyof typeof UcOpcode}`
  | `UD ${keyof typeof UdOpcode}`;

const opcodesByService: Readonly<Record<Service, Readonly<Record<string, number>>>> = {
  RC: RcOpcode,
  UC: UcOpcode,
  UD: UdOpcode,
};

export interface OpcodeRow {
  readonly opcode: number;
  readonly name: OpcodeName;
  readonly service: Service;
  /** Headers behind the BTH, in order. */
  readonly headers: readonly ExtendedHeaderName[];
  readonly startsMessage: boolean;
  readonly endsMessage: boolean;
  readonly hasPayload: boolean;
  readonly hasImmediate: boolean;
  /** False: a response. */
  readonly isRequest: boolean;
}

type Place = 'first' | 'middle' | 'last' | 'only';

function row(
  name: OpcodeName,
  place: Place,
  content: 'payload' | 'headersOnly',
  direction: 'request' | 'response',
  headers: readonly ExtendedHeaderName[] = [],
): OpcodeRow {
  const service = name.slice(0, 2) as Service;
  return {
    opcode: opcodesByService[service][name.slice(3)]!,
    name,
    service,
    headers,
    startsMessage: place === 'first' || place === 'only',
    endsMessage: place === 'last' || place === 'only',
    hasPayload: content === 'payload',
    hasImmediate: headers.includes('ImmDt'),
    isRequest: direction === 'request',
  };
}

/** All opcodes in the order of their numbers. */
export const opcodeTable: readonly OpcodeRow[] = [
  row('RC SEND_FIRST', 'first', 'payload', 'request'),
  row('RC SEND_MIDDLE', 'middle', 'payload', 'request'),
  row('RC SEND_LAST', 'last', 'payload', 'request'),
  row('RC SEND_LAST_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  row('RC SEND_ONLY', 'only', 'payload', 'request'),
  row('RC SEND_ONLY_IMMEDIATE', 'only', 'payload', 'request', ['ImmDt']),
  row('RC RDMA_WRITE_FIRST', 'first', 'payload', 'request', ['RETH']),
  row('RC RDMA_WRITE_MIDDLE', 'middle', 'payload', 'request'),
  row('RC RDMA_WRITE_LAST', 'last', 'payload', 'request'),
  row('RC RDMA_WRITE_LAST_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  row('RC RDMA_WRITE_ONLY', 'only', 'payload', 'request', ['RETH']),
  row('RC RDMA_WRITE_ONLY_IMMEDIATE', 'only', 'payload', 'request', ['RETH', 'ImmDt']),
  row('RC RDMA_READ_REQUEST', 'only', 'headersOnly', 'request', ['RETH']),
  row('RC RDMA_READ_RESPONSE_FIRST', 'first', 'payload', 'response', ['AETH']),
  row('RC RDMA_READ_RESPONSE_MIDDLE', 'middle', 'payload', 'response'),
  row('RC RDMA_READ_RESPONSE_LAST', 'last', 'payload', 'response', ['AETH']),
  row('RC RDMA_READ_RESPONSE_ONLY', 'only', 'payload', 'response', ['AETH']),
  row('RC ACKNOWLEDGE', 'only', 'headersOnly', 'response', ['AETH']),
  row('RC ATOMIC_ACKNOWLEDGE', 'only', 'headersOnly', 'response', ['AETH', 'AtomicAckETH']),
  row('RC COMPARE_SWAP', 'only', 'headersOnly', 'request', ['AtomicETH']),
  row('RC FETCH_ADD', 'only', 'headersOnly', 'request', ['AtomicETH']),
  row('RC SEND_LAST_INVALIDATE', 'last', 'payload', 'request', ['IETH']),
  row('RC SEND_ONLY_INVALIDATE', 'only', 'payload', 'request', ['IETH']),
  row('UC SEND_FIRST', 'first', 'payload', 'request'),
  row('UC SEND_MIDDLE', 'middle', 'payload', 'request'),
  row('UC SEND_LAST', 'last', 'payload', 'request'),
  row('UC SEND_LAST_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  row('UC SEND_ONLY', 'only', 'payload', 'request'),
  row('UC SEND_ONLY_IMMEDIATE', 'only', 'payload', 'request', ['ImmDt']),
  row('UC RDMA_WRITE_FIRST', 'first', 'payload', 'request', ['RETH']),
  row('UC RDMA_WRITE_MIDDLE', 'middle', 'payload', 'request'),
  row('UC RDMA_WRITE_LAST', 'last', 'payload', 'request'),
  row('UC RDMA_WRITE_LAST_IMMEDIATE', 'last', 'payload', 'request', ['ImmDt']),
  row('UC RDMA_WRITE_ONLY', 'only', 'payload', 'request', ['RETH']),
  row('UC RDMA_WRITE_ONLY_IMMEDIATE', 'only', 'payload', 'request', ['RETH', 'ImmDt']),
  row('UD SEND_ONLY', 'only', 'payload', 'request', ['DETH']),
  row('UD SEND_ONLY_IMMEDIATE', 'only', 'payload', 'request', ['DETH', 'ImmDt']),
];

const OPCODE_COUNT = 256;
const IS_KNOWN = 1 << 0;
const STARTS_MESSAGE = 1 << 1;
const ENDS_MESSAGE = 1 << 2;
const HAS_PAYLOAD = 1 << 3;
const HAS_IMMEDIATE = 1 << 4;
const IS_REQUEST = 1 << 5;

const rowByOpcode: (OpcodeRow | undefined)[] = new Array(OPCODE_COUNT).fill(undefined);
const factsByOpcode = new Uint8Array(OPCODE_COUNT);
const transportBytesByOpcode = new Uint8Array(OPCODE_COUNT);
const operandBytesByOpcode = new Uint8Array(OPCODE_COUNT);

for (const entry of opcodeTable) {
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
    (entry.isRequest ? IS_REQUEST : 0);
  let bytes = bth.sizeBytes;
  for (const header of entry.headers) bytes += extendedHeaders[header].sizeBytes;
  transportBytesByOpcode[entry.opcode] = bytes;
  if (entry.headers.includes('AtomicETH')) operandBytesByOpcode[entry.opcode] = 16;
  if (entry.headers.includes('AtomicAckETH')) operandBytesByOpcode[entry.opcode] = 8;
}

/** The row of an opcode, or undefined for a number that no service modelled here uses. */
export const opcodeRow = (opcode: number): OpcodeRow | undefined => rowByOpcode[opcode];

export const isKnownOpcode = (opcode: number): boolean => (factsByOpcode[opcode]! & IS_KNOWN) !== 0;
export const startsMessage = (opcode: number): boolean => (factsByOpcode[opcode]! & STARTS_MESSAGE) !== 0;
export const endsMessage = (opcode: number): boolean => (factsByOpcode[opcode]! & ENDS_MESSAGE) !== 0;
export const hasPayload = (opcode: number): boolean => (factsByOpcode[opcode]! & HAS_PAYLOAD) !== 0;
export const hasImmediate = (opcode: number): boolean => (factsByOpcode[opcode]! & HAS_IMMEDIATE) !== 0;
export const isRequest = (opcode: number): boolean => (factsByOpcode[opcode]! & IS_REQUEST) !== 0;

/** Bytes of BTH and extended headers. */
export const transportHeaderBytes = (opcode: number): number => transportBytesByOpcode[opcode]!;

/** 64-bit operands of an atomic (16 bytes) or its answer (8): header bytes that a record holds in its payload area. */
export const operandBytes = (opcode: number): number => operandBytesByOpcode[opcode]!;

/** Bytes added so that the payload ends on a dword (BTH PadCnt). */
export const padBytes = (payloadBytes: number): number => -payloadBytes & 3;

/** Offset of an extended header from the BTH's first byte, or -1 when this opcode has none of it. */
export function headerOffset(opcode: number, header: ExtendedHeaderName): number {
  let offset = bth.sizeBytes;
  for (const name of rowByOpcode[opcode]?.headers ?? []) {
    if (name === header) return offset;
    offset += extendedHeaders[name].sizeBytes;
  }
  return -1;
}

const ROUTE_AND_CRC_BYTES = lrh.sizeBytes + ICRC_BYTES + VCRC_BYTES;

/** Bytes of a whole packet, from LRH to VCRC. */
export function packetBytesOf(opcode: number, payloadBytes: number, hasGrh: boolean): number {
  const bytes = ROUTE_AND_CRC_BYTES + transportBytesByOpcode[opcode]! + ((payloadBytes + 3) & ~3);
  return hasGrh ? bytes + grh.sizeBytes : bytes;
}
