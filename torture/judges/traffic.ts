/**
 * The story as seen from both ends of each connection: the posts of each program in order, their ends, and the receive
 * in which each message arrived. Derived from the plan and the programs' observations, not from the device.
 */
import * as ibv from '../../userlib/index.ts';
import { copiesOf, isDisordered } from '../cable-faults.ts';
import type { CompletionSeen, Observations, PostSeen } from '../observations.ts';
import type { Played } from '../run-story.ts';
import { lengthOf, type QpPlan, type ReceivePlan, type SendPlan, type Story } from '../story.ts';
import { consumesReceive, grhBytes, receiveOpcodeOf } from '../verbs.ts';
import { firstDifference, gatheredOf } from './contents.ts';

/** One send request: plan, post, end. */
export interface SendHistory {
  readonly plan: SendPlan;
  readonly post: PostSeen;
  readonly end: CompletionSeen | undefined;
  /** Position among the requests posted on the QP. */
  readonly place: number;
  readonly lengthBytes: number;
}

export interface ReceiveHistory {
  readonly plan: ReceivePlan;
  readonly end: CompletionSeen;
  readonly roomBytes: number;
}

/** One direction of a link: the sender's queue, and the receives at the other end. */
export interface Flow {
  readonly link: number;
  readonly from: End;
  readonly to: End;
  /** Sends in the order of posting. */
  readonly sends: readonly SendHistory[];
  /** Receives of the other end that completed on this connection, in order of completion; flushed ones are separate. */
  readonly arrivals: readonly ReceiveHistory[];
  readonly flushedReceives: readonly ReceiveHistory[];
  /** Which send each arrival brought; undefined where no send fits. */
  readonly brought: readonly (SendHistory | undefined)[];
}

interface End {
  readonly program: number;
  readonly qp: number;
  readonly plan: QpPlan;
  readonly seen: Observations;
}

const flowsByPlayed = new WeakMap<Played, Flow[]>();

/** The other direction of a flow's connection. */
export const backOf = (flows: readonly Flow[], { link, to }: Flow): Flow =>
  flows.find((other) => other.link === link && other.from === to)!;

/** Returns both directions of every link whose programs reported their observations. */
export function flowsOf(played: Played): Flow[] {
  let flows = flowsByPlayed.get(played);
  if (flows === undefined) {
    flows = makeFlows(played);
    flowsByPlayed.set(played, flows);
  }
  return flows;
}

function makeFlows({ story, seen }: Played): Flow[] {
  return story.links.flatMap(({ ends }, link) => {
    const [left, right] = ends.map(({ program, qp }) => {
      const observations = seen[program];
      return observations === null || observations === undefined
        ? undefined
        : { program, qp, plan: story.programs[program]!.qps[qp]!, seen: observations };
    });
    if (left === undefined || right === undefined) return [];
    return [flowOf(story, link, left, right), flowOf(story, link, right, left)];
  });
}

function flowOf(story: Story, link: number, from: End, to: End): Flow {
  const plans = new Map<number, SendPlan>();
  for (const step of story.programs[from.program]!.steps)
    if (step.do === 'post') for (const plan of step.wrs) plans.set(plan.id, plan);
  const ends = new Map(from.seen.completions.map((end) => [end.id, end]));
  const sends = from.seen.posts
    .filter(({ qp, error }) => qp === from.qp && error === 0)
    .map((post, place) => {
      const plan = plans.get(post.id)!;
      return { plan, post, end: ends.get(post.id), place, lengthBytes: lengthOf(plan.sges) };
    });
  const receives = receivesOf(story, to);
  const arrivals = receives.filter(({ end }) => end.status !== ibv.IBV_WC_WR_FLUSH_ERR);
  return {
    link,
    from,
    to,
    sends,
    arrivals,
    flushedReceives: receives.filter(({ end }) => end.status === ibv.IBV_WC_WR_FLUSH_ERR),
    brought: broughtBy(story, from, sends, arrivals),
  };
}

function receivesOf(story: Story, { program, qp, seen }: End): ReceiveHistory[] {
  const plans = new Map<number, ReceivePlan>();
  for (const step of [...story.programs[program]!.early, ...story.programs[program]!.steps])
    if (step.do === 'receive' || step.do === 'receiveShared')
      for (const plan of step.wrs) plans.set(plan.id, plan);
  return seen.completions.flatMap((end) => {
    const plan = plans.get(end.id);
    return plan === undefined || end.qp !== qp ? [] : [{ plan, end, roomBytes: lengthOf(plan.sges) }];
  });
}

function broughtBy(
  story: Story,
  from: End,
  sends: readonly SendHistory[],
  arrivals: readonly ReceiveHistory[],
): (SendHistory | undefined)[] {
  if (from.plan.transport === 'RC') return inOrder(sends, arrivals);
  return isDisordered(story)
    ? inAnyOrder(sends, arrivals, from, copiesOf(story))
    : asSubsequence(sends, arrivals, from);
}

/** RC: the k-th message that consumes a receive completes the k-th consumed receive. */
function inOrder(
  sends: readonly SendHistory[],
  arrivals: readonly ReceiveHistory[],
): (SendHistory | undefined)[] {
  const consuming = sends.filter(({ plan }) => consumesReceive(plan.opcode));
  return arrivals.map((_, index) => consuming[index]);
}

/** UC and UD: messages may be missing, but none is foreign, duplicated, or out of order. */
function asSubsequence(
  sends: readonly SendHistory[],
  arrivals: readonly ReceiveHistory[],
  from: End,
): (SendHistory | undefined)[] {
  const consuming = sends.filter(({ plan }) => consumesReceive(plan.opcode));
  let next = 0;
  return arrivals.map((arrival) => {
    const left = consuming.slice(next);
    const bySize = left.filter((sent) => isOfSize(sent, arrival, from));
    // Prefers a message with the right bytes; otherwise one of the right size, whose bytes their judge compares.
    const found = bySize.find((sent) => hasBytes(sent, arrival, from)) ?? bySize[0];
    if (found !== undefined) next = consuming.indexOf(found) + 1;
    return found;
  });
}

/** UC and UD on a cable that duplicates and reorders: any message, and no more of them twice than were duplicated. */
function inAnyOrder(
  sends: readonly SendHistory[],
  arrivals: readonly ReceiveHistory[],
  from: End,
  copiesMax: number,
): (SendHistory | undefined)[] {
  const consuming = sends.filter(({ plan }) => consumesReceive(plan.opcode));
  const used = new Set<SendHistory>();
  let copiesLeft = copiesMax;
  return arrivals.map((arrival) => {
    const bySize = consuming.filter((sent) => isOfSize(sent, arrival, from) && isOfKind(sent, arrival));
    const byBytes = bySize.filter((sent) => hasBytes(sent, arrival, from));
    const fresh = (all: readonly SendHistory[]): SendHistory | undefined =>
      all.find((sent) => !used.has(sent));
    let found = fresh(byBytes);
    if (found === undefined && copiesLeft > 0) {
      found = byBytes[0];
      if (found !== undefined) copiesLeft--;
    }
    found ??= fresh(bySize);
    if (found !== undefined) used.add(found);
    return found;
  });
}

const skippedOf = ({ plan }: End): number => (plan.transport === 'UD' ? grhBytes : 0);

const isOfSize = ({ plan, lengthBytes }: SendHistory, { end }: ReceiveHistory, from: End): boolean =>
  end.status !== ibv.IBV_WC_SUCCESS ||
  (end.byteLen === lengthBytes + skippedOf(from) &&
    (end.flags & ibv.IBV_WC_WITH_IMM) === (plan.imm === undefined ? 0 : ibv.IBV_WC_WITH_IMM) &&
    (plan.imm === undefined || end.imm === plan.imm));

/**
 * Whether a receive's completion matches this message: consumed by a SEND or a WRITE, with immediate data or without.
 */
const isOfKind = ({ plan }: SendHistory, { end }: ReceiveHistory): boolean =>
  end.status !== ibv.IBV_WC_SUCCESS ||
  (end.opcode === receiveOpcodeOf(plan.opcode) &&
    (end.flags & ibv.IBV_WC_WITH_IMM) === (plan.imm === undefined ? 0 : ibv.IBV_WC_WITH_IMM));

function hasBytes({ plan, post }: SendHistory, { end }: ReceiveHistory, from: End): boolean {
  if (end.bytes === undefined || plan.opcode === ibv.IBV_WR_RDMA_WRITE_WITH_IMM) return true;
  const due = gatheredOf(from.seen, from.program, plan.sges, post.fromPs);
  return firstDifference(Buffer.from(end.bytes, 'base64').subarray(skippedOf(from)), due) < 0;
}

/** Requests to send of a node's players that their programs saw end in SUCCESS. */
export const successesOf = ({ story, seen }: Played, node: number): number =>
  story.programs.reduce((sum, plan, program) => {
    const { posts = [], completions = [] } = (plan.node === node && seen[program]) || {};
    const posted = new Set(posts.map(({ id }) => id));
    return sum + completions.filter((one) => posted.has(one.id) && one.status === ibv.IBV_WC_SUCCESS).length;
  }, 0);
