/**
 * The loop of ibv_rc_pingpong (rdma-core, libibverbs/examples/rc_pingpong.c): SENDs there and back over one QP with one
 * CQ. Each SEND requests a completion, and the next is posted only after both that completion and the answer:
 *
 *     post ─► [event ─► arm] ─► poll once, up to two completions ─► both have arrived: post
 *
 * With events each poll follows an event, so the completion of the SEND alone wakes the program, too.
 */
import type { JsonValue, ProgramContext } from '../../../machine/index.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  getCqEvent,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_WC_RECV,
  IBV_WR_SEND,
  type IbvCompChannel,
  type IbvCq,
  type IbvQp,
  type IbvSendWr,
  type IbvWc,
  postRecv,
  postSend,
  reqNotifyCq,
} from '../../../userlib/index.ts';
import {
  announcedOf,
  barrier,
  CompletionPoller,
  checkPosted,
  createBuffer,
  createRcQps,
  openEndpoint,
  type PortAddress,
  peerFrom,
  rcDefaults,
  toInit,
  toRtr,
  toRts,
} from '../../workloads/index.ts';
import type { PingPongPoint } from '../points.ts';

export interface PingPongResult {
  readonly roundTripPs: number;
}

const iterations = 300;
/** The first round trips, which fill caches, are not counted. */
const warmUp = 50;
const receiveDepth = 500;
/** Completions of one poll. */
const batch = 2;

/** Both sides run it; host 0 sends first. */
export async function pingPong(program: ProgramContext<PingPongPoint>): Promise<JsonValue> {
  const { qp, request, completions } = await connected(program);
  const { cpu } = program;
  let [sent, received, fromPs] = [0, 0, 0];
  /** Whether the completion of the last SEND, and whether a message, is still to come. */
  let [isSending, isAwaiting] = [program.node === 0, true];
  if (isSending) checkPosted(postSend(qp, request));
  while (sent < iterations || received < iterations) {
    for (const { opcode } of await completions()) {
      if (opcode === IBV_WC_RECV) [received, isAwaiting] = [received + 1, false];
      else [sent, isSending] = [sent + 1, false];
      if (isSending || isAwaiting || sent === iterations) continue;
      if (sent === warmUp) fromPs = cpu.localPs;
      checkPosted(postSend(qp, request));
      [isSending, isAwaiting] = [true, true];
    }
  }
  const roundTripPs = (cpu.localPs - fromPs) / (iterations - warmUp);
  await barrier(program, 'done');
  return { roundTripPs };
}

interface Connected {
  readonly qp: IbvQp;
  readonly request: IbvSendWr;
  /** Waits for an event, if the point has events, and polls once. */
  readonly completions: () => Promise<readonly IbvWc[]>;
}

async function connected(program: ProgramContext<PingPongPoint>): Promise<Connected> {
  const { sizeBytes, inlineBytes, isByEvents } = program.args;
  const endpoint = await openEndpoint(program);
  const { context, own, port } = endpoint;
  const channel = isByEvents ? await createCompChannel(context) : undefined;
  const cq = await createCq(context, receiveDepth + 1, null, channel ?? null);
  const cap = {
    maxSendWr: 1,
    maxRecvWr: receiveDepth,
    maxSendSge: 1,
    maxRecvSge: 1,
    maxInlineData: inlineBytes,
  };
  const [qp] = (await createRcQps(endpoint, 1, { send: cq, receive: cq }, cap)) as [IbvQp];
  const { address, region } = await createBuffer(endpoint, sizeBytes);
  const sgList = [{ addr: address, length: sizeBytes, lkey: region.lkey }];
  await program.exchange.put('qp', { ...announcedOf(own), qpNum: qp.qpNum });
  const peer = await program.exchange.take<PortAddress & { readonly qpNum: number }>('qp');
  const attributes = { ...rcDefaults, readAtomicMax: 1, pathMtu: port.activeMtu };
  await toInit(qp);
  for (let posted = 0; posted < receiveDepth; posted++)
    checkPosted(postRecv(qp, { wrId: 1, sgList, numSge: 1 }));
  if (isByEvents) reqNotifyCq(cq, 0);
  await toRtr(qp, { ...peerFrom(own, peer), qpNum: peer.qpNum, psn: 0 }, attributes);
  await toRts(qp, 0, attributes);
  await barrier(program, 'connected');
  const sendFlags = IBV_SEND_SIGNALED | (sizeBytes <= inlineBytes ? IBV_SEND_INLINE : 0);
  return {
    qp,
    request: { wrId: 2, opcode: IBV_WR_SEND, sendFlags, sgList, numSge: 1 },
    completions: channel === undefined ? polled(cq) : afterEvent(cq, channel),
  };
}

function polled(cq: IbvCq): Connected['completions'] {
  const poller = new CompletionPoller(cq, undefined, batch);
  return async () => poller.taken.slice(0, await poller.wait());
}

function afterEvent(cq: IbvCq, channel: IbvCompChannel): Connected['completions'] {
  const poller = new CompletionPoller(cq, undefined, batch);
  return async () => {
    await getCqEvent(channel);
    ackCqEvents(cq, 1);
    reqNotifyCq(cq, 0);
    await cq.cpu.settle();
    return poller.taken.slice(0, poller.poll());
  };
}
