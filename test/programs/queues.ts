/** Misuse of queues and the verbs' answers: QPs in the wrong state, full queues, too many buffers, CQs that overrun, missing receives. */

import { allAccess, toInit, toRtr, toRts } from '../../experiments/workloads/rc-states.ts';
import type { JsonValue, ProgramContext } from '../../machine/program.ts';
import {
  type BadWr,
  createCq,
  createQp,
  createSrq,
  destroyCq,
  destroyQp,
  destroySrq,
  IBV_QP_ACCESS_FLAGS,
  IBV_QP_PKEY_INDEX,
  IBV_QP_PORT,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPS_INIT,
  IBV_QPS_RESET,
  IBV_QPS_RTR,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_QPT_RC,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  type IbvRecvWr,
  type IbvSendWr,
  modifyQp,
  postRecv,
  postSend,
  postSrqRecv,
  type QpCap,
} from '../../userlib/index.ts';
import { type Act, type Acts, accompany, idle, provoke } from './companion.ts';
import { codeOf, statusesOf, take, takeAll } from './outcomes.ts';
import { fetchAddOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import { attributesOf, type Pair, type PairOptions, type Side } from './side.ts';

export const provoker = (program: ProgramContext): Promise<object> => provoke(program, provokerActs);
export const partner = (program: ProgramContext): Promise<JsonValue> => accompany(program, partnerActs);

const pairOnly =
  (options: PairOptions = {}): Act =>
  async (side, name) => {
    const pair = await side.pair(name, options);
    await side.barrier(`${name} done`);
    const told = { state: await side.stateOf(pair), events: await side.events() };
    await side.closePair(pair, options);
    return told;
  };

const toState = (
  pair: Pair,
  qpState: NonNullable<Parameters<typeof modifyQp>[1]['qpState']>,
): Promise<string> => codeOf(modifyQp(pair.qp, { qpState }, IBV_QP_STATE));

/** Posts and modifies in every state in which that is not allowed; the state must not change. */
async function wrongStates(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.unconnected(name);
  const request = sendOf([segment(pair.buffer, 0, 8)]);
  const receive = receiveOf([segment(pair.buffer, 0, 8)]);
  const inReset = {
    send: postSend(pair.qp, request),
    receive: postRecv(pair.qp, receive),
    toRtr: await codeOf(toRtr(pair.qp, pair.remote, attributesOf({}))),
    toRts: await toState(pair, IBV_QPS_RTS),
    withoutPort: await codeOf(
      modifyQp(
        pair.qp,
        { qpState: IBV_QPS_INIT, pkeyIndex: 0, qpAccessFlags: 0 },
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
      ),
    ),
    portThree: await codeOf(
      modifyQp(
        pair.qp,
        { qpState: IBV_QPS_INIT, pkeyIndex: 0, portNum: 3, qpAccessFlags: 0 },
        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS | IBV_QP_PORT,
      ),
    ),
    state: await side.stateOf(pair),
  };
  await toInit(pair.qp, allAccess);
  const inInit = {
    send: postSend(pair.qp, request),
    toRts: await codeOf(toRts(pair.qp, 0, attributesOf({}))),
    toSqd: await toState(pair, IBV_QPS_SQD),
    toRtrIncomplete: await toState(pair, IBV_QPS_RTR),
    tooManyReads: await codeOf(toRtr(pair.qp, pair.remote, attributesOf({ readsMax: 128 }))),
    state: await side.stateOf(pair),
  };
  await toRtr(pair.qp, pair.remote, attributesOf({}));
  const inRtr = {
    send: postSend(pair.qp, request),
    toInit: await codeOf(toInit(pair.qp, allAccess)),
    toSqd: await toState(pair, IBV_QPS_SQD),
    state: await side.stateOf(pair),
  };
  await toRts(pair.qp, 0, attributesOf({}));
  const inRts = {
    toInit: await codeOf(toInit(pair.qp, allAccess)),
    toRtr: await codeOf(toRtr(pair.qp, pair.remote, attributesOf({}))),
    state: await side.stateOf(pair),
  };
  // Posting is allowed in the error state, and everything is flushed.
  await toState(pair, IBV_QPS_ERR);
  const inError = {
    send: postSend(pair.qp, request),
    receive: postRecv(pair.qp, receive),
    sent: statusesOf(await take(pair.sendCq, 1)),
    received: statusesOf(await take(pair.recvCq, 1)),
    toRts: await codeOf(toRts(pair.qp, 0, attributesOf({}))),
    state: await side.stateOf(pair),
  };
  const toReset = await toState(pair, IBV_QPS_RESET);
  const states = { inReset, inInit, inRtr, inRts, inError, toReset, events: await side.events() };
  await side.closePair(pair);
  return states;
}

/** Links requests into the list that one call posts. */
function listOf<T extends { next?: T | null }>(requests: readonly T[]): T {
  requests.forEach((request, index) => {
    request.next = requests[index + 1] ?? null;
  });
  return requests[0]!;
}

const smallCap: Partial<QpCap> = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };

/** A list two longer than the queue: the first request that does not fit is named and never done; those that fit are done. */
async function sendQueueFull(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { cap: smallCap });
  const { maxSendWr } = pair.cap;
  side.write(pair.buffer, new Uint8Array(64).fill(0x5a));
  const requests = Array.from({ length: maxSendWr + 2 }, (_, index) =>
    writeOf([segment(pair.buffer, index, 1)], remoteAt(pair, index), { wrId: index }),
  );
  const bad: BadWr<IbvSendWr> = { wr: null, index: -1 };
  const error = postSend(pair.qp, listOf(requests), bad);
  const again = postSend(pair.qp, sendOf([segment(pair.buffer, 0, 1)]));
  const ids = (await take(pair.sendCq, maxSendWr)).map(({ wrId }) => wrId);
  const surplus = statusesOf(await takeAll(pair.sendCq));
  const last = requests[maxSendWr]!;
  last.next = null;
  const retried = postSend(pair.qp, last);
  const statuses = statusesOf(await take(pair.sendCq, 1));
  const isBad = bad.wr === last;
  const told = { maxSendWr, error, again, badIndex: bad.index, isBad, ids, surplus, retried, statuses };
  await side.barrier(`${name} done`);
  await side.closePair(pair);
  return told;
}

async function sendQueueFullPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { cap: smallCap });
  await side.barrier(`${name} done`);
  const written = side.read(pair.buffer, 64).lastIndexOf(0x5a) + 1;
  await side.closePair(pair);
  return { written };
}

/** Receive queue and SRQ. */
async function receiveQueueFull(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.unconnected(name, { cap: smallCap });
  await toInit(pair.qp, allAccess);
  const { maxRecvWr } = pair.cap;
  const list = (count: number): IbvRecvWr[] =>
    Array.from({ length: count }, (_, index) => receiveOf([segment(pair.buffer, 0, 8)], index));
  const bad: BadWr<IbvRecvWr> = { wr: null, index: -1 };
  const queue = {
    maxRecvWr,
    error: postRecv(pair.qp, listOf(list(maxRecvWr + 1)), bad),
    badIndex: bad.index,
  };
  // Exactly those that fitted are flushed.
  await toState(pair, IBV_QPS_ERR);
  const flushed = (await takeAll(pair.recvCq)).map(({ wrId, status }) => `${wrId} ${status}`);
  const srq = await createSrq(side.pd, { attr: { maxWr: 3, maxSge: 1 } });
  const badShared: BadWr<IbvRecvWr> = { wr: null, index: -1 };
  const shared = { error: postSrqRecv(srq, listOf(list(40)), badShared), badIndex: badShared.index };
  await destroySrq(srq);
  await side.closePair(pair);
  return { queue, flushed, shared };
}

/** More buffers, inline data or requests than granted, or than the device supports. */
async function overTheLimits(side: Side, name: string): Promise<JsonValue> {
  const { context, pd } = side;
  const cq = await createCq(context, 8);
  const create = (cap: Partial<QpCap>): Promise<string> => {
    const all = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, ...cap };
    return codeOf(createQp(pd, { sendCq: cq, recvCq: cq, cap: all, qpType: IBV_QPT_RC }));
  };
  const { maxQpWr, maxSendSge, maxRecvSge, maxCqe, maxSrqWr, maxSrqSge } = context.info;
  const created = {
    sendSge: await create({ maxSendSge: maxSendSge + 1 }),
    receiveSge: await create({ maxRecvSge: maxRecvSge + 1 }),
    sendWr: await create({ maxSendWr: maxQpWr + 1 }),
    receiveWr: await create({ maxRecvWr: maxQpWr + 1 }),
    inline: await create({ maxInlineData: 4096 }),
    cq: await codeOf(createCq(context, maxCqe + 1)),
    emptyCq: await codeOf(createCq(context, 0)),
    srqWr: await codeOf(createSrq(pd, { attr: { maxWr: maxSrqWr + 1, maxSge: 1 } })),
    srqSge: await codeOf(createSrq(pd, { attr: { maxWr: 1, maxSge: maxSrqSge + 1 } })),
  };
  await destroyCq(cq);
  const pair = await side.pair(name, { cap: { maxSendSge: 2, maxRecvSge: 2, maxInlineData: 32 } });
  const { maxSendSge: granted, maxRecvSge: grantedReceive, maxInlineData } = pair.cap;
  const segments = (count: number) => Array.from({ length: count }, (_, at) => segment(pair.buffer, at, 1));
  const bad: BadWr<IbvSendWr> = { wr: null, index: -1 };
  const over = sendOf(segments(granted + 1));
  const sendFlags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  const posted = {
    send: postSend(pair.qp, listOf([writeOf(segments(1), remoteAt(pair, 0), { wrId: 5 }), over]), bad),
    badIndex: bad.index,
    isBad: bad.wr === over,
    receive: postRecv(pair.qp, receiveOf(segments(grantedReceive + 1))),
    inline: postSend(pair.qp, sendOf([segment(pair.buffer, 0, maxInlineData + 1)], { sendFlags })),
    opcode: postSend(pair.qp, sendOf(segments(1), { opcode: 99 })),
    atomicOfTwo: postSend(pair.qp, {
      ...fetchAddOf(segment(pair.buffer, 0, 8), remoteAt(pair, 0), 1n),
      sgList: segments(2),
      numSge: 2,
    }),
    done: (await takeAll(pair.sendCq)).map(({ wrId, status }) => `${wrId} ${status}`),
    most: postSend(pair.qp, writeOf(segments(granted), remoteAt(pair, 0))),
    mostStatus: statusesOf(await take(pair.sendCq, 1)),
    state: await side.stateOf(pair),
  };
  await side.barrier(`${name} done`);
  await side.closePair(pair);
  return { created, posted };
}

const microsecond = 1e6;

/** Nothing is posted for the first 200 µs: RNR NAKs, then success. */
async function receiverNotReady(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { rnrRetryCount: 7 });
  const { cpu } = side.program;
  const fromPs = cpu.localPs;
  postSend(pair.qp, sendOf([segment(pair.buffer, 0, 3000)]));
  const statuses = statusesOf(await take(pair.sendCq, 1));
  const tookUs = (cpu.localPs - fromPs) / microsecond;
  const told = { statuses, waited: tookUs > 190, state: await side.stateOf(pair) };
  await side.barrier(`${name} done`);
  await side.closePair(pair);
  return told;
}

async function receiverNotReadyPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name);
  await side.program.cpu.sleep(200 * microsecond);
  postRecv(pair.qp, receiveOf([segment(pair.buffer, 0, 4096)]));
  const [received] = await take(pair.recvCq, 1);
  const { status, byteLen } = received!;
  await side.barrier(`${name} done`);
  await side.closePair(pair);
  return { status, byteLen };
}

/** Nothing is ever posted: the first try and two retries, at least 0.01 ms (code 1) apart. */
async function receiverNeverReady(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { rnrRetryCount: 2 });
  const { cpu } = side.program;
  const fromPs = cpu.localPs;
  postSend(pair.qp, sendOf([segment(pair.buffer, 0, 64)]));
  postSend(pair.qp, sendOf([segment(pair.buffer, 0, 64)]));
  const statuses = statusesOf(await take(pair.sendCq, 2));
  const tookUs = (cpu.localPs - fromPs) / microsecond;
  const told = { statuses, waited: tookUs > 20 && tookUs < 100, state: await side.stateOf(pair) };
  await side.barrier(`${name} done`);
  const events = await side.events();
  await side.closePair(pair);
  return { ...told, events };
}

/** More completions than the CQ holds, on two QPs; a third QP has another CQ. */
async function completionQueueOverrun(side: Side, name: string): Promise<JsonValue> {
  const sendCq = await createCq(side.context, 1);
  const first = await side.pair(`${name} first`, { sendCq });
  const second = await side.pair(`${name} second`, { sendCq });
  const third = await side.pair(`${name} third`);
  for (const pair of [first, third]) {
    for (let index = 0; index < 6; index++) {
      postSend(pair.qp, writeOf([segment(pair.buffer, index, 1)], remoteAt(pair, index)));
    }
  }
  const statuses = statusesOf(await take(third.sendCq, 6));
  await side.program.cpu.sleep(50 * microsecond);
  const events = await side.events();
  const states = [await side.stateOf(first), await side.stateOf(second), await side.stateOf(third)];
  await side.barrier(`${name} done`);
  for (const pair of [first, second]) await destroyQp(pair.qp);
  const destroyed = await codeOf(destroyCq(sendCq));
  await side.closePair(third);
  return { statuses, events: events.toSorted(), states, destroyed, entries: sendCq.cqe };
}

async function completionQueueOverrunPartner(side: Side, name: string): Promise<JsonValue> {
  const pairs = [];
  for (const which of ['first', 'second', 'third']) pairs.push(await side.pair(`${name} ${which}`));
  await side.barrier(`${name} done`);
  const states: string[] = [];
  for (const pair of pairs) {
    states.push(await side.stateOf(pair));
    await side.closePair(pair);
  }
  return { states, events: await side.events() };
}

export const provokerActs: Acts = {
  wrongStates,
  sendQueueFull,
  receiveQueueFull,
  overTheLimits,
  receiverNotReady,
  receiverNeverReady,
  completionQueueOverrun,
};

const partnerActs: Acts = {
  wrongStates: idle,
  sendQueueFull: sendQueueFullPartner,
  receiveQueueFull: idle,
  overTheLimits: pairOnly(),
  receiverNotReady: receiverNotReadyPartner,
  receiverNeverReady: pairOnly(),
  completionQueueOverrun: completionQueueOverrunPartner,
};
