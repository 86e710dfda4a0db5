/**
 * Connections as in librdmacm: an event channel, IDs, and the calls of rdma_cma.h in camelCase, with its structures' field
 * names. All calls enter the kernel. As librdmacm does, the library moves the ID's QP to INIT when it is created, to RTR and
 * RTS when the program or the peer accepts, and to ERR when the program disconnects.
 *
 *     passive: rdmaBindAddr ─ rdmaListen ─ CONNECT_REQUEST ─ rdmaCreateQp ─ rdmaAccept ─ ESTABLISHED
 *     active:  rdmaResolveAddr ─ rdmaResolveRoute ─ rdmaCreateQp ─ rdmaConnect ─ ESTABLISHED
 */
import {
  type CmEventRecord,
  type Handle,
  type KernelEventChannel,
  noParameters,
  privateDataMax,
  QpAttrMask,
  QpStateVerb,
  RdmaCmEventType,
  type RdmaConnParam,
  RdmaPortSpace,
  type SocketAddress,
  TransportVerb,
} from '../driver/index.ts';
import { closeDevice, getDeviceList, openDevice } from './device.ts';
import { checkArguments, uint8Max } from './numbers.ts';
import type { IbvContext, IbvPd, IbvQp } from './objects.ts';
import type { CallWatch, VerbsCpu, VerbsPlatform } from './platform.ts';
import { createQp, destroyQp, type IbvQpInitAttr, modifyQp } from './qp.ts';
import { VerbsError, verb } from './verbs-error.ts';

/** Receives the events of IDs (rdma_event_channel). */
export interface RdmaEventChannel {
  /** The thread that uses it and its IDs. */
  cpu: VerbsCpu;
  /** @internal */
  readonly kernel: KernelEventChannel;
  /** @internal Device contexts opened for its IDs: the last one is of the present device, earlier ones are from before a reset. */
  readonly contexts: IbvContext[];
  /** @internal */
  readonly ids: Map<Handle, RdmaCmId>;
  /** @internal Removes the exit hook. */
  readonly forgetExit: () => void;
}

/** An ID of a connection or of a listener (rdma_cm_id). */
export interface RdmaCmId {
  readonly channel: RdmaEventChannel;
  readonly context: unknown;
  readonly ps: RdmaPortSpace;
  /** The device, once the ID is bound to one of its addresses; null before. */
  verbs: IbvContext | null;
  portNum: number;
  qp: IbvQp | null;
  /** @internal */
  readonly handle: Handle;
  /** @internal Delivered events that were not acknowledged yet. */
  eventsUnacked: number;
}

/** An event (rdma_cm_event). */
export interface RdmaCmEvent {
  readonly id: RdmaCmId;
  /** The listener of a CONNECT_REQUEST; null for other events. */
  readonly listenId: RdmaCmId | null;
  readonly event: RdmaCmEventType;
  /** 0, a negative errno, or the reason of a REJECTED. */
  readonly status: number;
  readonly param: { readonly conn: RdmaConnParam };
}

/** Opens an event channel (rdma_create_event_channel). @throws VerbsError ENODEV if the host has no device */
export async function rdmaCreateEventChannel(platform: VerbsPlatform): Promise<RdmaEventChannel> {
  return verb('rdma_create_event_channel', async () => {
    const [device] = getDeviceList(platform);
    if (device === undefined)
      throw new VerbsError('rdma_create_event_channel', 'ENODEV', 'there is no device');
    await platform.cpu.settle();
    const verbs = await openDevice(device);
    const kernel = await orUndone(
      () => device.kernel.openEventChannel(platform.cpu),
      () => closeDevice(verbs),
    );
    const forgetExit = platform.onExit?.((cpu) => kernel.close(cpu)) ?? (() => {});
    return { cpu: platform.cpu, kernel, contexts: [verbs], ids: new Map(), forgetExit };
  });
}

/**
 * Closes a channel whose IDs are destroyed, and the device that it opened for them, with all remaining objects
 * (rdma_destroy_event_channel). @throws VerbsError EBUSY while it has IDs
 */
export async function rdmaDestroyEventChannel(channel: RdmaEventChannel): Promise<void> {
  await verb('rdma_destroy_event_channel', async () => {
    await channel.kernel.destroy(channel.cpu);
    channel.forgetExit();
  });
  for (const context of channel.contexts) await closeDevice(context);
}

/** Creates an ID (rdma_create_id). @throws VerbsError EOPNOTSUPP for a port space other than RDMA_PS_TCP */
export async function rdmaCreateId(
  channel: RdmaEventChannel,
  context: unknown,
  ps: RdmaPortSpace,
): Promise<RdmaCmId> {
  return verb('rdma_create_id', async () =>
    idOf(channel, await channel.kernel.createId(channel.cpu, ps), context, ps),
  );
}

/** Destroys an ID and ends its connection (rdma_destroy_id). @throws VerbsError EBUSY with a QP or unacknowledged events */
export async function rdmaDestroyId(id: RdmaCmId): Promise<void> {
  await verb('rdma_destroy_id', async () => {
    if (id.eventsUnacked > 0)
      throw new VerbsError('rdma_destroy_id', 'EBUSY', `${id.eventsUnacked} events are not acknowledged`);
    if (id.qp !== null) throw new VerbsError('rdma_destroy_id', 'EBUSY', 'the ID has a QP');
    await id.channel.kernel.destroyId(id.channel.cpu, id.handle);
    id.channel.ids.delete(id.handle);
  });
}

/** Binds an ID to an address of this host, or to any with '0.0.0.0' (rdma_bind_addr). @throws VerbsError EADDRINUSE, ENODEV */
export async function rdmaBindAddr(id: RdmaCmId, address: SocketAddress): Promise<void> {
  await verb('rdma_bind_addr', async () => {
    await id.channel.kernel.bindAddr(id.channel.cpu, id.handle, address);
    await learnDevice(id);
  });
}

/** Finds the device and the port for an address: ADDR_RESOLVED or ADDR_ERROR follows (rdma_resolve_addr). */
export async function rdmaResolveAddr(
  id: RdmaCmId,
  src: SocketAddress | null,
  dst: SocketAddress,
  timeoutMs: number,
): Promise<void> {
  noteCall(id, 'rdma_resolve_addr', addressText(dst));
  await verb('rdma_resolve_addr', async () => {
    await id.channel.kernel.resolveAddr(id.channel.cpu, id.handle, src ?? undefined, dst, timeoutMs);
    await learnDevice(id);
  });
}

/** Finds the path: ROUTE_RESOLVED follows (rdma_resolve_route). */
export function rdmaResolveRoute(id: RdmaCmId, timeoutMs: number): Promise<void> {
  noteCall(id, 'rdma_resolve_route');
  return verb('rdma_resolve_route', () =>
    id.channel.kernel.resolveRoute(id.channel.cpu, id.handle, timeoutMs),
  );
}

/** Listens for requests; at most `backlog` of them wait to be fetched (rdma_listen). */
export function rdmaListen(id: RdmaCmId, backlog: number): Promise<void> {
  noteCall(id, 'rdma_listen');
  return verb('rdma_listen', () => id.channel.kernel.listen(id.channel.cpu, id.handle, backlog));
}

/** Creates the ID's QP, in INIT (rdma_create_qp). @throws VerbsError EINVAL for an ID without a device, or with a QP */
export async function rdmaCreateQp(id: RdmaCmId, pd: IbvPd, init: IbvQpInitAttr): Promise<IbvQp> {
  return verb('rdma_create_qp', async () => {
    if (id.verbs === null || id.qp !== null)
      throw new VerbsError(
        'rdma_create_qp',
        'EINVAL',
        id.qp === null ? 'the ID has no device' : 'the ID has a QP',
      );
    const qp = await createQp(pd, init);
    const attr = { qpState: QpStateVerb.IBV_QPS_INIT, pkeyIndex: 0, portNum: id.portNum, qpAccessFlags: 0 };
    const { IBV_QP_STATE, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_ACCESS_FLAGS } = QpAttrMask;
    const mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    await orUndone(
      () => modifyQp(qp, attr, mask),
      () => destroyQp(qp),
    );
    id.qp = qp;
    return qp;
  });
}

/** Destroys the ID's QP (rdma_destroy_qp). */
export async function rdmaDestroyQp(id: RdmaCmId): Promise<void> {
  if (id.qp === null) return;
  await destroyQp(id.qp);
  id.qp = null;
}

/** Sends a request to the peer, with 0 for fields left out: ESTABLISHED, REJECTED or UNREACHABLE follows (rdma_connect). */
export function rdmaConnect(id: RdmaCmId, param: Partial<RdmaConnParam> = {}): Promise<void> {
  noteCall(id, 'rdma_connect');
  return verb('rdma_connect', () =>
    id.channel.kernel.connect(id.channel.cpu, id.handle, parametersOf(id, param, 'connect')),
  );
}

/**
 * Accepts a request, with the QP ready for the peer's first packet: ESTABLISHED follows (rdma_accept).
 * @throws VerbsError EINVAL if the peer has given up meanwhile; the QP is then in ERR
 */
export async function rdmaAccept(id: RdmaCmId, param: Partial<RdmaConnParam> = {}): Promise<void> {
  noteCall(id, 'rdma_accept');
  await verb('rdma_accept', async () => {
    const own = parametersOf(id, param, 'accept');
    const accept = async (): Promise<void> => {
      if (id.qp !== null) await readyQp(id, id.qp, own);
      await id.channel.kernel.accept(id.channel.cpu, id.handle, own);
    };
    await orUndone(accept, () => failQp(id));
  });
}

/** Rejects a request, or a response (rdma_reject). */
export function rdmaReject(id: RdmaCmId, privateData: Uint8Array = new Uint8Array()): Promise<void> {
  noteCall(id, 'rdma_reject');
  return verb('rdma_reject', () => id.channel.kernel.reject(id.channel.cpu, id.handle, privateData));
}

/**
 * Ends the connection; posted requests complete with an error. DISCONNECTED follows on both sides (rdma_disconnect).
 * With iWARP the stream ends in order, after everything handed to TCP, and then the QP fails: librdmacm fails the QP
 * first, which resets TCP.
 */
export async function rdmaDisconnect(id: RdmaCmId): Promise<void> {
  noteCall(id, 'rdma_disconnect');
  await verb('rdma_disconnect', async () => {
    if (transportOf(id.channel) === TransportVerb.IBV_TRANSPORT_IB) await failQp(id);
    await id.channel.kernel.disconnect(id.channel.cpu, id.handle);
  });
}

/**
 * Waits for the next event of the channel's IDs (rdma_get_cm_event). For an ID with a QP, the peer's response becomes
 * ESTABLISHED after the QP is made ready, or CONNECT_ERROR if the peer gave up before that. The QP of an ID that is REJECTED or
 * has a CONNECT_ERROR moves to ERR; after a CONNECT_ERROR the end of the connection is not reported (as in librdmacm).
 * @returns undefined only when `timeoutPs` is given and has passed
 */
export async function rdmaGetCmEvent(
  channel: RdmaEventChannel,
  timeoutPs?: number,
): Promise<RdmaCmEvent | undefined> {
  return verb('rdma_get_cm_event', async () => {
    checkArguments('rdma_get_cm_event', ['timeoutPs', timeoutPs ?? 0, Number.MAX_SAFE_INTEGER]);
    const calls = callsOf(channel);
    calls?.awaitsConnectionEvent();
    for (;;) {
      const record = await nextEvent(channel, timeoutPs);
      if (record === undefined) return undefined;
      const event = await takenEvent(channel, record);
      if (event === undefined) continue;
      calls?.gotConnectionEvent(rdmaEventStr(event.event), event.status);
      return event;
    }
  });
}

const { RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_CONNECT_RESPONSE } = RdmaCmEventType;
const { RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED } = RdmaCmEventType;

/** The library's processing of an event before the program receives it; undefined: the program does not receive it. */
async function takenEvent(
  channel: RdmaEventChannel,
  record: CmEventRecord,
): Promise<RdmaCmEvent | undefined> {
  const id = channel.ids.get(record.id) ?? (await requestedId(channel, record));
  switch (record.event) {
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      return id.qp === null ? eventOf(channel, id, record) : answered(channel, id, id.qp, record);
    case RDMA_CM_EVENT_REJECTED:
      if (refused.has(id)) return undefined;
      await failQp(id);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      followKernel(id, QpStateVerb.IBV_QPS_RTS);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      if (refused.has(id)) return undefined;
      followKernel(id, QpStateVerb.IBV_QPS_ERR);
      break;
    default:
  }
  return eventOf(channel, id, record);
}

/** The peer has answered: the kernel reports ESTABLISHED, unless the peer gave up while the QP was made ready. */
async function answered(
  channel: RdmaEventChannel,
  id: RdmaCmId,
  qp: IbvQp,
  record: CmEventRecord,
): Promise<RdmaCmEvent | undefined> {
  try {
    await verb('rdma_accept', async () => {
      await readyQp(id, qp, noParameters);
      await channel.kernel.accept(channel.cpu, id.handle, undefined);
    });
  } catch (error) {
    if (!(error instanceof VerbsError)) throw error;
    refused.add(id);
    await failQp(id);
    return eventOf(channel, id, { ...record, event: RDMA_CM_EVENT_CONNECT_ERROR, status: -error.errno });
  }
  responses.set(id, record);
  return undefined;
}

/** With iWARP the kernel takes the ID's QP to RTS, and the card to ERR: the library notes the state. */
function followKernel({ channel, qp }: RdmaCmId, state: QpStateVerb): void {
  if (qp !== null && transportOf(channel) === TransportVerb.IBV_TRANSPORT_IWARP) qp.state = state;
}

/** Moves the ID's QP, if any, to ERR. */
async function failQp({ qp }: RdmaCmId): Promise<void> {
  if (qp === null || qp.state === QpStateVerb.IBV_QPS_ERR) return;
  await modifyQp(qp, { qpState: QpStateVerb.IBV_QPS_ERR }, QpAttrMask.IBV_QP_STATE);
}

/** Runs a step; if it fails, runs another one before the error propagates. */
async function orUndone<T>(attempt: () => Promise<T>, undo: () => Promise<void>): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    await undo();
    throw error;
  }
}

/** Acknowledges an event: its ID may then be destroyed (rdma_ack_cm_event). */
export function rdmaAckCmEvent(event: RdmaCmEvent): void {
  event.id.eventsUnacked = Math.max(0, event.id.eventsUnacked - 1);
}

/** Address and port of this side (rdma_get_local_addr). */
export const rdmaGetLocalAddr = (id: RdmaCmId): Promise<SocketAddress> =>
  verb(
    'rdma_get_local_addr',
    async () => (await id.channel.kernel.queryAddresses(id.channel.cpu, id.handle)).src,
  );

/** Address and port of the peer, null without one (rdma_get_peer_addr). */
export const rdmaGetPeerAddr = (id: RdmaCmId): Promise<SocketAddress | null> =>
  verb(
    'rdma_get_peer_addr',
    async () => (await id.channel.kernel.queryAddresses(id.channel.cpu, id.handle)).dst ?? null,
  );

/** The name of an event (rdma_event_str). */
export function rdmaEventStr(event: RdmaCmEventType): string {
  return Object.entries(RdmaCmEventType).find(([, code]) => code === event)?.[0] ?? `event ${event}`;
}

const transportOf = ({ contexts }: RdmaEventChannel): TransportVerb => contexts.at(-1)!.device.transportType;

const callsOf = ({ contexts }: RdmaEventChannel): CallWatch | undefined =>
  contexts.at(-1)?.platform.tap?.calls;

const noteCall = ({ channel }: RdmaCmId, call: string, detail = ''): void =>
  callsOf(channel)?.connectionCalled(call, detail);

const addressText = ({ sinAddr, sinPort }: SocketAddress): string => `${sinAddr} port ${sinPort}`;

/** Parameters of the peer's response, which the program receives with ESTABLISHED. */
const responses = new WeakMap<RdmaCmId, CmEventRecord>();
/** IDs that had a CONNECT_ERROR. */
const refused = new WeakSet<RdmaCmId>();

async function nextEvent(channel: RdmaEventChannel, timeoutPs?: number): Promise<CmEventRecord | undefined> {
  channel.cpu.waitsIn(() => 'rdma_get_cm_event');
  try {
    return await channel.kernel.getEvent(channel.cpu, timeoutPs);
  } finally {
    channel.cpu.waitsIn(undefined);
  }
}

function idOf(channel: RdmaEventChannel, handle: Handle, context: unknown, ps: RdmaPortSpace): RdmaCmId {
  const id = { channel, context, ps, verbs: null, portNum: 0, qp: null, handle, eventsUnacked: 0 };
  channel.ids.set(handle, id);
  return id;
}

/** The ID that a request creates: it has its listener's context, and a device. */
async function requestedId(channel: RdmaEventChannel, record: CmEventRecord): Promise<RdmaCmId> {
  const listener = channel.ids.get(record.listenId);
  const id = idOf(channel, record.id, listener?.context ?? null, RdmaPortSpace.RDMA_PS_TCP);
  id.verbs = await contextOf(channel);
  id.portNum = 1;
  return id;
}

function eventOf(channel: RdmaEventChannel, id: RdmaCmId, record: CmEventRecord): RdmaCmEvent {
  const response = responses.get(id);
  responses.delete(id);
  id.eventsUnacked++;
  const conn = record.conn ?? response?.conn ?? noParameters;
  const listenId = channel.ids.get(record.listenId) ?? null;
  return { id, listenId, event: record.event, status: record.status, param: { conn } };
}

async function learnDevice(id: RdmaCmId): Promise<void> {
  const { portNum } = await id.channel.kernel.queryAddresses(id.channel.cpu, id.handle);
  if (portNum === 0) return;
  id.verbs = await contextOf(id.channel);
  id.portNum = portNum;
}

/** The channel's open device. It is reopened after it died and returned (librdmacm: ucma_get_device). */
async function contextOf({ contexts }: RdmaEventChannel): Promise<IbvContext> {
  const last = contexts.at(-1)!;
  if (last.kernel.isUsable) return last;
  const context = await openDevice(last.device);
  contexts.push(context);
  return context;
}

/** INIT with the rights that the kernel reports, then RTR and RTS, as in librdmacm's ucma_modify_qp_rtr and _rts. */
async function readyQp(id: RdmaCmId, qp: IbvQp, own: RdmaConnParam): Promise<void> {
  const { channel, handle } = id;
  const to = async (
    state: QpStateVerb,
    own?: { maxDestRdAtomic?: number; maxRdAtomic?: number },
  ): Promise<void> => {
    const { attr, mask } = await channel.kernel.initQpAttr(channel.cpu, handle, state);
    // With iWARP the kernel takes the QP further by itself.
    if (mask !== 0) await modifyQp(qp, { ...attr, ...own }, mask);
  };
  const isAccepting = own !== noParameters;
  await to(QpStateVerb.IBV_QPS_INIT);
  await to(QpStateVerb.IBV_QPS_RTR, isAccepting ? { maxDestRdAtomic: own.responderResources } : undefined);
  await to(QpStateVerb.IBV_QPS_RTS, isAccepting ? { maxRdAtomic: own.initiatorDepth } : undefined);
}

/** Numbers as their types in C; the QP's are the QP's. */
function parametersOf(
  id: RdmaCmId,
  param: Partial<RdmaConnParam>,
  message: 'connect' | 'accept',
): RdmaConnParam {
  const maxBytes = privateDataMax[transportOf(id.channel)][message];
  const all = { ...noParameters, ...param };
  const { responderResources, initiatorDepth, flowControl, retryCount, rnrRetryCount } = all;
  checkArguments(
    'rdma_connect',
    ['responderResources', responderResources, uint8Max],
    ['initiatorDepth', initiatorDepth, uint8Max],
    ['flowControl', flowControl, 1],
    ['retryCount', retryCount, 7],
    ['rnrRetryCount', rnrRetryCount, 7],
    ['privateDataLen', all.privateData.length, maxBytes],
  );
  if (id.qp === null) return all;
  return { ...all, qpNum: id.qp.qpNum, srq: id.qp.srq === null ? 0 : 1 };
}
