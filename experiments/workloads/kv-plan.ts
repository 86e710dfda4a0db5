/**
 * A key-value store whose server computes, as HERD has it (Kalia, Kaminsky, Andersen, SIGCOMM 2014): a client WRITEs its request
 * into a slot of the server's memory, which a thread of the server polls, and has the answer by a datagram.
 *
 *     client ── UC WRITE, inlined ──► slot of (server thread, client, place in the window) ── polled ──┐
 *            ◄── UD SEND, inlined ─── the value, or nothing for a PUT ◄── item of the thread's part ◄──┘
 *
 *     slot   … │ value (PUT) │ LEN 2 (PUT) │ key │     the request ends where the slot ends: the key comes last (HERD 4.2)
 *
 * A slot is free when its key is zero: the server clears what it has taken.
 */
import type { PerfArgs, PerfPattern } from './perf-plan.ts';

export interface KvPlan {
  /** Threads of the server, each on a core of its own with its own part of the items; the clients are the test's threads. */
  readonly servers: number;
  /** Requests of a client without an answer. */
  readonly window: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  /** Items of all parts together; all are there from the beginning. */
  readonly items: number;
  /** GETs among the requests; the others are PUTs. */
  readonly getPercent: number;
  /** Cost of the store itself for a request, in addition to reading it and answering. */
  readonly lookupCycles: number;
  /** How the keys of requests are drawn. */
  readonly pattern: PerfPattern;
}

export interface KvArgs extends PerfArgs {
  readonly kv: KvPlan;
}

/** Where HERD leaves it open, its evaluation's values (5.1): keys of 16 bytes, values of 32, 95 % GETs, a window of 4. */
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
/** LEN of the request after which a client sends none for the time being; it has no answer. */
export const endLength = 0xffff;

const cacheLineBytes = 64;
const wholeLines = (bytes: number): number => Math.ceil(bytes / cacheLineBytes) * cacheLineBytes;

/** Cache lines that so many bytes fill. */
export const linesOf = (bytes: number): number => Math.ceil(bytes / cacheLineBytes);

/** Bytes of a request, which end with its slot. */
export const putBytes = ({ keyBytes, valueBytes }: KvPlan): number =>
  valueBytes + lengthFieldBytes + keyBytes;

/** Bytes of a slot of the request region. */
export const slotBytes = (plan: KvPlan): number => wholeLines(putBytes(plan));

/** From the region's begin to the slot of this place (HERD 4.2). */
export const slotOffset = (
  plan: KvPlan,
  { clients, server, client, place }: Readonly<Record<'clients' | 'server' | 'client' | 'place', number>>,
): number => ((server * clients + client) * plan.window + place) * slotBytes(plan);

/**
 * What a thread spends on one slot that it polls: a load that hits the first-level cache, a compare and a branch (estimate: 5
 * cycles). It polls one slot of each client in turn.
 */
export const slotPollCycles = 5;

/** Bytes between receives of answers: a GRH and a value. */
export const answerBytes = ({ valueBytes }: KvPlan, grhBytes: number): number =>
  wholeLines(grhBytes + valueBytes);

/** Counts of one program of the store during its measurement. */
export interface KvRequests {
  readonly getCount: number;
  readonly putCount: number;
  /** Of a client: from before a request was made until its answer was taken, in picoseconds. */
  readonly timesPs: readonly number[];
}
