/**
 * Liveness: whatever is lost, each request of a reliable connection ends within a bounded time of what it waited for last. Where each
 * fault has a number of shots the cable is good afterwards, so each retry that a fault may cost, and all that the requester has beside
 * those, end the request, well or with an error (IBTA volume 1, 9.7.6.1.3: a time-out of code t takes 4.096 µs × 2^t to four times as
 * long; 9.7.5.2.8: RNR delays).
 *
 *     events of both ends: posts, receives posted, completions ─► the longest pause before a completion ─► less than its retries take
 *
 * Without a time-out (code 0) what is lost is never noticed; on demand, or while a queue is stopped, other things are waited for.
 */
import { psPerMs } from '../../base/index.ts';
import { lossesIn } from '../cable-faults.ts';
import { ackTimeoutPs, patienceOf } from '../patience.ts';
import type { Played } from '../run-story.ts';
import { isOnDemandArea, type Story } from '../story.ts';
import { rnrDelayPs } from '../verbs-model.ts';
import { backOf, type Flow, flowsOf } from './traffic.ts';

/** Time for slow hardware, commands, and other work of a program before it polls again. */
const slowPs = 500 * psPerMs;

export function judgeLiveness(played: Played): string[] {
  const { story, error } = played;
  if (error !== undefined || story.climate === 'broken') return [];
  const losses = lossesIn(played);
  if (!Number.isFinite(losses)) return [];
  if (story.programs.some(({ areas }) => areas.some(isOnDemandArea))) return [];
  const flows = flowsOf(played);
  return flows.flatMap((flow) =>
    isJudged(story, flow) ? judgeFlow(story, losses, flow, backOf(flows, flow)) : [],
  );
}

function isJudged(story: Story, { from }: Flow): boolean {
  const { transport, timeout } = from.plan;
  const { steps } = story.programs[from.program]!;
  const isStopped = steps.some(
    (step) => (step.do === 'modify' || step.do === 'quiesce') && step.qp === from.qp,
  );
  return transport === 'RC' && timeout !== 0 && !isStopped;
}

function judgeFlow(story: Story, losses: number, flow: Flow, back: Flow): string[] {
  const { from, to, sends } = flow;
  const { timeout, retryCount, rnrRetry } = from.plan;
  // A program checks its queues again after a part of its patience.
  const looksPs = patienceOf(story) / 64 + slowPs;
  const timeouts = retryCount + 1 + losses;
  const instants = [
    ...sends.map(({ post }) => post.toPs),
    ...to.seen.receives.map(({ toPs }) => toPs),
    ...[...sends, ...back.sends].flatMap(({ end }) => (end === undefined ? [] : [end.toPs])),
  ].toSorted((left, right) => left - right);
  let waiting = 0;
  for (const { plan, post, end } of sends) {
    waiting++;
    if (end === undefined) continue;
    const lastPs = Math.max(post.toPs, latestUpTo(instants, end.fromPs));
    // Each unsignalled request may have met a receiver that was not ready.
    const delays = waiting * (rnrRetry === 7 ? timeouts + 1 : rnrRetry + 1);
    const rnrPs = delays * rnrDelayPs(to.plan.rnrTimer, story.set);
    const mostPs = 4 * timeouts * ackTimeoutPs(timeout, story.set) + rnrPs + looksPs;
    waiting = 0;
    if (end.fromPs - lastPs > mostPs)
      return [
        `request ${plan.id} (program ${from.program}, QP ${from.qp}) ended ${end.fromPs - lastPs} ps after anything else of its connection, its retries take ${mostPs} at most`,
      ];
  }
  return [];
}

/** Returns the latest of these instants, in order, that is not after `atPs`; 0 if all are. */
function latestUpTo(instants: readonly number[], atPs: number): number {
  let [low, high] = [0, instants.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (instants[middle]! <= atPs) low = middle + 1;
    else high = middle;
  }
  return instants[low - 1] ?? 0;
}
