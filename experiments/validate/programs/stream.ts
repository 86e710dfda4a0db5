/**
 * Threads that keep QPs busy, like the benches of HERD, FaSST and "Design Guidelines": RC, UC or UD, windows or
 * streams, posts one by one or in lists, over one QP or many. Each thread is a program with its own core and process;
 * thread i of host 0 is connected to thread i of host 1.
 *
 *     connect ─► host 1's first thread counts ready threads ─► go ─► post and poll ─► samples of (instant, messages done)
 *
 * The messages between two instants at which all threads are busy determine the rate.
 */

import type { ProgramContext } from '../../../machine/index.ts';
import {
  createAh,
  createCq,
  createQp,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_SEND_INLINE,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvAh,
  type IbvQp,
  type IbvSendWr,
  postSend,
  SendFlag,
} from '../../../userlib/index.ts';
import {
  allAccess,
  announcedOf,
  barrier,
  CompletionPoller,
  connectUc,
  connectUd,
  createBuffer,
  initUd,
  openEndpoint,
  type PortAddress,
  pathMtuOf,
  pathTo,
  peerFrom,
  qkey,
  type RcAddress,
  type RcEndpoint,
  toInit,
  toRtr,
  toRts,
  WorkFailedError,
} from '../../workloads/index.ts';
import type { StreamPlan } from '../points.ts';

const lineBytes = 64;
const samplesMax = 64;
const cqEntriesMin = 128;
const types = { RC: IBV_QPT_RC, UC: IBV_QPT_UC, UD: IBV_QPT_UD } as const;
const opcodes = {
  write: IBV_WR_RDMA_WRITE,
  read: IBV_WR_RDMA_READ,
  send: IBV_WR_SEND,
  atomic: IBV_WR_ATOMIC_FETCH_AND_ADD,
} as const;
const reliable = {
  readAtomicMax: 16,
  timeoutCode: 14,
  rnrTimerCode: 12,
  retryCount: 7,
  rnrRetryCount: 7,
} as const;

export interface StreamArgs {
  readonly plan: StreamPlan;
  /** Number of the thread. */
  readonly thread: number;
}

export interface StreamResult {
  /** Instants, and the number of finished messages at each. */
  readonly samples: readonly (readonly [atPs: number, done: number])[];
  /** Time of each post, by message. */
  readonly postPs: number;
}

interface Peer extends PortAddress {
  readonly qpns: readonly number[];
  readonly psns: readonly number[];
  readonly address: number;
  readonly rkey: number;
}

/** The program of both hosts. */
export async function streamThread(program: ProgramContext<StreamArgs>): Promise<StreamResult | null> {
  const { plan, thread } = program.args;
  const sender = await connected(program, plan, thread);
  await begin(program, plan.threads, thread);
  const isActive = program.node === 0 || plan.isBothWays;
  const result = isActive ? await sender.sendAll() : null;
  await barrier(program, `done.${thread}`);
  return result;
}

/** Starts all threads at once, after the last is connected. */
async function begin({ node, exchange }: ProgramContext, threads: number, thread: number): Promise<void> {
  if (node === 0) {
    await exchange.put('ready', thread);
    await exchange.take(`go.${thread}`);
    await exchange.put(`gone.${thread}`, true);
    return;
  }
  if (thread === 0) {
    for (let count = 0; count < threads; count++) await exchange.take('ready');
    for (let count = 0; count < threads; count++) await exchange.put(`go.${count}`, true);
  }
  await exchange.take(`gone.${thread}`);
}

async function connected(program: ProgramContext, plan: StreamPlan, thread: number): Promise<Sender> {
  const endpoint = withLibraryOf(plan, await openEndpoint(program));
  const { context, pd } = endpoint;
  const { qpsPerThread, window, signalEvery, list, inlineBytes, transport, sizeBytes } = plan;
  const depth = Math.max(window, 2 * signalEvery, 2 * list);
  // The CQ is as deep as in the benches: a nearly full CQ makes the device read the consumer counter.
  const sendCq = await createCq(context, Math.max(cqEntriesMin, 2 * depth * qpsPerThread));
  const recvCq = await createCq(context, 1);
  const strideBytes = Math.max(lineBytes, Math.ceil(sizeBytes / lineBytes) * lineBytes);
  const placesBytes = strideBytes * qpsPerThread;
  const regionBytes = Math.max(plan.regionBytes, placesBytes);
  const own = await createBuffer(endpoint, placesBytes);
  const shared = await createBuffer(endpoint, program.node === 1 ? regionBytes : placesBytes);
  const cap = {
    maxSendWr: depth,
    maxRecvWr: 1,
    maxSendSge: 1,
    maxRecvSge: 1,
    maxInlineData: sizeBytes <= inlineBytes ? sizeBytes : 0,
  };
  const qps: IbvQp[] = [];
  for (let at = 0; at < qpsPerThread; at++)
    qps.push(await createQp(pd, { sendCq, recvCq, qpType: types[transport], cap: { ...cap } }));
  const psns = qps.map(() => program.random.below(1 << 24));
  const note = { ...announcedOf(endpoint.own), qpns: qps.map(({ qpNum }) => qpNum), psns };
  await program.exchange.put(`stream.${thread}`, {
    ...note,
    address: shared.address,
    rkey: shared.region.rkey,
  });
  const peer = await program.exchange.take<Peer>(`stream.${thread}`);
  const there = peerFrom(endpoint.own, peer);
  for (const [at, qp] of qps.entries()) {
    const address = { ...there, qpNum: peer.qpns[at]!, psn: peer.psns[at]! };
    await ready(endpoint, qp, plan, psns[at]!, address);
  }
  const ah = transport === 'UD' ? await createAh(pd, pathTo(there)) : undefined;
  await barrier(program, `connected.${thread}`);
  const requests = qps.map((_qp, at) =>
    requestOf(plan, own.address + at * strideBytes, own.region.lkey, peer, at, strideBytes, ah),
  );
  return new Sender(program, plan, qps, requests, new CompletionPoller(sendCq), {
    depth,
    strideBytes,
    regionAddress: peer.address,
  });
}

/** The endpoint as the source's library sees it. */
function withLibraryOf({ isBlueFlameForAll }: StreamPlan, endpoint: RcEndpoint): RcEndpoint {
  if (!isBlueFlameForAll) return endpoint;
  const info = { ...endpoint.context.info, isBlueFlameForAll };
  const context = { ...endpoint.context, info };
  return { ...endpoint, context, pd: { ...endpoint.pd, context } };
}

async function ready(
  endpoint: RcEndpoint,
  qp: IbvQp,
  { transport, pathMtuBytes = 0 }: StreamPlan,
  sqPsn: number,
  peer: RcAddress,
): Promise<void> {
  const pathMtu = pathMtuOf(endpoint, pathMtuBytes);
  if (transport === 'RC') {
    const attributes = { ...reliable, pathMtu };
    await toInit(qp);
    await toRtr(qp, peer, attributes);
    await toRts(qp, sqPsn, attributes);
  } else if (transport === 'UC') {
    // Local and remote writes: an unreliable connection has no others.
    await toInit(qp, allAccess & 3);
    await connectUc(qp, peer, pathMtu, sqPsn);
  } else {
    await initUd(qp);
    await connectUd(qp, sqPsn);
  }
}

/** Work requests posted at once, in a list. */
function requestOf(
  { verb, sizeBytes, inlineBytes, list }: StreamPlan,
  addr: number,
  lkey: number,
  peer: Peer,
  at: number,
  strideBytes: number,
  ah: IbvAh | undefined,
): IbvSendWr {
  const remoteAddr = peer.address + at * strideBytes;
  const { rkey } = peer;
  const one = (): IbvSendWr => ({
    wrId: 0,
    sgList: [{ addr, length: sizeBytes, lkey }],
    // A message without payload has no buffer.
    numSge: sizeBytes === 0 ? 0 : 1,
    opcode: opcodes[verb],
    sendFlags: sizeBytes <= inlineBytes && sizeBytes > 0 ? IBV_SEND_INLINE : 0,
    wr:
      ah === undefined
        ? { rdma: { remoteAddr, rkey }, atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 0n } }
        : { ud: { ah, remoteQpn: peer.qpns[at]!, remoteQkey: qkey } },
  });
  const first = one();
  let last = first;
  for (let count = 1; count < list; count++) {
    last.next = one();
    last = last.next;
  }
  return first;
}

/** Sizes of the queues and of the memory at the responder. */
interface Layout {
  /** Send WQEs of a QP. */
  readonly depth: number;
  readonly strideBytes: number;
  readonly regionAddress: number;
}

/** A thread's sending side. */
class Sender {
  readonly #program: ProgramContext;
  readonly #plan: StreamPlan;
  readonly #qps: readonly IbvQp[];
  readonly #requests: readonly IbvSendWr[];
  readonly #sends: CompletionPoller;
  readonly #depth: number;
  readonly #strideBytes: number;
  readonly #regionAddress: number;
  /** Messages posted and completed, by QP. */
  readonly #posted: number[];
  readonly #completed: number[];
  readonly #placeOf = new Map<number, number>();
  #next = 0;
  #postedCount = 0;
  #doneCount = 0;
  #postPs = 0;

  constructor(
    program: ProgramContext,
    plan: StreamPlan,
    qps: readonly IbvQp[],
    requests: readonly IbvSendWr[],
    sends: CompletionPoller,
    { depth, strideBytes, regionAddress }: Layout,
  ) {
    this.#program = program;
    this.#plan = plan;
    this.#qps = qps;
    this.#requests = requests;
    this.#sends = sends;
    this.#depth = depth;
    this.#strideBytes = strideBytes;
    this.#regionAddress = regionAddress;
    this.#posted = qps.map(() => 0);
    this.#completed = qps.map(() => 0);
    for (const [at, { qpNum }] of qps.entries()) this.#placeOf.set(qpNum, at);
  }

  async sendAll(): Promise<StreamResult> {
    const { messages, window, waits, signalEvery, list } = this.#plan;
    const { cpu } = this.#program;
    const samples: [number, number][] = [[cpu.localPs, 0]];
    let nextSample = 0;
    // Messages without a requested completion are still in flight when the others have completed.
    const unsignalled = (signalEvery - 1) * this.#qps.length;
    while (this.#doneCount + unsignalled < messages) {
      while (
        this.#postedCount < messages &&
        this.#postedCount - this.#doneCount + list <= window + unsignalled
      )
        if (!this.#post()) break;
      const least = waits === 'all' ? this.#postedCount : this.#doneCount + 1;
      while (this.#doneCount < least) {
        const count = this.#sends.checked(await this.#sends.arrival());
        for (let at = 0; at < count; at++) this.#complete(this.#sends.taken[at]!.qpNum);
      }
      if (this.#doneCount < nextSample) continue;
      samples.push([cpu.localPs, this.#doneCount]);
      nextSample = this.#doneCount + messages / samplesMax;
    }
    samples.push([cpu.localPs, this.#doneCount]);
    return { samples, postPs: this.#postPs / this.#postedCount };
  }

  #complete(qpNum: number): void {
    this.#completed[this.#placeOf.get(qpNum)!]! += this.#plan.signalEvery;
    this.#doneCount += this.#plan.signalEvery;
  }

  /**
   * Posts to the next QP in rotation.
   * @returns whether there was room
   */
  #post(): boolean {
    const { list, signalEvery, order } = this.#plan;
    const at = this.#next;
    const { cpu, random } = this.#program;
    if (this.#posted[at]! - this.#completed[at]! + list > this.#depth) return false;
    let wr: IbvSendWr | null | undefined = this.#requests[at]!;
    for (let number = this.#posted[at]!; wr !== null && wr !== undefined; wr = wr.next, number++)
      this.#prepare(wr, (number + 1) % signalEvery === 0);
    const fromPs = cpu.localPs;
    const error = postSend(this.#qps[at]!, this.#requests[at]!);
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
    this.#postPs += cpu.localPs - fromPs;
    this.#posted[at]! += list;
    this.#postedCount += list;
    this.#next = order === 'random' ? random.below(this.#qps.length) : (at + 1) % this.#qps.length;
    return true;
  }

  #prepare(wr: IbvSendWr, isSignalled: boolean): void {
    const flag = SendFlag.IBV_SEND_SIGNALED;
    wr.sendFlags = isSignalled ? wr.sendFlags | flag : wr.sendFlags & ~flag;
    const { regionBytes } = this.#plan;
    if (regionBytes === 0) return;
    const place = this.#program.random.below(Math.floor(regionBytes / this.#strideBytes));
    const remoteAddr = this.#regionAddress + place * this.#strideBytes;
    wr.wr!.rdma!.remoteAddr = remoteAddr;
    wr.wr!.atomic!.remoteAddr = remoteAddr;
  }
}
