/**
 * The data path of the HCA: everything between a doorbell and its completion. This file only wires the blocks and
 * answers the command processor ({@link DataPathControl}).
 *
 *   doorbells ─> scheduler ─> requester ─> packet queue ─> transmitter ─> wire port
 *                  ^   ^          │ WQE fetch, translator, DMA reads
 *                  │   └──────────┘
 *                                                            └─> loopback ─┐
 *   acknowledgements <─ receiver <─────────────────────────────────────────┴── wire port
 *          │               └─> responder ─> payload writes, response engine ─> packet queue ─> transmitter
 *          └──────> completion writer <─┘        (receive-WQE fetch)
 */
import { CqeSyndrome } from '../../abi/cqe.ts';
import { EventType } from '../../abi/eqe.ts';
import { QpState } from '../../abi/qpc.ts';
import type { BlockAccount, ClockDomain, LogicalProcess } from '../../sim/index.ts';
import { TrafficClass } from '../dma/traffic-class.ts';
import { Acknowledgements } from './acknowledgements.ts';
import { type AsyncEventSink, AsyncEvents } from './async-events.ts';
import { type CompletionEvents, CompletionWriter } from './completion-writer.ts';
import type { ContextCache } from './context-cache.ts';
import { makeContextCache } from './context-cache-parts.ts';
import type { HcaCore } from './core.ts';
import * as coreConstants from './core.ts';
import { CqTable } from './cq-table.ts';
import type { DataPathControl } from './data-path-control.ts';
import { DatagramReceiver } from './datagram-receiver.ts';
import type { DmaReads, DmaWrites, SramAllocator } from './dma-ports.ts';
import { type DoorbellGeometry, Doorbells } from './doorbells.ts';
import { Flusher } from './flusher.ts';
import type { IcmMap } from './icm.ts';
import { Loopback } from './loopback.ts';
import type { MulticastGroups } from './multicast-groups.ts';
import { OperationLedger, type OperationTap } from './operations.ts';
import type { PacketPort } from './packet-port.ts';
import * as packetQueue from './packet-queue.ts';
import * as pageFaults from './page-faults.ts';
import { PageFaults, type PageRequestSink } from './page-faults.ts';
import { PageFence } from './page-fence.ts';
import type { HcaConfig } from './parameters.ts';
import { PayloadWriter } from './payload-writer.ts';
import type { PortAddress } from './port-address.ts';
import { QpTable } from './qp-table.ts';
import { ReceiveScatter } from './receive-scatter.ts';
import { ReceiveWqeFetch, receiveFetchSramBytes } from './receive-wqe-fetch.ts';
import { ReceivedPackets } from './received-packets.ts';
import { Receiver, type SpecialQps } from './receiver.ts';
import { Requester } from './requester.ts';
import { Responder } from './responder.ts';
import { ResponseEngine } from './response-engine.ts';
import { RetryTimers } from './retry-timers.ts';
import * as sendRecords from './send-records.ts';
import { SendRecords } from './send-records.ts';
import * as sendScheduler from './send-scheduler.ts';
import { SendScheduler } from './send-scheduler.ts';
import { SrqTable } from './srq-table.ts';
import * as translationCache from './translation-cache.ts';
import { MptCache, MttCache } from './translation-cache.ts';
import { Translator } from './translator.ts';
import { Transmitter } from './transmitter.ts';
import { ViolationCounters } from './violation-counters.ts';
import { WqeFetch } from './wqe-fetch.ts';
import * as wqeLines from './wqe-lines.ts';
import { WqeLines } from './wqe-lines.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { PORT_COUNT } = coreConstants;
const { PACKET_PAYLOAD_BYTES_MAX } = packetQueue;
const { MILESTONE_GATHERED, MILESTONE_TRANSMITTED } = sendRecords;
const { NOT_PARKED, PARKED_DRAINING, PARKED_ERROR, PARKED_PAGE_FAULT, PARKED_RNR } = sendScheduler;
const { SIDE_REQUESTER, SIDE_RESPONSE } = pageFaults;
const { MTT_LINE_BYTES } = translationCache;
const { WQE_LINE_BYTES } = wqeLines;

export interface DataPathTables {
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
}

/** The contexts the device can hold. */
export function makeTables(config: HcaConfig): DataPathTables {
  return {
    qps: new QpTable(config.qpCountMax),
    cqs: new CqTable(config.cqCountMax),
    srqs: new SrqTable(config.srqCountMax),
  };
}

export interface DataPathSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly tables: DataPathTables;
  readonly icm: IcmMap;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: SramAllocator;
  readonly port: PacketPort;
  /** The addresses of the port. */
  readonly address: PortAddress;
  readonly specialQps: SpecialQps;
  readonly groups: MulticastGroups;
  readonly events: AsyncEventSink &
    PageRequestSink &
    CompletionEvents & { eqDoorbell(eqn: number, consumer: number, arm: boolean, cycle: number): void };
  readonly geometry: DoorbellGeometry;
  readonly tap: OperationTap | undefined;
}

export class DataPath implements DataPathControl {
  readonly core: HcaCore;
  readonly tables: DataPathTables;
  readonly violations = new ViolationCounters();
  readonly mptCache: MptCache;
  readonly mttCache: MttCache;
  readonly qpcCache: ContextCache;
  readonly cqcCache: ContextCache;
  readonly srqcCache: ContextCache;
  readonly lines: WqeLines;
  readonly records: SendRecords;
  readonly operations: OperationLedger;
  readonly doorbells: Doorbells;
  readonly scheduler: SendScheduler;
  readonly wqeFetch: WqeFetch;
  readonly requester: Requester;
  readonly transmitter: Transmitter;
  readonly loopback: Loopback;
  readonly receiver: Receiver;
  readonly responder: Responder;
  readonly datagrams: DatagramReceiver;
  readonly responses: ResponseEngine;
  readonly receives: ReceiveWqeFetch;
  readonly acknowledgements: Acknowledgements;
  readonly timers: RetryTimers;
  readonly completions: CompletionWriter;
  readonly flusher: Flusher;
  readonly asyncEvents: AsyncEvents;
  readonly writer: PayloadWriter;
  readonly pageFaults: PageFaults;
  readonly #fence: PageFence;

  constructor(setup: DataPathSetup) {
    const { config, tables, sram, domain, lp, port, icm, dmaRead, dmaWrite, events } = setup;
    const { qps, cqs, srqs } = tables;
    this.tables = tables;
    this.mptCache = new MptCache(config.mptCacheEntries, config.mptCacheWays, config.cacheReplacement);
    this.mttCache = new MttCache(config.mttCacheLines, config.mttCacheWays, config.cacheReplacement);
    const translator = this.#makeTranslator(setup);
    this.pageFaults = new PageFaults(domain, qps, events);
    const caches = this.#makeContextCaches(setup);
    [this.qpcCache, this.cqcCache, this.srqcCache] = caches;
    this.core = {
      lp,
      domain,
      config,
      qps,
      cqs,
      srqs,
      icm,
      translator,
      pageFaults: this.pageFaults,
      dmaRead,
      dmaWrite,
      sram: sram.bytes,
      sramView: new DataView(sram.bytes.buffer, sram.bytes.byteOffset, sram.bytes.byteLength),
      qpcCache: this.qpcCache,
      cqcCache: this.cqcCache,
      srqcCache: this.srqcCache,
      violations: this.violations,
    };
    const core = this.core;
    this.records = new SendRecords(config.outstandingWqes);
    this.operations = new OperationLedger(this.records, domain.clock, qps.numberOf, setup.tap);
    this.lines = new WqeLines(config.wqeLineCount, sram.allocate(config.wqeLineCount * WQE_LINE_BYTES));
    this.completions = new CompletionWriter(
      core,
      events,
      TrafficClass.cqe,
      TrafficClass.doorbellRecord,
      sram.allocate(CompletionWriter.sramBytes),
    );
    this.asyncEvents = new AsyncEvents(domain, events);
    this.loopback = new Loopback(config);
    this.transmitter = new Transmitter(
      core,
      port,
      this.loopback,
      setup.address,
      this.records,
      sram.allocate(config.transmitBufferPackets * PACKET_PAYLOAD_BYTES_MAX),
      sram.allocate(config.responseBufferPackets * PACKET_PAYLOAD_BYTES_MAX),
    );
    const packets = new ReceivedPackets(port, this.loopback);
    this.writer = new PayloadWriter(dmaWrite, packets, TrafficClass.payloadWrite);
    this.receives = new ReceiveWqeFetch(
      core,
      TrafficClass.wqeRead,
      TrafficClass.doorbellRecord,
      sram.allocate(receiveFetchSramBytes(config.receiveQueueLineCount, qps.capacity + srqs.capacity)),
      (cycle) => this.receiver.wake(cycle),
    );
    this.responses = this.#makeResponses(sram);
    this.receiver = new Receiver(
      core,
      port,
      this.loopback,
      packets,
      setup.address,
      this.writer,
      setup.specialQps,
      setup.groups,
    );
    this.timers = new RetryTimers(core);
    this.scheduler = new SendScheduler(qps, (cycle) => this.requester.wake(cycle));
    this.wqeFetch = new WqeFetch(core, this.lines, TrafficClass.wqeRead, {
      wqesFetched: (qp, cycle) => this.#wqesFetched(qp, cycle),
      wqeFetchFailed: (qp, cycle) => this.#queueFailed(qp, cycle),
    });
    this.requester = this.#makeRequester(setup.address);
    this.acknowledgements = new Acknowledgements(
      core,
      packets,
      this.writer,
      this.records,
      this.completions,
      this.scheduler,
      this.timers,
      this.receiver.account,
      {
        qpFailed: (qp, cycle) => this.#fail(qp, cycle),
        recordCompletedSilently: (record, cycle) => this.#recordDone(record, cycle, true),
        localCompletionWaits: (qp) => this.#waitingForCompletion.add(qp),
      },
    );
    const scatter = new ReceiveScatter(core, this.writer, this.receives, this.receiver.account);
    this.datagrams = new DatagramReceiver(
      core,
      packets,
      scatter,
      this.completions,
      this.receiver.account,
      setup.address,
      { qpRefused: (qp, eventType, cycle) => this.#refused(qp, eventType, cycle) },
    );
    this.responder = new Responder(
      core,
      packets,
      scatter,
      this.responses,
      this.completions,
      this.receiver.account,
      {
        qpRefused: (qp, eventType, cycle) => this.#refused(qp, eventType, cycle),
        communicationEstablished: (qp, cycle) => this.#communicationEstablished(qp, cycle),
      },
    );
    this.flusher = new Flusher(
      core,
      this.lines,
      this.wqeFetch,
      this.receives,
      this.completions,
      this.acknowledgements,
    );
    this.flusher.onUnstartedFlushed = (opcode) => this.operations.flushedUnstarted(opcode);
    this.doorbells = new Doorbells(core, this.lines, setup.geometry, {
      sendRequested: (qp, cycle) => this.#sendRequested(qp, cycle),
      cqArmed: (cq, command, consumer, cycle) => this.completions.arm(cq, command, consumer, cycle),
      eqDoorbell: (eqn, consumer, isArm, cycle) => events.eqDoorbell(eqn, consumer, isArm, cycle),
      translationsInvalidated: () => translator.forgetMtt(),
    });
    this.#fence = new PageFence(this.writer, this.responses, this.transmitter);
    this.#connect();
  }

  /** The cycle accounts of all blocks. */
  get accounts(): readonly BlockAccount[] {
    return [
      this.doorbells.account,
      this.wqeFetch.account,
      this.requester.account,
      this.transmitter.account,
      this.receiver.account,
      this.responses.account,
      this.receives.account,
      this.completions.account,
      this.flusher.account,
      this.asyncEvents.account,
    ];
  }

  // ---- DataPathControl ----

  qpCreated(slot: number): void {
    this.core.qps.create(slot);
    this.core.translator.forgetMtt();
    this.qpcCache.forget(slot);
    this.responses.open(slot);
    this.timers.forget(slot);
    this.flusher.forget(slot);
    this.pageFaults.forget(slot);
    this.receives.open(slot);
  }

  qpModified(slot: number, previousState: number): void {
    const { qps, domain } = this.core;
    qps.load(slot, previousState);
    const pair = qps.rows[slot]!;
    const state = pair.state;
    const cycle = domain.cycle;
    if (state === QpState.RTR && previousState === QpState.INIT) {
      const queue = this.receives.queueOf(slot);
      if (queue === slot) this.receives.prefetch(queue, cycle);
    }
    if (state !== QpState.RTS) return;
    if (pair.parkedFor === PARKED_DRAINING) this.scheduler.unpark(slot, cycle + 1);
    if (pair.hasDoorbell === 1) this.scheduler.makeReady(slot, cycle + 1);
  }

  qpToError(slot: number): void {
    this.#fail(slot, this.core.domain.cycle);
    this.responses.dropRequests(slot);
  }

  qpDestroyed(slot: number): void {
    const { qps } = this.core;
    const pair = qps.rows[slot]!;
    pair.state = QpState.RST;
    pair.epoch++;
    pair.parkedFor = NOT_PARKED;
    pair.isScheduled = 0;
    pair.messageKind = 0;
    this.acknowledgements.dropAll(slot);
    this.responses.drop(slot);
    this.timers.forget(slot);
    this.flusher.forget(slot);
    this.pageFaults.forget(slot);
    this.receives.close(slot);
    this.wqeFetch.release(slot, this.core.domain.cycle);
    const line = pair.wqeLine;
    if (line !== -1 && this.lines.isFetching[line] === 0) this.lines.free(line);
    pair.wqeLine = -1;
    this.qpcCache.forget(slot);
    this.requester.wake(this.core.domain.cycle + 1);
    this.receiver.wake(this.core.domain.cycle + 1);
  }

  qpSync(slot: number): void {
    this.core.qps.sync(slot);
  }

  qpIsBusy(slot: number): boolean {
    return (
      this.core.qps.rows[slot]!.inPipelineCount > 0 ||
      this.requester.isServing(slot) ||
      this.receiver.isServing(slot) ||
      this.responses.isBusy(slot) ||
      this.receives.isBusy(slot)
    );
  }

  qpIsDraining(slot: number): boolean {
    const { qps } = this.core;
    const pair = qps.rows[slot]!;
    const isWorking = pair.recordHead !== -1 || pair.inPipelineCount > 0;
    return pair.state === QpState.SQD && isWorking;
  }

  cqCreated(slot: number): void {
    this.core.cqs.create(slot);
    this.core.translator.forgetMtt();
    this.cqcCache.forget(slot);
  }

  cqDestroyed(slot: number): void {
    this.core.cqs.rows[slot]!.armState = 0;
    this.cqcCache.forget(slot);
  }

  cqResized(slot: number, oldLogSize: number, oldLogPageSize: number, oldMttAddress: number): void {
    this.core.cqs.load(slot);
    this.core.translator.forgetMtt();
    this.completions.postResize(slot, oldLogSize, 2 ** (12 + oldLogPageSize), oldMttAddress);
  }

  cqModerated(slot: number): void {
    this.core.cqs.load(slot);
  }

  cqSync(slot: number): void {
    this.core.cqs.sync(slot);
  }

  cqIsBusy(slot: number): boolean {
    return this.core.cqs.rows[slot]!.inPipelineCount > 0;
  }

  srqCreated(slot: number): void {
    this.core.srqs.load(slot);
    this.core.translator.forgetMtt();
    this.srqcCache.forget(slot);
    this.receives.open(this.receives.srqQueue(slot));
  }

  srqDestroyed(slot: number): void {
    this.receives.close(this.receives.srqQueue(slot));
    this.srqcCache.forget(slot);
  }

  srqArmed(slot: number): void {
    this.core.srqs.load(slot);
  }

  srqIsBusy(slot: number): boolean {
    return this.receives.isBusy(this.receives.srqQueue(slot));
  }

  srqSync(slot: number): void {
    const queue = this.receives.srqQueue(slot);
    this.core.srqs.sync(slot, this.receives.postedCounter(queue), this.receives.consumedCounter(queue));
  }

  mptChanged(index: number): void {
    this.core.translator.forgetMpt(index);
  }

  translationChanged(): void {
    this.core.translator.forgetAll();
  }

  invalidatePages(): void {
    this.core.translator.forgetMtt();
    this.#fence.begin();
  }

  pagesAreFree(): boolean {
    return this.#fence.isPassed();
  }

  pagesResumed(token: number, isRefused: boolean): boolean {
    return this.pageFaults.resume(token, isRefused, this.core.domain.cycle);
  }

  boundWindowCount(_mptIndex: number): number {
    return 0;
  }

  portChanged(_isUp: boolean): void {
    this.transmitter.wake(this.core.domain.cycle + 1);
  }

  reset(): void {
    const { qps } = this.core;
    for (const slot of qps.liveSlots()) {
      this.acknowledgements.dropAll(slot);
      this.timers.forget(slot);
      this.flusher.forget(slot);
      const pair = qps.rows[slot]!;
      pair.state = QpState.RST;
      pair.epoch++;
      pair.inPipelineCount = 0;
      pair.isScheduled = 0;
    }
    const blocks = [
      this.doorbells,
      this.scheduler,
      this.wqeFetch,
      this.requester,
      this.transmitter,
      this.receives,
      this.responses,
    ];
    for (const block of blocks) block.reset();
    this.receiver.reset();
    this.writer.reset();
    this.loopback.reset();
    this.#waitingForCompletion.clear();
    this.pageFaults.reset();
    for (const block of [this.completions, this.flusher, this.asyncEvents, this.core.translator])
      block.reset();
    for (const cache of [this.qpcCache, this.cqcCache, this.srqcCache]) cache.reset();
  }

  // ---- wiring ----

  #makeTranslator(setup: DataPathSetup): Translator {
    const { config, icm, dmaRead, sram } = setup;
    const holder: { translator?: Translator } = {};
    const readRequester = dmaRead.addRequester(
      { name: 'translation', trafficClass: TrafficClass.translation, fifoDepth: PORT_COUNT, weight: 4 },
      (translatorPort, status, cycle) => holder.translator!.fillDone(translatorPort, status, cycle),
    );
    const translator = new Translator({
      mptCache: this.mptCache,
      mttCache: this.mttCache,
      missCycles: config.cacheMissCycles,
      portCount: PORT_COUNT,
      icm,
      dmaRead,
      readRequester,
      sram: sram.bytes,
      sramOffset: sram.allocate(2 * PORT_COUNT * MTT_LINE_BYTES),
    });
    holder.translator = translator;
    dmaRead.onSpace(readRequester, () => translator.retryTurnedAway(setup.domain.cycle + 1));
    return translator;
  }

  #makeContextCaches(setup: DataPathSetup): [ContextCache, ContextCache, ContextCache] {
    const { config, tables } = setup;
    const { qps, cqs, srqs } = tables;
    return [
      makeContextCache(setup, 'qpc', qps, config.qpcCacheEntries, config.qpcCacheWays, (slot) =>
        qps.sync(slot),
      ),
      makeContextCache(setup, 'cqc', cqs, config.cqcCacheEntries, config.cqcCacheWays, (slot) =>
        cqs.sync(slot),
      ),
      makeContextCache(setup, 'srqc', srqs, config.srqcCacheEntries, config.srqcCacheWays, (slot) =>
        this.srqSync(slot),
      ),
    ];
  }

  #makeResponses(sram: SramAllocator): ResponseEngine {
    const packets = this.transmitter.responses;
    return new ResponseEngine(
      this.core,
      packets,
      this.writer,
      { payloadRead: TrafficClass.payloadRead, payloadWrite: TrafficClass.payloadWrite },
      sram.allocate(64),
      (slot, status, cycle) => this.transmitter.payloadArrived(packets, slot, status, cycle),
      {
        knownReceives: (qp) => this.receives.knownAvailable(this.receives.queueOf(qp)),
        packetSealed: (cycle) => this.transmitter.wake(cycle),
        responseFailed: (qp, cycle) => this.#refused(qp, EventType.WQ_ACCESS_ERROR, cycle),
      },
    );
  }

  #makeRequester(address: PortAddress): Requester {
    const packets = this.transmitter.requests;
    return new Requester(
      this.core,
      this.records,
      packets,
      this.lines,
      this.wqeFetch,
      TrafficClass.payloadRead,
      (slot, status, cycle) => {
        const packet = packets.rows[slot]!;
        if (packet.isLast === 1) this.records.setMilestone(packet.record, MILESTONE_GATHERED, cycle);
        this.transmitter.payloadArrived(packets, slot, status, cycle);
      },
      {
        packetSealed: (cycle) => this.transmitter.wake(cycle),
        recordFailed: (qp, cycle) => this.#completeLocally(qp, cycle),
        recordNeedsNoAnswer: (qp, cycle) => this.#completeLocally(qp, cycle),
      },
      address,
    );
  }

  #connect(): void {
    const { qps } = this.core;
    this.requester.connect(this.scheduler);
    this.receiver.connect(this.responder, this.acknowledgements, this.datagrams);
    this.receives.onLimit = (srq, cycle) =>
      this.asyncEvents.post(EventType.SRQ_LIMIT, this.core.srqs.numberOf[srq]!, 0, cycle);
    this.writer.attach(
      (cycle) => this.responses.payloadLeft(cycle),
      () => this.receiver.wake(this.core.domain.cycle + 1),
    );
    this.completions.connect({
      cqeIssued: (record, cycle) => {
        if (record !== -1) this.#recordDone(record, cycle, false);
      },
      cqeDiscarded: (record, cycle) => {
        this.records.release(record);
        this.requester.recordFreed(cycle);
      },
      cqFailed: (cq, syndrome, cycle) => this.#cqFailed(cq, syndrome, cycle),
      completionSpace: (cycle) => this.#completionSpace(cycle),
    });
    this.transmitter.connect({
      requestSent: (record, qp, isLast, cycle) => {
        if (isLast === 1) this.records.setMilestone(record, MILESTONE_TRANSMITTED, cycle);
        if (qps.rows[qp]!.opcodeBase !== 0) return this.#sentForGood(record, qp, isLast, cycle);
        this.timers.sent(qp, this.core.domain.clock.edgePs(cycle));
      },
      payloadFailed: (record, qp, cycle) => this.#payloadFailed(record, qp, cycle),
      requestSlotFreed: (cycle) => this.requester.slotFreed(cycle),
      responseSlotFreed: (cycle) => this.responses.slotFreed(cycle),
    });
    this.pageFaults.connect({
      resumed: (qp, side, cycle) => {
        if (side === SIDE_RESPONSE) this.responses.resume(qp, cycle);
        if (side === SIDE_REQUESTER && qps.rows[qp]!.parkedFor === PARKED_PAGE_FAULT)
          this.scheduler.unpark(qp, cycle + 1);
      },
    });
    this.timers.connect({
      ackTimedOut: (qp, cycle) => this.#ackTimedOut(qp, cycle),
      rnrWaitOver: (qp, cycle) => {
        if (qps.rows[qp]!.parkedFor === PARKED_RNR) this.scheduler.unpark(qp, cycle + 1);
      },
    });
  }

  // ---- events between blocks ----

  #sendRequested(qp: number, cycle: number): void {
    if (this.core.qps.rows[qp]!.state === QpState.ERR) this.flusher.goOn(qp, cycle);
    else this.scheduler.makeReady(qp, cycle + this.core.config.scheduleCycles);
  }

  #wqesFetched(qp: number, cycle: number): void {
    const { qps } = this.core;
    const pair = qps.rows[qp]!;
    if (pair.parkedFor !== NOT_PARKED) this.wqeFetch.release(qp, cycle);
    if (pair.state === QpState.ERR) this.flusher.goOn(qp, cycle);
    else this.scheduler.makeReady(qp, cycle + 1);
  }

  /** The WQEs themselves cannot be read: nothing of the queue can be trusted (event 0x05). */
  #queueFailed(qp: number, cycle: number): void {
    const { qps } = this.core;
    const pair = qps.rows[qp]!;
    const line = pair.wqeLine;
    if (line !== -1) this.lines.mayHaveMore[line] = 0;
    if (pair.state === QpState.ERR) this.flusher.goOn(qp, cycle);
    else this.#refused(qp, EventType.WQ_CATAS_ERROR, cycle);
    pair.hasDoorbell = 0;
  }

  #recordDone(record: number, cycle: number, isSilent: boolean): void {
    this.operations.completed(record, cycle, isSilent);
    this.records.release(record);
    this.requester.recordFreed(cycle);
  }

  /** Records that wait for room for their CQE, on either side. */
  readonly #waitingForCompletion = new Set<number>();

  #completeLocally(qp: number, cycle: number): void {
    if (!this.acknowledgements.completeLocally(qp, cycle)) this.#waitingForCompletion.add(qp);
  }

  /** A packet of an unreliable service has left: with its last one the message is complete. */
  #sentForGood(record: number, qp: number, isLast: number, cycle: number): void {
    if (isLast === 0) return;
    this.records.rows[record]!.isDone = 1;
    this.#completeLocally(qp, cycle);
  }

  #completionSpace(cycle: number): void {
    this.receiver.completionSpace(cycle);
    this.flusher.completionSpace(cycle);
    if (this.#waitingForCompletion.size === 0) return;
    for (const qp of this.#waitingForCompletion) {
      if (!this.acknowledgements.completeLocally(qp, cycle)) return;
      this.#waitingForCompletion.delete(qp);
    }
  }

  /**
   * The QP goes to error: nothing more is sent but answers to requests accepted before, which the peer counts as done when
   * it sees the NAK behind them; and both queues are flushed.
   */
  #fail(qp: number, cycle: number): void {
    const { qps } = this.core;
    const pair = qps.rows[qp]!;
    if (pair.state === QpState.ERR) return;
    pair.state = QpState.ERR;
    pair.epoch++;
    pair.parkedFor = NOT_PARKED;
    pair.isScheduled = 0;
    this.timers.forget(qp);
    if (pair.srqn !== -1) this.asyncEvents.post(EventType.SRQ_QP_LAST_WQE, qps.numberOf[qp]!, 0, cycle);
    this.flusher.begin(qp, cycle);
  }

  #refused(qp: number, eventType: number, cycle: number): void {
    if (eventType !== 0) this.asyncEvents.post(eventType, this.core.qps.numberOf[qp]!, 0, cycle);
    this.#fail(qp, cycle);
  }

  #communicationEstablished(qp: number, cycle: number): void {
    const { qps } = this.core;
    if (qps.rows[qp]!.state === QpState.RTR)
      this.asyncEvents.post(EventType.COMM_EST, qps.numberOf[qp]!, 0, cycle);
  }

  #cqFailed(cq: number, syndrome: number, cycle: number): void {
    const { qps, cqs } = this.core;
    const cqn = cqs.numberOf[cq]!;
    this.asyncEvents.post(EventType.CQ_ERROR, cqn, syndrome, cycle);
    for (const qp of qps.liveSlots()) {
      const pair = qps.rows[qp]!;
      if (pair.sendCqn === cqn || pair.receiveCqn === cqn) this.#fail(qp, cycle);
    }
  }

  /** The payload of a packet could not be read from host memory. */
  #payloadFailed(record: number, qp: number, cycle: number): void {
    this.records.rows[record]!.syndrome = CqeSyndrome.LOCAL_PROT_ERR;
    const pair = this.core.qps.rows[qp]!;
    pair.epoch++;
    pair.recordCursor = -1;
    this.scheduler.park(qp, PARKED_ERROR);
    if (pair.recordHead === record) this.#completeLocally(qp, cycle);
  }

  #ackTimedOut(qp: number, cycle: number): void {
    const { qps } = this.core;
    const pair = qps.rows[qp]!;
    if (pair.state === QpState.ERR || pair.recordHead === -1) return;
    if (pair.parkedFor === PARKED_PAGE_FAULT) {
      // The answer is not late: we have dropped it, or have not sent what it is for.
      pair.lastProgressPs = this.core.lp.nowPs;
      this.timers.sent(qp, this.core.lp.nowPs);
      return;
    }
    if (pair.retriesLeft === 0) {
      const head = pair.recordHead;
      this.records.rows[head]!.syndrome = CqeSyndrome.TRANSPORT_RETRY_EXC_ERR;
      this.#completeLocally(qp, cycle);
      return;
    }
    pair.retriesLeft--;
    pair.lastProgressPs = this.core.lp.nowPs;
    this.acknowledgements.goBack(qp, (pair.lastAckedPsn + 1) & 0xffffff, cycle);
  }
}
