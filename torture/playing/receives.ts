/** Receives: posted in the order of their queue, later where the queue is full, and all at once by a program that waits too long. */
import { ENOMEM, type IbvRecvWr, type IbvSge, postRecv, postSrqRecv } from '../../userlib/index.ts';
import type { ReceivePlan, SendPlan, SgePlan, Step } from '../story.ts';
import { isIn, type Session, wrongKey } from './session.ts';

/** A receive of a QP, or of a shared queue; -1: not of this kind. */
interface Wanted {
  readonly qp: number;
  readonly srq: number;
  readonly plan: ReceivePlan;
}

export class Receives {
  readonly #session: Session;
  readonly #byId = new Map<number, ReceivePlan>();
  readonly #wanted = new Set<number>();
  #deferred: Wanted[] = [];
  /** Receives that have been posted and not completed, by id. */
  readonly #pending = new Map<number, Wanted>();

  constructor(session: Session) {
    this.#session = session;
  }

  get isAnyDeferred(): boolean {
    return this.#deferred.length > 0;
  }

  /** Posts the receives of a step, at once or as soon as there is room; ignores any other step. */
  post(step: Step): void {
    if (step.do !== 'receive' && step.do !== 'receiveShared') return;
    const queue = step.do === 'receive' ? { qp: step.qp, srq: -1 } : { qp: -1, srq: step.srq };
    for (const plan of step.wrs) this.#post({ ...queue, plan });
  }

  /** Posts all receives that are still planned: two programs that wait for each other's would never continue. */
  hasten(): void {
    for (const step of this.#session.plan.steps) this.post(step);
  }

  /** A completion of this id has arrived. @returns the receive that it ends, if it is one */
  ended(id: number): ReceivePlan | undefined {
    this.#pending.delete(id);
    return this.#byId.get(id);
  }

  /** Forgets a destroyed QP and the receives posted there. */
  forget(qp: number): void {
    for (const [id, pending] of this.#pending) if (pending.qp === qp) this.#pending.delete(id);
  }

  isPendingIn(area: number): boolean {
    return [...this.#pending.values()].some(({ plan }) => isIn(plan.sges, area));
  }

  /** Each queue's receives in their order; a queue that is full holds up no other. */
  postDeferred(): void {
    const full = new Set<string>();
    this.#deferred = this.#deferred.filter((wanted) => {
      const queue = `${wanted.qp}.${wanted.srq}`;
      if (!full.has(queue) && this.#try(wanted)) return false;
      full.add(queue);
      return true;
    });
  }

  #post(wanted: Wanted): void {
    if (this.#wanted.has(wanted.plan.id) || this.#session.qps[wanted.qp]?.isReady === false) return;
    this.#wanted.add(wanted.plan.id);
    const isQueued = this.#deferred.some(({ qp, srq }) => qp === wanted.qp && srq === wanted.srq);
    if (isQueued || !this.#try(wanted)) this.#deferred.push(wanted);
  }

  /** @returns false when there was no room */
  #try(wanted: Wanted): boolean {
    const session = this.#session;
    const { qp: index, plan } = wanted;
    const srq = session.srqs[wanted.srq];
    const qp = session.qps[index]?.qp;
    if (srq === undefined && qp === undefined) return true;
    const wr: IbvRecvWr = {
      wrId: plan.id,
      sgList: sgesOf(session, plan),
      numSge: plan.sges.length,
    };
    const fromPs = session.nowPs;
    const error = srq !== undefined ? postSrqRecv(srq, wr) : postRecv(qp!, wr);
    if (error === ENOMEM) return false;
    this.#byId.set(plan.id, plan);
    this.#pending.set(plan.id, wanted);
    session.seen.receives.push({
      id: plan.id,
      qp: index,
      fromPs,
      toPs: session.nowPs,
      error,
      isSignalled: true,
    });
    return true;
  }
}

/** The buffers of a request as its flaw has them. @param isNear whether one beyond its area ends just after it */
export function sgesOf(
  { areas, oldKeys }: Session,
  { sges, flaw }: Pick<SendPlan, 'sges' | 'flaw'>,
  isNear = false,
): IbvSge[] {
  return sges.map(({ area, offset, length }: SgePlan) => {
    const { address, mr, lengthBytes } = areas[area]!;
    const beyond = flaw === 'localBounds' ? lengthBytes + 1 - (isNear ? offset + length : 0) : 0;
    // A deregistered region keeps its old key, as in a program with a stale key.
    const old = oldKeys.get(area) ?? wrongKey;
    const lkey = flaw === 'localKey' ? wrongKey : flaw === 'oldLocalKey' ? old : (mr?.lkey ?? old);
    return { addr: address + offset + beyond, length, lkey };
  });
}
