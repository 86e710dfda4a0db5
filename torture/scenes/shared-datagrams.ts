/**
 * Datagrams of several QPs for several QPs that share a receive queue. Each takes one receive while there is one: it comes whole,
 * behind the bytes for a GRH, in the order of its sender, and says who sent it. What has a wrong Q_Key, or is for a QP that has
 * failed or gone, is dropped and takes none (IBTA 9.6.1.3, 9.8.3, 10.2.5); what finds none is dropped. The limit event comes when fewer
 * receives are left than that (10.2.9), once for each time that it is armed.
 *
 *     answerer: receives, limit ─► asker: datagrams, all sent ─► answerer: as many have come as there were receives? ─► …
 */
import { psPerMs, psPerUs } from '../../base/index.ts';
import {
  announcedOf,
  barrier,
  createBuffer,
  handleTo,
  openEndpoint,
  type PortAddress,
  peerFrom,
  type RcBuffer,
  type RcEndpoint,
} from '../../experiments/workloads/index.ts';
import type { JsonValue, ProgramContext } from '../../machine/index.ts';
import type { Random } from '../../sim/index.ts';
import {
  closeDevice,
  createCq,
  createQp,
  createSrq,
  deallocPd,
  deregMr,
  destroyAh,
  destroyCq,
  destroyQp,
  destroySrq,
  getAsyncEvent,
  IBV_EVENT_QP_LAST_WQE_REACHED,
  IBV_EVENT_SRQ_LIMIT_REACHED,
  IBV_QP_STATE,
  IBV_QPS_ERR,
  IBV_QPT_UD,
  IBV_SEND_SIGNALED,
  IBV_SRQ_LIMIT,
  IBV_WC_SUCCESS,
  IBV_WR_SEND,
  type IbvCq,
  type IbvQp,
  type IbvSrq,
  IbvWc,
  modifyQp,
  modifySrq,
  pollCq,
  postSrqRecv,
} from '../../userlib/index.ts';
import { qkey, ready } from '../connecting.ts';
import { firstDifference, patternOf } from './observing.ts';
import { askerAndAnswerer, completionsOf, post } from './pair.ts';
import type { Scene, SceneDraft } from './scene.ts';
import { datagramPlan, grhBytes } from './unreliable-pair.ts';

interface Args {
  readonly senders: number;
  readonly receivers: number;
  readonly maxWr: number;
  readonly rounds: readonly Round[];
}

interface Round {
  /** Receives that the queue holds before anything is sent. */
  readonly receives: number;
  /** Armed then; 0: it is not. */
  readonly limit: number;
  readonly datagrams: readonly Datagram[];
  /** The receiving QP that fails or goes before anything is sent. */
  readonly ends?: { readonly qp: number; readonly how: 'error' | 'destroy' };
}

interface Datagram {
  readonly from: number;
  readonly to: number;
  readonly lengthBytes: number;
  readonly isKeyWrong: boolean;
}

/** Who both sides are. */
interface News extends PortAddress {
  readonly qpNums: readonly number[];
}

const payloadBytesMax = 4096;
const slotBytes = grhBytes + payloadBytesMax;
/** Longer than a datagram is on its way once it has left. */
const quietPs = 2 * psPerMs;

function draw(random: Random): SceneDraft {
  const senders = 1 + random.below(4);
  const receivers = 2 + random.below(5);
  const maxWr = [3, 7, 15, 31][random.below(4)]!;
  const lengthMax = [8, 300, payloadBytesMax][random.below(3)]!;
  // The last QP stays.
  let doomed = 0;
  const rounds = Array.from({ length: 3 + random.below(6) }, (): Round => {
    const receives = 1 + random.below(maxWr);
    const isEnd = doomed < receivers - 1 && random.chance(0.3);
    const how = random.chance(0.5) ? 'error' : 'destroy';
    return {
      receives,
      limit: random.chance(0.5) ? 1 + random.below(receives) : 0,
      datagrams: Array.from({ length: random.below(2 * maxWr + 1) }, () => ({
        from: random.below(senders),
        to: random.below(receivers),
        lengthBytes: random.below(lengthMax + 1),
        isKeyWrong: random.chance(0.1),
      })),
      ...(isEnd ? { ends: { qp: doomed++, how } } : {}),
    };
  });
  const args: Args = { senders, receivers, maxWr, rounds };
  return { args: args as unknown as JsonValue, hasDrawnHardware: random.chance(0.5), climate: 'flawed' };
}

/** Number of the first datagram of a round, over all rounds. */
const firstOf = (rounds: readonly Round[], round: number): number =>
  rounds.slice(0, round).reduce((sum, { datagrams }) => sum + datagrams.length, 0);

async function makeQps(
  { pd }: RcEndpoint,
  cq: IbvCq,
  count: number,
  { maxSendWr, srq = null }: { maxSendWr: number; srq?: IbvSrq | null },
): Promise<IbvQp[]> {
  const qps: IbvQp[] = [];
  for (let at = 0; at < count; at++)
    qps.push(
      await createQp(pd, {
        sendCq: cq,
        recvCq: cq,
        srq,
        qpType: IBV_QPT_UD,
        cap: { maxSendWr, maxRecvWr: srq === null ? 1 : 0, maxSendSge: 1, maxRecvSge: srq === null ? 1 : 0 },
      }),
    );
  return qps;
}

/** Brings the QPs to where they send and receive, and publishes them to the peer. @returns the peer's */
async function meet({ program, own: address }: RcEndpoint, qps: readonly IbvQp[]): Promise<News> {
  for (const qp of qps) await ready(qp, datagramPlan, { lid: 0, qpNum: 0, psn: 0 });
  const own: News = { ...announcedOf(address), qpNums: qps.map(({ qpNum }) => qpNum) };
  await program.exchange.put('datagrams', own as unknown as JsonValue);
  const there = (await program.exchange.take('datagrams')) as unknown as News;
  await barrier(program, 'datagrams are ready');
  return there;
}

/** Sends. @returns what was wrong */
export async function asker(program: ProgramContext): Promise<JsonValue> {
  const { senders, maxWr, rounds } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 255);
  const qps = await makeQps(endpoint, cq, senders, { maxSendWr: 2 * maxWr });
  const area = await createBuffer(endpoint, 2 * maxWr * payloadBytesMax);
  const there = await meet(endpoint, qps);
  const ah = await handleTo(endpoint.pd, peerFrom(endpoint.own, there));
  const found: string[] = [];
  for (const [round, { datagrams }] of rounds.entries()) {
    await barrier(program, `receives of round ${round}`);
    for (const [at, { from, to, lengthBytes, isKeyWrong }] of datagrams.entries()) {
      const address = area.address + at * payloadBytesMax;
      program.memory.write(address, patternOf(firstOf(rounds, round) + at, lengthBytes));
      const error = post(qps[from]!, {
        wrId: at,
        sgList: [{ addr: address, length: lengthBytes, lkey: area.region.lkey }],
        numSge: 1,
        opcode: IBV_WR_SEND,
        sendFlags: IBV_SEND_SIGNALED,
        wr: { ud: { ah, remoteQpn: there.qpNums[to]!, remoteQkey: isKeyWrong ? qkey ^ 1 : qkey } },
      });
      if (error !== 0) found.push(`datagram ${at} of round ${round} was refused with ${error}`);
    }
    const ended = await completionsOf({ endpoint, cq }, datagrams.length, 1000 * psPerMs);
    // A datagram is not answered: what becomes of it there is nothing to its sender (9.8.3).
    const failed = ended.filter(({ status }) => status !== IBV_WC_SUCCESS);
    if (failed.length > 0 || ended.length < datagrams.length)
      found.push(
        `of ${datagrams.length} datagrams of round ${round} ${ended.length} ended, ${failed.length} of them badly`,
      );
    await barrier(program, `datagrams of round ${round}`);
  }
  await barrier(program, 'over');
  await destroyAh(ah);
  await close(endpoint, area, qps, cq);
  return found;
}

/** Receives. @returns what was wrong */
export async function answerer(program: ProgramContext): Promise<JsonValue> {
  const { receivers, maxWr, rounds } = program.args as unknown as Args;
  const endpoint = await openEndpoint(program);
  const cq = await createCq(endpoint.context, 255);
  const srq = await createSrq(endpoint.pd, { attr: { maxWr, maxSge: 1 } });
  const qps = await makeQps(endpoint, cq, receivers, { maxSendWr: 1, srq });
  const area = await createBuffer(endpoint, maxWr * slotBytes);
  const there = await meet(endpoint, qps);
  const queue = new Queue(program, { srq, cq, area, maxWr, qps, senderQpns: there.qpNums });
  for (const [round, plan] of rounds.entries()) {
    queue.fill(plan.receives);
    if (plan.limit > 0) await modifySrq(srq, { srqLimit: plan.limit }, IBV_SRQ_LIMIT);
    await queue.end(plan.ends);
    await barrier(program, `receives of round ${round}`);
    await barrier(program, `datagrams of round ${round}`);
    await queue.judge(round, plan, firstOf(rounds, round));
    // What was armed and has not come does not come later.
    if (plan.limit > 0) await modifySrq(srq, { srqLimit: 0 }, IBV_SRQ_LIMIT);
  }
  await barrier(program, 'over');
  await close(endpoint, area, queue.qps, cq, srq);
  return queue.found;
}

interface QueueParts {
  readonly srq: IbvSrq;
  readonly cq: IbvCq;
  readonly area: RcBuffer;
  readonly maxWr: number;
  readonly qps: readonly IbvQp[];
  readonly senderQpns: readonly number[];
}

/** The shared queue, and what its receives bring. */
class Queue {
  readonly found: string[] = [];
  readonly #program: ProgramContext;
  readonly #parts: QueueParts;
  /** By number; undefined of one that is gone. */
  readonly qps: (IbvQp | undefined)[];
  readonly #deaf = new Set<number>();
  readonly #free: number[];
  #inQueueCount = 0;

  constructor(program: ProgramContext, parts: QueueParts) {
    this.#program = program;
    this.#parts = parts;
    this.qps = [...parts.qps];
    this.#free = Array.from({ length: parts.maxWr }, (_, slot) => slot);
  }

  /** Posts until so many receives are in the queue. */
  fill(receives: number): void {
    const { srq, area } = this.#parts;
    for (; this.#inQueueCount < receives; this.#inQueueCount++) {
      const slot = this.#free.shift()!;
      const sgList = [{ addr: area.address + slot * slotBytes, length: slotBytes, lkey: area.region.lkey }];
      const error = postSrqRecv(srq, { wrId: slot, sgList, numSge: 1 }, { wr: null, index: 0 });
      if (error !== 0) this.found.push(`a receive was refused with ${error}`);
    }
  }

  async end(ends: Round['ends']): Promise<void> {
    const qp = ends === undefined ? undefined : this.qps[ends.qp];
    if (ends === undefined || qp === undefined) return;
    this.#deaf.add(ends.qp);
    if (ends.how === 'error') return modifyQp(qp, { qpState: IBV_QPS_ERR }, IBV_QP_STATE);
    this.qps[ends.qp] = undefined;
    await destroyQp(qp);
  }

  /** Holds what a round brought to what was sent in it; its datagrams are numbered from `first` on. */
  async judge(round: number, { limit, datagrams }: Round, first: number): Promise<void> {
    const taken = await this.#allThatCame();
    const due = datagrams.filter(({ to, isKeyWrong }) => !isKeyWrong && !this.#deaf.has(to)).length;
    const dueCount = Math.min(this.#inQueueCount, due);
    if (taken.length !== dueCount)
      this.found.push(`round ${round}: ${taken.length} datagrams came, ${dueCount} were to`);
    /** Place of the last datagram that came, by sender and receiver. */
    const last = new Map<string, number>();
    for (const wc of taken) {
      const from = this.#parts.senderQpns.indexOf(wc.srcQp);
      const to = this.#parts.qps.findIndex(({ qpNum }) => qpNum === wc.qpNum);
      const flow = `${from} to ${to}`;
      const after = last.get(flow) ?? -1;
      const place = this.#deaf.has(to)
        ? -1
        : datagrams.findIndex(
            (one, at) =>
              at > after &&
              one.from === from &&
              one.to === to &&
              !one.isKeyWrong &&
              this.#isIn(wc, first + at, one),
          );
      if (wc.status !== IBV_WC_SUCCESS || place < 0)
        this.found.push(
          `round ${round}: receive ${wc.wrId}, status ${wc.status}, ${wc.byteLen} bytes from QP ${flow}, is no datagram`,
        );
      else last.set(flow, place);
      this.#inQueueCount--;
      this.#free.push(wc.wrId);
    }
    await this.#judgeEvents(round, limit);
  }

  #isIn({ wrId, byteLen }: IbvWc, number: number, { lengthBytes }: Datagram): boolean {
    if (byteLen !== grhBytes + lengthBytes) return false;
    const address = this.#parts.area.address + wrId * slotBytes + grhBytes;
    return (
      firstDifference(patternOf(number, lengthBytes), this.#program.memory.read(address, lengthBytes)) < 0
    );
  }

  async #allThatCame(): Promise<IbvWc[]> {
    const came: IbvWc[] = [];
    for (let quiet = 0; quiet < 2; ) {
      await this.#program.cpu.sleep(quietPs);
      const wcs = Array.from({ length: 32 }, () => new IbvWc());
      const taken = await pollCq(this.#parts.cq, wcs.length, wcs);
      came.push(...wcs.slice(0, taken));
      quiet = taken > 0 ? 0 : quiet + 1;
    }
    return came;
  }

  async #judgeEvents(round: number, limit: number): Promise<void> {
    let limits = 0;
    for (;;) {
      const event = await getAsyncEvent(this.#parts.cq.context, 10 * psPerUs);
      if (event === undefined) break;
      if (event.eventType === IBV_EVENT_SRQ_LIMIT_REACHED) limits++;
      else if (event.eventType !== IBV_EVENT_QP_LAST_WQE_REACHED || this.#deaf.size === 0)
        this.found.push(`round ${round}: an event of type ${event.eventType}`);
    }
    const dueCount = this.#inQueueCount < limit ? 1 : 0;
    if (limits !== dueCount)
      this.found.push(
        `round ${round}: ${limits} limit events, expected ${dueCount}: ${this.#inQueueCount} receives left, limit ${limit}`,
      );
  }
}

async function close(
  { pd, context }: RcEndpoint,
  area: RcBuffer,
  qps: readonly (IbvQp | undefined)[],
  cq: IbvCq,
  srq?: IbvSrq,
): Promise<void> {
  for (const qp of qps) if (qp !== undefined) await destroyQp(qp);
  await destroyCq(cq);
  if (srq !== undefined) await destroySrq(srq);
  await deregMr(area.region);
  await deallocPd(pd);
  await closeDevice(context);
}

export const sharedDatagrams: Scene = {
  name: 'shared-datagrams',
  about: 'datagrams for QPs that share a receive queue, some without a receive, a QP or the right Q_Key',
  module: import.meta.url,
  programs: askerAndAnswerer,
  draw,
  judge: ({ results }) => (results as unknown as readonly string[][]).flat(),
};
