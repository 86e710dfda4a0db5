/**
 * Many CQs raise events by few small event queues: the queues wrap again and again, and events arrive at any time after the interrupt handler's
 * last poll. Every armed CQ with a completion gets its event soon; no other CQ gets one, and a new CQ gets no event of an earlier CQ with the
 * same number.
 */

import { connectRc, type RcBuffer } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { ArgsOf, Device, Draft, Draws, Reach, Stage } from './language/index.ts';
import { isWell, psPerMs, psPerUs, scene, times, WRITE } from './language/index.ts';

/** Arming of a CQ and a completion for it, with the delay after the previous step. */
export interface Step {
  readonly cq: number;
  readonly afterNs: number;
}

/** The driver's health checks reach the same state after a second. */
const patiencePs = 100 * psPerMs;
const lateUs = 300;

function draw(random: Draws) {
  const cqCount = 1 + random.below(random.chance(0.5) ? 6 : 24);
  const eventCount = random.chance(0.7) ? 260 + random.below(100) : 20 + random.below(100);
  const gapNs = random.oneOf([300, 2000, 6000]);
  const rounds: Step[][] = [];
  for (let events = 0; events < eventCount; events += rounds.at(-1)!.length) {
    const cqs = random.order(cqCount);
    rounds.push(cqs.slice(0, 1 + random.below(cqCount)).map((cq) => ({ cq, afterNs: random.below(gapNs) })));
  }
  // CQs that go when they have been written for, in this time, and are followed by others.
  const replacedAfterNs = times(1 + random.below(4), () => random.below(20_000));
  const isLate = random.chance(0.5);
  const set = {
    // One page for the queue before it: then its own two pages are no single large one.
    'driver.completionEqEntries': random.chance(0.85) ? 256 : 128,
    'driver.asyncEqEntries': random.chance(0.85) ? 128 : 256,
    'driver.completionVectorsMax': random.chance(0.85) ? 1 : 1 + random.below(4),
  };
  const hasDrawnHardware = random.chance(0.5);
  const delay = (): string => `${lateUs / 5 + random.below((4 * lateUs) / 5)}us`;
  const faults = isLate
    ? [{ interrupt: 'late', vector: 1, nth: 'every', delay: delay(), node: 0 } as const]
    : [];
  return {
    args: { cqCount, rounds, replacedAfterNs },
    set,
    hasDrawnHardware,
    faults,
  } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;

/** CQs of one channel, with a QP each to the peer's. */
export class Crowd {
  readonly stage: Stage<unknown>;
  readonly device: Device;
  readonly channel: ibv.IbvCompChannel;
  readonly cqs: readonly ibv.IbvCq[];
  readonly qps: readonly ibv.IbvQp[];
  readonly #area: RcBuffer;
  readonly #there: Reach;

  private constructor(
    parts: Pick<Crowd, 'stage' | 'device' | 'channel' | 'cqs' | 'qps'>,
    area: RcBuffer,
    there: Reach,
  ) {
    this.stage = parts.stage;
    this.device = parts.device;
    this.channel = parts.channel;
    this.cqs = parts.cqs;
    this.qps = parts.qps;
    this.#area = area;
    this.#there = there;
  }

  static async gather(stage: Stage<unknown>, count: number, spares = 0): Promise<Crowd> {
    const device = await stage.open();
    const channel = await device.channel();
    const cqs: ibv.IbvCq[] = [];
    const qps: ibv.IbvQp[] = [];
    for (let number = 0; number < count + spares; number++) {
      // CQs that are replaced use the vector whose interrupts may be late.
      const cq = await device.cq(3, channel, number < count ? number % device.context.numCompVectors : 0);
      cqs.push(cq);
      qps.push(...(await device.rcQps(1, cq, { maxSendWr: 4 })));
    }
    const area = await device.buffer(4096);
    const own = { address: area.address, rkey: area.region.rkey };
    const { note } = await connectRc<Reach>(device.endpoint, qps, 'crowd', own);
    return new Crowd({ stage, device, channel, cqs, qps }, area, note);
  }

  /** Arms a CQ, and has it get a completion. */
  write(number: number): void {
    ibv.reqNotifyCq(this.cqs[number]!, 0);
    const { address, region } = this.#area;
    const { address: there, rkey } = this.#there;
    ibv.postSend(this.qps[number]!, {
      wrId: number,
      sgList: [{ addr: address, length: 8, lkey: region.lkey }],
      numSge: 1,
      opcode: WRITE,
      sendFlags: ibv.IBV_SEND_SIGNALED,
      wr: { rdma: { remoteAddr: there + 8 * number, rkey } },
    });
  }

  /**
   * Plays a round, and accuses impossible events. @param posted awaited when everything is posted, before the first
   * event is awaited
   */
  async playRound(
    what: string,
    round: readonly Step[],
    posted: () => Promise<void> = async () => {},
  ): Promise<void> {
    const { stage, cqs } = this;
    for (const { cq, afterNs } of round) {
      if (afterNs > 0) await stage.sleepNs(afterNs);
      this.write(cq);
    }
    await posted();
    const awaited = new Set(round.map(({ cq }) => cq));
    while (awaited.size > 0) {
      const event = await ibv.getCqEvent(this.channel, patiencePs);
      if (event === undefined) {
        stage.accuse(`${what}: no event of CQs ${[...awaited]}`);
        for (const cq of awaited) await stage.poll(cqs[cq]!, 2);
        return;
      }
      ibv.ackCqEvents(event, 1);
      const number = cqs.indexOf(event);
      if (!awaited.delete(number)) stage.accuse(`${what}: an event of CQ ${number}, which was not armed`);
      const taken = await stage.poll(event, 2);
      if (taken.length !== 1) stage.accuse(`${what}: ${taken.length} completions in CQ ${number}`);
      for (const one of taken)
        if (!isWell(one) || one.id !== number || one.qpNum !== this.qps[number]!.qpNum)
          stage.accuse(`${what}: CQ ${number} has request ${one.id} of QP ${one.qpNum} in ${one.status}`);
    }
  }
}

async function asker(stage: Stage<Args>): Promise<void> {
  const { cqCount, rounds, replacedAfterNs } = stage.args;
  const crowd = await Crowd.gather(stage, cqCount, replacedAfterNs.length);
  for (const [at, round] of rounds.entries()) {
    // A missing event may never arrive.
    if (stage.wrong.length > 0) break;
    await crowd.playRound(`round ${at}`, round);
  }
  for (const [at, delayNs] of replacedAfterNs.entries())
    await replace(crowd, cqCount + replacedAfterNs.length - 1 - at, delayNs);
  await stage.meet('over');
}

async function answerer(stage: Stage<Args>): Promise<void> {
  await Crowd.gather(stage, stage.args.cqCount, stage.args.replacedAfterNs.length);
  await stage.meet('over');
}

/** Destroys a CQ with an event in flight, and gives its number to another at once. */
async function replace(crowd: Crowd, number: number, delayNs: number): Promise<void> {
  const { stage, device, channel, cqs, qps } = crowd;
  crowd.write(number);
  await stage.sleepNs(delayNs);
  await device.destroyQp(qps[number]!);
  await device.destroyCq(cqs[number]!);
  const next = await device.cq(3, channel);
  const event = await ibv.getCqEvent(channel, 2 * lateUs * psPerUs);
  if (event !== undefined) {
    ibv.ackCqEvents(event, 1);
    stage.accuse('a CQ that was never armed has an event');
  }
  await device.destroyCq(next);
}

export const crowdedEventQueues = scene({
  about: 'many CQs raise events by small event queues, and some are replaced by others with their numbers',
  draw,
  programs: [asker, answerer],
});
