/**
 * Duration of a SEND that waits for a timer of its QP:
 *
 *     for a receive     the responder has none, answers RNR NAK, and posts one just after; the requester waits min_rnr_timer
 *     for a responder   whose QP accepts no packets; the requester waits `timeout` for each attempt and gives up
 */
import { psPerUs } from '../../../base/index.ts';
import type { JsonValue, ProgramContext } from '../../../machine/index.ts';
import { createCq, IBV_WR_SEND, type IbvQp, postRecv, postSend, SendFlag } from '../../../userlib/index.ts';
import {
  announcedOf,
  barrier,
  CompletionPoller,
  createBuffer,
  createRcQps,
  openEndpoint,
  type PortAddress,
  peerFrom,
  type RcBuffer,
  toInit,
  toRtr,
  toRts,
  WorkFailedError,
} from '../../workloads/index.ts';
import type { TimerPoint } from '../points.ts';

export interface TimerResult {
  readonly elapsedPs: number;
}

const messageBytes = 64;
/** Both sides know the instant of the SEND this long before. */
const leadPs = 100 * psPerUs;
/** Delay until the receive is posted: after the first RNR NAK, and before the shortest timer expires. */
const lateByPs = 8 * psPerUs;

export async function timerRequester(program: ProgramContext<TimerPoint>): Promise<JsonValue> {
  const { qp, sends, buffer } = await connected(program);
  const { cpu, exchange } = program;
  await exchange.put('at', cpu.localPs + leadPs);
  await cpu.sleep(leadPs);
  const stopwatch = cpu.stopwatch();
  const error = postSend(qp, {
    wrId: 0,
    sgList: [{ addr: buffer.address, length: messageBytes, lkey: buffer.region.lkey }],
    numSge: 1,
    opcode: IBV_WR_SEND,
    sendFlags: SendFlag.IBV_SEND_SIGNALED,
  });
  if (error !== 0) throw new WorkFailedError(`post_send: error ${error}`);
  // A SEND whose responder is never ready completes with an error.
  await sends.arrival();
  const elapsedPs = stopwatch.elapsedPs;
  await exchange.put('done', true);
  return { elapsedPs };
}

export async function timerResponder(program: ProgramContext<TimerPoint>): Promise<undefined> {
  const { qp, plan, buffer } = await connected(program);
  const { cpu, exchange } = program;
  const atPs = await exchange.take<number>('at');
  if (plan.waits === 'receive') {
    await cpu.sleep(atPs + lateByPs - cpu.localPs);
    const segment = { addr: buffer.address, length: messageBytes, lkey: buffer.region.lkey };
    postRecv(qp, { wrId: 0, sgList: [segment], numSge: 1 });
  }
  await exchange.take('done');
}

interface Connected {
  readonly plan: TimerPoint;
  readonly qp: IbvQp;
  readonly buffer: RcBuffer;
  readonly sends: CompletionPoller;
}

async function connected(program: ProgramContext<TimerPoint>): Promise<Connected> {
  const plan = program.args;
  const { exchange, node } = program;
  const endpoint = await openEndpoint(program);
  const { context, port } = endpoint;
  const cqs = { send: await createCq(context, 1), receive: await createCq(context, 1) };
  const [qp] = await createRcQps(endpoint, 1, cqs, {
    maxSendWr: 1,
    maxRecvWr: 1,
    maxSendSge: 1,
    maxRecvSge: 1,
  });
  const buffer = await createBuffer(endpoint, messageBytes);
  await exchange.put('qp', { ...announcedOf(endpoint.own), qpNum: qp!.qpNum });
  const peer = await exchange.take<PortAddress & { readonly qpNum: number }>('qp');
  const attributes = {
    pathMtu: port.activeMtu,
    readAtomicMax: 1,
    timeoutCode: plan.timeoutCode,
    retryCount: plan.retryCount,
    rnrRetryCount: 7,
    rnrTimerCode: plan.rnrTimerCode,
  };
  await toInit(qp!);
  if (node === 0 || plan.waits === 'receive') {
    const address = { ...peerFrom(endpoint.own, peer), qpNum: peer.qpNum, psn: 0 };
    await toRtr(qp!, address, attributes);
    await toRts(qp!, 0, attributes);
  }
  await barrier(program, 'connected');
  return { plan, qp: qp!, buffer, sends: new CompletionPoller(cqs.send) };
}
