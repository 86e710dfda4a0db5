/**
 * Control during traffic: send queues drained and started again, limits of SRQs, numbers of QPs that lie far apart, regions
 * registered again under other keys, QPs that do not allow all that their peers ask for. Added to a finished story, so that the
 * rest of it stays as it was.
 */
import type { Random } from '../sim/index.ts';
import {
  IBV_ACCESS_REMOTE_ATOMIC,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_WR_ATOMIC_CMP_AND_SWP,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_RDMA_WRITE_WITH_IMM,
} from '../userlib/index.ts';
import {
  isCurrent,
  type LinkEnd,
  type ProgramPlan,
  patternInto,
  peerOfQp,
  type Step,
  type Story,
} from './story.ts';

/** Numbers that differ in no low bit look equal to a block that uses the low bits only. */
const qpnGaps = [255, 1023, 2047];

/** @returns the story, in some cases with more of control */
export function withControl(random: Random, story: Story): Story {
  const hasQuiesces = random.chance(0.25);
  const hasLimits = random.chance(0.5);
  const hasGap = random.chance(0.04);
  const gap = qpnGaps[random.below(qpnGaps.length)]!;
  const renews = random.chance(0.5);
  const sleeps = random.chance(0.5);
  const postsWhileStopped = random.chance(0.6);
  const hasLongestDelay = random.chance(0.06);
  const programs = story.programs.map((plan, program): ProgramPlan => {
    const posted = postsWhileStopped ? withPostsWhileStopped(plan) : plan.steps;
    let turn = 0;
    const steps = posted.flatMap((step): Step[] => {
      if (step.do === 'turn') turn = step.turn;
      return [
        step.do === 'deregister' && renews ? { ...step, isRenewed: true } : step,
        ...(hasQuiesces && random.chance(0.08) ? quiesce(random, plan, turn) : []),
        ...(hasLimits && random.chance(0.1) ? limit(random, plan) : []),
        ...(sleeps && step.do === 'post' && random.chance(0.3) ? sleep(plan, step.qp) : []),
      ];
    });
    const qps = hasLongestDelay ? plan.qps.map((qp) => ({ ...qp, rnrTimer: 0 })) : plan.qps;
    return { ...plan, qps, steps, qpnGap: hasGap && program === passerOf(story, plan.node) ? gap : 0 };
  });
  const interval = sleeps && random.chance(0.4) ? { 'driver.eqUpdateInterval': 1 + random.below(2) } : {};
  const controlled = { ...story, set: { ...interval, ...story.set }, programs };
  const matching = withMatches(random, controlled);
  return story.climate === 'flawed' && random.chance(0.3) ? withoutRight(random, matching) : matching;
}

/** The one program of a node that makes so many QPs: those of several at once do not fit memory. */
const passerOf = ({ programs }: Story, node: number): number =>
  programs.findIndex((plan) => plan.node === node && plan.qps.length > 1);

/** Lets half of the COMPARE_SWAPs compare with what the word holds at first, or with what another one has put there. */
function withMatches(random: Random, story: Story): Story {
  const swapped = new Map<string, string>();
  const first = (program: number, area: number, offset: number): string => {
    const word = new Uint8Array(8);
    patternInto(word, program, area, 0, offset);
    return Buffer.from(word).readBigUInt64LE().toString(16);
  };
  const programs = story.programs.map(
    (plan, program): ProgramPlan => ({
      ...plan,
      steps: plan.steps.map((step): Step => {
        if (step.do !== 'post') return step;
        const peer = peerOfQp(story, program, step.qp);
        const wrs = step.wrs.map((wr) => {
          if (wr.opcode !== IBV_WR_ATOMIC_CMP_AND_SWP || wr.remote === undefined || peer === undefined)
            return wr;
          const { area, offset } = wr.remote;
          const place = `${peer.program}.${area}.${offset}`;
          const known = [first(peer.program, area, offset), swapped.get(place) ?? wr.compareAdd!];
          if (wr.swap !== undefined) swapped.set(place, wr.swap);
          return random.chance(0.5) ? { ...wr, compareAdd: known[random.below(2)]! } : wr;
        });
        return { ...step, wrs };
      }),
    }),
  );
  return { ...story, programs };
}

const requestsByRight = new Map<number, readonly number[]>([
  [IBV_ACCESS_REMOTE_READ, [IBV_WR_RDMA_READ]],
  [IBV_ACCESS_REMOTE_WRITE, [IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM]],
  [IBV_ACCESS_REMOTE_ATOMIC, [IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD]],
]);

/** One QP of a reliable connection allows one thing less, whatever the keys say. */
function withoutRight(random: Random, story: Story): Story {
  const link = story.links[random.below(story.links.length)];
  if (link === undefined) return story;
  const side = random.below(2);
  const strict = link.ends[side]!;
  const asker = link.ends[1 - side]!;
  const rights = [...requestsByRight.keys()];
  const right = rights[random.below(rights.length)]!;
  if (story.programs[strict.program]!.qps[strict.qp]!.transport !== 'RC') return story;
  const isRefused = (opcode: number): boolean => requestsByRight.get(right)!.includes(opcode);
  const programs = story.programs.map((plan, program): ProgramPlan => {
    const isOf = (end: LinkEnd, qp: number): boolean => end.program === program && end.qp === qp;
    return {
      ...plan,
      qps: plan.qps.map((qp, index) => (isOf(strict, index) ? { ...qp, access: qp.access & ~right } : qp)),
      steps: plan.steps.map((step) =>
        step.do === 'post' && isOf(asker, step.qp)
          ? {
              ...step,
              wrs: step.wrs.map((wr) => (isRefused(wr.opcode) ? { ...wr, flaw: 'qpRight' } : wr)),
            }
          : step,
      ),
    };
  });
  return { ...story, programs };
}

function sleep({ cqs, qps }: ProgramPlan, qp: number): Step[] {
  const cq = qps[qp]!.sendCq;
  return cqs[cq]!.hasChannel ? [{ do: 'awaitAll', cq }] : [];
}

/** What follows a stop, a pause and a start is posted before the start, where the queue has room for it. */
function withPostsWhileStopped({ qps, steps }: ProgramPlan): Step[] {
  const moved = [...steps];
  for (let at = 0; at + 3 < moved.length; at++) {
    const [stop, pause, start, post] = moved.slice(at, at + 4);
    if (stop?.do !== 'modify' || stop.to !== 'SQD' || pause === undefined) continue;
    if (start?.do !== 'modify' || start.to !== 'RTS' || post?.do !== 'post' || post.qp !== stop.qp) continue;
    if (post.wrs.length > qps[post.qp]!.maxSendWr >> 1) continue;
    moved.splice(at, 4, { do: 'drain', outstanding: 0 }, stop, pause, post, start);
    at += 4;
  }
  return moved;
}

function quiesce(random: Random, plan: ProgramPlan, turn: number): Step[] {
  if (plan.qps.length === 0) return [];
  const qp = random.below(plan.qps.length);
  return plan.qps[qp]!.transport === 'RC' && isCurrent(plan, qp, turn) ? [{ do: 'quiesce', qp }] : [];
}

function limit(random: Random, { srqs }: ProgramPlan): Step[] {
  if (srqs.length === 0) return [];
  const srq = random.below(srqs.length);
  return [{ do: 'limitShared', srq, limit: random.below(srqs[srq]!.maxWr + 1) }];
}
