/** Opcodes of send WQEs, the QP types that may post them, and the segments after the control segment. Source: interface sheet 6.4. */

export const WqeOpcode = {
  NOP: 0x00,
  SEND_INVAL: 0x01,
  RDMA_WRITE: 0x08,
  RDMA_WRITE_IMM: 0x09,
  SEND: 0x0a,
  SEND_IMM: 0x0b,
  LSO: 0x0e,
  RDMA_READ: 0x10,
  ATOMIC_CS: 0x11,
  ATOMIC_FA: 0x12,
  MASKED_ATOMIC_CS: 0x14,
  MASKED_ATOMIC_FA: 0x15,
  BIND_MW: 0x18,
  FMR: 0x19,
  LOCAL_INVAL: 0x1b,
  CONFIG: 0x1f,
} as const;
export type WqeOpcode = (typeof WqeOpcode)[keyof typeof WqeOpcode];

/**
 * Used instead of an opcode where operations are counted: a frame of an Ethernet ring, whose WQE has the opcode of a SEND or an
 * LSO. No WQE has this value.
 */
export const frameOperation = 0x20;

export type WqeSegment =
  | 'remoteAddress'
  | 'atomic'
  | 'maskedCompareSwap'
  | 'data'
  | 'lso'
  | 'bind'
  | 'localInvalidate'
  | 'fastRegister';

/** Transports as the opcode table names them; `RAW` is raw packet and Ethernet, `MLX` QP0 and QP1. */
export type WqeTransport = 'RC' | 'UC' | 'UD' | 'XRC' | 'MLX' | 'RAW';

export interface WqeOpcodeRow {
  readonly opcode: WqeOpcode;
  readonly name: keyof typeof WqeOpcode;
  readonly transports: readonly WqeTransport[];
  /** Segments in their order; on UD a datagram segment precedes them if `takesDatagram` is set. */
  readonly segments: readonly WqeSegment[];
  readonly takesDatagram: boolean;
}

const row = (
  name: keyof typeof WqeOpcode,
  transports: readonly WqeTransport[],
  segments: readonly WqeSegment[],
): WqeOpcodeRow => ({
  opcode: WqeOpcode[name],
  name,
  transports,
  segments,
  takesDatagram: transports.includes('UD') && segments.includes('data'),
});

const all: readonly WqeTransport[] = ['RC', 'UC', 'UD', 'XRC', 'MLX', 'RAW'];

const rows: readonly WqeOpcodeRow[] = [
  row('NOP', all, []),
  row('SEND_INVAL', ['RC'], ['data']),
  row('RDMA_WRITE', ['RC', 'UC', 'XRC'], ['remoteAddress', 'data']),
  row('RDMA_WRITE_IMM', ['RC', 'UC', 'XRC'], ['remoteAddress', 'data']),
  row('SEND', all, ['data']),
  row('SEND_IMM', ['RC', 'UC', 'UD', 'XRC', 'MLX'], ['data']),
  row('LSO', ['UD', 'RAW'], ['lso', 'data']),
  row('RDMA_READ', ['RC', 'XRC'], ['remoteAddress', 'data']),
  row('ATOMIC_CS', ['RC', 'XRC'], ['remoteAddress', 'atomic', 'data']),
  row('ATOMIC_FA', ['RC', 'XRC'], ['remoteAddress', 'atomic', 'data']),
  row('MASKED_ATOMIC_CS', ['RC'], ['remoteAddress', 'maskedCompareSwap', 'data']),
  row('MASKED_ATOMIC_FA', ['RC'], ['remoteAddress', 'atomic', 'data']),
  row('BIND_MW', ['RC'], ['bind']),
  row('FMR', ['RC'], ['fastRegister']),
  row('LOCAL_INVAL', ['RC'], ['localInvalidate']),
];

/** The rows by opcode number; CONFIG and everything else is undefined: a local QP operation error. */
export const wqeOpcodeRows: readonly (WqeOpcodeRow | undefined)[] = Array.from({ length: 32 }, (_, opcode) =>
  rows.find((candidate) => candidate.opcode === opcode),
);
