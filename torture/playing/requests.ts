/** Send requests: made from their plans, posted as far as there is room. */
import { qkey } from '../../experiments/workloads/index.ts';
import * as ibv from '../../userlib/index.ts';
import { lengthOf, peerOfQp, type SendPlan } from '../story.ts';
import { isAtomicVerb } from '../verbs.ts';
import { sgesOf } from './receives.ts';
import { type OpenQp, type Session, wrongKey } from './session.ts';
import type { Waiting } from './waiting.ts';
import type { Windows } from './windows.ts';

export class Requests {
  readonly #session: Session;
  readonly #waiting: Waiting;
  readonly #windows: Windows;

  constructor(session: Session, waiting: Waiting, windows: Windows) {
    this.#session = session;
    this.#waiting = waiting;
    this.#windows = windows;
  }

  async post(index: number, plans: readonly SendPlan[]): Promise<void> {
    const open = this.#session.qps[index];
    const hasRoom = (): boolean => open!.outstanding.length < open!.plan.maxSendWr;
    let left = await this.#possible(plans);
    while (left.length > 0) {
      if (open?.qp === undefined || open.peer === undefined) return;
      const before = left.length;
      left = this.#postSome(index, open, open.qp, left);
      if (left.length === 0) return;
      if (left.length === before && !(await this.#waiting.until('room in a send queue', hasRoom))) return;
    }
  }

  /** Returns the requests whose needs the program has: the key of a window exists only if it is bound. */
  async #possible(plans: readonly SendPlan[]): Promise<readonly SendPlan[]> {
    const found: SendPlan[] = [];
    for (const plan of plans) {
      const isByPeersKey = plan.through !== undefined && plan.opcode !== ibv.IBV_WR_LOCAL_INV;
      if (isByPeersKey && (await this.#windows.hear('bound', plan.through)) === null) continue;
      if (this.#windows.isPossible(plan)) found.push(plan);
    }
    return found;
  }

  /**
   * Executes one call of post_send. @returns the requests that found no room
   */
  #postSome(index: number, open: OpenQp, qp: ibv.IbvQp, plans: readonly SendPlan[]): readonly SendPlan[] {
    const session = this.#session;
    const { seen } = session;
    let sinceSignal = open.sinceSignal;
    const wrs = plans.map((plan) => {
      const wr = this.#sendWr(index, open, plan, sinceSignal);
      sinceSignal = (wr.sendFlags & ibv.IBV_SEND_SIGNALED) === 0 ? sinceSignal + 1 : 0;
      return wr;
    });
    for (const [at, wr] of wrs.entries()) wr.next = wrs[at + 1] ?? null;
    const bad: ibv.BadWr<ibv.IbvSendWr> = { wr: null, index: 0 };
    const fromPs = session.nowPs;
    const error = postList(qp, wrs[0]!, bad);
    const toPs = session.nowPs;
    const postedCount = error === 0 ? plans.length : bad.index;
    if (postedCount > 0) seen.doorbells++;
    for (const [at, plan] of plans.slice(0, postedCount).entries()) {
      const isSignalled = open.plan.isSignalAll || (wrs[at]!.sendFlags & ibv.IBV_SEND_SIGNALED) !== 0;
      const key = this.#windows.posted(plan);
      const ofWindow = key === undefined ? {} : { key };
      seen.posts.push({ id: plan.id, qp: index, fromPs, toPs, error: 0, isSignalled, ...ofWindow });
      session.sendsById.set(plan.id, plan);
      open.outstanding.push(plan);
      open.sinceSignal = isSignalled ? 0 : open.sinceSignal + 1;
      if (isSignalled) open.lastSignalled = plan.id;
    }
    if (open.outstanding.length > open.sendRoom)
      seen.surprises.push(
        `QP ${index} holds ${open.outstanding.length} requests, it was granted room for ${open.sendRoom}`,
      );
    if (error === 0) return [];
    if (error === ibv.ENOMEM) return plans.slice(postedCount);
    seen.posts.push({ id: plans[postedCount]!.id, qp: index, fromPs, toPs, error, isSignalled: false });
    return plans.slice(postedCount + 1);
  }

  /**
   * @param sinceSignal unsignalled requests before it: a queue full of unsignalled requests never has room again
   */
  #sendWr(index: number, open: OpenQp, plan: SendPlan, sinceSignal: number): ibv.IbvSendWr {
    const mustSignal = open.lastIds.has(plan.id) || sinceSignal + 1 >= Math.max(1, open.plan.maxSendWr >> 1);
    const wr: ibv.IbvSendWr = {
      wrId: plan.id,
      sgList: sgesOf(this.#session, plan, isNear(plan)),
      numSge: plan.sges.length,
      opcode: plan.opcode,
      sendFlags:
        (plan.isSignalled || mustSignal ? ibv.IBV_SEND_SIGNALED : 0) |
        (plan.isFenced ? ibv.IBV_SEND_FENCE : 0) |
        (plan.isSolicited ? ibv.IBV_SEND_SOLICITED : 0) |
        (plan.isInline ? ibv.IBV_SEND_INLINE : 0),
      immData: plan.imm ?? 0,
    };
    const { remote, bind } = plan;
    const window = plan.through === undefined ? undefined : this.#windows.keyOf(plan);
    if (bind !== undefined) wr.bindMw = this.#windows.bindOf(plan, bind);
    else if (window !== undefined && remote === undefined) wr.invalidateRkey = window.rkey;
    if (open.ah !== undefined) wr.wr = { ud: { ah: open.ah, remoteQpn: open.peer!.qpNum, remoteQkey: qkey } };
    else if (remote !== undefined) wr.wr = this.#remoteOf(index, open, plan, remote);
    return wr;
  }

  #remoteOf(
    index: number,
    { peer, formerPeer }: OpenQp,
    plan: SendPlan,
    { area, offset }: NonNullable<SendPlan['remote']>,
  ): NonNullable<ibv.IbvSendWr['wr']> {
    const { flaw } = plan;
    const window = plan.through === undefined ? undefined : this.#windows.keyOf(plan);
    const [address, rkey] = peer!.areas[area]!;
    const former = formerPeer?.areas[area]?.[1] ?? wrongKey;
    const key = flaw === 'remoteKey' || former === rkey ? wrongKey : former;
    const isKeyWrong = flaw === 'remoteKey' || flaw === 'oldRemoteKey';
    const at = {
      remoteAddr: (window?.base ?? address) + (flaw === 'remoteBounds' ? this.#beyond(index, plan) : offset),
      rkey: window?.rkey ?? (isKeyWrong ? key : rkey),
    };
    if (!isAtomicVerb(plan.opcode)) return { rdma: at };
    const [compareAdd, swap] = [plan.compareAdd, plan.swap].map((text) => BigInt(`0x${text ?? '0'}`));
    return { atomic: { ...at, compareAdd: compareAdd!, swap: swap! } };
  }

  /** Returns an address beyond the peer's area: just after it, or far away. */
  #beyond(index: number, plan: SendPlan): number {
    const { story, index: program } = this.#session;
    const peer = peerOfQp(story, program, index);
    const area = story.programs[peer?.program ?? -1]?.areas[plan.remote!.area];
    if (area === undefined || plan.id % 2 === 0) return 1 << 30;
    return 8 * Math.ceil((area.lengthBytes - lengthOf(plan.sges) + 1) / 8);
  }
}

/** A lone bind of a window of type 1 has a call of its own. */
function postList(qp: ibv.IbvQp, wr: ibv.IbvSendWr, bad: ibv.BadWr<ibv.IbvSendWr>): number {
  const { bindMw: bind, wrId, sendFlags, next } = wr;
  if (bind?.mw.type !== ibv.IBV_MW_TYPE_1 || next !== null) return ibv.postSend(qp, wr, bad);
  return ibv.bindMw(qp, bind.mw, { wrId, sendFlags, bindInfo: bind.bindInfo });
}

/** Whether a request beyond its own area ends just after it; a READ would write up to there. */
const isNear = ({ id, opcode }: SendPlan): boolean => id % 2 === 1 && opcode !== ibv.IBV_WR_RDMA_READ;
