/**
 * Packets of send requests: at most one is open, the one whose payload is being gathered. Segments are translated page by page
 * and read by DMA straight into the packet's slot, inline data is copied; sealed, the packet goes out in its order when its
 * reads are done. What is sent again is gathered again.
 */
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import type { BlockAccount } from '../../sim/index.ts';
import { Opcode } from '../../wire/opcodes.ts';
import * as packetConstants from '../../wire/packet.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import type { PacketQueue, PacketSlot } from './packet-queue.ts';
import * as pageFaults from './page-faults.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SendRecord } from './send-record.ts';
import * as translationCache from './translation-cache.ts';
import type { TranslationPort } from './translation-port.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLAG_ACK_REQUEST, FLAG_SOLICITED } = packetConstants;
const { PORT_REQUESTER } = coreConstants;
const { SIDE_REQUESTER } = pageFaults;
const { RIGHT_LOCAL_READ } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;
const { RDMA_READ } = WqeOpcode;

export const requesterStallReasons = ['context', 'translation', 'dma', 'transmitBuffer', 'records'] as const;
export const STALL_CONTEXT = 0;
export const STALL_TRANSLATION = 1;
export const STALL_DMA = 2;
export const STALL_TRANSMIT_BUFFER = 3;
export const STALL_RECORDS = 4;

/** What became of a packet: sealed; a segment is refused; it waits in the requester, for the reason accounted. */
export const SENT = 1;
export const REFUSED = 0;
export const STALLED = -1;
/** A page of the payload has been asked for: the QP waits for it, others go on. */
export const ABSENT = -2;

const NONE = -1;

export class RequestPackets {
  readonly #core: HcaCore;
  readonly #queue: PacketQueue;
  readonly #account: BlockAccount;
  readonly #readRequester: number;
  readonly #translation: TranslationPort;
  readonly #packetSealed: (cycle: number) => void;
  /** From the making of a packet until it can be sent. */
  readonly #latencyCycles: number;
  /** The open packet, its payload bytes whose reads are under way, and all that it takes. */
  #open: PacketSlot | undefined = undefined;
  #filled = 0;
  #wanted = 0;

  /** @param packetSealed told that a packet can be sent from a cycle on; one that waits for DMA reads tells by itself */
  constructor(
    core: HcaCore,
    queue: PacketQueue,
    account: BlockAccount,
    trafficClass: number,
    payloadRead: (slot: number, status: number, cycle: number) => void,
    packetSealed: (cycle: number) => void,
  ) {
    this.#core = core;
    this.#queue = queue;
    this.#account = account;
    this.#packetSealed = packetSealed;
    this.#translation = core.translator.port(PORT_REQUESTER);
    this.#latencyCycles = core.config.requestPacketCycles + core.config.transmitLatencyCycles;
    this.#readRequester = core.dmaRead.addRequester(
      { name: 'payloadRead', trafficClass, fifoDepth: 16, weight: 4 },
      payloadRead,
    );
  }

  onSpace(listener: () => void): void {
    this.#core.dmaRead.onSpace(this.#readRequester, listener);
  }

  /** Makes the packet of `request` at which the QP's cursor stands: SENT, REFUSED, STALLED or ABSENT. */
  send(pair: QueuePair, request: SendRecord, cycle: number): number {
    let packet = this.#open;
    if (packet === undefined) {
      if (this.#queue.isFull) {
        this.#account.stall(cycle, STALL_TRANSMIT_BUFFER);
        return STALLED;
      }
      packet = this.#queue.open(pair, pair.epoch, request);
      pair.inPipelineCount++;
      this.#open = packet;
      this.#filled = 0;
      this.#wanted = request.isReadOrAtomic === 1 ? 0 : payloadBytesOf(pair, request);
    }
    const gathered =
      request.isInline === 1
        ? this.#gatherInline(pair, request, packet)
        : this.#gather(pair, request, packet, cycle);
    if (gathered === SENT) this.#seal(pair, request, packet, cycle);
    return gathered;
  }

  /** Gives up an open packet of an epoch that is over. */
  abandonStale(epoch: number, cycle: number): void {
    if (this.#open !== undefined && this.#open.epoch !== epoch) this.abandon(cycle);
  }

  /** Leaves the open slot to be dropped when its reads are done. */
  abandon(cycle: number): void {
    const packet = this.#open!;
    packet.epoch = NONE;
    packet.isSealed = 1;
    this.#open = undefined;
    this.#packetSealed(cycle + 1);
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.#open = undefined;
  }

  /** Inline data is on chip already. */
  #gatherInline(pair: QueuePair, { inlineData }: SendRecord, packet: PacketSlot): number {
    const { sram } = this.#core;
    const from = pair.packetCursor * pair.mtuBytes;
    const to = packet.payloadOffset;
    for (let index = 0; index < this.#wanted; index++) sram[to + index] = inlineData[from + index]!;
    this.#filled = this.#wanted;
    return SENT;
  }

  /** Begins the DMA reads of the packet's payload, segment by segment and page by page. SENT: all of them. */
  #gather(pair: QueuePair, request: SendRecord, packet: PacketSlot, cycle: number): number {
    const { translator, dmaRead } = this.#core;
    while (this.#filled < this.#wanted) {
      let position = pair.packetCursor * pair.mtuBytes + this.#filled;
      let segment = request.segment(0);
      for (let index = 1; position >= segment.bytes; index++) {
        position -= segment.bytes;
        segment = request.segment(index);
      }
      const { key } = segment;
      const rest = segment.bytes - position;
      const address = segment.address + position;
      const left = this.#wanted - this.#filled;
      const wanted = rest < left ? rest : left;
      const found = this.#translation.translate(key, pair.pd, address, wanted, RIGHT_LOCAL_READ);
      if (found === PENDING) {
        this.#account.stall(cycle, STALL_TRANSLATION);
        return STALLED;
      }
      if (found >= BAD_KEY) return this.#missing(found, pair.slot, key, address, rest, cycle);
      if (!dmaRead.canRequest(this.#readRequester)) {
        this.#account.stall(cycle, STALL_DMA);
        return STALLED;
      }
      const bytes = translator.contiguousBytes;
      const target = packet.payloadOffset + this.#filled;
      packet.pendingReads++;
      dmaRead.request(this.#readRequester, translator.physicalAddress, bytes, target, packet.slot);
      this.#filled += bytes;
    }
    return SENT;
  }

  #missing(
    found: number,
    qp: number,
    key: number,
    address: number,
    lengthBytes: number,
    cycle: number,
  ): number {
    const { pageFaults: faults } = this.#core;
    const isAsked =
      found === PAGE_FAULT && faults.meet(qp, SIDE_REQUESTER, key, address, lengthBytes, 0, cycle);
    return isAsked ? ABSENT : REFUSED;
  }

  #seal(pair: QueuePair, request: SendRecord, packet: PacketSlot, cycle: number): void {
    const index = pair.packetCursor;
    const { opcode } = request;
    const isRead = opcode === RDMA_READ;
    const isLast = isRead || index === request.psnCount - 1;
    packet.opcode = packetOpcode(opcode, index === 0, isLast) | pair.opcodeBase;
    packet.psn = (request.firstPsn + index) & 0xffffff;
    packet.payloadBytes = this.#wanted;
    packet.address = request.remoteAddress;
    packet.key = request.remoteKey;
    packet.dmaBytes = request.messageBytes;
    if (isRead && index > 0) {
      const skipped = index * pair.mtuBytes;
      packet.address = request.remoteAddress + skipped;
      packet.dmaBytes = request.messageBytes - skipped;
    }
    packet.immediate = request.immediate;
    if (request.isReadOrAtomic === 1) packet.operands.set(request.operands);
    packet.isLast = isLast ? 1 : 0;
    packet.isRepeat = index < request.packetsSent ? 1 : 0;
    packet.flags = flagsOf(pair, request, isLast);
    packet.readyCycle = cycle + this.#latencyCycles;
    packet.isSealed = 1;
    this.#open = undefined;
    if (packet.pendingReads === 0) this.#packetSealed(packet.readyCycle);
  }
}

/** Payload of the packet at which the QP's cursor stands. */
function payloadBytesOf(pair: QueuePair, request: SendRecord): number {
  const left = request.messageBytes - pair.packetCursor * pair.mtuBytes;
  return left < pair.mtuBytes ? left : pair.mtuBytes;
}

function flagsOf(pair: QueuePair, request: SendRecord, isLast: boolean): number {
  pair.sinceAckRequest++;
  const solicited = isLast && request.isSolicited === 1 ? FLAG_SOLICITED : 0;
  if (pair.opcodeBase !== 0) return solicited;
  const asks = isLast || pair.sinceAckRequest >= pair.ackRequestEvery;
  if (asks) pair.sinceAckRequest = 0;
  return (asks ? FLAG_ACK_REQUEST : 0) | solicited;
}

/** RC opcode of a request packet by its place in the message (IBTA vol 1, table 38); other services add their base. */
export function packetOpcode(wqeOpcode: number, isFirst: boolean, isLast: boolean): number {
  return packetOpcodes[(wqeOpcode << 2) | (isFirst ? 2 : 0) | (isLast ? 1 : 0)]!;
}

const WQE_OPCODE_COUNT = 32;
const packetOpcodes = Uint8Array.from({ length: WQE_OPCODE_COUNT << 2 }, (_, at) =>
  packetOpcodeAt(at >> 2, (at & 2) !== 0, (at & 1) !== 0),
);

function packetOpcodeAt(wqeOpcode: number, isFirst: boolean, isLast: boolean): number {
  switch (wqeOpcode) {
    case WqeOpcode.RDMA_READ:
      return Opcode.RC_RDMA_READ_REQUEST;
    case WqeOpcode.ATOMIC_CS:
      return Opcode.RC_COMPARE_SWAP;
    case WqeOpcode.ATOMIC_FA:
      return Opcode.RC_FETCH_ADD;
    case WqeOpcode.RDMA_WRITE:
    case WqeOpcode.RDMA_WRITE_IMM: {
      const withImmediate = wqeOpcode === WqeOpcode.RDMA_WRITE_IMM;
      if (isFirst && isLast)
        return withImmediate ? Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_RDMA_WRITE_LAST_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_LAST;
      return isFirst ? Opcode.RC_RDMA_WRITE_FIRST : Opcode.RC_RDMA_WRITE_MIDDLE;
    }
    default: {
      const withImmediate = wqeOpcode === WqeOpcode.SEND_IMM;
      if (isFirst && isLast) return withImmediate ? Opcode.RC_SEND_ONLY_WITH_IMMEDIATE : Opcode.RC_SEND_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_SEND_LAST_WITH_IMMEDIATE : Opcode.RC_SEND_LAST;
      return isFirst ? Opcode.RC_SEND_FIRST : Opcode.RC_SEND_MIDDLE;
    }
  }
}
