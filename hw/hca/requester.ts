/**
 * The requester: takes up the WQE of the QP that the scheduler chose and turns it into packets.
 *
 *   scheduler ──QP──> take up WQE ──record──> per packet: translate, DMA read of the payload ──> packet queue
 *
 * WQEs become records in record-maker.ts, packets are made in request-packets.ts; here is whose turn it is and what is to be
 * waited for. One packet at a time, in order: a translation miss or a full fifo stops the requester (and is accounted for), as
 * in a pipeline without reordering. Gathered data may arrive in any order; the packet queue keeps the packets'.
 * After `burstPackets` packets another QP gets its turn. Checks of the WQE itself are made here, those of the remote
 * side by the responder. Clauses: IBTA vol 1, 9.7 (RC), 10.7 (ordering and fence), 9.7.7.2 (end-to-end credits).
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { QpState } from '../../abi/qpc.ts';
import { WqeOpcode } from '../../abi/wqe-opcodes.ts';
import { BlockAccount, Fifo } from '../../sim/index.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import type { PacketQueue } from './packet-queue.ts';
import type { PortAddress } from './port-address.ts';
import type { QueuePair } from './queue-pair.ts';
import { RecordMaker } from './record-maker.ts';
import * as requestPackets from './request-packets.ts';
import { RequestPackets, requesterStallReasons } from './request-packets.ts';
import type { SendRecords } from './send-records.ts';
import type { SendScheduler } from './send-scheduler.ts';
import * as sendScheduler from './send-scheduler.ts';
import { isFenced, isReadOrAtomic, opcodeOf, takesCredit } from './wqe-decoder.ts';
import type { WqeFetch } from './wqe-fetch.ts';
import type { WqeLine, WqeLines } from './wqe-lines.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { PORT_REQUESTER } = coreConstants;
const { ABSENT, SENT, STALL_CONTEXT, STALL_RECORDS, STALL_TRANSMIT_BUFFER, STALLED } = requestPackets;
const { NOT_PARKED, PARKED_CREDITS, PARKED_DRAINING, PARKED_ERROR, PARKED_FENCE } = sendScheduler;
const { PARKED_PAGE_FAULT, PARKED_READ_LIMIT, PARKED_RECORDS, PARKED_WINDOW } = sendScheduler;

/** The QP has nothing to send now: ask the scheduler for another. */
const NOTHING = 0;

export interface RequesterListener {
  /** A packet is complete and can be sent from `cycle` on; one that waits for DMA reads tells by itself. */
  packetSealed(cycle: number): void;
  /** A record stands at the head of its QP's list with an error found on this side. */
  recordFailed(qp: number, cycle: number): void;
  /** A NOP at the head of its list needs no acknowledgement. */
  recordNeedsNoAnswer(qp: number, cycle: number): void;
}

export class Requester {
  readonly account = new BlockAccount('requester', requesterStallReasons);
  readonly #core: HcaCore;
  readonly #records: SendRecords;
  readonly #packets: RequestPackets;
  readonly #maker: RecordMaker;
  readonly #lines: WqeLines;
  readonly #fetch: WqeFetch;
  readonly #listener: RequesterListener;
  readonly #stage: number;
  /** QPs that found no record free, in turn, each once. */
  readonly #waitingForRecord: Fifo;
  readonly #isWaitingForRecord: Uint8Array;
  #scheduler: SendScheduler | undefined;

  /** QP being served, and packets sent in its turn. */
  #active = -1;
  #burst = 0;

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
    this.#lines = lines;
    this.#fetch = fetch;
    this.#listener = listener;
    this.#maker = new RecordMaker(core, records, lines, address);
    this.#waitingForRecord = new Fifo(core.qps.capacity);
    this.#isWaitingForRecord = new Uint8Array(core.qps.capacity);
    this.#packets = new RequestPackets(
      core,
      records,
      packets,
      this.account,
      trafficClass,
      payloadRead,
      (cycle) => listener.packetSealed(cycle),
    );
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    const wake = (cycle: number): void => core.domain.wake(this.#stage, cycle);
    core.translator.attach(PORT_REQUESTER, wake);
    core.qpcCache.attach(PORT_REQUESTER, wake);
    this.#packets.onSpace(() => wake(core.domain.cycle + 1));
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
    this.#packets.reset();
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
    this.#packets.abandonStale(pair.epoch, cycle);
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
      const taken = this.#takeUp(qp, pair, cycle);
      if (taken !== 1) return taken;
      busyCycles = config.wqeDecodeCycles;
      if (pair.recordCursor === -1) {
        this.#endTurn(qp, cycle);
        return busyCycles;
      }
    }
    const record = pair.recordCursor;
    const sent = this.#packets.send(qp, pair, record, cycle);
    if (sent === STALLED) return STALLED;
    if (sent !== SENT) return busyCycles + this.#leavePacket(sent, qp, record, cycle);
    this.#afterPacket(qp, pair, record, cycle);
    return busyCycles + config.requestPacketCycles;
  }

  /** Makes a record of the next WQE. Returns 1, NOTHING (parked, or no WQE on chip) or STALLED. */
  #takeUp(qp: number, pair: QueuePair, cycle: number): number {
    const { sramView, config } = this.#core;
    const line = pair.wqeLine;
    this.#fetch.release(qp, cycle);
    const held = line === -1 ? undefined : this.#lines.rows[line]!;
    if (held === undefined || held.validCount === 0) {
      if (pair.hasDoorbell === 1 || held?.mayHaveMore === 1) this.#fetch.ask(qp, cycle);
      return NOTHING;
    }
    const at = this.#lines.firstPlace(line, pair.sqStrideBytes);
    const reason = this.#reasonToPark(pair, opcodeOf(sramView, at), isFenced(sramView, at));
    if (reason !== NOT_PARKED) {
      this.#scheduler!.park(qp, reason);
      return NOTHING;
    }
    if (this.#records.freeCount === 0) {
      this.#waitForRecord(qp);
      return NOTHING;
    }
    const record = this.#maker.make(qp, line, at, cycle);
    if (this.#records.rows[record]!.psnCount === 0) this.#endWithoutPackets(qp, pair, record, cycle);
    this.#lines.use(line);
    this.#fetchAhead(qp, held, cycle);
    pair.sqCounter = (pair.sqCounter + 1) & 0xffff;
    if (pair.recordCount > config.outstandingWqesPerQp) throw new RangeError('send window overrun');
    return 1;
  }

  /** Looks for more WQEs while the last ones on chip are executed: a prefetch that ran out of them would stop the QP. */
  #fetchAhead(qp: number, line: WqeLine, cycle: number): void {
    const isRunningLow = line.validCount < this.#core.config.wqePrefetchCount;
    if (isRunningLow && line.mayHaveMore === 1) this.#fetch.ask(qp, cycle);
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

  #reasonToPark(pair: QueuePair, opcode: number, fenced: boolean): number {
    const { config } = this.#core;
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

  /** A WQE that cannot be executed, or a NOP. */
  #endWithoutPackets(qp: number, pair: QueuePair, record: number, cycle: number): void {
    const isHead = pair.recordHead === record;
    if (this.#records.rows[record]!.syndrome !== 0) {
      this.#scheduler!.park(qp, PARKED_ERROR);
      if (isHead) this.#listener.recordFailed(qp, cycle);
    } else if (isHead) {
      this.#listener.recordNeedsNoAnswer(qp, cycle);
    }
  }

  /** The packet is taken up again when its page is there, or fails. Returns the cycles that takes. */
  #leavePacket(left: number, qp: number, record: number, cycle: number): number {
    if (left === ABSENT) {
      this.#packets.abandon(cycle);
      this.#scheduler!.park(qp, PARKED_PAGE_FAULT);
      this.#active = -1;
    } else {
      this.#failRecord(qp, record, CqeSyndrome.LOCAL_PROT_ERR, cycle);
    }
    return 1;
  }

  #afterPacket(qp: number, pair: QueuePair, record: number, cycle: number): void {
    const { config } = this.#core;
    const request = this.#records.rows[record]!;
    const isRead = request.opcode === WqeOpcode.RDMA_READ;
    const sent = isRead ? request.psnCount : pair.packetCursor + 1;
    if (sent > request.packetsSent) request.packetsSent = sent;
    this.#burst++;
    if (sent >= request.psnCount) {
      this.#moveCursor(pair, request.next);
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
  #moveCursor(pair: QueuePair, following: number): void {
    const { rows } = this.#records;
    let next = following;
    while (next !== -1 && rows[next]!.psnCount === 0) next = rows[next]!.next;
    pair.recordCursor = next;
    pair.packetCursor = next === -1 ? 0 : rows[next]!.responsesReceived;
  }

  #endTurn(qp: number, cycle: number): void {
    this.#active = -1;
    this.#scheduler!.makeReadyLater(qp, cycle + this.#core.config.sameQpIntervalCycles);
  }

  /** A segment was refused: the packet is void, and the record fails once all before it are complete. */
  #failRecord(qp: number, record: number, syndrome: number, cycle: number): void {
    const { qps } = this.#core;
    this.#records.rows[record]!.syndrome = syndrome;
    this.#packets.abandon(cycle);
    const pair = qps.rows[qp]!;
    pair.recordCursor = -1;
    this.#scheduler!.park(qp, PARKED_ERROR);
    this.#active = -1;
    if (pair.recordHead === record) this.#listener.recordFailed(qp, cycle);
  }
}
