/**
 * Headers after a BTH, by its opcode: IBTA vol 1, 9.2, table of opcodes; annexes A14 (XRC), A10 and A17.9.3 (CNP). The upper
 * three bits are the service, the lower five the operation. Masked atomics have numbers that only this card uses
 * (docs/how-to/wire.md).
 */
import type { HeaderName } from './fields.ts';

/** Payload rules: fills the path MTU; ends a message with at least one byte; is a whole message; no payload. */
type Payload = 'full' | 'rest' | 'whole' | 'none';

export interface Operation {
  readonly name: string;
  readonly headers: readonly HeaderName[];
  readonly payload: Payload;
}

type Row = readonly [name: string, payload: Payload, ...headers: HeaderName[]];

const operations: Readonly<Record<number, Row>> = {
  0: ['SEND_FIRST', 'full'],
  1: ['SEND_MIDDLE', 'full'],
  2: ['SEND_LAST', 'rest'],
  3: ['SEND_LAST_WITH_IMMEDIATE', 'rest', 'ImmDt'],
  4: ['SEND_ONLY', 'whole'],
  5: ['SEND_ONLY_WITH_IMMEDIATE', 'whole', 'ImmDt'],
  6: ['RDMA_WRITE_FIRST', 'full', 'RETH'],
  7: ['RDMA_WRITE_MIDDLE', 'full'],
  8: ['RDMA_WRITE_LAST', 'rest'],
  9: ['RDMA_WRITE_LAST_WITH_IMMEDIATE', 'rest', 'ImmDt'],
  10: ['RDMA_WRITE_ONLY', 'whole', 'RETH'],
  11: ['RDMA_WRITE_ONLY_WITH_IMMEDIATE', 'whole', 'RETH', 'ImmDt'],
  12: ['RDMA_READ_REQUEST', 'none', 'RETH'],
  13: ['RDMA_READ_RESPONSE_FIRST', 'full', 'AETH'],
  14: ['RDMA_READ_RESPONSE_MIDDLE', 'full'],
  15: ['RDMA_READ_RESPONSE_LAST', 'rest', 'AETH'],
  16: ['RDMA_READ_RESPONSE_ONLY', 'whole', 'AETH'],
  17: ['ACKNOWLEDGE', 'none', 'AETH'],
  18: ['ATOMIC_ACKNOWLEDGE', 'none', 'AETH', 'AtomicAckETH'],
  19: ['COMPARE_SWAP', 'none', 'AtomicETH'],
  20: ['FETCH_ADD', 'none', 'AtomicETH'],
  21: ['RESYNC', 'none'],
  22: ['SEND_LAST_WITH_INVALIDATE', 'rest', 'IETH'],
  23: ['SEND_ONLY_WITH_INVALIDATE', 'whole', 'IETH'],
  24: ['MASKED_COMPARE_SWAP', 'none', 'MaskedAtomicETH'],
  25: ['MASKED_FETCH_ADD', 'none', 'AtomicETH'],
};

interface Service {
  readonly name: string;
  readonly has: (operation: number) => boolean;
  /** Headers before those of the operation itself. */
  readonly requests: readonly HeaderName[];
  readonly responses: readonly HeaderName[];
}

const services: Readonly<Record<number, Service>> = {
  0: { name: 'RC', has: (number) => number <= 0x19 && number !== 0x15, requests: [], responses: [] },
  1: { name: 'UC', has: (number) => number <= 0x0b, requests: [], responses: [] },
  2: { name: 'RD', has: (number) => number <= 0x15, requests: ['RDETH', 'DETH'], responses: ['RDETH'] },
  3: { name: 'UD', has: (number) => number === 4 || number === 5, requests: ['DETH'], responses: [] },
  5: {
    name: 'XRC',
    has: (number) => number <= 0x17 && number !== 0x15,
    requests: ['XRCETH'],
    responses: [],
  },
};

/** Opcode of a CNP with RoCE v2; with InfiniBand, whose CNP has no header but a BTH (Linux 6.1 drivers/infiniband/hw/hfi1/ud.c, return_cnp). */
const CNP = 0x81;
const CNP_INFINIBAND = 0x80;

/** The operation of an opcode; undefined if no service defines it. */
export function operationOf(opcode: number): Operation | undefined {
  if (opcode === CNP) return { name: 'CNP', headers: ['CNP'], payload: 'none' };
  if (opcode === CNP_INFINIBAND) return { name: 'CNP_INFINIBAND', headers: [], payload: 'none' };
  const service = services[opcode >> 5];
  const number = opcode & 0x1f;
  const row = operations[number];
  if (service === undefined || row === undefined || !service.has(number)) return undefined;
  const [name, payload, ...own] = row;
  const isResponse = number >= 0x0d && number <= 0x12;
  const first = isResponse ? service.responses : service.requests;
  return { name: `${service.name}_${name}`, headers: [...first, ...own], payload };
}
