/**
 * Objects at both ends of the ranges that a device reports (ibv_query_device), and one beyond: the first two have at least the requested size and
 * work to their last entry, the third is refused with EINVAL (IBTA 11.2.1.2, 11.2.4.1, 11.2.6.1). The devices have small limits.
 */
import { toInit, toRtr, toRts } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Draws, Side, Stage } from './language/index.ts';
import { connect, orCode, scene, times, topic, usual, WRITE } from './language/index.ts';

function draw(random: Draws) {
  const set = {
    'hca.capability.logMaxQpWqes': random.between(6, 10),
    'hca.capability.logMaxSrqWqes': random.between(5, 10),
    'hca.capability.logMaxCqEntries': random.between(8, 11),
    'hca.capability.maxSendScatterGather': random.between(2, 62),
    'hca.capability.maxReceiveScatterGather': random.between(2, 32),
    'hca.capability.logMaxRequesterReads': random.between(0, 4),
    'hca.capability.logMaxResponderReads': random.between(0, 4),
  };
  return { args: {}, set };
}

const few = { readAtomicMax: 1 };

/** Creates objects of all sizes, and fills a connection to the other host at the upper end. */
async function player(stage: Stage<object>): Promise<void> {
  const side = await connect(stage, { areaBytes: 4096, attributes: few, cqEntries: 200 });
  const { context, pd } = side.device;
  const { maxCqe, maxQpWr, maxSge, maxSrqWr, maxSrqSge } = await ibv.queryDevice(context);
  for (const [entries, isDue] of [
    [1, true],
    [maxCqe, true],
    [maxCqe + 1, false],
    [0, false],
  ] as const) {
    const cq = await madeOrRefused(stage, `a CQ of ${entries}`, isDue, ibv.createCq(context, entries));
    if (cq === undefined) continue;
    if (cq.cqe < entries) stage.accuse(`a CQ of ${entries} entries has ${cq.cqe}`);
    await ibv.destroyCq(cq);
  }
  const srqs = [
    [1, 1],
    [maxSrqWr, 1],
    [1, maxSrqSge],
    [maxSrqWr + 1, 1],
    [1, maxSrqSge + 1],
  ] as const;
  for (const [maxWr, sges] of srqs) {
    const what = `an SRQ of ${maxWr} × ${sges}`;
    const isDue = maxWr <= maxSrqWr && sges <= maxSrqSge;
    const made = ibv.createSrq(pd, { attr: { maxWr, maxSge: sges } });
    const srq = await madeOrRefused(stage, what, isDue, made);
    if (srq === undefined) continue;
    const receive = { wrId: 0, sgList: buffersOf(side, sges), numSge: sges };
    for (let posted = 0; posted < maxWr; posted++)
      if (ibv.postSrqRecv(srq, receive) !== 0) stage.accuse(`receive ${posted} of ${what} is refused`);
    await ibv.destroySrq(srq);
  }
  const usualCap = { maxSendWr: 1, maxRecvWr: 1, maxSendSge: 1, maxRecvSge: 1, maxInlineData: 0 };
  for (const [change, isDue] of [
    [{ maxSendWr: maxQpWr }, true],
    [{ maxRecvWr: maxQpWr }, true],
    [{ maxSendSge: maxSge, maxRecvSge: maxSge }, true],
    [{ maxSendWr: maxQpWr + 1 }, false],
    [{ maxRecvWr: maxQpWr + 1 }, false],
    [{ maxRecvSge: maxSge + 64 }, false],
    [{ maxSendSge: maxSge + 64 }, false],
  ] as const) {
    const what = `a QP of ${JSON.stringify(change)}`;
    const asked: ibv.QpCap = { ...usualCap, ...change };
    const init = { sendCq: side.cq, recvCq: side.cq, qpType: ibv.IBV_QPT_RC, cap: { ...asked }, sqSigAll: 0 };
    const qp = await madeOrRefused(stage, what, isDue, ibv.createQp(pd, init));
    if (isDue) await fill(side, what, qp, { asked, granted: init.cap });
  }
  await stage.meet('over');
}

/**
 * Makes an object. @returns undefined if it was refused; an unexpected refusal is recorded
 */
async function madeOrRefused<T extends object>(
  stage: Stage<object>,
  what: string,
  isDue: boolean,
  call: Promise<T>,
): Promise<T | undefined> {
  const made = await orCode(call);
  if (typeof made !== 'string') {
    if (!isDue) stage.accuse(`${what} was made`);
    return made;
  }
  if (isDue || made !== 'EINVAL') stage.accuse(`${what}: ${made}`);
  return undefined;
}

const buffersOf = (side: Side, count: number): ibv.IbvSge[] =>
  times(count, (offset) => side.sge({ offset, lengthBytes: 1 }));

const qpn = topic<number>('qp');

/** Posts as many receives and sends as a QP was made for, and one more. */
async function fill(
  side: Side,
  what: string,
  qp: ibv.IbvQp | undefined,
  { asked, granted }: { readonly asked: ibv.QpCap; readonly granted: ibv.QpCap },
): Promise<void> {
  const { stage } = side;
  const qpNum = await stage.swap(qpn, qp?.qpNum ?? -1);
  if (qp === undefined) return;
  if (qpNum >= 0) {
    const attributes = { ...usual, ...few };
    await toInit(qp);
    await toRtr(qp, { ...side.path, qpNum, psn: 0 }, attributes);
    await toRts(qp, 0, attributes);
    await stage.meet('ready');
    const { maxRecvWr, maxRecvSge, maxSendWr, maxSendSge } = granted;
    if (Object.entries(asked).some(([name, least]) => granted[name as keyof ibv.QpCap] < least))
      stage.accuse(`${what} was granted ${JSON.stringify(granted)}`);
    const receive = { wrId: 0, sgList: buffersOf(side, maxRecvSge), numSge: maxRecvSge };
    const received = countTaken(maxRecvWr, () => ibv.postRecv(qp, receive));
    if (received !== maxRecvWr) stage.accuse(`${what} takes ${received} of ${maxRecvWr} receives`);
    const sgList = buffersOf(side, maxSendSge);
    const request = {
      ...side.request(1, WRITE, { offset: 2048, lengthBytes: 1 }),
      sgList,
      numSge: maxSendSge,
    };
    // Unsignalled requests are released only by the last one, whose completion is polled.
    const unsignalled = countTaken(maxSendWr - 2, () => ibv.postSend(qp, { ...request, sendFlags: 0 }));
    const sent = unsignalled + Number(ibv.postSend(qp, request) === 0);
    const more = countTaken(1, () => ibv.postSend(qp, request));
    if (sent + more !== maxSendWr) stage.accuse(`${what} takes ${sent + more} of ${maxSendWr} sends`);
    await side.expectWell(1 + more);
    await stage.meet('filled');
  }
  await ibv.destroyQp(qp);
}

/**
 * Posts this many requests, and one more. @returns the number accepted until one was refused with ENOMEM
 */
function countTaken(most: number, postOne: () => number): number {
  for (let taken = 0; taken <= most; taken++) {
    const error = postOne();
    if (error !== 0) return error === ibv.ENOMEM ? taken : Number.NaN;
  }
  return most + 1;
}

export const endsOfRanges = scene({
  about: 'queues of all sizes that the device says it takes, filled to their last place, and one beyond',
  draw,
  programs: [player, player],
});
