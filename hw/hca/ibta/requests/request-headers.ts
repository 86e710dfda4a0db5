/** The headers of request packets: opcode and flags of the BTH, RETH, AtomicETH, immediate (IBTA vol 1, 9.2, 9.3, table 38). */
import { WqeOpcode } from '../../../../abi/index.ts';
import { FLAG_ACK_REQUEST, FLAG_SOLICITED, Opcode } from '../../../../wire/index.ts';
import type { QueuePair, SendRecord } from '../../objects/index.ts';
import type { IbtaPacket } from '../packets/index.ts';

/** Fills in all but the PSN of a packet of `request`. */
export function fillRequest(packet: IbtaPacket, pair: QueuePair, request: SendRecord): void {
  const { isLast } = packet;
  const place = (packet.index === 0 ? IS_FIRST : 0) | (isLast ? IS_LAST : 0);
  packet.opcode = packetOpcodes[(request.opcode << 2) | place]! | pair.opcodeBase;
  packet.address = request.remoteAddress;
  packet.addressTop = request.remoteAddressTop;
  packet.key = request.remoteKey;
  packet.dmaBytes = request.messageBytes;
  packet.immediate = request.immediate;
  if (request.isReadOrAtomic === 1) askForRest(packet, request);
  packet.flags = flagsOf(pair, request, isLast);
}

/** Sets the rest of a READ that is requested again, and the operands of an atomic. */
function askForRest(packet: IbtaPacket, { operands, opcode, remoteAddress, messageBytes }: SendRecord): void {
  packet.operands.set(operands);
  if (opcode !== WqeOpcode.RDMA_READ) return;
  packet.address = remoteAddress + packet.firstByte;
  packet.dmaBytes = messageBytes - packet.firstByte;
}

function flagsOf(pair: QueuePair, request: SendRecord, isLast: boolean): number {
  pair.sinceAckRequest++;
  const solicited = isLast && request.isSolicited === 1 ? FLAG_SOLICITED : 0;
  if (pair.opcodeBase !== 0) return solicited;
  const asks = isLast || pair.sinceAckRequest >= pair.ackRequestEvery;
  if (asks) pair.sinceAckRequest = 0;
  return (asks ? FLAG_ACK_REQUEST : 0) | solicited;
}

/** Place of a packet in its message, as bits. */
const IS_FIRST = 2;
const IS_LAST = 1;
const WQE_OPCODE_COUNT = 32;
/** RC opcodes of request packets by WQE opcode and place. */
const packetOpcodes = Uint8Array.from({ length: WQE_OPCODE_COUNT << 2 }, (_, at) =>
  packetOpcode(at >> 2, (at & IS_FIRST) !== 0, (at & IS_LAST) !== 0),
);

/** RC opcode of a request packet by its place in the message (IBTA vol 1, table 38); other services add their base. */
function packetOpcode(wqeOpcode: number, isFirst: boolean, isLast: boolean): number {
  switch (wqeOpcode) {
    case WqeOpcode.RDMA_READ:
      return Opcode.RC_RDMA_READ_REQUEST;
    case WqeOpcode.ATOMIC_CS:
      return Opcode.RC_COMPARE_SWAP;
    case WqeOpcode.ATOMIC_FA:
      return Opcode.RC_FETCH_ADD;
    case WqeOpcode.MASKED_ATOMIC_CS:
      return Opcode.RC_MASKED_COMPARE_SWAP;
    case WqeOpcode.MASKED_ATOMIC_FA:
      return Opcode.RC_MASKED_FETCH_ADD;
    case WqeOpcode.RDMA_WRITE:
    case WqeOpcode.RDMA_WRITE_IMM: {
      const withImmediate = wqeOpcode === WqeOpcode.RDMA_WRITE_IMM;
      if (isFirst && isLast)
        return withImmediate ? Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_RDMA_WRITE_LAST_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_LAST;
      return isFirst ? Opcode.RC_RDMA_WRITE_FIRST : Opcode.RC_RDMA_WRITE_MIDDLE;
    }
    case WqeOpcode.SEND_INVAL:
      if (isLast) return isFirst ? Opcode.RC_SEND_ONLY_WITH_INVALIDATE : Opcode.RC_SEND_LAST_WITH_INVALIDATE;
      return isFirst ? Opcode.RC_SEND_FIRST : Opcode.RC_SEND_MIDDLE;
    default: {
      const withImmediate = wqeOpcode === WqeOpcode.SEND_IMM;
      if (isFirst && isLast) return withImmediate ? Opcode.RC_SEND_ONLY_WITH_IMMEDIATE : Opcode.RC_SEND_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_SEND_LAST_WITH_IMMEDIATE : Opcode.RC_SEND_LAST;
      return isFirst ? Opcode.RC_SEND_FIRST : Opcode.RC_SEND_MIDDLE;
    }
  }
}
