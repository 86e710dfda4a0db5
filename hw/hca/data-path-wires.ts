/**
 * The wires of the data path: for each block, the neighbours that it calls. README.md draws them.
 */
import type { Wires } from '../../sim/index.ts';
import type { CompletionEvents } from './completion/index.ts';
import type { Engines } from './data-path-blocks.ts';
import type { Carried, DataPathTables } from './data-path-parts.ts';
import type { AsyncEventSink } from './events/index.ts';
import type { EqDoorbells } from './host-interface/index.ts';
import type { PageRequestSink } from './memory/index.ts';
import type { EngineBlocks, TransportRoles } from './transport/index.ts';

/** Destinations of the data path's events and EQ doorbells: the control side owns the event queues. */
export type EventQueues = AsyncEventSink & PageRequestSink & CompletionEvents & EqDoorbells;

/** Neighbours of the data path's blocks outside of it, and the data path as a whole. */
interface Surroundings {
  readonly eventQueues: EventQueues;
  readonly dataPath: { reset(): void };
}

/** Returns the blocks that send and receive the port's traffic. */
function endsOf(b: Engines, roles: TransportRoles, carries: Carried) {
  if (carries === 'both') return { outbound: b.outbound, inbound: b.inbound };
  return carries === 'frames'
    ? { outbound: b.frameTransmitter, inbound: b.frameReceiver }
    : { outbound: roles.outbound, inbound: roles.inbound };
}

/** Owner of the queue of request packets, as its transmitters see it. */
const requestsOf = (b: Engines, carries: Carried): EngineBlocks['requests'] =>
  carries === 'both' ? b.outbound : b.requester;

/** The engines as the transport's blocks call them. */
export const enginesFor = (b: Engines, carries: Carried): EngineBlocks => ({
  requests: requestsOf(b, carries),
  scheduler: b.scheduler,
  completion: b.completion,
  completions: b.completions,
  ends: b.ends,
  errors: b.errors,
  keys: b.keys,
  receives: b.receives,
  scatter: b.scatter,
  writer: b.writer,
  frameTransmitter: b.frameTransmitter,
  frameReceiver: b.frameReceiver,
});

/** Everything with ports: the engines, and the tables, whose users grow with them. */
type Wired = Engines & DataPathTables;

/**
 * Lists, for each engine, the neighbours that it calls by its ports; neighbours in the transport are named by their
 * roles.
 */
export function dataPathWires(
  b: Engines & Surroundings,
  roles: TransportRoles,
  carries: Carried = 'packets',
): Wires<Wired> {
  const { eventQueues, dataPath } = b;
  const { outbound, inbound } = endsOf(b, roles, carries);
  const requests = requestsOf(b, carries);
  const { connections, requestTransport, responses } = roles;
  return {
    qps: {
      flusher: b.flusher,
      keys: b.keys,
      pageFaults: b.pageFaults,
      receives: b.receives,
      requester: b.requester,
      requestTransport,
      responses,
      transport: connections,
      wqeFetch: b.wqeFetch,
    },
    cqs: { notifier: b.completions.notifier },
    srqs: { receives: b.receives },
    translator: {
      wqeFetch: b.wqeFetch,
      requester: b.requester,
      receiver: inbound,
      response: responses,
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
      payload: b.writer,
      ends: b.ends,
      keys: b.keys,
    },
    keys: { responses, requester: b.requester, receiver: inbound },
    frameRequests: { ends: b.ends },
    frameTransmitter: { requester: requests, errors: b.errors },
    outbound: { transmitter: roles.outbound, frameTransmitter: b.frameTransmitter, requester: b.requester },
    inbound: { receiver: roles.inbound, frameReceiver: b.frameReceiver },
    frameReceiver: {
      writer: b.writer,
      scatter: b.scatter,
      completions: b.completions,
      errors: b.errors,
    },
    scatter: { writer: b.writer, receives: b.receives },
    receives: { receiver: inbound, flusher: b.flusher, asyncEvents: b.asyncEvents },
    writer: { responses, requester: b.requester, receiver: inbound },
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
      requestTransport,
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
    pageFaults: { eventQueues, requester: b.requester, responses },
    asyncEvents: { eventQueues },
    objects: {
      dataPath,
      scheduler: b.scheduler,
      wqeFetch: b.wqeFetch,
      requester: b.requester,
      completion: b.completion,
      requestTransport,
      transmitter: outbound,
      receiver: inbound,
      receives: b.receives,
      responses,
      keys: b.keys,
      completions: b.completions,
      asyncEvents: b.asyncEvents,
      flusher: b.flusher,
      errors: b.errors,
    },
  };
}
