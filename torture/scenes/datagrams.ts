/** Common parts of scenes about QPs of unreliable services, connected or of datagrams. */
import {
  allAccess,
  announcedOf,
  handleTo,
  type PortAddress,
  peerFrom,
  qkey,
} from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { ready } from '../connecting.ts';
import type { QpPlan } from '../story.ts';
import type { Device, Reach, Stage, Taken } from './language/index.ts';
import { SEND, Side, series, topic } from './language/index.ts';

/** Bytes before each datagram in its receive buffer, for a GRH (IBTA 11.4.1.2). */
export const grhBytes = 40;

/** Attributes of a QP of these for {@link ready}. */
export const planOf = (transport: 'UC' | 'UD', mtu: number, psn: number): QpPlan => ({
  ...{ transport, mtu, psn, sendCq: 0, recvCq: 0, srq: -1, access: allAccess, isSignalAll: false },
  ...{ maxSendWr: 0, maxRecvWr: 0, maxSge: 1, maxInline: 0 },
  ...{ timeout: 0, retryCount: 0, rnrRetry: 0, rnrTimer: 0, readsOut: 0, readsIn: 0 },
});

/** Brings a datagram QP to RTS. */
export const readyDatagrams = (qp: ibv.IbvQp): Promise<void> =>
  ready(qp, planOf('UD', 5, 0), { lid: 0, qpNum: 0, psn: 0 });

interface UnreliableOptions {
  readonly transport: 'UC' | 'UD';
  readonly areaBytes: number;
  readonly mtuCode: number;
  readonly queueEntries: number;
  /** Runs before anything can arrive. */
  readonly beforeReady: (side: Side) => void;
}

export interface UnreliableSide {
  readonly side: Side;
  /** Makes a SEND to the other side, over one buffer of the area. */
  message(id: number, span: { readonly offset: number; readonly lengthBytes: number }): ibv.IbvSendWr;
}

interface News extends PortAddress, Reach {
  readonly qpNum: number;
  readonly psn: number;
}

/**
 * Opens the device, creates one QP and connects it to that of the program at the other host that calls this as well.
 */
export async function connectUnreliable(
  stage: Stage<unknown>,
  { transport, areaBytes, mtuCode, queueEntries, beforeReady }: UnreliableOptions,
): Promise<UnreliableSide> {
  const device = await stage.open();
  const { endpoint } = device;
  const cq = await device.cq(2 * queueEntries);
  const qp = await device.qp(cq, {
    qpType: transport === 'UC' ? ibv.IBV_QPT_UC : ibv.IBV_QPT_UD,
    cap: { maxSendWr: queueEntries, maxRecvWr: queueEntries, maxSendSge: 1, maxRecvSge: 1 },
  });
  const area = await device.buffer(areaBytes);
  const psn = stage.context.random.below(1 << 24);
  const own = { address: area.address, rkey: area.region.rkey };
  const there = await stage.swap<News>(topic('unreliable pair'), {
    ...announcedOf(endpoint.own),
    ...{ qpNum: qp.qpNum, psn, ...own },
  });
  const path = peerFrom(endpoint.own, there);
  await ready(qp, planOf(transport, mtuCode, psn), { ...path, qpNum: there.qpNum, psn: there.psn });
  const side = new Side({ stage, device, cq, qps: [qp], area, peer: there, path });
  beforeReady(side);
  const ah = transport === 'UD' ? device.handle(await handleTo(endpoint.pd, path)) : undefined;
  await stage.meet('pair is ready');
  const wr = ah === undefined ? {} : { wr: { ud: { ah, remoteQpn: there.qpNum, remoteQkey: qkey } } };
  return { side, message: (id, span) => ({ ...side.request(id, SEND, span), ...wr }) };
}

/** Makes datagram QPs of one CQ, which receive from a shared queue or one of their own. */
export function datagramQps(
  device: Device,
  cq: ibv.IbvCq,
  count: number,
  cap: { readonly maxSendWr: number; readonly maxRecvWr: number },
  srq: ibv.IbvSrq | null = null,
): Promise<ibv.IbvQp[]> {
  const maxRecvSge = srq === null ? 1 : 0;
  const init = { srq, qpType: ibv.IBV_QPT_UD, cap: { ...cap, maxSendSge: 1, maxRecvSge } };
  return series(count, () => device.qp(cq, init));
}

/** Polls completions until none has arrived for longer than a datagram's flight. */
export async function allThatCame(stage: Stage<unknown>, cq: ibv.IbvCq): Promise<Taken[]> {
  const came: Taken[] = [];
  for (let quiet = 0; quiet < 2; ) {
    await stage.sleepMs(2);
    const some = await stage.poll(cq, 32);
    came.push(...some);
    quiet = some.length > 0 ? 0 : quiet + 1;
  }
  return came;
}
