/**
 * Common set-up of both programs of `perf`: QPs, completion queues, a buffer with one half to send from and one to
 * receive into, and the connection.
 */
import { ConfigurationError } from '../../base/index.ts';
import type { ProgramContext } from '../../machine/index.ts';
import {
  createCompChannel,
  createCq,
  createQp,
  createSrq,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
  IBV_TRANSPORT_IWARP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvAh,
  type IbvContext,
  type IbvCq,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  type IbvSrq,
  modifyCq,
  postRecv,
  postSrqRecv,
  type QpCap,
} from '../../userlib/index.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { grhBytes, type HalfNote, openPerfBuffer, type PerfBuffer } from './perf-buffer.ts';
import { Places } from './perf-places.ts';
import type { PerfArgs, PerfVerb } from './perf-plan.ts';
import { announceReady, labelOf } from './perf-start.ts';
import { PerfStream, type TakePlace } from './perf-stream.ts';
import { createExtendedQps, type ExtendedQp, extendedSteps, inOrder, srqNumberOf } from './perf-xrc.ts';
import { handleTo, peerFrom } from './port-address.ts';
import {
  connectQps,
  openEndpoint,
  pathMtuOf,
  type QpSteps,
  type RcEndpoint,
  type RcPeer,
  rcSteps,
} from './rc-endpoint.ts';
import { allAccess, toInit } from './rc-states.ts';
import { connectUc, connectUd, initUd, qkey } from './unreliable-states.ts';

const opcodeOf: Readonly<Record<PerfVerb, number>> = {
  write: IBV_WR_RDMA_WRITE,
  read: IBV_WR_RDMA_READ,
  send: IBV_WR_SEND,
  atomic: IBV_WR_ATOMIC_FETCH_AND_ADD,
};
const qpTypeOf = { RC: IBV_QPT_RC, UC: IBV_QPT_UC, UD: IBV_QPT_UD } as const;
type PlainConnection = keyof typeof qpTypeOf;
/** LOCAL_WRITE and REMOTE_WRITE: an unreliable QP grants no other rights. */
const unreliableAccess = allAccess & 3;

export interface PerfLink {
  readonly program: ProgramContext<PerfArgs>;
  readonly args: PerfArgs;
  /** The sending side of each QP, or of each pair of an XRC initiator and a target. */
  readonly streams: readonly PerfStream[];
  /** The same object if both sides send and receive. */
  readonly sends: CompletionPoller;
  readonly receives: CompletionPoller;
  /** Whether messages complete before the peer has them: see perf-arrival.ts. */
  readonly completesEarly: boolean;
  /** Source and destination of messages. */
  readonly sendAddress: number;
  readonly receiveAddress: number;
  /** Reposts the receive that a message on this QP consumed. */
  readonly repost: (qpNum: number) => void;
  /** Times of mapping and registering the buffer. */
  readonly registrationPs: number;
}

export async function openPerfLink(program: ProgramContext<PerfArgs>, isClient: boolean): Promise<PerfLink> {
  const args = program.args;
  const endpoint = await openPerfEndpoint(program, args);
  checkDatagram(args, endpoint.port.activeMtu);
  const receiveDepth = args.verb === 'send' ? Math.max(1, args.rxDepth) : 1;
  const { sendCq, receiveCq, sends, receives } = await createCqs(endpoint.context, args, receiveDepth);
  const buffer = await openPerfBuffer(endpoint, args);
  const cqs = { send: sendCq, receive: receiveCq };
  const afterReady = (): Promise<void> => (isClient ? Promise.resolve() : announceReady(program, args));
  const ends = await connectedEnds(endpoint, args, isClient, cqs, buffer, afterReady);
  const remote = await takeHalf(program, args, ends.peer.note, buffer);
  return {
    program,
    args,
    sends,
    receives,
    completesEarly:
      (args.verb === 'write' || args.verb === 'send') &&
      endpoint.context.device.transportType === IBV_TRANSPORT_IWARP,
    sendAddress: buffer.sendAddress,
    receiveAddress: buffer.receiveAddress,
    streams: ends.senders.map(({ qp, receivesAt, to }) => {
      const makeWr = (): IbvSendWr => sendWrOf(args, buffer, remote, to);
      const takePlace = placesOf(program, args, buffer, remote);
      return new PerfStream(qp, receivesAt, args, makeWr, program.random, takePlace);
    }),
    repost: ends.repost,
    registrationPs: buffer.registrationPs,
  };
}

/** @throws ConfigurationError for datagrams longer than a packet of the port */
function checkDatagram({ connection, sizeBytes }: PerfArgs, activeMtu: number): void {
  const mtuBytes = 128 * 2 ** activeMtu;
  if (connection !== 'UD' || sizeBytes <= mtuBytes) return;
  const range = `at most the MTU of the port, ${mtuBytes}, with connection UD: a datagram is one packet`;
  throw new ConfigurationError('size', sizeBytes, range);
}

/** Additional fields of a work request of a service. */
type Addressing = Pick<IbvSendWr, 'qpType'> & { readonly ud?: NonNullable<IbvSendWr['wr']>['ud'] };

/** The QPs of a side, connected, with their receives posted. */
interface PerfEnds {
  readonly peer: RcPeer<HalfNote>;
  /** Each sending QP, the number of the QP that receives its peer's messages, and the destination of its requests. */
  readonly senders: readonly { readonly qp: IbvQp; readonly receivesAt: number; readonly to: Addressing }[];
  readonly repost: PerfLink['repost'];
}

interface PerfCqs {
  readonly send: IbvCq;
  readonly receive: IbvCq;
}

function connectedEnds(
  endpoint: RcEndpoint,
  args: PerfArgs,
  isClient: boolean,
  cqs: PerfCqs,
  buffer: PerfBuffer,
  afterReady: () => Promise<void>,
): Promise<PerfEnds> {
  const { connection = 'RC' } = args;
  return connection === 'XRC'
    ? extendedEnds(endpoint, args, isClient, cqs, buffer, afterReady)
    : plainEnds(endpoint, args, connection, cqs, buffer, afterReady);
}

async function plainEnds(
  endpoint: RcEndpoint,
  args: PerfArgs,
  connection: PlainConnection,
  cqs: PerfCqs,
  buffer: PerfBuffer,
  afterReady: () => Promise<void>,
): Promise<PerfEnds> {
  const cap = capOf(args);
  const attr = { maxWr: cap.maxRecvWr, maxSge: 1 };
  const srq = args.usesSrq === true ? await createSrq(endpoint.pd, { attr }) : undefined;
  const qps = await createQps(endpoint, args.qpCount, connection, cqs, cap, srq);
  const byNumber = new Map(qps.map((qp) => [qp.qpNum, qp]));
  const receiveWr = receiveWrOf(args, buffer);
  const repost = (qpNum: number): void =>
    srq === undefined ? postReceive(byNumber.get(qpNum)!, receiveWr) : postShared(srq, receiveWr);
  const postAll = (): void => {
    if (args.verb !== 'send') return;
    const queues = srq === undefined ? qps : qps.slice(0, 1);
    for (const { qpNum } of queues) for (let at = 0; at < cap.maxRecvWr; at++) repost(qpNum);
  };
  const steps = { beforeReady: postAll, afterReady, ...stepsOf(endpoint, connection, args) };
  const peer = await connectQps<HalfNote>(endpoint, qps, labelOf('perf', args), noteOf(buffer), steps);
  const ah = await addressOf(endpoint, args, peer);
  const addressingOf = (index: number): Addressing =>
    ah === undefined ? {} : { ud: { ah, remoteQpn: peer.qpNumbers[index]!, remoteQkey: qkey } };
  return {
    peer,
    senders: qps.map((qp, index) => ({ qp, receivesAt: qp.qpNum, to: addressingOf(index) })),
    repost,
  };
}

async function extendedEnds(
  endpoint: RcEndpoint,
  args: PerfArgs,
  isClient: boolean,
  cqs: PerfCqs,
  buffer: PerfBuffer,
  afterReady: () => Promise<void>,
): Promise<PerfEnds> {
  const cap = capOf(args);
  const own = await createExtendedQps(endpoint, args, isClient, cqs, cap);
  const receiveWr = receiveWrOf(args, buffer);
  const beforeReady = (): void => {
    if (args.verb !== 'send' || own.targets.length === 0) return;
    for (let at = 0; at < cap.maxRecvWr; at++) postShared(own.srq, receiveWr);
  };
  const note = { ...noteOf(buffer), srqNumber: srqNumberOf(own) };
  const steps = { beforeReady, afterReady, ...extendedSteps(endpoint, args.mtuBytes) };
  const label = labelOf('perf', args);
  const peer = await connectQps<typeof note, ExtendedQp>(
    endpoint,
    inOrder(own, isClient),
    label,
    note,
    steps,
  );
  const { srqNumber } = peer.note;
  const to = { qpType: { xrc: { remoteSrqn: srqNumber } } };
  return {
    peer,
    senders: own.initiators.map((qp, index) => ({
      qp,
      receivesAt: own.targets[index]?.qpNum ?? qp.qpNum,
      to,
    })),
    repost: () => postShared(own.srq, receiveWr),
  };
}

/** The device; without BlueFlame if the test disables it: its context then reports no register. */
export async function openPerfEndpoint(program: ProgramContext, args: PerfArgs): Promise<RcEndpoint> {
  const endpoint = await openEndpoint(program, args.route);
  if (args.usesBlueFlame !== false) return endpoint;
  const info = { ...endpoint.context.info, blueFlameRegisterBytes: 0 };
  const context = { ...endpoint.context, info };
  return { ...endpoint, context, pd: { ...endpoint.pd, context } };
}

async function createCqs(context: IbvContext, args: PerfArgs, receiveDepth: number) {
  const { txDepth, qpCount, usesEvents, eventModeration: moderation } = args;
  const channel = usesEvents ? await createCompChannel(context) : undefined;
  const isShared = args.verb === 'send' && (args.isBidirectional === true || args.isEchoed === true);
  const [sendDepth, depth] = [txDepth * qpCount, receiveDepth * qpCount];
  const sendCq = await createCq(context, isShared ? sendDepth + depth : sendDepth, null, channel ?? null);
  const receiveCq = isShared ? sendCq : await createCq(context, depth, null, channel ?? null);
  if (moderation !== undefined)
    for (const cq of new Set([sendCq, receiveCq]))
      await modifyCq(cq, moderation.count, moderation.microseconds);
  const sends = new CompletionPoller(sendCq, channel);
  const receives = isShared ? sends : new CompletionPoller(receiveCq, channel);
  return { sendCq, receiveCq, sends, receives };
}

const capOf = ({ verb, txDepth, rxDepth, inlineBytes }: PerfArgs): QpCap => ({
  maxSendWr: txDepth,
  maxRecvWr: verb === 'send' ? Math.max(1, rxDepth) : 1,
  maxSendSge: 1,
  maxRecvSge: 1,
  maxInlineData: inlineBytes,
});

async function createQps(
  { pd }: RcEndpoint,
  count: number,
  connection: PlainConnection,
  cqs: PerfCqs,
  cap: QpCap,
  srq: IbvSrq | undefined,
): Promise<IbvQp[]> {
  const shared = srq === undefined ? {} : { srq };
  const init = { sendCq: cqs.send, recvCq: cqs.receive, qpType: qpTypeOf[connection], ...shared };
  const qps: IbvQp[] = [];
  for (let index = 0; index < count; index++) qps.push(await createQp(pd, { ...init, cap: { ...cap } }));
  return qps;
}

function stepsOf(endpoint: RcEndpoint, connection: PlainConnection, { mtuBytes }: PerfArgs) {
  if (connection === 'RC') return rcSteps(endpoint, mtuBytes);
  if (connection === 'UD')
    return { init: initUd, ready: (qp: IbvQp, _: unknown, firstPsn: number) => connectUd(qp, firstPsn) };
  return ucSteps(endpoint, mtuBytes);
}

/** State transitions of a UC QP until it sends and receives. */
export function ucSteps(endpoint: RcEndpoint, mtuBytes: number): Pick<QpSteps, 'init' | 'ready'> {
  const pathMtu = pathMtuOf(endpoint, mtuBytes);
  return {
    init: (qp) => toInit(qp, unreliableAccess),
    ready: (qp, address, firstPsn) => connectUc(qp, address, pathMtu, firstPsn),
  };
}

/** Number of keys in one exchanged value. */
const announcedKeys = 512;

const noteOf = ({ receive: { address, keys } }: PerfBuffer) => ({
  address,
  keys: keys.slice(0, announcedKeys),
});

/** The receiving half at the other host: keys beyond the first ones follow in separate values. */
async function takeHalf(
  { exchange }: ProgramContext,
  args: PerfArgs,
  { address, keys }: HalfNote,
  { receive }: PerfBuffer,
): Promise<HalfNote> {
  const label = labelOf('perf.keys', args);
  const all = [...keys];
  // Both sides have the same number of keys: one value each way at a time, so that none fills the channel.
  for (let at = announcedKeys; at < receive.keys.length; at += announcedKeys) {
    await exchange.put(label, receive.keys.slice(at, at + announcedKeys));
    all.push(...(await exchange.take<number[]>(label)));
  }
  return { address, keys: all };
}

async function addressOf(
  { pd, own }: RcEndpoint,
  { connection }: PerfArgs,
  peer: RcPeer<HalfNote>,
): Promise<IbvAh | undefined> {
  return connection === 'UD' ? handleTo(pd, peerFrom(own, peer)) : undefined;
}

function placesOf(
  program: ProgramContext,
  { region }: PerfArgs,
  { sendAddress, placeBytes, placesPerKey, lkeys }: PerfBuffer,
  remote: HalfNote,
): TakePlace | undefined {
  if (region === undefined) return;
  const places = new Places(region, placeBytes, program.random);
  return () => {
    const place = places.take();
    const offset = place * placeBytes;
    const part = Math.floor(place / placesPerKey);
    return {
      address: region.isLocalFixed === true ? sendAddress : sendAddress + offset,
      lkey: lkeys[region.isLocalFixed === true ? 0 : part]!,
      remoteAddress: remote.address + offset,
      rkey: remote.keys[part]!,
    };
  };
}

export function postReceive(qp: IbvQp, wr: IbvRecvWr): void {
  const error = postRecv(qp, wr);
  if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
}

function postShared(srq: IbvSrq, wr: IbvRecvWr): void {
  const error = postSrqRecv(srq, wr);
  if (error !== 0) throw new WorkFailedError(`post_srq_recv: error ${error}`);
}

function receiveWrOf({ sizeBytes, connection }: PerfArgs, buffer: PerfBuffer): IbvRecvWr {
  const length = connection === 'UD' ? sizeBytes + grhBytes : sizeBytes;
  return { wrId: 0, sgList: [{ addr: buffer.receiveAddress, length, lkey: buffer.receiveLkey }], numSge: 1 };
}

function sendWrOf(
  { verb, sizeBytes }: PerfArgs,
  { sendAddress, lkeys }: PerfBuffer,
  remote: HalfNote,
  { ud, ...more }: Addressing,
): IbvSendWr {
  const [remoteAddr, rkey] = [remote.address, remote.keys[0]!];
  return {
    wrId: 0,
    sgList: [{ addr: sendAddress, length: sizeBytes, lkey: lkeys[0]! }],
    numSge: 1,
    opcode: opcodeOf[verb],
    sendFlags: 0,
    wr:
      ud === undefined
        ? { rdma: { remoteAddr, rkey }, atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 0n } }
        : { ud },
    ...more,
  };
}
