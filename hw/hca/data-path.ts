/**
 * The data path of the HCA: everything between a doorbell and its completion. This file makes the blocks and wires them; the
 * command processor speaks to {@link DataPath.control}.
 *
 *   doorbells ─> scheduler ─> requester ─> packet queue ─> transmitter ─> wire port
 *                  ^   ^          │ WQE fetch, translator, DMA reads
 *                  │   └──────────┘
 *                                                            └─> loopback ─┐
 *   acknowledgements <─ receiver <─────────────────────────────────────────┴── wire port
 *          │               └─> responder ─> payload writes, response engine ─> packet queue ─> transmitter
 *          └──────> completion writer <─┘        (receive-WQE fetch)
 */
import { QpState } from '../../abi/index.ts';
import {
  type Block,
  type BlockAccount,
  type BlockState,
  connectBlocks,
  type Wires,
} from '../../sim/index.ts';
import type { CapabilityConfig, DataPathControl } from './commands/index.ts';
import { type CompletionEvents, CompletionWriter } from './completion/index.ts';
import { type DataPathTables, type HcaCore, type HcaCoreSetup, makeCore } from './core.ts';
import { Doorbells, type EqDoorbells, WorkArrivals } from './doorbells/index.ts';
import { type AsyncEventSink, AsyncEvents } from './events/index.ts';
import { FrameReceiver, FrameTransmitter } from './frames/index.ts';
import { KeyUnit } from './keys/index.ts';
import { DataPathObjects, Flusher, QueuePairErrors, RequestEnds } from './lifecycle/index.ts';
import type { PageRequestSink } from './memory/index.ts';
import { CqTable, QpTable, SrqTable } from './objects/index.ts';
import { Transmitter } from './packets/index.ts';
import { PayloadWriter, ReceiveScatter, ReceiveWqeFetch } from './receive-queue/index.ts';
import { DatagramReceiver, Receiver } from './receiver/index.ts';
import { Acknowledgements, RequestCompletion, Requester, RetryTimers } from './requester/index.ts';
import { Responder, ResponseEngine } from './responder/index.ts';
import { Inbound, Outbound } from './roce/index.ts';
import { SendScheduler, WqeFetch } from './send-queue/index.ts';

/**
 * The tables that QUERY_DEV_CAP names: as many contexts as it reports, none of which costs memory before it is used.
 * @param frameBytesMax of an Ethernet port
 */
export function makeTables(
  capabilities: Pick<CapabilityConfig, 'logMaxQps' | 'logMaxCqs' | 'logMaxSrqs' | 'roce'>,
  frameBytesMax?: number,
): DataPathTables {
  const hasRoce = frameBytesMax !== undefined && capabilities.roce !== 'none';
  return {
    qps: new QpTable(2 ** capabilities.logMaxQps, frameBytesMax, hasRoce),
    cqs: new CqTable(2 ** capabilities.logMaxCqs),
    srqs: new SrqTable(2 ** capabilities.logMaxSrqs),
  };
}

/** Where the data path's events and EQ doorbells go: the event queues are the control side's. */
type EventQueues = AsyncEventSink & PageRequestSink & CompletionEvents & EqDoorbells;

/** What the data path's blocks reach outside of it, and itself as a whole. */
interface Surroundings {
  readonly eventQueues: EventQueues;
  readonly dataPath: { reset(): void };
}

export interface DataPathSetup extends HcaCoreSetup {
  readonly eventQueues: EventQueues;
}

/** The blocks, in the order in which their stages are added: from the output side back. */
function makeBlocks(core: HcaCore) {
  const completions = new CompletionWriter(core);
  const asyncEvents = new AsyncEvents(core);
  const transmitter = new Transmitter(core);
  const frameTransmitter = new FrameTransmitter(core);
  const writer = new PayloadWriter(core);
  const receives = new ReceiveWqeFetch(core);
  const responses = new ResponseEngine(core);
  const receiver = new Receiver(core);
  const frameReceiver = new FrameReceiver(core, core.roceLink.isOn ? receiver.account : undefined);
  const { account: receiverAccount } = core.ethernet === undefined ? receiver : frameReceiver;
  return {
    translator: core.translator,
    qpcCache: core.qpcCache,
    cqcCache: core.cqcCache,
    srqcCache: core.srqcCache,
    pageFaults: core.pageFaults,
    completions,
    asyncEvents,
    loopback: core.loopback,
    transmitter,
    frameTransmitter,
    writer,
    receives,
    responses,
    receiver,
    frameReceiver,
    roceLink: core.roceLink,
    outbound: new Outbound(core),
    inbound: new Inbound(core),
    timers: new RetryTimers(core),
    scheduler: new SendScheduler(),
    wqeFetch: new WqeFetch(core),
    requester: new Requester(core),
    completion: new RequestCompletion(core),
    keys: new KeyUnit(core),
    acknowledgements: new Acknowledgements(core, receiver.account),
    scatter: new ReceiveScatter(core, receiverAccount),
    datagrams: new DatagramReceiver(core, receiver.account),
    responder: new Responder(core, receiver.account),
    flusher: new Flusher(core),
    doorbells: new Doorbells(core),
    arrivals: new WorkArrivals(core),
    ends: new RequestEnds(core),
    errors: new QueuePairErrors(core),
    objects: new DataPathObjects(core),
  };
}

export type DataPathBlocks = ReturnType<typeof makeBlocks>;

/** What is sent and received: packets; frames where port 1 is of Ethernet; both with RoCE. */
export type Carried = 'packets' | 'frames' | 'both';

/** The blocks that stand for what sends and what receives it. */
function endsOf(b: DataPathBlocks, carries: Carried) {
  if (carries === 'both') return { outbound: b.outbound, inbound: b.inbound };
  return carries === 'frames'
    ? { outbound: b.frameTransmitter, inbound: b.frameReceiver }
    : { outbound: b.transmitter, inbound: b.receiver };
}

/** What has ports: the blocks, and the tables, whose users grow with them. */
type Wired = DataPathBlocks & DataPathTables;

/**
 * Who calls whom: the block diagram of README.md is made from this table.
 */
export function dataPathWires(b: DataPathBlocks & Surroundings, carries: Carried = 'packets'): Wires<Wired> {
  const { eventQueues, dataPath } = b;
  const { outbound, inbound } = endsOf(b, carries);
  const requests = carries === 'both' ? b.outbound : b.requester;
  return {
    qps: {
      flusher: b.flusher,
      keys: b.keys,
      pageFaults: b.pageFaults,
      receives: b.receives,
      requester: b.requester,
      responses: b.responses,
      timers: b.timers,
      wqeFetch: b.wqeFetch,
    },
    cqs: { notifier: b.completions.notifier },
    srqs: { receives: b.receives },
    translator: {
      wqeFetch: b.wqeFetch,
      requester: b.requester,
      receiver: inbound,
      response: b.responses,
      receiveFetch: b.receives,
      completion: b.completions,
    },
    qpcCache: { requester: b.requester, receiver: inbound },
    cqcCache: { completion: b.completions },
    srqcCache: { receiveFetch: b.receives },
    doorbells: { arrivals: b.arrivals, notifier: b.completions.notifier, eventQueues },
    arrivals: { scheduler: b.scheduler, wqeFetch: b.wqeFetch, flusher: b.flusher },
    scheduler: { requester: b.requester },
    wqeFetch: { arrivals: b.arrivals, errors: b.errors },
    requester: {
      scheduler: b.scheduler,
      wqeFetch: b.wqeFetch,
      transmitter: outbound,
      timers: b.timers,
      payload: b.writer,
      ends: b.ends,
      keys: b.keys,
    },
    keys: { responses: b.responses, requester: b.requester, receiver: inbound },
    transmitter: { requester: requests, responses: b.responses, errors: b.errors },
    frameTransmitter: { requester: requests, errors: b.errors },
    roceLink: {
      transmitter: b.transmitter,
      frameTransmitter: b.frameTransmitter,
      receiver: b.receiver,
      frameReceiver: b.frameReceiver,
    },
    outbound: { transmitter: b.transmitter, frameTransmitter: b.frameTransmitter, requester: b.requester },
    inbound: { receiver: b.receiver, frameReceiver: b.frameReceiver },
    timers: { requester: b.requester, errors: b.errors },
    loopback: { transmitter: b.transmitter, receiver: b.receiver },
    receiver: {
      writer: b.writer,
      responder: b.responder,
      acknowledgements: b.acknowledgements,
      datagrams: b.datagrams,
    },
    frameReceiver: {
      writer: b.writer,
      scatter: b.scatter,
      completions: b.completions,
      errors: b.errors,
    },
    acknowledgements: {
      completion: b.completion,
      scheduler: b.scheduler,
      timers: b.timers,
      writer: b.writer,
      ends: b.ends,
    },
    responder: {
      scatter: b.scatter,
      responses: b.responses,
      completions: b.completions,
      keys: b.keys,
      errors: b.errors,
    },
    datagrams: { scatter: b.scatter, completions: b.completions, errors: b.errors },
    scatter: { writer: b.writer, receives: b.receives },
    receives: { receiver: inbound, flusher: b.flusher, asyncEvents: b.asyncEvents },
    writer: { responses: b.responses, requester: b.requester, receiver: inbound },
    responses: {
      transmitter: b.transmitter,
      receives: b.receives,
      writer: b.writer,
      errors: b.errors,
    },
    completion: {
      completions: b.completions,
      scheduler: b.scheduler,
      errors: b.errors,
      ends: b.ends,
    },
    completions: { ends: b.ends, errors: b.errors, eventQueues },
    ends: {
      completion: b.completion,
      requester: b.requester,
      receiver: inbound,
      flusher: b.flusher,
    },
    errors: {
      scheduler: b.scheduler,
      timers: b.timers,
      acknowledgements: b.acknowledgements,
      flusher: b.flusher,
      ends: b.ends,
      asyncEvents: b.asyncEvents,
    },
    flusher: {
      wqeFetch: b.wqeFetch,
      receives: b.receives,
      completions: b.completions,
      completion: b.completion,
    },
    pageFaults: { eventQueues, requester: b.requester, responses: b.responses },
    asyncEvents: { eventQueues },
    objects: {
      dataPath,
      scheduler: b.scheduler,
      wqeFetch: b.wqeFetch,
      requester: b.requester,
      completion: b.completion,
      timers: b.timers,
      transmitter: outbound,
      receiver: inbound,
      receives: b.receives,
      responses: b.responses,
      keys: b.keys,
      completions: b.completions,
      asyncEvents: b.asyncEvents,
      flusher: b.flusher,
      errors: b.errors,
    },
  };
}

export class DataPath {
  readonly core: HcaCore;
  readonly blocks: DataPathBlocks;
  readonly #all: readonly (readonly [string, Block])[];

  constructor(setup: DataPathSetup) {
    const { eventQueues, ...site } = setup;
    this.core = makeCore(site);
    this.blocks = makeBlocks(this.core);
    this.#all = Object.entries<Block>(this.blocks);
    const wired: Wired = { ...setup.tables, ...this.blocks };
    connectBlocks(wired, dataPathWires({ ...this.blocks, eventQueues, dataPath: this }, this.#carried));
  }

  get #carried(): Carried {
    if (this.core.ethernet === undefined) return 'packets';
    return this.core.roceLink.isOn ? 'both' : 'frames';
  }

  /** What the command processor speaks to. */
  get control(): DataPathControl {
    return this.blocks.objects;
  }

  /** The cycle accounts of all blocks that have one. */
  get accounts(): readonly BlockAccount[] {
    const b = this.blocks;
    const ends = {
      packets: [b.transmitter, b.receiver],
      frames: [b.frameTransmitter, b.frameReceiver],
      both: [b.transmitter, b.frameTransmitter, b.receiver],
    };
    return [
      b.doorbells,
      b.wqeFetch,
      b.requester,
      ...ends[this.#carried],
      b.responses,
      b.receives,
      b.keys,
      b.completions,
      b.flusher,
      b.asyncEvents,
    ].map(({ account }) => account);
  }

  /**
   * Forgets every context and all work, from the side that asks to the side that serves, and what it has counted for software. The
   * report's statistics stay.
   */
  reset(): void {
    const { qps, records, diagnostics } = this.core;
    const { completion } = this.blocks;
    for (const slot of qps.liveSlots()) {
      const pair = qps.rows[slot]!;
      completion.dropAll(pair);
      pair.state = QpState.RST;
      pair.sendGeneration++;
      pair.inPipelineCount = 0;
    }
    for (const [, block] of this.#all.toReversed()) block.reset?.();
    records.reset();
    diagnostics.reset();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(ps: number, cycles: number): void {
    for (const account of this.accounts) account.rebase(cycles);
    this.core.qps.rebase(ps, cycles);
    this.core.records.rebase(cycles);
    this.core.readUnit.rebase(cycles);
    for (const [, block] of this.#all) block.rebase?.(cycles);
  }

  /** What each block holds, by name: see {@link Block.inspect}; and the queue pairs, as far as they are numbers. */
  inspect(): BlockState {
    const { qps, records } = this.core;
    const queuePairs = Object.fromEntries(
      Array.from(qps.liveSlots(), (slot) => [qps.numberOf[slot]!, numbersOf(qps.rows[slot]!)]),
    );
    const blocks = this.#all.flatMap(([name, block]) => (block.inspect ? [[name, block.inspect()]] : []));
    return {
      ...Object.fromEntries(blocks),
      queuePairs,
      recordsInUse: records.capacity - records.freeCount,
    };
  }
}

function numbersOf(row: object): BlockState {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => typeof value === 'number'));
}
