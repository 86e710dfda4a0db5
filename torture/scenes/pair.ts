/**
 * What most scenes begin and end with: a program at each host, an area each that the other may reach, one CQ, and reliable
 * connections between them with attributes of the scene's choice.
 *
 *     connectWithPeer ─► what the scene is about ─► leave
 */
import { psPerMs, psPerNs } from '../../base/index.ts';
import {
  allAccess,
  announcedOf,
  barrier,
  createBuffer,
  createRcQps,
  openEndpoint,
  type PeerAddress,
  peerFrom,
  type RcAddress,
  type RcAttributes,
  type RcBuffer,
  type RcEndpoint,
  toInit,
  toRtr,
  toRts,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  closeDevice,
  createCompChannel,
  createCq,
  deallocPd,
  deregMr,
  destroyCompChannel,
  destroyCq,
  destroyQp,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  type IbvSendWr,
  IbvWc,
  type PortAttr,
  pollCq,
  postSend,
  type QpCap,
  VerbsError,
} from '../../userlib/index.ts';
import type { SceneProgram } from './scene.ts';

/** The programs of most scenes: one asks, the other answers. */
export const askerAndAnswerer: readonly SceneProgram[] = [
  { node: 0, exportName: 'asker' },
  { node: 1, exportName: 'answerer' },
];

export interface PairOptions {
  /** Of the area that the peer may reach. */
  readonly areaBytes: number;
  readonly access?: number;
  readonly qpCount?: number;
  readonly cqEntries?: number;
  /** The CQ raises its events on a channel of its own. */
  readonly hasChannel?: true;
  readonly cap?: Partial<QpCap>;
  /** Messages of up to so many bytes come in their receive WQE. */
  readonly inlRecvSz?: number;
  readonly attributes?: Partial<RcAttributes>;
  /** Entry of the port's P_Key table that the QPs use; the first when left out. */
  readonly pkeyIndex?: number;
  /** First PSN of this side's QPs; drawn when left out. */
  readonly firstPsn?: number;
  /** Runs while the QPs are in INIT: posts receives before anything can arrive. */
  readonly beforeReady?: (side: Omit<Side, 'peer'>) => void;
  /** The device may die as soon as its last QP is ready to send: that this command comes to EIO is no failure. */
  readonly mayDieWhenReady?: true;
}

export interface Side {
  readonly endpoint: RcEndpoint;
  readonly cq: IbvCq;
  readonly qps: readonly IbvQp[];
  readonly area: RcBuffer;
  readonly peer: PeerSide;
}

/** What the other side says of itself. */
export interface PeerSide {
  readonly address: number;
  readonly rkey: number;
  /** Its port. */
  readonly path: PeerAddress;
}

/** What a scene's programs saw of a completion. */
export interface Ended {
  readonly id: number;
  /** IBV_WC_… by number. */
  readonly status: number;
  readonly byteLen: number;
  /** The core's own time after the poll that took it. */
  readonly atPs: number;
}

/** Attributes of a connection, where a scene has no others. */
export const usual: RcAttributes = {
  pathMtu: 5 as PortAttr['activeMtu'],
  readAtomicMax: 16,
  timeoutCode: 18,
  retryCount: 7,
  rnrRetryCount: 7,
  rnrTimerCode: 12,
};

/** The numbers from 0 up to but not including `count`, in any order. */
export const someOrder = (random: Random, count: number): number[] =>
  Array.from({ length: count }, (_, number) => ({ number, place: random.unit() }))
    .toSorted((left, right) => left.place - right.place)
    .map(({ number }) => number);

/** The core's own time; exact below 2^53 ps. */
export const nowPs = ({ cpu }: ProgramContext): number => Number(cpu.instantPs);

/**
 * Waits until the last bytes of what the peer wrote are in memory. An ACK says that the peer's device has them, and a barrier
 * takes no time: neither waits for writes on their way to memory.
 */
export const lastBytesIn = ({ cpu }: ProgramContext): Promise<void> => cpu.sleep(2 * psPerMs);

/** Opens the device, makes the objects and connects to the program at the other host that calls this as well. */
export async function connectWithPeer(program: ProgramContext, options: PairOptions): Promise<Side> {
  const { areaBytes, access = allAccess, qpCount = 1, cqEntries = 255, cap = {}, beforeReady } = options;
  const { inlRecvSz = 0 } = options;
  const endpoint = await openEndpoint(program);
  const channel = options.hasChannel ? await createCompChannel(endpoint.context) : null;
  const cq = await createCq(endpoint.context, cqEntries, null, channel);
  const qps = await createRcQps(endpoint, qpCount, { send: cq, receive: cq }, cap, inlRecvSz);
  const area = await createBuffer(endpoint, areaBytes, access);
  for (const qp of qps) await toInit(qp, allAccess, options.pkeyIndex);
  beforeReady?.({ endpoint, cq, qps, area });
  const attributes = { ...usual, ...options.attributes };
  const firstPsn = options.firstPsn ?? program.random.below(1 << 24);
  const qpNums = qps.map(({ qpNum }) => qpNum);
  const own = {
    address: area.address,
    rkey: area.region.rkey,
    ...announcedOf(endpoint.own),
    qpNums,
    psn: firstPsn,
  };
  await program.exchange.put('pair', own as unknown as JsonValue);
  const there = (await program.exchange.take('pair')) as unknown as typeof own;
  const path = peerFrom(endpoint.own, there);
  for (const [index, qp] of qps.entries()) {
    const address: RcAddress = { ...path, qpNum: there.qpNums[index]!, psn: there.psn };
    await toRtr(qp, address, attributes);
    const isLast = index === qps.length - 1;
    await (isLast && options.mayDieWhenReady
      ? unlessDead(toRts(qp, firstPsn, attributes))
      : toRts(qp, firstPsn, attributes));
  }
  await barrier(program, 'pair is ready');
  return { endpoint, cq, qps, area, peer: { address: there.address, rkey: there.rkey, path } };
}

/** Waits for a call that a dead device answers with EIO. */
async function unlessDead(call: Promise<void>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof VerbsError && error.code === 'EIO')) throw error;
  }
}

/** Returns the code of the error that a call fails with, or `ok`. */
export async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return 'ok';
  } catch (error) {
    if (error instanceof VerbsError) return error.code;
    throw error;
  }
}

/** Polls until so many completions have come, or nothing has for `patiencePs`. */
export async function completionsOf(
  { endpoint, cq }: Pick<Side, 'endpoint' | 'cq'>,
  count: number,
  patiencePs = 10_000 * psPerMs,
): Promise<Ended[]> {
  const { program } = endpoint;
  const wcs = Array.from({ length: 16 }, () => new IbvWc());
  const ended: Ended[] = [];
  let movedPs = nowPs(program);
  let napPs = 100 * psPerNs;
  while (ended.length < count && nowPs(program) - movedPs <= patiencePs) {
    const taken = await pollCq(cq, Math.min(wcs.length, count - ended.length), wcs);
    const atPs = nowPs(program);
    for (const { wrId, status, byteLen } of wcs.slice(0, taken))
      ended.push({ id: wrId, status, byteLen, atPs });
    if (taken > 0) {
      movedPs = atPs;
      napPs = 100 * psPerNs;
    } else {
      await program.cpu.sleep(napPs);
      napPs = Math.min(2 * napPs, patiencePs / 64);
    }
  }
  return ended;
}

/** A request over one buffer of the own area. */
export function requestOf(
  { area, peer }: Side,
  id: number,
  opcode: number,
  {
    offset,
    lengthBytes,
    remoteOffset = offset,
  }: { offset: number; lengthBytes: number; remoteOffset?: number },
): IbvSendWr {
  return {
    wrId: id,
    sgList: [{ addr: area.address + offset, length: lengthBytes, lkey: area.region.lkey }],
    numSge: 1,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    ...(opcode === IBV_WR_SEND
      ? {}
      : { wr: { rdma: { remoteAddr: peer.address + remoteOffset, rkey: peer.rkey } } }),
  };
}

/** @returns 0, or the errno of ibv_post_send */
export const post = (qp: IbvQp, wr: IbvSendWr): number => postSend(qp, wr, { wr: null, index: 0 });

/** Takes down whatever of the side is still there: nothing of it is left afterwards. */
export async function leave(
  side: Side,
  { qps = side.qps, isAreaGone = false }: { qps?: readonly IbvQp[]; isAreaGone?: boolean } = {},
): Promise<void> {
  const { endpoint, cq, area } = side;
  for (const qp of qps) await destroyQp(qp);
  ackCqEvents(cq, cq.eventsUnacked);
  await destroyCq(cq);
  if (cq.channel !== null) await destroyCompChannel(cq.channel);
  if (!isAreaGone) await deregMr(area.region);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
}

/** Words for completions that are not what a scene expects. */
export const failuresOf = (ended: readonly Ended[]): string[] =>
  ended.flatMap(({ id, status }) =>
    status === IBV_WC_SUCCESS ? [] : [`request ${id} ended in status ${status}`],
  );
