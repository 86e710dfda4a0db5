/**
 * The three RDMA paths as sides of a comparison: SEND to a posted receive, WRITE by host 0, READ by host 1.
 *
 * Over iWARP the completion of a WRITE means only that TCP has the message. The host that writes therefore posts a READ
 * of no bytes after its last WRITE: the peer answers it after it has placed everything before it (RFC 5040, 5.5), and the
 * peer's program still does nothing.
 */

import type { ProgramContext } from '../../machine/index.ts';
import {
  createCq,
  IBV_SEND_SIGNALED,
  IBV_TRANSPORT_IWARP,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  type IbvQp,
  type IbvSendWr,
  postRecv,
  postSend,
  regMr,
} from '../../userlib/index.ts';
import type { CompareSide, Message } from './compare-plan.ts';
import type { CompareBuffer } from './compare-transfer.ts';
import { CompletionPoller, WorkFailedError } from './completion-poller.ts';
import { connectRc, createRcQps, openEndpoint } from './rc-endpoint.ts';
import { allAccess } from './rc-states.ts';

/** Requests in flight; posted receives. */
const sendDepth = 64;
const receiveDepth = 512;

interface Link {
  readonly program: ProgramContext;
  readonly qp: IbvQp;
  readonly sends: CompletionPoller;
  readonly receives: CompletionPoller;
  readonly buffer: CompareBuffer;
  readonly lkey: number;
  readonly peer: { readonly address: number; readonly rkey: number };
  /** Whether a WRITE completes before the peer has its bytes. */
  readonly isIwarp: boolean;
}

export async function sendSide(program: ProgramContext, buffer: CompareBuffer): Promise<CompareSide> {
  const link = await connect(program, buffer);
  let posted = 0;
  const post = (messages: readonly Message[]): void => {
    const message = messages[posted++];
    if (message === undefined) return;
    const error = postRecv(link.qp, { wrId: posted, sgList: segmentsOf(link, message), numSge: 1 });
    if (error !== 0) throw new WorkFailedError(`post_recv: error ${error}`);
  };
  return {
    isActive: true,
    prepare: async (messages) => {
      if (program.node === 0) return;
      posted = 0;
      while (posted < Math.min(messages.length, receiveDepth)) post(messages);
      await program.cpu.settle();
    },
    run: async (messages) => {
      if (program.node === 0) {
        await postAll(
          link,
          messages.map((message) => ({ ...localOf(link, message), opcode: IBV_WR_SEND })),
        );
        return;
      }
      for (let taken = 0; taken < messages.length; ) {
        const count = await link.receives.wait();
        taken += count;
        for (let index = 0; index < count; index++) post(messages);
      }
    },
    close: async () => {},
  };
}

export const writeSide = (program: ProgramContext, buffer: CompareBuffer): Promise<CompareSide> =>
  oneSided(program, buffer, program.node === 0, IBV_WR_RDMA_WRITE);

export const readSide = (program: ProgramContext, buffer: CompareBuffer): Promise<CompareSide> =>
  oneSided(program, buffer, program.node !== 0, IBV_WR_RDMA_READ);

/** @param isActive whether this program does everything */
async function oneSided(
  program: ProgramContext,
  buffer: CompareBuffer,
  isActive: boolean,
  opcode: IbvSendWr['opcode'],
): Promise<CompareSide> {
  const link = await connect(program, buffer);
  const { peer } = link;
  const requestOf = (message: Message): OwnRequest => {
    const remoteAddr = peer.address + message.address - buffer.address;
    return { ...localOf(link, message), opcode, wr: { rdma: { remoteAddr, rkey: peer.rkey } } };
  };
  const placed = link.isIwarp && opcode === IBV_WR_RDMA_WRITE ? [emptyReadOf(link)] : [];
  return {
    isActive,
    prepare: async () => {},
    run: (messages) => postAll(link, [...messages.map(requestOf), ...placed]),
    close: async () => {},
  };
}

type OwnRequest = Pick<IbvSendWr, 'opcode' | 'sgList' | 'numSge' | 'wr'>;

const localOf = (link: Link, message: Message) => ({ sgList: segmentsOf(link, message), numSge: 1 });

/** A READ whose completion says that the peer has placed all earlier WRITEs. */
const emptyReadOf = ({ peer }: Link): OwnRequest => ({
  opcode: IBV_WR_RDMA_READ,
  sgList: [],
  numSge: 0,
  wr: { rdma: { remoteAddr: peer.address, rkey: peer.rkey } },
});

/** Posts the requests and waits for all completions, with at most {@link sendDepth} in flight. */
async function postAll(link: Link, requests: readonly OwnRequest[]): Promise<void> {
  let completed = 0;
  for (const [index, request] of requests.entries()) {
    while (index - completed >= sendDepth) completed += await link.sends.wait();
    const error = postSend(link.qp, { ...request, wrId: index, sendFlags: IBV_SEND_SIGNALED });
    if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
  }
  while (completed < requests.length) completed += await link.sends.wait();
}

const segmentsOf = ({ lkey }: Link, { address, lengthBytes }: Message) => [
  { addr: address, length: lengthBytes, lkey },
];

async function connect(program: ProgramContext, buffer: CompareBuffer): Promise<Link> {
  const endpoint = await openEndpoint(program);
  const region = await regMr(endpoint.pd, buffer.address, buffer.lengthBytes, allAccess);
  const sendCq = await createCq(endpoint.context, 2 * sendDepth);
  const receiveCq = await createCq(endpoint.context, 2 * receiveDepth);
  const [qp] = await createRcQps(
    endpoint,
    1,
    { send: sendCq, receive: receiveCq },
    { maxSendWr: sendDepth, maxRecvWr: receiveDepth, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 },
  );
  const note = { address: buffer.address, rkey: region.rkey };
  const { note: peer } = await connectRc<Link['peer']>(endpoint, [qp!], 'compare', note);
  return {
    program,
    qp: qp!,
    sends: new CompletionPoller(sendCq),
    receives: new CompletionPoller(receiveCq),
    buffer,
    lkey: region.lkey,
    peer,
    isIwarp: endpoint.context.device.transportType === IBV_TRANSPORT_IWARP,
  };
}
