/**
 * Whether the key of a window was valid while a request used it, by the clocks of the programs that bound it, used it and took it
 * back. Source: InfiniBand Architecture Specification 1.3, volume 1, 10.6.5 and 10.6.7: once the work request that invalidates a
 * key has completed, or the call that gives the window back has returned, nothing reaches memory by the key.
 */
import * as ibv from '../../userlib/index.ts';
import type { Flow, SendHistory } from './traffic.ts';

/**
 * `gone`: invalidated when the request was posted; `either`: invalidated while it was in flight, or by a queue that is
 * out of service.
 */
export type WindowState = 'bound' | 'either' | 'gone';

interface Taking {
  readonly fromPs: number;
  /** Infinity: it may not have happened at all. */
  readonly toPs: number;
}

/**
 * Instant from which no access reaches memory by the key that a request uses; infinity: never, or the request uses no
 * window.
 */
export function goneOfWindow(flow: Flow, back: Flow, { plan }: SendHistory): number {
  if (plan.through === undefined) return Number.POSITIVE_INFINITY;
  const ends = [
    ...takingsOfOwner(flow, back, plan.through),
    ...sendsThatTake(flow, plan.through).map(takingBy),
  ];
  return Math.min(Number.POSITIVE_INFINITY, ...ends.map(({ toPs }) => toPs));
}

/** Whether either end ever invalidated the binding whose key a request uses, before it, during it or afterwards. */
export const isEverTaken = (flow: Flow, back: Flow, { plan }: SendHistory): boolean =>
  plan.through !== undefined &&
  takingsOfOwner(flow, back, plan.through).length + sendsThatTake(flow, plan.through).length > 0;

/**
 * @param back the other direction of the connection: the requests of the window's owner
 */
export function windowStateOf(flow: Flow, back: Flow, history: SendHistory): WindowState {
  const { plan, post, end, place } = history;
  if (plan.through === undefined) return 'bound';
  const sends = sendsThatTake(flow, plan.through);
  // The responder executes the requests of one queue in order.
  if (sends.some((send) => send.place < place && takingBy(send).toPs < Number.POSITIVE_INFINITY))
    return 'gone';
  const isOrdered = (send: SendHistory): boolean =>
    send.place > place && (send.plan.isFenced || plan.opcode === ibv.IBV_WR_RDMA_WRITE);
  const takings = [
    ...takingsOfOwner(flow, back, plan.through),
    ...sends.filter((send) => !isOrdered(send)).map(takingBy),
  ].filter(({ fromPs }) => fromPs <= arrivedBy(end));
  if (takings.some(({ toPs }) => toPs <= post.fromPs)) return 'gone';
  return takings.length > 0 ? 'either' : 'bound';
}

/** Completions that tell nothing about the responder: the request may still be in flight. */
const endsOfRequesterAlone: readonly number[] = [ibv.IBV_WC_RETRY_EXC_ERR, ibv.IBV_WC_WR_FLUSH_ERR];

/** When the responder has seen all of a request that it will. */
const arrivedBy = (end: SendHistory['end']): number =>
  end === undefined || endsOfRequesterAlone.includes(end.status) ? Number.POSITIVE_INFINITY : end.toPs;

/** SENDs with Invalidate by the user of a window. */
const sendsThatTake = ({ sends }: Flow, bind: number): SendHistory[] =>
  sends.filter(({ plan }) => plan.through === bind && plan.remote === undefined);

const takingBy = ({ plan, post, end }: SendHistory): Taking => ({
  fromPs: post.fromPs,
  toPs: end?.status === ibv.IBV_WC_SUCCESS && plan.flaw === 'none' ? end.toPs : Number.POSITIVE_INFINITY,
});

/** Ways in which the owner may have invalidated a binding: its requests, the call, and the end of its queue. */
function takingsOfOwner({ to }: Flow, back: Flow, bind: number): Taking[] {
  const bound = back.sends.find(({ plan }) => plan.id === bind);
  const window = bound?.plan.bind?.window;
  if (bound === undefined || window === undefined) return [unknown];
  const isTaking = ({ plan, place }: SendHistory): boolean =>
    place > bound.place &&
    ((plan.opcode === ibv.IBV_WR_LOCAL_INV && plan.through === bind) ||
      (plan.opcode === ibv.IBV_WR_BIND_MW && plan.bind?.window === window));
  return [
    ...back.sends.filter(isTaking).map(takingBy),
    ...to.seen.deallocations.filter((call) => call.window === window),
    ...to.seen.broken
      .filter(({ qp }) => qp === to.qp)
      .map(({ fromPs }) => ({ fromPs, toPs: Number.POSITIVE_INFINITY })),
    ...(to.seen.finals.length === 0 ? [unknown] : []),
  ];
}

/** Times for a program that left with everything open, or did not report its binding. */
const unknown: Taking = { fromPs: 0, toPs: Number.POSITIVE_INFINITY };
