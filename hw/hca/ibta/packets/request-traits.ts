/**
 * Properties of a packet's opcode: whether it is a request and, for a request of a connection, the kind of message to
 * which it belongs and the checks that its position in the message requires.
 */
import {
  endsMessage,
  hasImmediate,
  isKnownOpcode,
  isRequest,
  Opcode,
  startsMessage,
} from '../../../../wire/index.ts';
import { UC_OPCODE_BASE, XRC_SERVICE } from '../../objects/index.ts';

/** Kinds of messages. READs and atomics are single packets and have kind NONE. */
export const MESSAGE_NONE = 0;
export const MESSAGE_SEND = 1;
export const MESSAGE_WRITE = 2;
/** The packet is not a request of a connection. */
export const MESSAGE_UNKNOWN = -1;

/** Traits, as bits of {@link traitsByOpcode}. */
export const STARTS_MESSAGE = 1 << 0;
export const ENDS_MESSAGE = 1 << 1;
export const HAS_IMMEDIATE = 1 << 2;
/** The first packet of a SEND, the last one of a WRITE with immediate. */
export const TAKES_RECEIVE_WQE = 1 << 3;
export const COMPLETES_RECEIVE_WQE = 1 << 4;
/** A service modelled here uses the opcode; the packet is a request, not a response. */
export const IS_KNOWN = 1 << 5;
export const IS_REQUEST = 1 << 6;
/** A SEND that requests the invalidation of a key. */
export const HAS_INVALIDATE = 1 << 7;
/** The kind of message, from MESSAGE_UNKNOWN on, is in the bits above. */
const KIND_SHIFT = 8;

/** READ and the atomics. */
const singleOpcodes: readonly number[] = [
  Opcode.RC_RDMA_READ_REQUEST,
  Opcode.RC_COMPARE_SWAP,
  Opcode.RC_FETCH_ADD,
  Opcode.RC_MASKED_COMPARE_SWAP,
  Opcode.RC_MASKED_FETCH_ADD,
];

const OPCODE_COUNT = 256;
/** Bits of an opcode that name the service. */
const SERVICE_MASK = 0xe0;
export const traitsByOpcode = Uint16Array.from({ length: OPCODE_COUNT }, (_, opcode) => traitsOf(opcode));

/** MESSAGE_ kind of an opcode of these traits. */
export const messageKind = (traits: number): number => (traits >> KIND_SHIFT) - 1;

function messageKindOf(opcode: number): number {
  if ((opcode & SERVICE_MASK) === XRC_SERVICE) return messageKindOf(opcode - XRC_SERVICE);
  if (opcode >= UC_OPCODE_BASE) {
    const isUnreliable = opcode <= Opcode.UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    return isUnreliable ? messageKindOf(opcode - UC_OPCODE_BASE) : MESSAGE_UNKNOWN;
  }
  if (opcode <= Opcode.RC_SEND_ONLY_WITH_IMMEDIATE) return MESSAGE_SEND;
  if (opcode <= Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE) return MESSAGE_WRITE;
  if (asksForInvalidation(opcode)) return MESSAGE_SEND;
  return singleOpcodes.includes(opcode) ? MESSAGE_NONE : MESSAGE_UNKNOWN;
}

function asksForInvalidation(opcode: number): boolean {
  return opcode === Opcode.RC_SEND_LAST_WITH_INVALIDATE || opcode === Opcode.RC_SEND_ONLY_WITH_INVALIDATE;
}

function traitsOf(opcode: number): number {
  const kind = messageKindOf(opcode);
  const isSend = kind === MESSAGE_SEND;
  const starts = startsMessage(opcode);
  const ends = endsMessage(opcode);
  const withImmediate = hasImmediate(opcode);
  return (
    (starts ? STARTS_MESSAGE : 0) |
    (ends ? ENDS_MESSAGE : 0) |
    (withImmediate ? HAS_IMMEDIATE : 0) |
    ((isSend ? starts : withImmediate) ? TAKES_RECEIVE_WQE : 0) |
    (ends && (isSend || withImmediate) ? COMPLETES_RECEIVE_WQE : 0) |
    (isKnownOpcode(opcode) ? IS_KNOWN : 0) |
    (isRequest(opcode) ? IS_REQUEST : 0) |
    (kind !== MESSAGE_UNKNOWN && asksForInvalidation(opcode & ~SERVICE_MASK) ? HAS_INVALIDATE : 0) |
    ((kind - MESSAGE_UNKNOWN) << KIND_SHIFT)
  );
}
