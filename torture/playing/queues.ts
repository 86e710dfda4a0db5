/** The queues of a player: CQs, shared queues and QPs, created in the beginning and again at turns. */
import * as ibv from '../../userlib/index.ts';
import { type QpPlan, type Renewal, type Step, turnOfQp } from '../story.ts';
import type { Completions } from './completions.ts';
import type { Receives } from './receives.ts';
import type { OpenQp, Session } from './session.ts';

export class Queues {
  readonly #session: Session;
  readonly #completions: Completions;
  readonly #receives: Receives;
  /** Entries that each CQ needs. */
  readonly #cqNeeds: number[] = [];

  constructor(session: Session, completions: Completions, receives: Receives) {
    this.#session = session;
    this.#completions = completions;
    this.#receives = receives;
  }

  async open(): Promise<void> {
    const { plan, context, channels, cqs, srqs, pds, qps } = this.#session;
    for (const [index, { hasChannel }] of plan.cqs.entries()) {
      this.#cqNeeds.push(entriesOf(plan.qps, index));
      channels.push(hasChannel ? await ibv.createCompChannel(context!) : undefined);
      cqs.push(await this.#makeCq(index));
    }
    for (const { maxWr, maxSge } of plan.srqs)
      srqs.push(await ibv.createSrq(pds[0]!, { attr: { maxWr, maxSge } }));
    for (const [index, qp] of plan.qps.entries()) {
      if (index === 1 && plan.qpnGap > 0) await this.#passQpns(qp, plan.qpnGap);
      qps.push(closedQp(qp, this.#lastIdsOf(index)));
      if (turnOfQp(qp) === 0) await this.#makeQp(index);
    }
  }

  /** Returns the first turn in which a step is possible: before it the step's QP does not exist. */
  turnOf(step: Step): number {
    const { plan, turnCount } = this.#session;
    const qp = 'qp' in step ? plan.qps[step.qp] : undefined;
    const turn = step.do === 'turn' ? step.turn : qp === undefined ? 0 : turnOfQp(qp);
    return Math.min(turnCount, turn);
  }

  /** The last request of a QP before each turn, and before the end. */
  #lastIdsOf(qp: number): ReadonlySet<number> {
    const lastByTurn = new Map<number, number>();
    let turn = 0;
    for (const step of this.#session.plan.steps) {
      turn = Math.max(turn, this.turnOf(step));
      const last = step.do === 'post' && step.qp === qp ? step.wrs.at(-1) : undefined;
      if (last !== undefined) lastByTurn.set(turn, last.id);
    }
    return new Set(lastByTurn.values());
  }

  #makeCq(index: number): Promise<ibv.IbvCq> {
    const { context, plan, channels } = this.#session;
    const vector = plan.cqs[index]!.vector % context!.numCompVectors;
    return ibv.createCq(context!, this.#cqNeeds[index]!, null, channels[index] ?? null, vector);
  }

  /** Creates and destroys QPs, so that the number of the next one is `count` higher. */
  async #passQpns(plan: QpPlan, count: number): Promise<void> {
    const { cqs, pds } = this.#session;
    const [sendCq, recvCq, qpType] = [cqs[0]!, cqs[0]!, typeOf(plan)];
    const passed: ibv.IbvQp[] = [];
    for (let made = 0; made < count; made++)
      passed.push(await ibv.createQp(pds[0]!, { sendCq, recvCq, qpType, cap: { maxSendWr: 1 } }));
    for (const qp of passed) await ibv.destroyQp(qp);
  }

  async #makeQp(index: number): Promise<void> {
    const { qps, cqs, srqs, pds } = this.#session;
    const open = qps[index]!;
    const { plan } = open;
    const [sendCq, recvCq] = [cqs[plan.sendCq], cqs[plan.recvCq]];
    // A CQ could not be created again: the device had left meanwhile.
    if (sendCq === undefined || recvCq === undefined) return;
    const hasOwn = plan.srq < 0;
    const init: ibv.IbvQpInitAttr = {
      sendCq,
      recvCq,
      srq: hasOwn ? null : srqs[plan.srq]!,
      qpType: typeOf(plan),
      sqSigAll: plan.isSignalAll ? 1 : 0,
      cap: {
        maxSendWr: plan.maxSendWr,
        maxRecvWr: hasOwn ? plan.maxRecvWr : 0,
        maxSendSge: plan.maxSge,
        maxRecvSge: hasOwn ? plan.maxSge : 0,
        maxInlineData: plan.maxInline,
      },
    };
    const qp = await ibv.createQp(pds[0]!, init);
    open.sendRoom = init.cap.maxSendWr ?? 0;
    this.#isHere(index, qp);
  }

  #isHere(index: number, qp: ibv.IbvQp): void {
    this.#session.qps[index]!.qp = qp;
    this.#completions.isNumbered(index, qp.qpNum);
  }

  /**
   * Destroys and creates again the objects that a turn names, QPs before the CQs that they use. @param between called
   * before QPs are created
   */
  async renew(turn: number, cqs: readonly number[], between: () => Promise<void>): Promise<void> {
    const { plan, qps } = this.#session;
    const renewed = [...plan.qps.entries()].filter(([, qp]) => turnOfQp(qp) === turn);
    for (const [index, { renewal }] of renewed) await this.#takeDown(index, renewal!);
    for (const index of cqs) await this.#renewCq(index);
    await between();
    for (const [index] of renewed) if (qps[index]!.qp === undefined) await this.#makeQp(index);
  }

  async #takeDown(index: number, { of: formerIndex, how }: Renewal): Promise<void> {
    const { qps, seen } = this.#session;
    const former = qps[formerIndex]!;
    const { qp } = former;
    seen.unfinished.push(...former.outstanding.map(({ id }) => id));
    former.outstanding = [];
    former.qp = undefined;
    qps[index]!.formerPeer = former.peer;
    this.#receives.forget(formerIndex);
    if (qp === undefined) return;
    if (how === 'create') return ibv.destroyQp(qp);
    await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_RESET }, ibv.IBV_QP_STATE);
    qps[index]!.sendRoom = former.sendRoom;
    this.#isHere(index, qp);
  }

  async #renewCq(index: number): Promise<void> {
    const { cqs, qps } = this.#session;
    const cq = cqs[index];
    const isUsed = qps.some(
      ({ qp, plan }) => qp !== undefined && (plan.sendCq === index || plan.recvCq === index),
    );
    if (cq === undefined || isUsed) return;
    ibv.ackCqEvents(cq, cq.eventsUnacked);
    await ibv.destroyCq(cq);
    cqs[index] = undefined;
    cqs[index] = await this.#makeCq(index);
  }

  async resizeCq(index: number, entries: number): Promise<void> {
    const cq = this.#session.cqs[index];
    if (cq !== undefined) await ibv.resizeCq(cq, this.#cqNeeds[index]! + entries);
  }

  async moderate(index: number, count: number, periodUs: number): Promise<void> {
    const cq = this.#session.cqs[index];
    if (cq !== undefined) await ibv.modifyCq(cq, count, periodUs);
  }

  async armLimit(index: number, limit: number): Promise<void> {
    const srq = this.#session.srqs[index];
    if (srq === undefined) return;
    await ibv.modifySrq(srq, { srqLimit: limit }, ibv.IBV_SRQ_LIMIT);
    this.#session.seen.limitsArmed++;
  }

  async modify(index: number, to: 'SQD' | 'RTS' | 'ERR'): Promise<void> {
    const { qps, nowPs: fromPs, seen } = this.#session;
    const qp = qps[index]?.qp;
    if (qp === undefined) return;
    const qpState = { SQD: ibv.IBV_QPS_SQD, RTS: ibv.IBV_QPS_RTS, ERR: ibv.IBV_QPS_ERR }[to];
    if (to === 'ERR') seen.broken.push({ qp: index, fromPs, toPs: fromPs });
    await ibv.modifyQp(qp, { qpState }, ibv.IBV_QP_STATE);
  }

  async destroy(index: number): Promise<void> {
    const session = this.#session;
    const open = session.qps[index];
    if (open?.qp === undefined) return;
    const { qp } = open;
    const fromPs = session.nowPs;
    open.qp = undefined;
    open.outstanding = [];
    await ibv.destroyQp(qp);
    session.seen.broken.push({ qp: index, fromPs, toPs: session.nowPs });
  }
}

/** Room for all that the QPs of a CQ may have outstanding, several times over. */
const entriesOf = (qps: readonly QpPlan[], cq: number): number =>
  qps.reduce(
    (sum, qp) =>
      sum + (qp.sendCq === cq ? 8 * qp.maxSendWr + 64 : 0) + (qp.recvCq === cq ? 4 * qp.maxRecvWr + 256 : 0),
    16,
  );

const closedQp = (plan: QpPlan, lastIds: ReadonlySet<number>): OpenQp => ({
  plan,
  qp: undefined,
  sendRoom: 0,
  peer: undefined,
  formerPeer: undefined,
  ah: undefined,
  outstanding: [],
  lastSignalled: -1,
  sinceSignal: 0,
  lastIds,
  isReady: false,
});

const typeOf = ({
  transport,
}: Pick<QpPlan, 'transport'>): typeof ibv.IBV_QPT_RC | typeof ibv.IBV_QPT_UC | typeof ibv.IBV_QPT_UD =>
  (({ RC: ibv.IBV_QPT_RC, UC: ibv.IBV_QPT_UC, UD: ibv.IBV_QPT_UD }) as const)[transport];
