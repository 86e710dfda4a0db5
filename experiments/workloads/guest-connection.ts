/**
 * Connections by rdma_cm with a stock program in a guest: attempts are repeated until its server listens, and every event must be the one
 * that its steps expect.
 */
import { psPerMs } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  RDMA_CM_EVENT_ADDR_ERROR,
  RDMA_CM_EVENT_ADDR_RESOLVED,
  RDMA_CM_EVENT_ESTABLISHED,
  RDMA_CM_EVENT_REJECTED,
  RDMA_CM_EVENT_ROUTE_RESOLVED,
  RDMA_PS_TCP,
  type RdmaCmEvent,
  type RdmaCmId,
  type RdmaEventChannel,
  rdmaAckCmEvent,
  rdmaConnect,
  rdmaCreateId,
  rdmaDestroyId,
  rdmaDestroyQp,
  rdmaEventStr,
  rdmaGetCmEvent,
  rdmaResolveAddr,
  rdmaResolveRoute,
  type SocketAddress,
} from '../../userlib/index.ts';

const timeoutMs = 2000;
/** Number of connection attempts to the guest's server, which may only just have been started. */
const connectTries = 100;

/** The connection produced an unexpected event. */
export class RdmaEventError extends Error {
  override readonly name = 'RdmaEventError';
}

/** Waits for the next event. @throws RdmaEventError if it is another one */
export async function expectEvent(channel: RdmaEventChannel, expected: number): Promise<RdmaCmEvent> {
  const event = (await rdmaGetCmEvent(channel))!;
  rdmaAckCmEvent(event);
  if (event.event !== expected) throw unexpected(event);
  return event;
}

const unexpected = ({ event, status }: RdmaCmEvent): RdmaEventError =>
  new RdmaEventError(`${rdmaEventStr(event)} with status ${status}`);

/** Resolves the address, again as long as the guest's interface is not up. */
async function resolve(channel: RdmaEventChannel, to: SocketAddress): Promise<RdmaCmId> {
  for (let tries = 1; ; tries++) {
    const id = await rdmaCreateId(channel, null, RDMA_PS_TCP);
    await rdmaResolveAddr(id, null, to, timeoutMs);
    const event = (await rdmaGetCmEvent(channel))!;
    rdmaAckCmEvent(event);
    if (event.event === RDMA_CM_EVENT_ADDR_RESOLVED) return id;
    if (event.event !== RDMA_CM_EVENT_ADDR_ERROR || tries === connectTries) throw unexpected(event);
    await rdmaDestroyId(id);
  }
}

/** An ID with the address and the route to a guest's server. @throws RdmaEventError */
export async function resolvedId(channel: RdmaEventChannel, to: SocketAddress): Promise<RdmaCmId> {
  const id = await resolve(channel, to);
  await rdmaResolveRoute(id, timeoutMs);
  await expectEvent(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  return id;
}

/** Where a guest's server listens, and the READs in flight either way. */
export interface GuestServer {
  readonly address: string;
  readonly sinPort: number;
  readonly readsMax: number;
}

/**
 * Connects to a guest's server, again if it is refused.
 * @param prepare makes an attempt's QP, and what belongs to it
 * @throws RdmaEventError for any other end than a refusal, and after the last attempt
 */
export async function connectToGuest<End>(
  program: ProgramContext,
  channel: RdmaEventChannel,
  { address, sinPort, readsMax }: GuestServer,
  prepare: (id: RdmaCmId) => Promise<End>,
): Promise<{ readonly id: RdmaCmId; readonly end: End }> {
  const reads = { responderResources: readsMax, initiatorDepth: readsMax };
  for (let tries = 1; ; tries++) {
    const id = await resolvedId(channel, { sinAddr: address, sinPort });
    const end = await prepare(id);
    await rdmaConnect(id, { ...reads, retryCount: 7, rnrRetryCount: 7 });
    const event = (await rdmaGetCmEvent(channel))!;
    rdmaAckCmEvent(event);
    if (event.event === RDMA_CM_EVENT_ESTABLISHED) return { id, end };
    if (event.event !== RDMA_CM_EVENT_REJECTED || tries === connectTries) throw unexpected(event);
    await rdmaDestroyQp(id);
    await rdmaDestroyId(id);
    await program.cpu.sleep(100 * psPerMs);
  }
}
