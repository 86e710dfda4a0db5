/**
 * Objects at both ends of what a device says that it takes (ibv_query_device), and one beyond: the first two are granted at least what was
 * asked for and work to their last place, the third is refused with EINVAL (IBTA 11.2.1.2, 11.2.4.1, 11.2.6.1). Devices of small
 * limits, so that their ends are within reach.
 */

import { barrier, toInit, toRtr, toRts } from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  createCq,
  createQp,
  createSrq,
  destroyCq,
  destroyQp,
  destroySrq,
  ENOMEM,
  IBV_QPT_RC,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE,
  type IbvQp,
  postRecv,
  postSrqRecv,
  type QpCap,
  queryDevice,
  VerbsError,
} from '../../userlib/index.ts';
import {
  askerAndAnswerer,
  completionsOf,
  connectWithPeer,
  leave,
  post,
  requestOf,
  type Side,
  usual,
} from './pair.ts';
import { type Wrong, wrongOf } from './patterns.ts';
import type { Scene, SceneDraft } from './scene.ts';

function draw(random: Random): SceneDraft {
  const between = (least: number, most: number): number => least + random.below(most - least + 1);
  return {
    args: {},
    set: {
      'hca.capability.logMaxQpWqes': between(6, 10),
      'hca.capability.logMaxSrqWqes': between(5, 10),
      'hca.capability.logMaxCqEntries': between(8, 11),
      'hca.capability.maxSendScatterGather': between(2, 62),
      'hca.capability.maxReceiveScatterGather': between(2, 32),
      'hca.capability.logMaxRequesterReads': between(0, 4),
      'hca.capability.logMaxResponderReads': between(0, 4),
    },
    hasDrawnHardware: false,
  };
}

/** Makes objects of all sizes, and fills a connection at the upper end. */
export const asker = (program: ProgramContext): Promise<JsonValue> => play(program);

/** Is at the other end. */
export const answerer = (program: ProgramContext): Promise<JsonValue> => play(program);

const few = { readAtomicMax: 1 };

async function play(program: ProgramContext): Promise<JsonValue> {
  const side = await connectWithPeer(program, { areaBytes: 4096, attributes: few, cqEntries: 200 });
  const { endpoint } = side;
  const { context, pd } = endpoint;
  const wrong: string[] = [];
  const { maxCqe, maxQpWr, maxSge, maxSrqWr, maxSrqSge } = await queryDevice(context);
  for (const [entries, isDue] of [
    [1, true],
    [maxCqe, true],
    [maxCqe + 1, false],
    [0, false],
  ] as const) {
    const cq = await madeOrRefused(`a CQ of ${entries}`, isDue, () => createCq(context, entries), wrong);
    if (cq === undefined) continue;
    if (cq.cqe < entries) wrong.push(`a CQ of ${entries} entries has ${cq.cqe}`);
    await destroyCq(cq);
  }
  for (const [maxWr, sges, isDue] of [
    [1, 1, true],
    [maxSrqWr, 1, true],
    [1, maxSrqSge, true],
    [maxSrqWr + 1, 1, false],
    [1, maxSrqSge + 1, false],
  ] as const) {
    const init = { attr: { maxWr, maxSge: sges } };
    const srq = await madeOrRefused(`an SRQ of ${maxWr} × ${sges}`, isDue, () => createSrq(pd, init), wrong);
    if (srq === undefined) continue;
    const receive = { wrId: 0, sgList: buffersOf(side, sges), numSge: sges };
    for (let posted = 0; posted < maxWr; posted++)
      if (postSrqRecv(srq, receive) !== 0) wrong.push(`receive ${posted} of an SRQ of ${maxWr} is refused`);
    await destroySrq(srq);
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
    const cap: QpCap = { ...usualCap, ...change };
    const init = { sendCq: side.cq, recvCq: side.cq, qpType: IBV_QPT_RC, cap: { ...cap }, sqSigAll: 0 };
    const qp = await madeOrRefused(
      `a QP of ${JSON.stringify(change)}`,
      isDue,
      () => createQp(pd, init),
      wrong,
    );
    if (isDue) await fill(side, qp, { asked: cap, granted: init.cap }, wrong);
  }
  await barrier(program, 'over');
  await leave(side);
  return { wrong };
}

/** Makes an object. @returns undefined of one that was refused, which is as it must be or noted */
async function madeOrRefused<T>(
  what: string,
  isDue: boolean,
  make: () => Promise<T>,
  wrong: string[],
): Promise<T | undefined> {
  try {
    const made = await make();
    if (!isDue) wrong.push(`${what} was made`);
    return made;
  } catch (error) {
    if (!(error instanceof VerbsError)) throw error;
    if (isDue || error.code !== 'EINVAL') wrong.push(`${what}: ${error.code}`);
    return undefined;
  }
}

const buffersOf = ({ area }: Side, count: number) =>
  Array.from({ length: count }, (_, at) => ({ addr: area.address + at, length: 1, lkey: area.region.lkey }));

/** Posts as many receives and sends as a QP was made for, and one more. */
async function fill(
  side: Side,
  qp: IbvQp | undefined,
  { asked, granted }: { readonly asked: QpCap; readonly granted: QpCap },
  wrong: string[],
): Promise<void> {
  const { program } = side.endpoint;
  const what = `a QP of ${JSON.stringify(asked)}`;
  await program.exchange.put('qp', qp?.qpNum ?? -1);
  const qpNum = Number(await program.exchange.take('qp'));
  if (qp === undefined) return;
  if (qpNum >= 0) {
    const attributes = { ...usual, ...few };
    await toInit(qp);
    await toRtr(qp, { ...side.peer.path, qpNum, psn: 0 }, attributes);
    await toRts(qp, 0, attributes);
    await barrier(program, 'ready');
    const { maxRecvWr, maxRecvSge, maxSendWr, maxSendSge } = granted;
    for (const [name, least] of Object.entries(asked))
      if (granted[name as keyof QpCap] < least) wrong.push(`${what} was granted ${JSON.stringify(granted)}`);
    const receive = { wrId: 0, sgList: buffersOf(side, maxRecvSge), numSge: maxRecvSge };
    const received = countTaken(maxRecvWr, () => postRecv(qp, receive));
    if (received !== maxRecvWr) wrong.push(`${what} takes ${received} of ${maxRecvWr} receives`);
    const request = {
      ...requestOf(side, 1, IBV_WR_RDMA_WRITE, { offset: 2048, lengthBytes: 1 }),
      sgList: buffersOf(side, maxSendSge),
      numSge: maxSendSge,
    };
    // Each is taken back by the last one alone, whose completion is polled.
    const sent =
      countTaken(maxSendWr - 2, () => post(qp, { ...request, sendFlags: 0 })) +
      Number(post(qp, request) === 0);
    const more = countTaken(1, () => post(qp, request));
    if (sent + more !== maxSendWr) wrong.push(`${what} takes ${sent + more} of ${maxSendWr} sends`);
    const ended = await completionsOf(side, 1 + more);
    if (ended.some(({ status }) => status !== IBV_WC_SUCCESS) || ended.length !== 1 + more)
      wrong.push(`${what}: statuses ${ended.map(({ status }) => status)}`);
    await barrier(program, 'filled');
  }
  await destroyQp(qp);
}

/** Posts so many, and one more. @returns how many were taken until one was refused with ENOMEM */
function countTaken(most: number, postOne: () => number): number {
  for (let taken = 0; taken <= most; taken++) {
    const error = postOne();
    if (error !== 0) return error === ENOMEM ? taken : Number.NaN;
  }
  return most + 1;
}

export const endsOfRanges: Scene = {
  name: 'ends-of-ranges',
  about: 'queues of all sizes that the device says it takes, filled to their last place, and one beyond',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => wrongOf(results as unknown as readonly Wrong[]),
};
