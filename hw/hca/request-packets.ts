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
import type { PacketQueue } from './packet-queue.ts';
import * as pageFaults from './page-faults.ts';
import * as qpTable from './qp-table.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SendRecord } from './send-record.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';
import * as translationCache from './translation-cache.ts';
import * as translatorConstants from './translator.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLAG_ACK_REQUEST, FLAG_SOLICITED } = packetConstants;
const { PORT_REQUESTER } = coreConstants;
const { SEGMENTS_MAX } = qpTable;
const { INLINE_BYTES_MAX } = sendRecords;
const { SIDE_REQUESTER } = pageFaults;
const { RIGHT_LOCAL_READ } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;

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
  readonly #records: SendRecords;
  readonly #queue: PacketQueue;
  readonly #account: BlockAccount;
  readonly #readRequester: number;
  readonly #packetSealed: (cycle: number) => void;
  /** Of the open packet: its slot, payload bytes whose reads are under way, and all that it takes. */
  #slot = NONE;
  #filled = 0;
  #wanted = 0;
  /** Segment that {@link #findSegment} found. */
  #segment = 0;

  /** @param packetSealed told that a packet can be sent from a cycle on; one that waits for DMA reads tells by itself */
  constructor(
    core: HcaCore,
    records: SendRecords,
    queue: PacketQueue,
    account: BlockAccount,
    trafficClass: number,
    payloadRead: (slot: number, status: number, cycle: number) => void,
    packetSealed: (cycle: number) => void,
  ) {
    this.#core = core;
    this.#records = records;
    this.#queue = queue;
    this.#account = account;
    this.#packetSealed = packetSealed;
    this.#readRequester = core.dmaRead.addRequester(
      { name: 'payloadRead', trafficClass, fifoDepth: 16, weight: 4 },
      payloadRead,
    );
  }

  onSpace(listener: () => void): void {
    this.#core.dmaRead.onSpace(this.#readRequester, listener);
  }

  /** Makes the packet of `record` at which the QP's cursor stands: SENT, REFUSED, STALLED or ABSENT. */
  send(qp: number, pair: QueuePair, record: number, cycle: number): number {
    const request = this.#records.rows[record]!;
    if (this.#slot === NONE) {
      if (this.#queue.isFull) {
        this.#account.stall(cycle, STALL_TRANSMIT_BUFFER);
        return STALLED;
      }
      this.#slot = this.#queue.open(qp, pair.epoch, record);
      pair.inPipelineCount++;
      this.#filled = 0;
      this.#wanted = request.isReadOrAtomic === 1 ? 0 : payloadBytesOf(pair, request);
    }
    const gathered =
      request.isInline === 1 ? this.#gatherInline(pair, record) : this.#gather(qp, pair, record, cycle);
    if (gathered === SENT) this.#seal(pair, request, record, cycle);
    return gathered;
  }

  /** Gives up an open packet of an epoch that is over. */
  abandonStale(epoch: number, cycle: number): void {
    if (this.#slot !== NONE && this.#queue.rows[this.#slot]!.epoch !== epoch) this.abandon(cycle);
  }

  /** Leaves the open slot to be dropped when its reads are done. */
  abandon(cycle: number): void {
    const packet = this.#queue.rows[this.#slot]!;
    packet.epoch = NONE;
    packet.isSealed = 1;
    this.#slot = NONE;
    this.#packetSealed(cycle + 1);
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.#slot = NONE;
  }

  /** Inline data is on chip already. */
  #gatherInline(pair: QueuePair, record: number): number {
    const { sram } = this.#core;
    const from = record * INLINE_BYTES_MAX + pair.packetCursor * pair.mtuBytes;
    const to = this.#queue.payloadOffset(this.#slot);
    const data = this.#records.inlineData;
    for (let index = 0; index < this.#wanted; index++) sram[to + index] = data[from + index]!;
    this.#filled = this.#wanted;
    return SENT;
  }

  /** Begins the DMA reads of the packet's payload, segment by segment and page by page. SENT: all of them. */
  #gather(qp: number, pair: QueuePair, record: number, cycle: number): number {
    const { translator, dmaRead } = this.#core;
    const records = this.#records;
    while (this.#filled < this.#wanted) {
      const position = this.#findSegment(pair, record);
      const index = record * SEGMENTS_MAX + this.#segment;
      const rest = records.segmentBytes[index]! - position;
      const address = records.segmentAddress[index]! + position;
      const wanted = Math.min(rest, this.#wanted - this.#filled);
      const key = records.segmentKey[index]!;
      const found = translator.translate(PORT_REQUESTER, key, pair.pd, address, wanted, RIGHT_LOCAL_READ);
      if (found === PENDING) {
        this.#account.stall(cycle, STALL_TRANSLATION);
        return STALLED;
      }
      if (found >= BAD_KEY) return this.#missing(found, qp, key, address, rest, cycle);
      if (!dmaRead.canRequest(this.#readRequester)) {
        this.#account.stall(cycle, STALL_DMA);
        return STALLED;
      }
      const slot = this.#slot;
      const bytes = Math.min(translator.contiguousBytes, wanted);
      const target = this.#queue.payloadOffset(slot) + this.#filled;
      this.#queue.rows[slot]!.pendingReads++;
      dmaRead.request(this.#readRequester, translator.physicalAddress, bytes, target, slot);
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

  /** Segment that holds the next byte of the packet, left in #segment; returns the byte's place in it. */
  #findSegment(pair: QueuePair, record: number): number {
    const { segmentBytes } = this.#records;
    let position = pair.packetCursor * pair.mtuBytes + this.#filled;
    let index = record * SEGMENTS_MAX;
    while (position >= segmentBytes[index]!) position -= segmentBytes[index++]!;
    this.#segment = index - record * SEGMENTS_MAX;
    return position;
  }

  #seal(pair: QueuePair, request: SendRecord, record: number, cycle: number): void {
    const { config } = this.#core;
    const slot = this.#slot;
    const packet = this.#queue.rows[slot]!;
    const index = pair.packetCursor;
    const isRead = request.opcode === WqeOpcode.RDMA_READ;
    const isLast = isRead || index === request.psnCount - 1;
    packet.opcode = packetOpcode(request.opcode, index === 0, isLast) | pair.opcodeBase;
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
    if (request.isReadOrAtomic === 1) this.#copyOperands(slot, record);
    packet.isLast = isLast ? 1 : 0;
    packet.isRepeat = index < request.packetsSent ? 1 : 0;
    packet.flags = flagsOf(pair, request, isLast);
    packet.readyCycle = cycle + config.requestPacketCycles + config.transmitLatencyCycles;
    packet.isSealed = 1;
    this.#slot = NONE;
    if (packet.pendingReads === 0) this.#packetSealed(packet.readyCycle);
  }

  #copyOperands(slot: number, record: number): void {
    const { operands } = this.#records;
    for (let word = 0; word < 4; word++) this.#queue.operands[slot * 4 + word] = operands[record * 4 + word]!;
  }
}

/** Payload of the packet at which the QP's cursor stands. */
function payloadBytesOf(pair: QueuePair, request: SendRecord): number {
  return Math.min(pair.mtuBytes, request.messageBytes - pair.packetCursor * pair.mtuBytes);
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
