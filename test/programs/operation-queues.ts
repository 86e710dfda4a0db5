/** Acts: queue features: shared receives, wake-ups, moderation, resizing, draining. */
import type { JsonValue } from '../../machine/program.ts';
import {
  ackCqEvents,
  createCompChannel,
  createCq,
  createSrq,
  getCqEvent,
  IBV_QP_EN_SQD_ASYNC_NOTIFY,
  IBV_QP_STATE,
  IBV_QPS_RTS,
  IBV_QPS_SQD,
  IBV_SEND_SIGNALED,
  IBV_SEND_SOLICITED,
  IBV_SRQ_LIMIT,
  IBV_WR_SEND_WITH_IMM,
  type IbvCompChannel,
  modifyCq,
  modifyQp,
  modifySrq,
  postRecv,
  postSend,
  postSrqRecv,
  querySrq,
  reqNotifyCq,
  resizeCq,
} from '../../userlib/index.ts';
import { type Outcome, statusesOf, take, takeAll, takeWithin } from './outcomes.ts';
import { patternOf, receiveOf, remoteAt, segment, sendOf, writeOf } from './requests.ts';
import type { Side } from './side.ts';

const microsecond = 1e6;

/** Two QPs on one SRQ; the limit raises one event; a QP in error reports that it has consumed its last WQE. */
export async function sharedQueue(side: Side, name: string): Promise<JsonValue> {
  const srq = await createSrq(side.pd, { attr: { maxWr: 15, maxSge: 2 } });
  const slots = await side.area(16 * 256);
  const post = (slot: number): number => postSrqRecv(srq, receiveOf([segment(slots, slot * 256, 200)], slot));
  for (let slot = 0; slot < 12; slot++) post(slot);
  await modifySrq(srq, { srqLimit: 5 }, IBV_SRQ_LIMIT);
  const armed = (await querySrq(srq)).srqLimit;
  const first = await side.pair(`${name} 0`, { srq });
  const second = await side.pair(`${name} 1`, { srq, recvCq: first.recvCq });
  await side.barrier(`${name} begins`);
  const taken = await take(first.recvCq, 10);
  const events = await side.events();
  const bytes = taken.map(
    ({ wrId, immData }) =>
      side.read(slots, 200, wrId * 256)[immData % 200] === patternOf(3, 200)[immData % 200]!,
  );
  const after = (await querySrq(srq)).srqLimit;
  await side.barrier(`${name} sent`);
  await modifyQp(second.qp, { qpState: 6 }, IBV_QP_STATE);
  return {
    armed,
    after,
    slots: taken.map(({ wrId }) => wrId),
    statuses: [...new Set(statusesOf(taken))],
    areRight: bytes.every((isRight) => isRight),
    events,
    eventsOfError: await side.events(),
    postRecv: postRecv(first.qp, receiveOf([])),
  };
}

export async function sharedQueuePartner(side: Side, name: string): Promise<JsonValue> {
  const pairs = [await side.pair(`${name} 0`), await side.pair(`${name} 1`)];
  for (const pair of pairs) side.write(pair.buffer, patternOf(3, 200));
  await side.barrier(`${name} begins`);
  const statuses: string[] = [];
  for (let index = 0; index < 10; index++) {
    const { qp, buffer, sendCq } = pairs[index % 2]!;
    postSend(qp, sendOf([segment(buffer, 0, 200)], { opcode: IBV_WR_SEND_WITH_IMM, immData: index * 17 }));
    statuses.push(...statusesOf(await take(sendCq, 1)));
  }
  await side.barrier(`${name} sent`);
  return [...new Set(statuses)];
}

/** Whether an event of the channel occurs within 100 µs. */
async function isWoken(channel: IbvCompChannel): Promise<boolean> {
  const cq = await getCqEvent(channel, 100 * microsecond);
  if (cq !== undefined) ackCqEvents(cq, 1);
  return cq !== undefined;
}

/** Completion vector 3, and its wake-ups: any completion, only solicited ones, every third one. */
export async function wakeUps(side: Side, name: string): Promise<JsonValue> {
  const channel = await createCompChannel(side.context);
  const recvCq = await createCq(side.context, 64, null, channel, 2);
  const pair = await side.pair(name, {
    recvCq,
    cap: { maxRecvWr: 32 },
    beforeReady: ({ qp, buffer }) => {
      for (let index = 0; index < 20; index++) postRecv(qp, receiveOf([segment(buffer, 0, 64)], index));
    },
  });
  const ask = async (what: string): Promise<boolean> => {
    await side.tell(`${name} send`, what);
    const woken = await isWoken(channel);
    await takeAll(recvCq, 5);
    return woken;
  };
  const told: Record<string, boolean> = {};
  told['notArmed'] = await ask('plain');
  reqNotifyCq(recvCq, 0);
  told['armed'] = await ask('plain');
  told['onlyOnce'] = await ask('plain');
  reqNotifyCq(recvCq, 1);
  told['solicitedOnlyByPlain'] = await ask('plain');
  told['solicitedOnlyBySolicited'] = await ask('solicited');
  reqNotifyCq(recvCq, 1);
  told['solicitedOnlyByError'] = await (async () => {
    await modifyQp(pair.qp, { qpState: 6 }, IBV_QP_STATE);
    return isWoken(channel);
  })();
  await side.tell(`${name} send`, 'stop');
  return told;
}

export async function wakeUpsPartner(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name);
  for (let what = await side.hear(`${name} send`); what !== 'stop'; what = await side.hear(`${name} send`)) {
    const sendFlags = IBV_SEND_SIGNALED | (what === 'solicited' ? IBV_SEND_SOLICITED : 0);
    postSend(pair.qp, sendOf([segment(pair.buffer, 0, 64)], { sendFlags }));
    await take(pair.sendCq, 1);
  }
  return null;
}

/** One event for every four completions; the period of a millisecond triggers the rest. */
export async function moderation(side: Side, name: string): Promise<JsonValue> {
  const channel = await createCompChannel(side.context);
  const sendCq = await createCq(side.context, 64, null, channel, 3);
  await modifyCq(sendCq, 4, 1000);
  const pair = await side.pair(name, { sendCq });
  const wakes: boolean[] = [];
  for (const count of [3, 1]) {
    reqNotifyCq(sendCq, 0);
    for (let index = 0; index < count; index++)
      postSend(pair.qp, writeOf([segment(pair.buffer, 0, 8)], remoteAt(pair, 0)));
    wakes.push(await isWoken(channel));
  }
  await takeAll(sendCq, 5);
  reqNotifyCq(sendCq, 0);
  postSend(pair.qp, writeOf([segment(pair.buffer, 0, 8)], remoteAt(pair, 0)));
  wakes.push(await isWoken(channel));
  const late = await getCqEvent(channel, 1500 * microsecond);
  if (late !== undefined) ackCqEvents(late, 1);
  return { wakes, late: late === sendCq };
}

/** Grows and shrinks a CQ while completions arrive; each request completes once, in order. */
export async function resizing(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { cap: { maxSendWr: 64 } });
  const ids: number[] = [];
  const statuses = new Set<string>();
  let posted = 0;
  const note = (taken: readonly Outcome[]): void => {
    for (const { wrId, status } of taken) {
      ids.push(wrId);
      statuses.add(status);
    }
  };
  for (const entries of [100, 200, 60, 500, 63]) {
    for (let index = 0; index < 40; index++)
      postSend(pair.qp, writeOf([segment(pair.buffer, 0, 512)], remoteAt(pair, 0), { wrId: posted++ }));
    await resizeCq(pair.sendCq, entries);
    note(await take(pair.sendCq, 40));
  }
  const surplus = await takeAll(pair.sendCq);
  return {
    isInOrder: ids.every((id, index) => id === index),
    count: ids.length,
    statuses: [...statuses],
    surplus: surplus.length,
    size: pair.sendCq.cqe,
  };
}

/** Drains the send queue: earlier requests complete, later ones wait until the QP sends again. */
export async function draining(side: Side, name: string): Promise<JsonValue> {
  const pair = await side.pair(name, { bufferBytes: 65_536 });
  const post = (wrId: number): number =>
    postSend(pair.qp, writeOf([segment(pair.buffer, 0, 65_536)], remoteAt(pair, 0), { wrId }));
  for (let index = 0; index < 4; index++) post(index);
  await modifyQp(
    pair.qp,
    { qpState: IBV_QPS_SQD, enSqdAsyncNotify: 1 },
    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
  );
  await side.program.cpu.sleep(200 * microsecond);
  const drained = await takeAll(pair.sendCq);
  const events = await side.events();
  const state = await side.stateOf(pair);
  const posted = post(10);
  const held = statusesOf(await takeWithin(pair.sendCq, 1, 200));
  await modifyQp(pair.qp, { qpState: IBV_QPS_RTS }, IBV_QP_STATE);
  // Requests that had not begun when the QP was drained continue now.
  const rest = await take(pair.sendCq, 5 - drained.length);
  const ids = [...drained, ...rest].map(({ wrId }) => wrId);
  return { events, state, posted, held, ids, statuses: [...new Set(statusesOf([...drained, ...rest]))] };
}
