/**
 * Connections of QPs over iWARP, which only rdma_cm makes (perftest's option -R): the host with the higher number listens at a free port
 * and announces it with its QPs; the other one opens a connection for each QP, in their order.
 */
import { InvariantError } from '../../base/index.ts';
import {
  type IbvQp,
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_CONNECT_REQUEST,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_PS_TCP,
  type RdmaCmEvent,
  type RdmaCmEventType,
  type RdmaCmId,
  type RdmaConnParam,
  type RdmaEventChannel,
  rdmaAccept,
  rdmaAckCmEvent,
  rdmaBindAddr,
  rdmaConnect,
  rdmaCreateEventChannel,
  rdmaCreateId,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaGetLocalAddr,
  rdmaListen,
  rdmaResolveAddr,
  rdmaResolveRoute,
} from '../../userlib/index.ts';
import { WorkFailedError } from './completion-poller.ts';
import type { QpSteps, RcEndpoint } from './rc-endpoint.ts';
import { toInit } from './rc-states.ts';

const anyFreePort = { sinAddr: '0.0.0.0', sinPort: 0 };
const resolveLimitMs = 2000;
const backlog = 16;

/** @param readsMax READs in flight, either way */
export function iwarpSteps(
  { program, peer }: RcEndpoint,
  readsMax: number,
): Pick<QpSteps, 'init' | 'listenPort' | 'ready'> {
  if (peer === undefined) throw new InvariantError('cables of the host', 0, 'at least 1');
  const isInitiator = program.node < peer;
  const reads = { responderResources: readsMax, initiatorDepth: readsMax };
  let channel: RdmaEventChannel | undefined;
  let listenPort: number | undefined;
  const open = async (): Promise<RdmaEventChannel> => {
    const opened = await rdmaCreateEventChannel(program.verbs);
    if (isInitiator) return opened;
    const listener = await rdmaCreateId(opened, null, RDMA_PS_TCP);
    await rdmaBindAddr(listener, anyFreePort);
    await rdmaListen(listener, backlog);
    listenPort = (await rdmaGetLocalAddr(listener)).sinPort;
    return opened;
  };
  return {
    init: async (qp) => {
      await toInit(qp);
      channel ??= await open();
    },
    listenPort: () => listenPort,
    ready: async (qp, { sinPort }) => {
      if (isInitiator) await connect(channel!, qp, reads, { sinAddr: addressOf(peer), sinPort: sinPort! });
      else await accept(channel!, qp, reads);
    },
  };
}

const addressOf = (node: number): string => `10.0.0.${node + 1}`;

async function connect(
  channel: RdmaEventChannel,
  qp: IbvQp,
  reads: Partial<RdmaConnParam>,
  to: { readonly sinAddr: string; readonly sinPort: number },
): Promise<void> {
  const id: RdmaCmId = await rdmaCreateId(channel, null, RDMA_PS_TCP);
  await rdmaResolveAddr(id, null, to, resolveLimitMs);
  await expected(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  await rdmaResolveRoute(id, resolveLimitMs);
  await expected(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  id.qp = qp;
  await rdmaConnect(id, reads);
  await expected(channel, RDMA_CM_EVENT_ESTABLISHED);
}

async function accept(channel: RdmaEventChannel, qp: IbvQp, reads: Partial<RdmaConnParam>): Promise<void> {
  const { id } = await expected(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
  id.qp = qp;
  await rdmaAccept(id, reads);
  await expected(channel, RDMA_CM_EVENT_ESTABLISHED);
}

/** @throws WorkFailedError for another event, with its status */
async function expected(channel: RdmaEventChannel, kind: RdmaCmEventType): Promise<RdmaCmEvent> {
  const event = await rdmaGetCmEvent(channel);
  if (event === undefined) throw new InvariantError('event of rdma_cm', 'none', rdmaEventStr(kind));
  const { event: found, status } = event;
  if (found !== kind)
    throw new WorkFailedError(
      `the connection ended with ${rdmaEventStr(found)}, status ${statusText(status)}, before ${rdmaEventStr(kind)}`,
    );
  rdmaAckCmEvent(event);
  return event;
}

/** Parameters that are too small if a connection ends with this status, by its number. */
const causes: Readonly<Record<number, string>> = {
  [-12]: 'ENOMEM: hca.iwarp.retransmissionBytes has no place for a segment of each connection',
  [-110]:
    'ETIMEDOUT: no answer; a card answers none beyond hca.capability.logMaxTcpConnections and driver.logTcpConnections',
};

/** A status, and the parameter that may be its cause. */
const statusText = (status: number): string =>
  status in causes ? `${status} (${causes[status]})` : String(status);
