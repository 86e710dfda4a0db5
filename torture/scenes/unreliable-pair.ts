/** A pair of unreliable QPs, connected or of datagrams: what connectWithPeer is for reliable ones. */
import { psPerMs } from '../../base/index.ts';
import {
  allAccess,
  announcedOf,
  barrier,
  createBuffer,
  handleTo,
  openEndpoint,
  peerFrom,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  createQp,
  destroyAh,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_WR_RDMA_WRITE,
  type IbvAh,
  type IbvSendWr,
  postRecv,
} from '../../userlib/index.ts';
import { qkey, ready } from '../connecting.ts';
import type { QpPlan } from '../story.ts';
import { leave, type Side } from './pair.ts';

export interface UnreliableOptions {
  readonly transport: 'UC' | 'UD';
  readonly areaBytes: number;
  readonly mtuCode: number;
  readonly queueEntries: number;
  /** Runs before anything can arrive. */
  readonly beforeReady?: (side: Omit<Side, 'peer'>) => void;
}

export interface UnreliableSide extends Side {
  readonly transport: 'UC' | 'UD';
  /** Of datagrams: where they go. */
  readonly ah: IbvAh | undefined;
  readonly remoteQpn: number;
}

/** Bytes before each datagram in its receive buffer, for a GRH (IBTA 11.4.1.2). */
export const grhBytes = 40;

/** Opens the device, makes one QP and connects it to that of the program at the other host that calls this as well. */
export async function connectUnreliable(
  program: ProgramContext,
  { transport, areaBytes, mtuCode, queueEntries, beforeReady }: UnreliableOptions,
): Promise<UnreliableSide> {
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 2 * queueEntries);
  const qp = await createQp(endpoint.pd, {
    sendCq: cq,
    recvCq: cq,
    qpType: transport === 'UC' ? IBV_QPT_UC : IBV_QPT_UD,
    cap: { maxSendWr: queueEntries, maxRecvWr: queueEntries, maxSendSge: 1, maxRecvSge: 1 },
  });
  const area = await createBuffer(endpoint, areaBytes);
  const psn = program.random.below(1 << 24);
  const own = {
    ...announcedOf(endpoint.own),
    qpNum: qp.qpNum,
    psn,
    address: area.address,
    rkey: area.region.rkey,
  };
  await program.exchange.put('unreliable pair', own as unknown as JsonValue);
  const there = (await program.exchange.take('unreliable pair')) as unknown as typeof own;
  const found = peerFrom(endpoint.own, there);
  await ready(qp, planOf(transport, mtuCode, psn), { ...found, qpNum: there.qpNum, psn: there.psn });
  const qps = [qp];
  beforeReady?.({ endpoint, cq, qps, area });
  const ah = transport === 'UD' ? await handleTo(endpoint.pd, found) : undefined;
  await barrier(program, 'pair is ready');
  const peer = { address: there.address, rkey: there.rkey, path: found };
  return { endpoint, cq, qps, area, peer, transport, ah, remoteQpn: there.qpNum };
}

/** Attributes of a QP of these for {@link ready}. */
export const planOf = (transport: 'UC' | 'UD', mtu: number, psn: number): QpPlan => ({
  transport,
  mtu,
  psn,
  sendCq: 0,
  recvCq: 0,
  srq: -1,
  maxSendWr: 0,
  maxRecvWr: 0,
  maxSge: 1,
  maxInline: 0,
  isSignalAll: false,
  timeout: 0,
  retryCount: 0,
  rnrRetry: 0,
  rnrTimer: 0,
  readsOut: 0,
  readsIn: 0,
  access: allAccess,
});

/** What {@link ready} has to know of a datagram QP. */
export const datagramPlan: QpPlan = planOf('UD', 5, 0);

/** A message over one buffer of the own area. */
export function messageOf(
  { area, peer, ah, remoteQpn }: UnreliableSide,
  id: number,
  opcode: number,
  offset: number,
  length: number,
): IbvSendWr {
  const rdma = { remoteAddr: peer.address + offset, rkey: peer.rkey };
  const datagram = ah === undefined ? {} : { wr: { ud: { ah, remoteQpn, remoteQkey: qkey } } };
  return {
    wrId: id,
    sgList: [{ addr: area.address + offset, length, lkey: area.region.lkey }],
    numSge: 1,
    opcode,
    sendFlags: IBV_SEND_SIGNALED,
    ...(opcode === IBV_WR_RDMA_WRITE ? { wr: { rdma } } : datagram),
  };
}

/** Posts a receive. @returns 0, or the errno of ibv_post_recv */
export function receive(
  { qps, area }: Omit<Side, 'peer'>,
  id: number,
  offset: number,
  length: number,
): number {
  const sgList = [{ addr: area.address + offset, length, lkey: area.region.lkey }];
  return postRecv(qps[0]!, { wrId: id, sgList, numSge: 1 }, { wr: null, index: 0 });
}

/** Longer than any message of a scene is under way. */
export const settledPs = 2 * psPerMs;

export async function leaveUnreliable(side: UnreliableSide): Promise<void> {
  if (side.ah !== undefined) await destroyAh(side.ah);
  await leave(side);
}
