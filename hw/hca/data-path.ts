/**
 * The data path of the HCA: everything between a doorbell and its completion. This file only wires the blocks; the command
 * processor speaks to {@link DataPath.control}.
 *
 *   doorbells ─> scheduler ─> requester ─> packet queue ─> transmitter ─> wire port
 *                  ^   ^          │ WQE fetch, translator, DMA reads
 *                  │   └──────────┘
 *                                                            └─> loopback ─┐
 *   acknowledgements <─ receiver <─────────────────────────────────────────┴── wire port
 *          │               └─> responder ─> payload writes, response engine ─> packet queue ─> transmitter
 *          └──────> completion writer <─┘        (receive-WQE fetch)
 */
import { EventType } from '../../abi/eqe.ts';
import type { BlockAccount, ClockDomain, LogicalProcess } from '../../sim/index.ts';
import { TrafficClass } from '../dma/index.ts';
import type { CapabilityConfig, DataPathControl } from './commands/index.ts';
import { type CompletionEvents, CompletionWriter } from './completion/index.ts';
import type { HcaCore } from './core.ts';
import type { DataPathParts } from './data-path-parts.ts';
import { type DoorbellGeometry, Doorbells, WorkArrivals } from './doorbells/index.ts';
import { type AsyncEventSink, AsyncEvents } from './events/index.ts';
import { DataPathObjects, Flusher, QueuePairErrors, RequestEnds } from './lifecycle/index.ts';
import {
  type ContextCache,
  type DmaReads,
  type DmaWrites,
  type IcmMap,
  MptCache,
  MttCache,
  makeContextCache,
  makeTranslator,
  PageFaults,
  type PageRequestSink,
  SIDE_REQUESTER,
  SIDE_RESPONSE,
  type SramAllocator,
  type Translator,
} from './memory/index.ts';
import {
  CqTable,
  ENDED_BY_RNR_DELAY,
  endAttempts,
  QpTable,
  SendRecords,
  SrqTable,
  WQE_LINE_BYTES,
} from './objects/index.ts';
import {
  Loopback,
  PACKET_PAYLOAD_BYTES_MAX,
  type PacketPort,
  type PortAddress,
  ReceivedPackets,
  Transmitter,
  TransportCounters,
} from './packets/index.ts';
import type { HcaConfig } from './parameters.ts';
import {
  PayloadWriter,
  ReceiveScatter,
  ReceiveWqeFetch,
  receiveFetchSramBytes,
} from './receive-queue/index.ts';
import { DatagramReceiver, type MulticastGroups, Receiver, type SpecialQps } from './receiver/index.ts';
import { Acknowledgements, RequestCompletion, Requester, RetryTimers } from './requester/index.ts';
import { ATOMIC_SRAM_BYTES, Responder, ResponseEngine } from './responder/index.ts';
import { PARKED_PAGE_FAULT, PARKED_RNR, SendScheduler, WqeFetch, WqeLines } from './send-queue/index.ts';
import { OperationLedger, type OperationTap, ViolationCounters } from './statistics/index.ts';

export interface DataPathTables {
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
}

/** The tables that QUERY_DEV_CAP names: as many contexts as it reports, none of which costs memory before it is used. */
export function makeTables(
  capabilities: Pick<CapabilityConfig, 'logMaxQps' | 'logMaxCqs' | 'logMaxSrqs'>,
): DataPathTables {
  return {
    qps: new QpTable(2 ** capabilities.logMaxQps),
    cqs: new CqTable(2 ** capabilities.logMaxCqs),
    srqs: new SrqTable(2 ** capabilities.logMaxSrqs),
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

export class DataPath implements DataPathParts {
  readonly core: HcaCore;
  readonly tables: DataPathTables;
  readonly violations = new ViolationCounters();
  readonly transport = new TransportCounters();
  readonly mptCache: MptCache;
  readonly mttCache: MttCache;
  readonly translator: Translator;
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
  readonly requestCompletion: RequestCompletion;
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
  /** What the command processor speaks to. */
  readonly control: DataPathControl;
  readonly #arrivals: WorkArrivals;
  readonly #ends: RequestEnds;
  readonly #errors: QueuePairErrors;

  constructor(setup: DataPathSetup) {
    const { config, tables, sram, domain, lp, port, icm, dmaRead, dmaWrite, events } = setup;
    const { qps, cqs, srqs } = tables;
    this.tables = tables;
    this.#arrivals = new WorkArrivals(this);
    this.#ends = new RequestEnds(this);
    this.#errors = new QueuePairErrors(this, this.#ends);
    this.mptCache = new MptCache(config.mptCacheEntries, config.mptCacheWays, config.cacheReplacement);
    this.mttCache = new MttCache(config.mttCacheLines, config.mttCacheWays, config.cacheReplacement);
    const translator = makeTranslator(setup, this.mptCache, this.mttCache);
    this.translator = translator;
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
      transport: this.transport,
    };
    const core = this.core;
    this.records = new SendRecords(config.outstandingWqes);
    this.operations = new OperationLedger(domain.clock, qps, setup.tap);
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
      sram.allocate(receiveFetchSramBytes(config.receiveQueueLineCount)),
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
    this.scheduler = new SendScheduler((cycle) => this.requester.wake(cycle));
    this.wqeFetch = new WqeFetch(core, this.lines, TrafficClass.wqeRead, {
      wqesFetched: (pair, cycle) => this.#arrivals.wqesFetched(pair, cycle),
      wqeFetchFailed: (qp, cycle) => this.#errors.queueFailed(qp, cycle),
    });
    this.requester = this.#makeRequester(setup.address);
    this.requestCompletion = new RequestCompletion(this.records, this.completions, this.scheduler, {
      qpFailed: (qp, cycle) => this.#errors.sendFailed(qp, cycle),
      recordCompletedSilently: (request, cycle) => this.#ends.recordDone(request, cycle, true),
    });
    this.acknowledgements = new Acknowledgements(
      core,
      packets,
      this.writer,
      this.requestCompletion,
      this.scheduler,
      this.timers,
      this.receiver.account,
      { localCompletionWaits: (pair) => this.#ends.waits(pair) },
    );
    const scatter = new ReceiveScatter(core, this.writer, this.receives, this.receiver.account);
    this.datagrams = new DatagramReceiver(
      core,
      packets,
      scatter,
      this.completions,
      this.receiver.account,
      setup.address,
      { qpRefused: (qp, eventType, cycle) => this.#errors.refused(qp, eventType, cycle) },
    );
    this.responder = new Responder(
      core,
      packets,
      scatter,
      this.responses,
      this.completions,
      this.receiver.account,
      {
        qpRefused: (qp, eventType, cycle) => this.#errors.refused(qp, eventType, cycle),
        communicationEstablished: (qp, cycle) => this.#errors.communicationEstablished(qp, cycle),
      },
    );
    this.flusher = new Flusher(core, this.wqeFetch, this.receives, this.completions, this.requestCompletion);
    this.flusher.onUnstartedFlushed = (opcode) => this.operations.flushedUnstarted(opcode);
    this.doorbells = new Doorbells(core, this.lines, setup.geometry, {
      sendRequested: (pair, cycle) => this.#arrivals.sendRequested(pair, cycle),
      cqArmed: (cq, command, consumer, cycle) => this.completions.notifier.arm(cq, command, consumer, cycle),
      eqDoorbell: (eqn, consumer, isArm, cycle) => events.eqDoorbell(eqn, consumer, isArm, cycle),
      translationsInvalidated: () => translator.forgetMtt(),
    });
    this.control = new DataPathObjects(this, this.#errors, this.#ends);
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
        this.control.srqSync(slot),
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
      sram.allocate(ATOMIC_SRAM_BYTES),
      (slot, status, cycle) => this.transmitter.payloadArrived(packets, packets.rows[slot]!, status, cycle),
      {
        knownReceives: (pair) => this.receives.knownAvailable(this.receives.queueOf(pair.slot)),
        packetSealed: (cycle) => this.transmitter.wake(cycle),
        responseFailed: (qp, cycle) => this.#errors.refused(qp, EventType.WQ_ACCESS_ERROR, cycle),
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
        if (packet.isLast === 1 && packet.isOfRequest) packet.request.gatheredCycle = cycle;
        this.transmitter.payloadArrived(packets, packet, status, cycle);
      },
      {
        packetSealed: (cycle) => this.transmitter.wake(cycle),
        recordFailed: (pair, cycle) => this.#ends.completeLocally(pair, cycle),
        recordNeedsNoAnswer: (pair, cycle) => this.#ends.completeLocally(pair, cycle),
      },
      address,
    );
  }

  #connect(): void {
    const { qps } = this.core;
    this.requester.connect(this.scheduler, this.writer);
    this.receiver.connect(this.responder, this.acknowledgements, this.datagrams);
    this.receives.onLimit = (srq, cycle) =>
      this.asyncEvents.post(EventType.SRQ_LIMIT, this.core.srqs.numberOf[srq]!, 0, cycle);
    const payloadLeft = (cycle: number): void => {
      this.responses.payloadLeft(cycle);
      this.requester.payloadLeft(cycle);
    };
    this.writer.attach({ payloadLeft }, () => this.receiver.wake(this.core.domain.cycle + 1));
    this.completions.connect({
      cqeIssued: (record, cycle) => {
        if (record !== -1) this.#ends.recordDone(this.records.rows[record]!, cycle, false);
      },
      cqeDiscarded: (record, cycle) => this.#ends.discarded(this.records.rows[record]!, cycle),
      unstartedDiscarded: (opcode) => this.operations.unstartedDiscarded(opcode),
      cqFailed: (cq, syndrome, cycle) => this.#errors.cqFailed(cq, syndrome, cycle),
      completionSpace: (cycle) => this.#ends.completionSpace(cycle),
    });
    this.transmitter.connect(this.requester, this.responses, {
      requestSent: ({ request, pair, isLast, psn }, cycle) => {
        if (isLast === 1) request.transmittedCycle = cycle;
        if (pair.opcodeBase !== 0) return this.#ends.sentForGood(request, pair, isLast, cycle);
        this.timers.sentAt(pair, psn, cycle);
      },
      payloadFailed: (request, pair, cycle) => this.#errors.payloadFailed(request, pair, cycle),
    });
    this.pageFaults.connect({
      resumed: (qp, side, cycle) => {
        if (side === SIDE_RESPONSE) this.responses.resume(qp, cycle);
        const pair = qps.rows[qp]!;
        if (side === SIDE_REQUESTER && pair.parkedFor === PARKED_PAGE_FAULT)
          this.scheduler.unpark(pair, cycle + 1);
      },
    });
    this.timers.connect({
      ackTimedOut: (qp, cycle) => this.#errors.ackTimedOut(qp, cycle),
      rnrWaitOver: (qp, cycle) => {
        const pair = qps.rows[qp]!;
        endAttempts(pair.recordCursor, cycle, ENDED_BY_RNR_DELAY);
        if (pair.parkedFor === PARKED_RNR) this.scheduler.unpark(pair, cycle + 1);
      },
    });
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    for (const account of this.accounts) account.rebase(cycles);
    this.core.qps.rebase(ps, cycles);
    this.core.pageFaults.rebase(cycles);
    this.records.rebase(cycles);
    this.timers.rebase(cycles);
    this.wqeFetch.rebase(cycles);
    this.requester.rebase(cycles);
    this.transmitter.rebase(cycles);
    this.loopback.rebase(cycles);
    this.receiver.rebase(cycles);
    this.responses.rebase(cycles);
    this.receives.rebase(cycles);
    this.completions.rebase(cycles);
    this.flusher.rebase(cycles);
    this.asyncEvents.rebase(cycles);
  }
}
