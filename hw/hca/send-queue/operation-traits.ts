/** Traits of the operations of work requests, by the numbers of WqeOpcode, whatever their format. */
import { WqeOpcode, wqeOpcodeRows } from '../../../abi/index.ts';

const { MASKED_ATOMIC_CS, MASKED_ATOMIC_FA, NOP, RDMA_READ, RDMA_WRITE, RDMA_WRITE_IMM } = WqeOpcode;
const { ATOMIC_CS, ATOMIC_FA, SEND, SEND_IMM, SEND_INVAL } = WqeOpcode;

/** Bits of {@link operationTraits}. */
export const EXECUTABLE_BY_RC = 1;
export const EXECUTABLE_BY_UC = 2;
export const EXECUTABLE_BY_XRC = 128;
export const HAS_REMOTE_ADDRESS = 4;
export const IS_ATOMIC = 8;
const READ_OR_ATOMIC = 16;
const TAKES_CREDIT = 32;
/** Fast register, local invalidate, bind: carried out on this side. */
export const CHANGES_KEYS = 64;
const OPERATION_COUNT = 32;

/** Traits by operation. */
export const operationTraits = Uint8Array.from({ length: OPERATION_COUNT }, (_, opcode) => traitsOf(opcode));

/**
 * Returns the traits of an opcode. A connected QP executes operations that consume a credit, WRITE and NOP; a reliable
 * one also READ, atomics, SEND with Invalidate and operations on keys, and masked atomics unless it is XRC. Other
 * opcodes are known, and fail as local QP operation errors.
 */
function traitsOf(opcode: number): number {
  if (wqeOpcodeRows[opcode] === undefined) return 0;
  const isSend = opcode === SEND || opcode === SEND_IMM;
  const isMasked = opcode === MASKED_ATOMIC_CS || opcode === MASKED_ATOMIC_FA;
  const isAtomic = isMasked || opcode === ATOMIC_CS || opcode === ATOMIC_FA;
  const isAnswered = isAtomic || opcode === RDMA_READ;
  const hasCredit = isSend || opcode === RDMA_WRITE_IMM;
  const isExecutable = hasCredit || opcode === RDMA_WRITE || opcode === NOP;
  const changesKeys = isKeyOperation(opcode);
  const isOfReliable = isAnswered || changesKeys || opcode === SEND_INVAL;
  return (
    (isExecutable || isOfReliable ? EXECUTABLE_BY_RC : 0) |
    (isExecutable || (isOfReliable && !isMasked) ? EXECUTABLE_BY_XRC : 0) |
    (isExecutable ? EXECUTABLE_BY_UC : 0) |
    (opcode >= RDMA_WRITE && !isSend && !changesKeys ? HAS_REMOTE_ADDRESS : 0) |
    (isAtomic ? IS_ATOMIC : 0) |
    (isAnswered ? READ_OR_ATOMIC : 0) |
    (hasCredit || opcode === SEND_INVAL ? TAKES_CREDIT : 0) |
    (changesKeys ? CHANGES_KEYS : 0)
  );
}

/** READ and the atomics: requests that a response answers and that take responder resources. */
export function isReadOrAtomic(opcode: number): boolean {
  return (operationTraits[opcode]! & READ_OR_ATOMIC) !== 0;
}

/** Requests that consume a receive WQE at the responder, hence an end-to-end credit. */
export function takesCredit(opcode: number): boolean {
  return (operationTraits[opcode]! & TAKES_CREDIT) !== 0;
}

/** Fast register, local invalidate and bind. */
export function isKeyOperation(opcode: number): boolean {
  return opcode === WqeOpcode.FMR || opcode === WqeOpcode.LOCAL_INVAL || opcode === WqeOpcode.BIND_MW;
}
