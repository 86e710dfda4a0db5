/**
 * A key-value store with an active server, like HERD (Kalia, Kaminsky, Andersen, SIGCOMM 2014): a client WRITEs its
 * request into a slot of the server's memory, which a server thread polls, and receives the answer as a datagram.
 *
 *     client ── UC WRITE, inlined ──► slot of (server thread, client, place in the window) ── polled ──┐
 *            ◄── UD SEND, inlined ─── the value, or empty for a PUT ◄─── item of the thread's part ◄──┘
 *
 *     slot   … │ value (PUT) │ LEN 2 (PUT) │ key │     the request ends where the slot ends: the key comes last (HERD 4.2)
 *
 * A slot is free when its key is zero: the server clears each processed request.
 */
import type { PerfArgs, PerfPattern } from './perf-plan.ts';
import type { BandwidthResult, LatencyResult, PerfSide, WithPeakIfAny } from './perf-result.ts';

export interface KvPlan {
  /** Threads of the server, each with its own core and its own part of the items; the clients are the test's threads. */
  readonly servers: number;
  /** Unanswered requests of a client. */
  readonly window: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  /** Items of all parts together; all exist from the beginning. */
  readonly items: number;
  /** Share of GETs among the requests; the others are PUTs. */
  readonly getPercent: number;
  /** Cost of the store itself for a request, in addition to reading it and answering. */
  readonly lookupCycles: number;
  /** Random distribution of the requests' keys. */
  readonly pattern: PerfPattern;
}

export interface KvArgs extends PerfArgs {
  readonly kv: KvPlan;
}

/** HERD's evaluation values (5.1) for everything that its design leaves open: keys of 16 bytes, values of 32, 95 % GETs, a window of 4. */
export const kvDefaults = {
  servers: 1,
  window: 4,
  keyBytes: 16,
  valueBytes: 32,
  items: 4096,
  getPercent: 95,
  lookupCycles: 100,
  cqModeration: 64,
  pattern: 'random',
} as const;

export const lengthFieldBytes = 2;
/** LEN of the last request of a client before a pause; it has no answer. */
export const endLength = 0xffff;

const cacheLineBytes = 64;
const wholeLines = (bytes: number): number => Math.ceil(bytes / cacheLineBytes) * cacheLineBytes;

/** Cache lines that this many bytes fill. */
export const linesOf = (bytes: number): number => Math.ceil(bytes / cacheLineBytes);

/** Bytes of a request, which end at the end of its slot. */
export const putBytes = ({ keyBytes, valueBytes }: KvPlan): number =>
  valueBytes + lengthFieldBytes + keyBytes;

/** Bytes of a slot of the request region. */
export const slotBytes = (plan: KvPlan): number => wholeLines(putBytes(plan));

/** Offset of the slot at this index in the region (HERD 4.2). */
export const slotOffset = (
  plan: KvPlan,
  { clients, server, client, place }: Readonly<Record<'clients' | 'server' | 'client' | 'place', number>>,
): number => ((server * clients + client) * plan.window + place) * slotBytes(plan);

/**
 * Cost of a thread for one polled slot: a load that hits the first-level cache, a compare and a branch (estimate: 5
 * cycles). It polls one slot of each client in rotation.
 */
export const slotPollCycles = 5;

/** Distance in bytes between receive buffers of answers: a GRH and a value. */
export const answerBytes = ({ valueBytes }: KvPlan, grhBytes: number): number =>
  wholeLines(grhBytes + valueBytes);

/** Counts of one program of the store, with those of its requests. */
export interface KvSide extends PerfSide {
  readonly requests: KvRequests;
}

/** Requests of a program during its measurement. */
interface KvRequests {
  readonly getCount: number;
  readonly putCount: number;
  /** For a client: time from before a request was built until its answer was processed, in picoseconds. */
  readonly timesPs: readonly number[];
}

/** A key-value store's result: rates of all clients' requests, and the duration of one, in picoseconds. */
interface KvResult extends BandwidthResult, Omit<LatencyResult, 'firstPs' | 'registrationPs'> {
  readonly getCount: number;
  readonly putCount: number;
}

/** Measurements of the clients of a key-value store. */
export interface KvRates extends WithPeakIfAny<KvResult> {
  /** Present for an offered load. */
  readonly p90Ps?: number;
}
