/**
 * Datagrams of several QPs for several QPs that share a receive queue. Each takes one receive while the queue has any: it arrives whole, after the
 * bytes for a GRH, in the order of its sender, and names it. A datagram with a wrong Q_Key, or for a failed or destroyed QP, is dropped and takes
 * none (IBTA 9.6.1.3, 9.8.3, 10.2.5). The limit event arrives when fewer receives than the limit are left (10.2.9), once for each time that it
 * is armed.
 *
 *     answerer: receives, limit ─► asker: datagrams, all sent ─► answerer: as many have come as there were receives? ─► …
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import {
  announcedOf,
  handleTo,
  type PortAddress,
  peerFrom,
  qkey,
  type RcBuffer,
} from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { allThatCame, datagramQps, grhBytes, readyDatagrams } from './datagrams.ts';
import type { ArgsOf, Device, Draft, Draws, Stage, Taken } from './language/index.ts';
import { isSame, isWell, patternOf, SEND, scene, sumOf, times, topic } from './language/index.ts';

const payloadBytesMax = 4096;
const slotBytes = grhBytes + payloadBytesMax;

function draw(random: Draws) {
  const senders = 1 + random.below(4);
  const receivers = 2 + random.below(5);
  const maxWr = random.oneOf([3, 7, 15, 31]);
  const lengthMax = random.oneOf([8, 300, payloadBytesMax]);
  // The last QP stays.
  let doomed = 0;
  const rounds = times(3 + random.below(6), () => {
    // Receives in the queue before anything is sent.
    const receives = 1 + random.below(maxWr);
    const isEnd = doomed < receivers - 1 && random.chance(0.3);
    const how = random.chance(0.5) ? 'error' : 'destroy';
    return {
      receives,
      // Limit armed then; 0: none.
      limit: random.chance(0.5) ? 1 + random.below(receives) : 0,
      datagrams: times(random.below(2 * maxWr + 1), () => ({
        from: random.below(senders),
        to: random.below(receivers),
        lengthBytes: random.below(lengthMax + 1),
        isKeyWrong: random.chance(0.1),
      })),
      // The receiving QP that fails or is destroyed before anything is sent.
      ...(isEnd ? { ends: { qp: doomed++, how } } : {}),
    };
  });
  const args = { senders, receivers, maxWr, rounds };
  return { args, hasDrawnHardware: random.chance(0.5), climate: 'flawed' } satisfies Draft<unknown>;
}

type Args = ArgsOf<typeof draw>;
type Round = Args['rounds'][number];

/** Number of the first datagram of a round, over all rounds. */
const firstOf = (rounds: readonly Round[], round: number): number =>
  sumOf(rounds.slice(0, round).map(({ datagrams }) => datagrams.length));

interface News extends PortAddress {
  readonly qpNums: readonly number[];
}

/**
 * Brings the QPs to RTS, and publishes them to the peer. @returns the peer's
 */
async function exchange(stage: Stage<Args>, { endpoint }: Device, qps: readonly ibv.IbvQp[]): Promise<News> {
  for (const qp of qps) await readyDatagrams(qp);
  const own = { ...announcedOf(endpoint.own), qpNums: qps.map(({ qpNum }) => qpNum) };
  const there = await stage.swap<News>(topic('datagrams'), own);
  await stage.meet('datagrams are ready');
  return there;
}

async function asker(stage: Stage<Args>): Promise<void> {
  const { senders, maxWr, rounds } = stage.args;
  const device = await stage.open();
  const cq = await device.cq(255);
  const qps = await datagramQps(device, cq, senders, { maxSendWr: 2 * maxWr, maxRecvWr: 1 });
  const area = await device.buffer(2 * maxWr * payloadBytesMax);
  const there = await exchange(stage, device, qps);
  const ah = device.handle(await handleTo(device.pd, peerFrom(device.endpoint.own, there)));
  for (const [round, { datagrams }] of rounds.entries()) {
    await stage.meet('receives');
    for (const [at, { from, to, lengthBytes, isKeyWrong }] of datagrams.entries()) {
      const addr = area.address + at * payloadBytesMax;
      stage.memory.write(addr, patternOf(firstOf(rounds, round) + at, lengthBytes));
      const remoteQkey = isKeyWrong ? qkey ^ 1 : qkey;
      const error = ibv.postSend(qps[from]!, {
        wrId: at,
        sgList: [{ addr, length: lengthBytes, lkey: area.region.lkey }],
        ...{ numSge: 1, opcode: SEND, sendFlags: ibv.IBV_SEND_SIGNALED },
        wr: { ud: { ah, remoteQpn: there.qpNums[to]!, remoteQkey } },
      });
      if (error !== 0) stage.accuse(`datagram ${at} of round ${round} was refused with ${error}`);
    }
    // A datagram is not answered: its fate does not affect its sender (9.8.3).
    await stage.expectWell(cq, datagrams.length, 1000 * psPerMs);
    await stage.meet('datagrams');
  }
  await stage.meet('over');
}

async function answerer(stage: Stage<Args>): Promise<void> {
  const { receivers, maxWr, rounds } = stage.args;
  const device = await stage.open();
  const cq = await device.cq(255);
  const srq = await device.srq({ maxWr, maxSge: 1 });
  const qps = await datagramQps(device, cq, receivers, { maxSendWr: 1, maxRecvWr: 0 }, srq);
  const area = await device.buffer(maxWr * slotBytes);
  const there = await exchange(stage, device, qps);
  const queue = new Queue({ stage, device, srq, cq, area, qps, senderQpns: there.qpNums });
  for (const [round, plan] of rounds.entries()) {
    queue.fill(plan.receives);
    if (plan.limit > 0) await ibv.modifySrq(srq, { srqLimit: plan.limit }, ibv.IBV_SRQ_LIMIT);
    await queue.end(plan.ends);
    await stage.meet('receives');
    await stage.meet('datagrams');
    await queue.judge(`round ${round}`, plan, firstOf(rounds, round));
    // A limit event that has not arrived must not arrive later.
    if (plan.limit > 0) await ibv.modifySrq(srq, { srqLimit: 0 }, ibv.IBV_SRQ_LIMIT);
  }
  await stage.meet('over');
}

interface QueueParts {
  readonly stage: Stage<Args>;
  readonly device: Device;
  readonly srq: ibv.IbvSrq;
  readonly cq: ibv.IbvCq;
  readonly area: RcBuffer;
  readonly qps: readonly ibv.IbvQp[];
  readonly senderQpns: readonly number[];
}

/** The shared queue, and the data of its receives. */
class Queue {
  readonly #parts: QueueParts;
  /** QPs that have failed or gone. */
  readonly #deaf = new Set<number>();
  readonly #free: number[];
  #inQueueCount = 0;

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#free = times(parts.stage.args.maxWr, (slot) => slot);
  }

  /** Posts until the queue holds this many receives. */
  fill(receives: number): void {
    const { stage, srq, area } = this.#parts;
    for (; this.#inQueueCount < receives; this.#inQueueCount++) {
      const slot = this.#free.shift()!;
      const sgList = [{ addr: area.address + slot * slotBytes, length: slotBytes, lkey: area.region.lkey }];
      const error = ibv.postSrqRecv(srq, { wrId: slot, sgList, numSge: 1 });
      if (error !== 0) stage.accuse(`a receive was refused with ${error}`);
    }
  }

  async end(ends: Round['ends']): Promise<void> {
    if (ends === undefined || this.#deaf.has(ends.qp)) return;
    this.#deaf.add(ends.qp);
    const qp = this.#parts.qps[ends.qp]!;
    if (ends.how === 'destroy') await this.#parts.device.destroyQp(qp);
    else await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_ERR }, ibv.IBV_QP_STATE);
  }

  /** Compares the datagrams received in a round with those sent in it; its datagrams are numbered from `first` on. */
  async judge(where: string, { limit, datagrams }: Round, first: number): Promise<void> {
    const { stage, cq, qps, senderQpns } = this.#parts;
    const taken = await allThatCame(stage, cq);
    const isHeard = ({ to, isKeyWrong }: Round['datagrams'][number]): boolean =>
      !isKeyWrong && !this.#deaf.has(to);
    const dueCount = Math.min(this.#inQueueCount, datagrams.filter(isHeard).length);
    if (taken.length !== dueCount)
      stage.accuse(`${where}: ${taken.length} datagrams came, ${dueCount} were to`);
    /** Position of the last datagram that arrived, by sender and receiver. */
    const last = new Map<string, number>();
    for (const one of taken) {
      const from = senderQpns.indexOf(one.srcQp);
      const to = qps.findIndex(({ qpNum }) => qpNum === one.qpNum);
      const flow = `${from} to ${to}`;
      const place = datagrams.findIndex(
        (datagram, at) =>
          at > (last.get(flow) ?? -1) &&
          datagram.from === from &&
          datagram.to === to &&
          isHeard(datagram) &&
          this.#isIn(one, first + at, datagram.lengthBytes),
      );
      if (!isWell(one) || place < 0)
        stage.accuse(
          `${where}: receive ${one.id}, ${one.status}, ${one.byteLen} bytes from QP ${flow}, is no datagram`,
        );
      else last.set(flow, place);
      this.#inQueueCount--;
      this.#free.push(one.id);
    }
    await this.#judgeEvents(where, limit);
  }

  #isIn({ id, byteLen }: Taken, number: number, lengthBytes: number): boolean {
    const { stage, area } = this.#parts;
    const came = stage.memory.read(area.address + id * slotBytes + grhBytes, lengthBytes);
    return byteLen === grhBytes + lengthBytes && isSame(came, patternOf(number, lengthBytes));
  }

  async #judgeEvents(where: string, limit: number): Promise<void> {
    const { stage, device } = this.#parts;
    const types = (await stage.asyncEvents(device.context, 10 * psPerUs)).map(({ eventType }) => eventType);
    const limits = types.filter((type) => type === ibv.IBV_EVENT_SRQ_LIMIT_REACHED).length;
    const others = types.filter((type) => type !== ibv.IBV_EVENT_SRQ_LIMIT_REACHED);
    if (others.some((type) => type !== ibv.IBV_EVENT_QP_LAST_WQE_REACHED || this.#deaf.size === 0))
      stage.accuse(`${where}: events of types ${others}`);
    const due = this.#inQueueCount < limit ? 1 : 0;
    const left = `${this.#inQueueCount} receives left, limit ${limit}`;
    if (limits !== due) stage.accuse(`${where}: ${limits} limit events, expected ${due}: ${left}`);
  }
}

export const sharedDatagrams = scene({
  about: 'datagrams for QPs that share a receive queue, some without a receive, a QP or the right Q_Key',
  draw,
  programs: [asker, answerer],
});
