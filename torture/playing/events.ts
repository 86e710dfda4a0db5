/** Events that a player waits for: of completions, and that a send queue is drained. */
import { psPerMs, psPerUs } from '../../base/index.ts';
import * as ibv from '../../userlib/index.ts';
import type { Completions } from './completions.ts';
import type { Session } from './session.ts';
import type { Waiting } from './waiting.ts';

const eventPatiencePs = 50 * psPerUs;
/** Limit of the delay of an event after its completion, whatever the hardware. */
const eventLimitPs = 20 * psPerMs;
/** Requests that were in flight when a send queue was drained would have completed by then. */
const drainedPs = 100 * psPerUs;
const eventsAckedAtOnce = 3;
const roundsMax = 64;

export class Events {
  readonly #session: Session;
  readonly #completions: Completions;
  readonly #waiting: Waiting;

  constructor(session: Session, completions: Completions, waiting: Waiting) {
    this.#session = session;
    this.#completions = completions;
    this.#waiting = waiting;
  }

  /** Arms the CQ and waits for its event, briefly. */
  async awaitEvent(index: number, solicitedOnly: boolean): Promise<void> {
    const { cqs, channels, seen } = this.#session;
    const [cq, channel] = [cqs[index], channels[index]];
    if (cq === undefined || channel === undefined) return;
    ibv.reqNotifyCq(cq, solicitedOnly ? 1 : 0);
    if ((await this.#completions.pump()) > 0) return;
    let found = await ibv.getCqEvent(channel, eventPatiencePs);
    if (found === undefined && (await this.#hasWanted(index, solicitedOnly))) {
      found = await ibv.getCqEvent(channel, eventLimitPs);
      if (found === undefined)
        seen.missing.push(`an event of CQ ${index}, armed for ${solicitedOnly ? 'solicited' : 'all'}`);
    }
    if (found !== undefined) acknowledge(found);
  }

  /** Waits as a program that does not poll: only an event wakes it. */
  async awaitAll(index: number): Promise<void> {
    const { cqs, channels, seen } = this.#session;
    const [cq, channel] = [cqs[index], channels[index]];
    if (cq === undefined || channel === undefined) return;
    for (let rounds = 0; rounds < roundsMax && this.#session.awaitedCount(index) > 0; rounds++) {
      ibv.reqNotifyCq(cq, 0);
      if ((await this.#completions.pump()) > 0) continue;
      let found = await ibv.getCqEvent(channel, eventLimitPs);
      if (found === undefined) {
        if (!(await this.#hasWanted(index, false))) return;
        // The completion may have arrived just now, and moderation may hold its event back.
        found = await ibv.getCqEvent(channel, eventLimitPs);
        if (found === undefined) seen.missing.push(`an event of CQ ${index}, slept for`);
      }
      if (found !== undefined) acknowledge(found);
    }
  }

  /** Whether completions have arrived that an armed CQ must report; of solicited ones only errors are known. */
  async #hasWanted(cq: number, solicitedOnly: boolean): Promise<boolean> {
    const { completions } = this.#session.seen;
    const first = completions.length;
    await this.#completions.pump();
    return completions
      .slice(first)
      .some((seen) => seen.cq === cq && (!solicitedOnly || seen.status !== ibv.IBV_WC_SUCCESS));
  }

  /** Stops a send queue, waits until the device reports that it is drained, and starts it again. */
  async quiesce(index: number): Promise<void> {
    const { qps, context, seen } = this.#session;
    const open = qps[index];
    if (open?.qp === undefined || context === undefined) return;
    const { qp } = open;
    // A QP that is already draining accepts no such request.
    if (qp.state === ibv.IBV_QPS_SQD) return;
    await ibv.modifyQp(
      qp,
      { qpState: ibv.IBV_QPS_SQD, enSqdAsyncNotify: 1 },
      ibv.IBV_QP_STATE | ibv.IBV_QP_EN_SQD_ASYNC_NOTIFY,
    );
    // Requests to a peer that has left may last longer than an impatient program waits, or indefinitely.
    const mayGoOn = this.#session.isImpatient || open.plan.timeout === 0;
    const isDrained = await this.#waiting.until(`QP ${index} to be drained`, async () => {
      const event = await ibv.getAsyncEvent(context, psPerUs);
      if (event === undefined) return false;
      const name = ibv.eventTypeStr(event.eventType);
      seen.events.push(name);
      return name === 'IBV_EVENT_SQ_DRAINED' && event.qp === qp;
    });
    if (isDrained) await this.#checkDrained(index);
    else if ((await ibv.queryQp(qp)).qpState === ibv.IBV_QPS_SQD && !(mayGoOn && open.outstanding.length > 0))
      seen.missing.push(`the event that QP ${index} is drained`);
    await ibv.modifyQp(qp, { qpState: ibv.IBV_QPS_RTS }, ibv.IBV_QP_STATE);
  }

  /** Nothing completes on a drained queue. Requests that had not begun are flushed when the QP fails, at any time. */
  async #checkDrained(index: number): Promise<void> {
    const { seen, sendsById, program } = this.#session;
    while ((await this.#completions.pump()) > 0);
    const first = seen.completions.length;
    await program.cpu.sleep(drainedPs);
    await this.#completions.pump();
    const late = seen.completions
      .slice(first)
      .find(({ id, qp, status }) => qp === index && sendsById.has(id) && status !== ibv.IBV_WC_WR_FLUSH_ERR);
    if (late !== undefined)
      seen.surprises.push(`request ${late.id} of QP ${index} completed when its queue was drained`);
  }

  /** Notes the asynchronous events that are left. */
  async noteLeft(): Promise<void> {
    const { context, seen } = this.#session;
    for (;;) {
      const event = await ibv.getAsyncEvent(context!, psPerUs).catch(() => undefined);
      if (event === undefined) return;
      seen.events.push(ibv.eventTypeStr(event.eventType));
    }
  }
}

/** Acknowledges some events later, together. */
function acknowledge(cq: ibv.IbvCq): void {
  if (cq.eventsUnacked >= eventsAckedAtOnce) ibv.ackCqEvents(cq, cq.eventsUnacked);
}
