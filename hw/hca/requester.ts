/**
 * The requester: takes up the WQE of the QP that the scheduler chose and turns it into packets.
 *
 *   scheduler ──QP──> take up WQE ──record──> per packet: translate, DMA read of the payload ──> packet queue
 *
 * One packet at a time, in order: a translation miss or a full fifo stops the requester (and is accounted for), as
 * in a pipeline without reordering. Gathered data may arrive in any order; the packet queue keeps the packets'.
 * After `burstPackets` packets another QP gets its turn. Checks of the WQE itself are made here, those of the remote
 * side by the responder. Clauses: IBTA vol 1, 9.7 (RC), 10.7 (ordering and fence), 9.7.7.2 (end-to-end credits).
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { QpState, ServiceType } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import { Opcode } from '../../wire/opcodes.ts';
import * as packetConstants from '../../wire/packet.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import { decodeDatagram, decodeManagement } from './datagram-decoder.ts';
import type { PacketQueue } from './packet-queue.ts';
import * as pageFaults from './page-faults.ts';
import type { PortAddress } from './port-address.ts';
import * as qpTable from './qp-table.ts';
import type { SendRecords } from './send-records.ts';
import * as sendRecords from './send-records.ts';
import type { SendScheduler } from './send-scheduler.ts';
import * as sendScheduler from './send-scheduler.ts';
import * as translationCache from './translation-cache.ts';
import * as translatorConstants from './translator.ts';
import { decodeControl, decodeWqe, isFenced, isReadOrAtomic, opcodeOf, takesCredit } from './wqe-decoder.ts';
import type { WqeFetch } from './wqe-fetch.ts';
import type { WqeLines } from './wqe-lines.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { FLAG_ACK_REQUEST, FLAG_SOLICITED } = packetConstants;
const { PORT_REQUESTER } = coreConstants;
const { SEGMENTS_MAX, UC_OPCODE_BASE, UD_OPCODE_BASE } = qpTable;
const { INLINE_BYTES_MAX } = sendRecords;
const { NOT_PARKED, PARKED_CREDITS, PARKED_DRAINING, PARKED_ERROR, PARKED_FENCE } = sendScheduler;
const { PARKED_PAGE_FAULT, PARKED_READ_LIMIT, PARKED_RECORDS, PARKED_WINDOW } = sendScheduler;
const { SIDE_REQUESTER } = pageFaults;
const { RIGHT_LOCAL_READ } = translationCache;
const { BAD_KEY, PAGE_FAULT, PENDING } = translatorConstants;

const STALL_CONTEXT = 0;
const STALL_TRANSLATION = 1;
const STALL_DMA = 2;
const STALL_TRANSMIT_BUFFER = 3;
const STALL_RECORDS = 4;

/** The QP has nothing to send now: ask the scheduler for another. */
const NOTHING = 0;
/** Waits inside the requester for the reason accounted. */
const STALLED = -1;
/** A page of the payload has been asked for: the QP waits for it, others go on. */
const ABSENT = -2;

export interface RequesterListener {
  /** A packet is complete and can be sent from `cycle` on; one that waits for DMA reads tells by itself. */
  packetSealed(cycle: number): void;
  /** A record stands at the head of its QP's list with an error found on this side. */
  recordFailed(qp: number, cycle: number): void;
  /** A NOP at the head of its list needs no acknowledgement. */
  recordNeedsNoAnswer(qp: number, cycle: number): void;
}

export class Requester {
  readonly account = new BlockAccount('requester', [
    'context',
    'translation',
    'dma',
    'transmitBuffer',
    'records',
  ]);
  readonly #core: HcaCore;
  readonly #records: SendRecords;
  readonly #packets: PacketQueue;
  readonly #lines: WqeLines;
  readonly #fetch: WqeFetch;
  readonly #listener: RequesterListener;
  readonly #address: PortAddress;
  readonly #readRequester: number;
  readonly #stage: number;
  /** QPs that found no record free, in turn, each once. */
  readonly #waitingForRecord: Fifo;
  readonly #isWaitingForRecord: Uint8Array;
  #scheduler: SendScheduler | undefined;

  /** QP being served, packets sent in its turn, and the packet being gathered. */
  #active = -1;
  #burst = 0;
  #slot = -1;
  #filled = 0;
  #wanted = 0;

  constructor(
    core: HcaCore,
    records: SendRecords,
    packets: PacketQueue,
    lines: WqeLines,
    fetch: WqeFetch,
    trafficClass: number,
    payloadRead: (slot: number, status: number, cycle: number) => void,
    listener: RequesterListener,
    address: PortAddress,
  ) {
    this.#core = core;
    this.#records = records;
    this.#packets = packets;
    this.#lines = lines;
    this.#fetch = fetch;
    this.#listener = listener;
    this.#address = address;
    this.#waitingForRecord = new Fifo(core.qps.capacity);
    this.#isWaitingForRecord = new Uint8Array(core.qps.capacity);
    this.#readRequester = core.dmaRead.addRequester(
      { name: 'payloadRead', trafficClass, fifoDepth: 16, weight: 4 },
      payloadRead,
    );
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    const wake = (cycle: number): void => core.domain.wake(this.#stage, cycle);
    core.translator.attach(PORT_REQUESTER, wake);
    core.qpcCache.attach(PORT_REQUESTER, wake);
    core.dmaRead.onSpace(this.#readRequester, () => wake(core.domain.cycle + 1));
  }

  connect(scheduler: SendScheduler): void {
    this.#scheduler = scheduler;
  }

  wake(cycle: number): void {
    this.#core.domain.wake(this.#stage, cycle);
  }

  /** A slot of the packet queue became free. */
  slotFreed(cycle: number): void {
    if (this.account.isStalledFor(STALL_TRANSMIT_BUFFER)) this.wake(cycle + 1);
  }

  /** A record became free. */
  recordFreed(cycle: number): void {
    if (this.account.isStalledFor(STALL_RECORDS)) this.wake(cycle + 1);
  }

  /** True while the requester has a packet of this QP half gathered. */
  isServing(qp: number): boolean {
    return this.#active === qp;
  }

  reset(): void {
    this.#active = -1;
    this.#slot = -1;
    this.#waitingForRecord.clear();
    this.#isWaitingForRecord.fill(0);
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#active === -1) {
      if (!this.#waitingForRecord.isEmpty && this.#records.freeCount > 0) this.#resumeWaiting(cycle);
      this.#active = this.#scheduler!.take(cycle);
      this.#burst = 0;
      if (this.#active === -1) {
        if (this.#waitingForRecord.isEmpty) this.account.rest(cycle);
        else this.account.stall(cycle, STALL_RECORDS);
        const next = this.#scheduler!.nextCycle;
        if (next < Number.POSITIVE_INFINITY) this.wake(Math.max(next, cycle + 1));
        return;
      }
    }
    const busyCycles = this.#serve(this.#active, cycle);
    if (busyCycles === STALLED) return;
    if (busyCycles === NOTHING) {
      this.#active = -1;
      return this.wake(cycle + 1);
    }
    this.account.serve(cycle, busyCycles);
    const next = this.#active === -1 ? this.#scheduler!.nextCycle : 0;
    if (next < Number.POSITIVE_INFINITY) this.wake(Math.max(next, cycle + busyCycles));
  }

  /** One step for `qp`: cycles it takes, NOTHING or STALLED. */
  #serve(qp: number, cycle: number): number {
    const { qps, qpcCache, config } = this.#core;
    const pair = qps.rows[qp]!;
    if (this.#slot !== -1 && this.#packets.rows[this.#slot]!.epoch !== pair.epoch) this.#abandonPacket(cycle);
    const state = pair.state;
    if ((state !== QpState.RTS && state !== QpState.SQD) || pair.parkedFor !== NOT_PARKED) {
      this.#fetch.release(qp, cycle);
      return NOTHING;
    }
    if (!qpcCache.access(PORT_REQUESTER, qp, true)) {
      this.account.stall(cycle, STALL_CONTEXT);
      return STALLED;
    }
    let busyCycles = 0;
    if (pair.recordCursor === -1) {
      const taken = this.#takeUp(qp, cycle);
      if (taken !== 1) return taken;
      busyCycles = config.wqeDecodeCycles;
      if (pair.recordCursor === -1) {
        this.#endTurn(qp, cycle);
        return busyCycles;
      }
    }
    const sent = this.#sendPacket(qp, pair.recordCursor, cycle);
    if (sent === STALLED) return STALLED;
    return busyCycles + sent;
  }

  /** Makes a record of the next WQE. Returns 1, NOTHING (parked, or no WQE on chip) or STALLED. */
  #takeUp(qp: number, cycle: number): number {
    const { qps, sramView, config } = this.#core;
    const pair = qps.rows[qp]!;
    const line = pair.wqeLine;
    this.#fetch.release(qp, cycle);
    if (line === -1 || this.#lines.validCount[line] === 0) {
      const mayHaveMore = line !== -1 && this.#lines.mayHaveMore[line] === 1;
      if (pair.hasDoorbell === 1 || mayHaveMore) this.#fetch.ask(qp, cycle);
      return NOTHING;
    }
    const at = this.#lines.firstPlace(line, pair.sqStrideBytes);
    const reason = this.#reasonToPark(qp, opcodeOf(sramView, at), isFenced(sramView, at));
    if (reason !== NOT_PARKED) {
      this.#scheduler!.park(qp, reason);
      return NOTHING;
    }
    if (this.#records.freeCount === 0) {
      this.#waitForRecord(qp);
      return NOTHING;
    }
    this.#makeRecord(qp, line, at, cycle);
    this.#lines.hitCount++;
    this.#lines.touch(line);
    this.#lines.advance(line);
    this.#fetchAhead(qp, line, cycle);
    pair.sqCounter = (pair.sqCounter + 1) & 0xffff;
    if (pair.recordCount > config.outstandingWqesPerQp) throw new RangeError('send window overrun');
    return 1;
  }

  /** Looks for more WQEs while the last ones on chip are executed: a prefetch that ran out of them would stop the QP. */
  #fetchAhead(qp: number, line: number, cycle: number): void {
    const isRunningLow = this.#lines.validCount[line]! < this.#core.config.wqePrefetchCount;
    if (isRunningLow && this.#lines.mayHaveMore[line] === 1) this.#fetch.ask(qp, cycle);
  }

  /** Lets other QPs go on, whose packets may be what frees a record. */
  #waitForRecord(qp: number): void {
    this.#scheduler!.park(qp, PARKED_RECORDS);
    if (this.#isWaitingForRecord[qp] === 1) return;
    this.#isWaitingForRecord[qp] = 1;
    this.#waitingForRecord.push(qp, 0);
  }

  #resumeWaiting(cycle: number): void {
    const qp = this.#waitingForRecord.pop();
    this.#isWaitingForRecord[qp] = 0;
    if (this.#core.qps.rows[qp]!.parkedFor === PARKED_RECORDS) this.#scheduler!.unpark(qp, cycle);
    if (!this.#waitingForRecord.isEmpty) this.wake(cycle + 1);
  }

  #reasonToPark(qp: number, opcode: number, fenced: boolean): number {
    const { qps, config } = this.#core;
    const pair = qps.rows[qp]!;
    if (pair.state === QpState.SQD) return PARKED_DRAINING;
    const newest = pair.recordTail;
    if (newest !== -1 && this.#records.rows[newest]!.syndrome !== 0) return PARKED_ERROR;
    if (pair.recordCount >= config.outstandingWqesPerQp) return PARKED_WINDOW;
    if (fenced && pair.readsOutstanding > 0) return PARKED_FENCE;
    if (isReadOrAtomic(opcode) && pair.readsOutstanding >= pair.readsOutstandingMax) return PARKED_READ_LIMIT;
    // With no credit left one message may still go out as a probe, when nothing else is under way (9.7.7.2.5).
    const limit = pair.ssnLimit;
    if (
      limit !== -1 &&
      takesCredit(opcode) &&
      pair.recordCount > 0 &&
      ((limit - pair.ssn - 1) & 0x800000) !== 0
    ) {
      return PARKED_CREDITS;
    }
    return NOT_PARKED;
  }

  #makeRecord(qp: number, line: number, at: number, cycle: number): void {
    const { qps, sram, sramView } = this.#core;
    const records = this.#records;
    const record = records.allocate();
    const pair = qps.rows[qp]!;
    const request = records.rows[record]!;
    request.firstPsn = pair.nextPsn;
    const syndrome =
      pair.opcodeBase === 0
        ? decodeWqe(sramView, sram, at, records, record)
        : this.#decodeUnreliable(qp, at, record);
    request.qp = qp;
    request.isDone = 0;
    request.next = -1;
    request.wqeCounter = pair.sqCounter;
    request.packetsSent = 0;
    request.responsesReceived = 0;
    const tooLong = request.messageBytes > this.#messageBytesMax(qp);
    request.syndrome = syndrome !== 0 ? syndrome : tooLong ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
    records.takenUp(record, this.#lines.fetchBegunCycle(line), this.#lines.fetchedCycle(line), cycle);
    const isEmptyList = pair.recordTail === -1;
    if (isEmptyList) pair.recordHead = record;
    else records.rows[pair.recordTail]!.next = record;
    pair.recordTail = record;
    pair.recordCount++;
    if (request.syndrome !== 0 || request.opcode === WqeOpcode.NOP) {
      request.psnCount = 0;
      this.#makeRecordWithoutPackets(qp, record, isEmptyList, cycle);
      return;
    }
    const packets = Math.max(1, Math.ceil(request.messageBytes / pair.mtuBytes));
    request.psnCount = packets;
    pair.nextPsn = (pair.nextPsn + packets) & 0xffffff;
    pair.ssn = (pair.ssn + 1) & 0xffffff;
    request.ssn = pair.ssn;
    if (request.isReadOrAtomic === 1) pair.readsOutstanding++;
    pair.recordCursor = record;
    pair.packetCursor = 0;
  }

  /** The WQE of a UC, UD or special QP. A service that is not transported can send nothing. */
  #decodeUnreliable(qp: number, at: number, record: number): number {
    const { qps, sram, sramView } = this.#core;
    const records = this.#records;
    const pair = qps.rows[qp]!;
    const base = pair.opcodeBase;
    if (base === UC_OPCODE_BASE) return decodeWqe(sramView, sram, at, records, record, false);
    if (base !== UD_OPCODE_BASE) {
      decodeControl(sramView, at, records, record);
      return CqeSyndrome.LOCAL_QP_OP_ERR;
    }
    return pair.serviceType === ServiceType.MLX
      ? decodeManagement(sramView, sram, at, records, record, this.#address)
      : decodeDatagram(sramView, sram, at, records, record, qps, qp, this.#address);
  }

  /** A datagram is one packet. */
  #messageBytesMax(qp: number): number {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    const limit = pair.messageBytesMax;
    return pair.opcodeBase === UD_OPCODE_BASE ? Math.min(limit, pair.mtuBytes) : limit;
  }

  #makeRecordWithoutPackets(qp: number, record: number, isHead: boolean, cycle: number): void {
    if (this.#records.rows[record]!.syndrome !== 0) {
      this.#scheduler!.park(qp, PARKED_ERROR);
      if (isHead) this.#listener.recordFailed(qp, cycle);
    } else if (isHead) {
      this.#listener.recordNeedsNoAnswer(qp, cycle);
    }
  }

  /** Gathers and seals the next packet of `record`. Returns the cycles it takes, or STALLED. */
  #sendPacket(qp: number, record: number, cycle: number): number {
    const { qps, config } = this.#core;
    const records = this.#records;
    const request = records.rows[record]!;
    if (this.#slot === -1) {
      if (this.#packets.isFull) {
        this.account.stall(cycle, STALL_TRANSMIT_BUFFER);
        return STALLED;
      }
      const pair = qps.rows[qp]!;
      this.#slot = this.#packets.open(qp, pair.epoch, record);
      pair.inPipelineCount++;
      this.#filled = 0;
      this.#wanted =
        request.isReadOrAtomic === 1
          ? 0
          : Math.min(pair.mtuBytes, request.messageBytes - pair.packetCursor * pair.mtuBytes);
    }
    const gathered =
      request.isInline === 1 ? this.#gatherInline(qp, record) : this.#gather(qp, record, cycle);
    if (gathered !== 1) return this.#leavePacket(qp, record, gathered, cycle);
    this.#seal(qp, record, cycle);
    this.#afterPacket(qp, record, cycle);
    return config.requestPacketCycles;
  }

  /** The packet waits in the requester, is taken up again when its page is there, or fails. */
  #leavePacket(qp: number, record: number, gathered: number, cycle: number): number {
    if (gathered === STALLED) return STALLED;
    if (gathered === ABSENT) {
      this.#abandonPacket(cycle);
      this.#scheduler!.park(qp, PARKED_PAGE_FAULT);
      this.#active = -1;
    } else {
      this.#failRecord(qp, record, CqeSyndrome.LOCAL_PROT_ERR, cycle);
    }
    return 1;
  }

  /** Inline data is on chip already. */
  #gatherInline(qp: number, record: number): number {
    const { qps, sram } = this.#core;
    const pair = qps.rows[qp]!;
    const from = record * INLINE_BYTES_MAX + pair.packetCursor * pair.mtuBytes;
    const to = this.#packets.payloadOffset(this.#slot);
    const data = this.#records.inlineData;
    for (let index = 0; index < this.#wanted; index++) sram[to + index] = data[from + index]!;
    this.#filled = this.#wanted;
    return 1;
  }

  /** Begins the DMA reads of the packet's payload, segment by segment and page by page. NOTHING: a segment is refused; or ABSENT. */
  #gather(qp: number, record: number, cycle: number): number {
    const { qps, translator, dmaRead } = this.#core;
    const records = this.#records;
    while (this.#filled < this.#wanted) {
      const position = this.#findSegment(qp, record);
      const index = record * SEGMENTS_MAX + this.#segment;
      const address = records.segmentAddress[index]! + position;
      const wanted = Math.min(records.segmentBytes[index]! - position, this.#wanted - this.#filled);
      const key = records.segmentKey[index]!;
      const found = translator.translate(
        PORT_REQUESTER,
        key,
        qps.rows[qp]!.pd,
        address,
        wanted,
        RIGHT_LOCAL_READ,
      );
      if (found === PENDING) {
        this.account.stall(cycle, STALL_TRANSLATION);
        return STALLED;
      }
      if (found >= BAD_KEY) {
        const rest = records.segmentBytes[index]! - position;
        const isAsked =
          found === PAGE_FAULT &&
          this.#core.pageFaults.meet(qp, SIDE_REQUESTER, key, address, rest, 0, cycle);
        return isAsked ? ABSENT : NOTHING;
      }
      if (!dmaRead.canRequest(this.#readRequester)) {
        this.account.stall(cycle, STALL_DMA);
        return STALLED;
      }
      const bytes = Math.min(translator.contiguousBytes, wanted);
      const target = this.#packets.payloadOffset(this.#slot) + this.#filled;
      this.#packets.rows[this.#slot]!.pendingReads++;
      dmaRead.request(this.#readRequester, translator.physicalAddress, bytes, target, this.#slot);
      this.#filled += bytes;
    }
    return 1;
  }

  #segment = 0;

  /** Segment that holds the next byte of the packet, left in #segment; returns the byte's place in it. */
  #findSegment(qp: number, record: number): number {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    let position = pair.packetCursor * pair.mtuBytes + this.#filled;
    let segment = 0;
    while (position >= this.#records.segmentBytes[record * SEGMENTS_MAX + segment]!) {
      position -= this.#records.segmentBytes[record * SEGMENTS_MAX + segment]!;
      segment++;
    }
    this.#segment = segment;
    return position;
  }

  #seal(qp: number, record: number, cycle: number): void {
    const { qps, config } = this.#core;
    const records = this.#records;
    const packets = this.#packets;
    const slot = this.#slot;
    const pair = qps.rows[qp]!;
    const index = pair.packetCursor;
    const packet = packets.rows[slot]!;
    const request = records.rows[record]!;
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
    for (let word = 0; word < 4; word++)
      packets.operands[slot * 4 + word] = records.operands[record * 4 + word]!;
    packet.isLast = isLast ? 1 : 0;
    packet.isRepeat = index < request.packetsSent ? 1 : 0;
    packet.flags = this.#flagsOf(qp, record, isLast);
    packet.readyCycle = cycle + config.requestPacketCycles + config.transmitLatencyCycles;
    packet.isSealed = 1;
    this.#slot = -1;
    if (packet.pendingReads === 0) this.#listener.packetSealed(packet.readyCycle);
  }

  #flagsOf(qp: number, record: number, isLast: boolean): number {
    const { qps } = this.#core;
    const pair = qps.rows[qp]!;
    pair.sinceAckRequest++;
    const solicited = isLast && this.#records.rows[record]!.isSolicited === 1 ? FLAG_SOLICITED : 0;
    if (pair.opcodeBase !== 0) return solicited;
    const asks = isLast || pair.sinceAckRequest >= pair.ackRequestEvery;
    if (asks) pair.sinceAckRequest = 0;
    return (asks ? FLAG_ACK_REQUEST : 0) | solicited;
  }

  #afterPacket(qp: number, record: number, cycle: number): void {
    const { qps, config } = this.#core;
    const records = this.#records;
    const request = records.rows[record]!;
    const isRead = request.opcode === WqeOpcode.RDMA_READ;
    const pair = qps.rows[qp]!;
    const sent = isRead ? request.psnCount : pair.packetCursor + 1;
    if (sent > request.packetsSent) request.packetsSent = sent;
    this.#burst++;
    if (sent >= request.psnCount) {
      this.#moveCursor(qp, record);
      this.#endTurn(qp, cycle);
    } else {
      pair.packetCursor = sent;
      if (this.#burst >= config.burstPackets) {
        this.#active = -1;
        this.#scheduler!.makeReady(qp, cycle + config.requestPacketCycles);
      }
    }
  }

  /** To the next record that has packets to send: after going back there may be several. */
  #moveCursor(qp: number, record: number): void {
    const { qps } = this.#core;
    let next = this.#records.rows[record]!.next;
    while (next !== -1 && this.#records.rows[next]!.psnCount === 0) next = this.#records.rows[next]!.next;
    const pair = qps.rows[qp]!;
    pair.recordCursor = next;
    pair.packetCursor = next === -1 ? 0 : this.#records.rows[next]!.responsesReceived;
  }

  #endTurn(qp: number, cycle: number): void {
    this.#active = -1;
    this.#scheduler!.makeReadyLater(qp, cycle + this.#core.config.sameQpIntervalCycles);
  }

  /** A segment was refused: the packet is void, and the record fails once all before it are complete. */
  #failRecord(qp: number, record: number, syndrome: number, cycle: number): void {
    const { qps } = this.#core;
    this.#records.rows[record]!.syndrome = syndrome;
    this.#abandonPacket(cycle);
    const pair = qps.rows[qp]!;
    pair.recordCursor = -1;
    this.#scheduler!.park(qp, PARKED_ERROR);
    this.#active = -1;
    if (pair.recordHead === record) this.#listener.recordFailed(qp, cycle);
  }

  /** Leaves the open slot to be dropped when its reads are done. */
  #abandonPacket(cycle: number): void {
    this.#packets.rows[this.#slot]!.epoch = -1;
    this.#packets.rows[this.#slot]!.isSealed = 1;
    this.#slot = -1;
    this.#listener.packetSealed(cycle + 1);
  }
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
