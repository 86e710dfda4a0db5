/**
 * What both programs of `perf` set up: QPs, completion queues, a buffer with one half to send from and one to receive
 * into, and the connection.
 */
import {
  createCompChannel,
  createCq,
  IBV_ACCESS_ON_DEMAND,
  IBV_SEND_INLINE,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  type IbvRecvWr,
  type IbvSendWr,
  postRecv,
  postSend,
  SendFlag,
} from '../../userlib/index.ts';
import type { ProgramContext } from '../machine/program.ts';
import { CompletionPoller, WorkFailedError } from './completions.ts';
import { Places } from './perf-places.ts';
import type { PerfArgs, PerfVerb } from './perf-plan.ts';
import { connectRc, createBuffer, createRcQps, openEndpoint, type RcBuffer } from './rc-endpoint.ts';
import { allAccess } from './rc-states.ts';

const cacheLineBytes = 64;
const signalled = SendFlag.IBV_SEND_SIGNALED;
const opcodeOf: Readonly<Record<PerfVerb, number>> = {
  write: IBV_WR_RDMA_WRITE,
  read: IBV_WR_RDMA_READ,
  send: IBV_WR_SEND,
  atomic: IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/** The sending side of a QP: one work request, reused for every post, and how many were posted and have completed. */
export class PerfStream {
  readonly qp: IbvQp;
  readonly wr: IbvSendWr;
  /** Flags of every post. */
  readonly sendFlags: number;
  posted = 0;
  completed = 0;
  /** Where messages come from and go to; undefined when all have one place. */
  readonly #places: Places | undefined;
  readonly #sendAddress: number;
  readonly #remoteAddress: number;

  constructor(qp: IbvQp, wr: IbvSendWr, places?: Places) {
    this.qp = qp;
    this.wr = wr;
    this.sendFlags = wr.sendFlags;
    this.#places = places;
    this.#sendAddress = wr.sgList[0]!.addr;
    this.#remoteAddress = wr.wr!.rdma!.remoteAddr;
  }

  /** Posts the next message. */
  post(isSignalled: boolean): void {
    if (this.#places !== undefined) this.#move(this.#places.take());
    this.wr.sendFlags = isSignalled ? this.sendFlags | signalled : this.sendFlags;
    const error = postSend(this.qp, this.wr);
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
    this.posted++;
  }

  #move(offset: number): void {
    const { rdma, atomic } = this.wr.wr!;
    this.wr.sgList[0]!.addr = this.#sendAddress + offset;
    rdma!.remoteAddr = this.#remoteAddress + offset;
    atomic!.remoteAddr = this.#remoteAddress + offset;
  }
}

export interface PerfLink {
  readonly program: ProgramContext;
  readonly args: PerfArgs;
  readonly qps: readonly IbvQp[];
  /** The sending side of each QP. */
  readonly streams: readonly PerfStream[];
  readonly sends: CompletionPoller;
  readonly receives: CompletionPoller;
  /** Where messages are sent from, and where they arrive. */
  readonly sendAddress: number;
  readonly receiveAddress: number;
  readonly receiveWr: IbvRecvWr;
  /** What mapping and registering the buffer took. */
  readonly registrationPs: number;
}

export async function openPerfLink(program: ProgramContext): Promise<PerfLink> {
  const args = program.args as unknown as PerfArgs;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const channel = args.usesEvents ? await createCompChannel(context) : undefined;
  const needsReceives = args.verb === 'send';
  const receiveDepth = needsReceives ? Math.max(1, args.rxDepth) : 1;
  const sendCq = await createCq(context, args.txDepth * args.qpCount, null, channel ?? null);
  const receiveCq = await createCq(context, receiveDepth * args.qpCount, null, channel ?? null);
  const strideBytes = Math.ceil(args.sizeBytes / cacheLineBytes) * cacheLineBytes;
  const { region } = args;
  const halfBytes = region === undefined ? strideBytes : Math.ceil(region.bytes / strideBytes) * strideBytes;
  const access = args.isOnDemand === true ? allAccess | IBV_ACCESS_ON_DEMAND : allAccess;
  const registeredFromPs = program.cpu.localPs;
  const buffer = await createBuffer(endpoint, 2 * halfBytes, access);
  const registrationPs = program.cpu.localPs - registeredFromPs;
  const qps = await createRcQps(
    endpoint,
    args.qpCount,
    { send: sendCq, receive: receiveCq },
    {
      maxSendWr: args.txDepth,
      maxRecvWr: receiveDepth,
      maxSendSge: 1,
      maxRecvSge: 1,
      maxInlineData: args.inlineBytes,
    },
  );
  const receiveWr = receiveWrOf(args, buffer, halfBytes);
  const note = { address: buffer.address + halfBytes, rkey: buffer.region.rkey };
  const postAll = (): void => {
    if (!needsReceives) return;
    for (const qp of qps) for (let at = 0; at < receiveDepth; at++) postReceive(qp, receiveWr);
  };
  const peer = await connectRc(endpoint, qps, 'perf', note, postAll, args.mtuBytes);
  const remote = peer.note as { readonly address: number; readonly rkey: number };
  return {
    program,
    args,
    qps,
    sends: new CompletionPoller(sendCq, channel),
    receives: new CompletionPoller(receiveCq, channel),
    sendAddress: buffer.address,
    receiveAddress: buffer.address + halfBytes,
    streams: qps.map((qp) => {
      const places =
        region === undefined
          ? undefined
          : new Places(region.bytes, strideBytes, region.pattern, program.random);
      return new PerfStream(qp, sendWrOf(args, buffer, remote), places);
    }),
    receiveWr,
    registrationPs,
  };
}

export function postReceive(qp: IbvQp, wr: IbvRecvWr): void {
  const error = postRecv(qp, wr);
  if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
}

function receiveWrOf({ sizeBytes }: PerfArgs, buffer: RcBuffer, offset: number): IbvRecvWr {
  const segment = { addr: buffer.address + offset, length: sizeBytes, lkey: buffer.region.lkey };
  return { wrId: 0, sgList: [segment], numSge: 1 };
}

function sendWrOf(
  { verb, sizeBytes, inlineBytes }: PerfArgs,
  buffer: RcBuffer,
  remote: { readonly address: number; readonly rkey: number },
): IbvSendWr {
  const { address: remoteAddr, rkey } = remote;
  return {
    wrId: 0,
    sgList: [{ addr: buffer.address, length: sizeBytes, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: opcodeOf[verb],
    sendFlags: sizeBytes <= inlineBytes ? IBV_SEND_INLINE : 0,
    wr: { rdma: { remoteAddr, rkey }, atomic: { remoteAddr, rkey, compareAdd: 1n, swap: 0n } },
  };
}
