/**
 * The wires of the data path: for each block, the neighbours that it calls. README.md draws them.
 */
import type { Wires } from '../../sim/index.ts';
import type { CompletionEvents } from './completion/index.ts';
import type { DataPathBlocks } from './data-path-blocks.ts';
import type { DataPathTables } from './data-path-parts.ts';
import type { AsyncEventSink } from './events/index.ts';
import type { EqDoorbells } from './host-interface/index.ts';
import type { PageRequestSink } from './memory/index.ts';

/** Where the data path's events and EQ doorbells go: the event queues are the control side's. */
export type EventQueues = AsyncEventSink & PageRequestSink & CompletionEvents & EqDoorbells;

/** Neighbours of the data path's blocks outside of it, and the data path as a whole. */
interface Surroundings {
  readonly eventQueues: EventQueues;
  readonly dataPath: { reset(): void };
}

/** Traffic of port 1: packets; frames where it is of Ethernet; both with RoCE. */
export type Carried = 'packets' | 'frames' | 'both';

/** The blocks that stand for what sends and what receives it. */
function endsOf(b: DataPathBlocks, carries: Carried) {
  if (carries === 'both') return { outbound: b.outbound, inbound: b.inbound };
  return carries === 'frames'
    ? { outbound: b.frameTransmitter, inbound: b.frameReceiver }
    : { outbound: b.transmitter, inbound: b.receiver };
}

/** Everything with ports: the blocks, and the tables, whose users grow with them. */
type Wired = DataPathBlocks & DataPathTables;

/**
 * For each block, the neighbours that it calls by its ports. README.md draws them.
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
