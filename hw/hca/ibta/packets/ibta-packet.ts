/** A packet of the IBTA transport on its way to the wire: the header fields of its slot. */
import type { Wide } from '../../../../base/index.ts';
import { Opcode } from '../../../../wire/index.ts';
import { noRecord, type QueuePair, UD_OPCODE_BASE } from '../../objects/index.ts';
import { PacketSlot } from '../../packets/index.ts';

/** Fields that are not Wide hold 32-bit integers. */
export class IbtaPacket extends PacketSlot {
  opcode = 0;
  psn = 0;
  flags = 0;
  address: Wide = 0;
  addressTop = 0;
  key: Wide = 0;
  dmaBytes = 0;
  aeth = 0;
  immediate = 0;
  /** The bit of BECN in a response, or 0. */
  becn = 0;
  /** Operands of an atomic request (4 words, 8 with masks) or the result of an atomic (2 words). */
  readonly operands = new Int32Array(8);
}

/** Whether it is a datagram's packet; not a CNP, whose opcode is greater, but which is a connection's. */
export const isDatagram = ({ opcode, request }: IbtaPacket): boolean =>
  opcode >= UD_OPCODE_BASE && request !== noRecord;

const SERVICE_MASK = 0xe0;
const CNP_SERVICE = Opcode.CNP & SERVICE_MASK;

/** Opcode of the packet on the wire: with the service of its QP, unless it is a CNP, which has one of its own. */
export const wireOpcodeOf = ({ opcode, pair }: IbtaPacket): number =>
  (opcode & SERVICE_MASK) === CNP_SERVICE ? opcode : opcode | pair.serviceBits;

/** See PacketQueue. */
export const makeIbtaPacket = (slot: number, payloadOffset: number, pair: QueuePair): IbtaPacket =>
  new IbtaPacket(slot, payloadOffset, pair);
