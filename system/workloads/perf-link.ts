/**
 * What both programs of `perf` set up: QPs, completion queues, a buffer with one half to send from and one to receive
 * into, and the connection.
 */
import {
  createCompChannel,
  createCq,
  createQp,
  IBV_QPT_RC,
  IBV_QPT_UC,
  IBV_QPT_UD,
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
  modifyCq,
  postRecv,
} from '../../userlib/index.ts';
import type { JsonValue, ProgramContext } from '../machine/index.ts';
import { CompletionPoller, WorkFailedError } from './completions.ts';
import { grhBytes, type HalfNote, openPerfBuffer, type PerfBuffer } from './perf-buffer.ts';
import { Places } from './perf-places.ts';
import type { PerfArgs, PerfConnection, PerfVerb } from './perf-plan.ts';
import { PerfStream, type TakePlace } from './perf-stream.ts';
import { handleTo, peerFrom } from './port-address.ts';
import {
  connectQps,
  connectRc,
  openEndpoint,
  pathMtuOf,
  type QpSteps,
  type RcEndpoint,
  type RcPeer,
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
/** LOCAL_WRITE and REMOTE_WRITE: an unreliable QP gives no other rights. */
const unreliableAccess = allAccess & 3;

export interface PerfLink {
  readonly program: ProgramContext;
  readonly args: PerfArgs;
  readonly qps: readonly IbvQp[];
  /** The sending side of each QP. */
  readonly streams: readonly PerfStream[];
  /** One and the same where both sides send and receive. */
  readonly sends: CompletionPoller;
  readonly receives: CompletionPoller;
  /** Where messages are sent from, and where they arrive. */
  readonly sendAddress: number;
  readonly receiveAddress: number;
  readonly receiveWr: IbvRecvWr;
  /** What mapping and registering the buffer took. */
  readonly registrationPs: number;
}

/** Name of a value that the programs of one thread exchange. */
export const labelOf = (name: string, { thread = 0 }: PerfArgs): string =>
  thread === 0 ? name : `${name}.${thread}`;

export async function openPerfLink(program: ProgramContext): Promise<PerfLink> {
  const args = program.args as unknown as PerfArgs;
  const endpoint = await openPerfEndpoint(program, args);
  const needsReceives = args.verb === 'send';
  const receiveDepth = needsReceives ? Math.max(1, args.rxDepth) : 1;
  const { sendCq, receiveCq, sends, receives } = await createCqs(endpoint.context, args, receiveDepth);
  const buffer = await openPerfBuffer(endpoint, args);
  const qps = await createQps(endpoint, args, sendCq, receiveCq, receiveDepth);
  const receiveWr = receiveWrOf(args, buffer);
  const postAll = (): void => {
    if (!needsReceives) return;
    for (const qp of qps) for (let at = 0; at < receiveDepth; at++) postReceive(qp, receiveWr);
  };
  const peer = await connect(endpoint, qps, args, noteOf(buffer), postAll);
  const remote = await takeHalf(program, args, peer.note, buffer);
  const ah = await addressOf(endpoint, args, peer);
  return {
    program,
    args,
    qps,
    sends,
    receives,
    sendAddress: buffer.sendAddress,
    receiveAddress: buffer.receiveAddress,
    streams: qps.map((qp, index) => {
      const datagram = ah === undefined ? undefined : { ah, remoteQpn: peer.qpNumbers[index]! };
      const makeWr = (): IbvSendWr => sendWrOf(args, buffer, remote, datagram);
      return new PerfStream(qp, args, makeWr, program.random, placesOf(program, args, buffer, remote));
    }),
    receiveWr,
    registrationPs: buffer.registrationPs,
  };
}

/** The device; without BlueFlame when the test is not to use it: its context says that there is no register. */
export async function openPerfEndpoint(program: ProgramContext, args: PerfArgs): Promise<RcEndpoint> {
  const endpoint = await openEndpoint(program);
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

async function createQps(
  { pd }: RcEndpoint,
  { qpCount, txDepth, inlineBytes, connection = 'RC' }: PerfArgs,
  sendCq: IbvCq,
  recvCq: IbvCq,
  maxRecvWr: number,
): Promise<IbvQp[]> {
  const cap = { maxSendWr: txDepth, maxRecvWr, maxSendSge: 1, maxRecvSge: 1, maxInlineData: inlineBytes };
  const qps: IbvQp[] = [];
  for (let index = 0; index < qpCount; index++)
    qps.push(await createQp(pd, { sendCq, recvCq, qpType: qpTypeOf[connection], cap: { ...cap } }));
  return qps;
}

function connect(
  endpoint: RcEndpoint,
  qps: readonly IbvQp[],
  args: PerfArgs,
  note: JsonValue,
  beforeReady: () => void,
): Promise<RcPeer> {
  const { connection = 'RC', mtuBytes } = args;
  const label = labelOf('perf', args);
  if (connection === 'RC') return connectRc(endpoint, qps, label, note, beforeReady, mtuBytes);
  return connectQps(endpoint, qps, label, note, { beforeReady, ...stepsOf(endpoint, connection, mtuBytes) });
}

function stepsOf(endpoint: RcEndpoint, connection: Exclude<PerfConnection, 'RC'>, mtuBytes: number) {
  if (connection === 'UD')
    return { init: initUd, ready: (qp: IbvQp, _: unknown, firstPsn: number) => connectUd(qp, firstPsn) };
  return ucSteps(endpoint, mtuBytes);
}

/** How a UC QP comes to where it sends and receives. */
export function ucSteps(endpoint: RcEndpoint, mtuBytes: number): Pick<QpSteps, 'init' | 'ready'> {
  const pathMtu = pathMtuOf(endpoint, mtuBytes);
  return {
    init: (qp) => toInit(qp, unreliableAccess),
    ready: (qp, address, firstPsn) => connectUc(qp, address, pathMtu, firstPsn),
  };
}

/** Keys in one exchanged value. */
const announcedKeys = 512;

const noteOf = ({ receive: { address, keys } }: PerfBuffer): JsonValue => ({
  address,
  keys: keys.slice(0, announcedKeys),
});

/** The receiving half at the other host: keys beyond the first ones follow in values of their own. */
async function takeHalf(
  { exchange }: ProgramContext,
  args: PerfArgs,
  note: JsonValue,
  { receive }: PerfBuffer,
): Promise<HalfNote> {
  const { address, keys } = note as unknown as HalfNote;
  const label = labelOf('perf.keys', args);
  for (let at = announcedKeys; at < receive.keys.length; at += announcedKeys)
    await exchange.put(label, receive.keys.slice(at, at + announcedKeys));
  const all = [...keys];
  while (all.length < receive.keys.length) all.push(...((await exchange.take(label)) as number[]));
  return { address, keys: all };
}

async function addressOf(
  { pd, own }: RcEndpoint,
  { connection }: PerfArgs,
  peer: RcPeer,
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
      address: sendAddress + offset,
      lkey: lkeys[part]!,
      remoteAddress: remote.address + offset,
      rkey: remote.keys[part]!,
    };
  };
}

export function postReceive(qp: IbvQp, wr: IbvRecvWr): void {
  const error = postRecv(qp, wr);
  if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
}

function receiveWrOf({ sizeBytes, connection }: PerfArgs, buffer: PerfBuffer): IbvRecvWr {
  const length = connection === 'UD' ? sizeBytes + grhBytes : sizeBytes;
  return { wrId: 0, sgList: [{ addr: buffer.receiveAddress, length, lkey: buffer.receiveLkey }], numSge: 1 };
}

function sendWrOf(
  { verb, sizeBytes }: PerfArgs,
  { sendAddress, lkeys }: PerfBuffer,
  remote: HalfNote,
  datagram: { readonly ah: IbvAh; readonly remoteQpn: number } | undefined,
): IbvSendWr {
  const [remoteAddr, rkey] = [remote.address, remote.keys[0]!];
  return {
    wrId: 0,
    sgList: [{ addr: sendAddress, length: sizeBytes, lkey: lkeys[0]! }],
    numSge: 1,
    opcode: opcodeOf[verb],
    sendFlags: 0,
    wr:
      datagram === undefined
        ? { rdma: { remoteAddr, rkey }, atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 0n } }
        : { ud: { ...datagram, remoteQkey: qkey } },
  };
}
