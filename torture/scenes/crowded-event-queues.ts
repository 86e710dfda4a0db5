/**
 * Many CQs raise their events by few event queues that are small: the queues begin anew again and again, and events come in every
 * distance from the interrupt handler's last look. Every CQ that is armed and has a completion has its event, soon; no other CQ
 * has one, and a new CQ has none of the CQ that had its number earlier.
 */
import { psPerMs, psPerNs, psPerUs } from '../../base/index.ts';
import {
  barrier,
  connectRc,
  createBuffer,
  createRcQps,
  openEndpoint,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  ackCqEvents,
  closeDevice,
  createCompChannel,
  createCq,
  deallocPd,
  deregMr,
  destroyCompChannel,
  destroyCq,
  destroyQp,
  getCqEvent,
  IBV_SEND_SIGNALED,
  IBV_WC_SUCCESS,
  IBV_WR_RDMA_WRITE,
  type IbvCompChannel,
  type IbvCq,
  type IbvQp,
  IbvWc,
  pollCq,
  reqNotifyCq,
} from '../../userlib/index.ts';
import { askerAndAnswerer, post, someOrder } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';

interface Args {
  readonly cqCount: number;
  /** Each CQ armed and written for, in this order, so long after the one before. */
  readonly rounds: readonly (readonly Step[])[];
  /** CQs that go when they have been written for, in this time, and are followed by others. */
  readonly replacedAfterNs: readonly number[];
}

export interface Step {
  readonly cq: number;
  readonly afterNs: number;
}

/** Health looks of the driver come to the same after a second. */
const patiencePs = 100 * psPerMs;
const lateUs = 300;

function draw(random: Random): SceneDraft {
  const cqCount = 1 + random.below(random.chance(0.5) ? 6 : 24);
  const eventCount = random.chance(0.7) ? 260 + random.below(100) : 20 + random.below(100);
  const gapNs = [300, 2000, 6000][random.below(3)]!;
  const rounds: Step[][] = [];
  for (let events = 0; events < eventCount; ) {
    const cqs = someOrder(random, cqCount);
    const round = cqs.slice(0, 1 + random.below(cqCount)).map((cq) => ({ cq, afterNs: random.below(gapNs) }));
    rounds.push(round);
    events += round.length;
  }
  const args: Args = {
    cqCount,
    rounds,
    replacedAfterNs: Array.from({ length: 1 + random.below(4) }, () => random.below(20_000)),
  };
  const isLate = random.chance(0.5);
  return {
    args: args as unknown as JsonValue,
    set: {
      // One page for the queue before it: then its own two pages are no single large one.
      'driver.completionEqEntries': random.chance(0.85) ? 256 : 128,
      'driver.asyncEqEntries': random.chance(0.85) ? 128 : 256,
      'driver.completionVectorsMax': random.chance(0.85) ? 1 : 1 + random.below(4),
    },
    hasDrawnHardware: random.chance(0.5),
    faults: isLate
      ? [
          {
            interrupt: 'late',
            vector: 1,
            nth: 'every',
            delay: `${lateUs / 5 + random.below((4 * lateUs) / 5)}us`,
            node: 0,
          },
        ]
      : [],
  };
}

interface Crowd {
  readonly endpoint: RcEndpoint;
  readonly channel: IbvCompChannel;
  readonly cqs: IbvCq[];
  readonly qps: IbvQp[];
  readonly area: RcBuffer;
  readonly remote: { readonly address: number; readonly rkey: number };
}

/** Writes, and is notified by events. */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { rounds, replacedAfterNs } = program.args as unknown as Args;
  const crowd = await gather(program, replacedAfterNs.length);
  const found: string[] = [];
  for (const [at, round] of rounds.entries()) {
    // One that is missing may never come.
    if (found.length > 0) break;
    found.push(...(await playRound(program, crowd, round)).map((what) => `round ${at}: ${what}`));
  }
  for (const delayNs of replacedAfterNs) found.push(...(await replace(program, crowd, delayNs)));
  await barrier(program, 'over');
  await disperse(crowd);
  return found;
}

/** Is written to. */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { replacedAfterNs } = program.args as unknown as Args;
  const crowd = await gather(program, replacedAfterNs.length);
  await barrier(program, 'over');
  await disperse(crowd);
  return [];
}

/** As many CQs as the arguments say, and some more, with a QP each to the peer's. */
export async function gather(program: ProgramContext, spareCount: number): Promise<Crowd> {
  const { cqCount } = program.args as unknown as Pick<Args, 'cqCount'>;
  const endpoint = await openEndpoint(program);
  const { context } = endpoint;
  const channel = await createCompChannel(context);
  const cqs: IbvCq[] = [];
  const qps: IbvQp[] = [];
  for (let number = 0; number < cqCount + spareCount; number++) {
    // Those that are replaced use the vector whose interrupts may be late.
    const vector = number < cqCount ? number % context.numCompVectors : 0;
    const cq = await createCq(context, 3, null, channel, vector);
    cqs.push(cq);
    qps.push(...(await createRcQps(endpoint, 1, { send: cq, receive: cq }, { maxSendWr: 4 })));
  }
  const area = await createBuffer(endpoint, 4096);
  const { note } = await connectRc(endpoint, qps, 'crowd', { address: area.address, rkey: area.region.rkey });
  return { endpoint, channel, cqs, qps, area, remote: note as unknown as Crowd['remote'] };
}

export async function disperse({ endpoint, channel, cqs, qps, area }: Crowd): Promise<void> {
  for (const qp of qps) await destroyQp(qp);
  for (const cq of cqs) await destroyCq(cq);
  await destroyCompChannel(channel);
  await deregMr(area.region);
  await deallocPd(endpoint.pd);
  await closeDevice(endpoint.context);
}

/**
 * @param posted awaited when all is posted, before the first event is waited for
 * @returns what cannot be
 */
export async function playRound(
  { cpu }: ProgramContext,
  crowd: Crowd,
  round: readonly Step[],
  posted: () => Promise<void> = async () => {},
): Promise<string[]> {
  const { channel, cqs, qps } = crowd;
  for (const { cq, afterNs } of round) {
    if (afterNs > 0) await cpu.sleep(afterNs * psPerNs);
    reqNotifyCq(cqs[cq]!, 0);
    write(crowd, cq);
  }
  await posted();
  const awaited = new Set(round.map(({ cq }) => cq));
  const wcs = [new IbvWc(), new IbvWc()];
  const found: string[] = [];
  while (awaited.size > 0) {
    const event = await getCqEvent(channel, patiencePs);
    if (event === undefined) {
      found.push(`no event of CQs ${[...awaited]}`);
      for (const cq of awaited) await pollCq(cqs[cq]!, 2, wcs);
      return found;
    }
    ackCqEvents(event, 1);
    const number = cqs.indexOf(event);
    if (!awaited.delete(number)) found.push(`an event of CQ ${number}, which was not armed`);
    const taken = await pollCq(event, 2, wcs);
    if (taken !== 1) found.push(`${taken} completions in CQ ${number}`);
    for (const { qpNum, status, wrId } of wcs.slice(0, taken))
      if (status !== IBV_WC_SUCCESS || wrId !== number || qpNum !== qps[number]!.qpNum)
        found.push(`CQ ${number} has request ${wrId} of QP ${qpNum} in status ${status}`);
  }
  return found;
}

/** The last CQ goes with an event on its way, and its number is another's at once. */
async function replace({ cpu }: ProgramContext, crowd: Crowd, delayNs: number): Promise<string[]> {
  const { endpoint, channel, cqs, qps } = crowd;
  const cq = cqs.at(-1)!;
  reqNotifyCq(cq, 0);
  write(crowd, cqs.length - 1);
  await cpu.sleep(delayNs * psPerNs);
  await destroyQp(qps.pop()!);
  await destroyCq(cqs.pop()!);
  const next = await createCq(endpoint.context, 3, null, channel);
  const event = await getCqEvent(channel, 2 * lateUs * psPerUs);
  if (event !== undefined) ackCqEvents(event, 1);
  await destroyCq(next);
  return event === undefined ? [] : ['a CQ that was never armed has an event'];
}

function write({ qps, area, remote }: Crowd, number: number): void {
  const { address, region } = area;
  post(qps[number]!, {
    wrId: number,
    sgList: [{ addr: address, length: 8, lkey: region.lkey }],
    numSge: 1,
    opcode: IBV_WR_RDMA_WRITE,
    sendFlags: IBV_SEND_SIGNALED,
    wr: { rdma: { remoteAddr: remote.address + 8 * number, rkey: remote.rkey } },
  });
}

export const crowdedEventQueues: Scene = {
  name: 'crowded-event-queues',
  about: 'many CQs raise events by small event queues, and some are replaced by others with their numbers',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
