/** Computes how long programs wait for events that may never occur, by the attributes of the story's QPs. */
import { psPerMs, psPerNs, psPerSecond } from '../base/index.ts';
import type { ParameterValues } from '../machine/profile/index.ts';
import { lossesOf } from './cable-faults.ts';
import { mayDropFrames } from './ethernet-cable.ts';
import { isOnDemandArea, lengthOf, mtuBytes, type QpPlan, type Story, sendsOf } from './story.ts';
import { rnrDelayPs } from './verbs-model.ts';

/** Time for everything that no attribute bounds: commands, the peers' set-up, slow hardware. */
export const basePatiencePs = 200 * psPerMs;

/** IBTA 9.7.6.1.3: a time-out of code t lasts between one and four times 4.096 µs × 2^t. */
const ackTimeoutUnitNs = 4096;
/** The standard's longest ACK timeout bounds all others. */
const ackTimeoutMaxPs = ackTimeoutUnitNs * psPerNs * 2 ** 31;

/**
 * Returns the shortest duration of a timeout of this code; 0 for none.
 * @param set of the story: a card may count in another unit than the standard's, and have a least code
 */
export function ackTimeoutPs(code: number, set: ParameterValues = {}): number {
  if (code === 0) return 0;
  const unitPs = Number(set['hca.ackTimeoutUnitNs'] ?? ackTimeoutUnitNs) * psPerNs;
  return Math.min(unitPs * 2 ** Math.max(code, Number(set['hca.ackTimeoutCodeMin'] ?? 1)), ackTimeoutMaxPs);
}

/** The longest RNR delay has code 0 (IBTA 9.7.5.2.8, table 45). */
const rnrDelayMaxPs = ({ set }: Story): number => rnrDelayPs(0, set);
const pageBytes = 4096;

/**
 * Longest time without progress, by the attributes: all retries of the slowest QP, each after at most four timeouts,
 * and all RNR delays; one more of these for each page on demand that a message may meet; one timeout for each packet if
 * the cable stays bad; a second to resolve a neighbour again if frames may be missing; and a margin for slow hardware.
 */
export function patienceOf(story: Story): number {
  let most = 0;
  for (const { qps } of story.programs)
    for (const { transport, timeout, retryCount, rnrRetry } of qps)
      if (transport === 'RC')
        most = Math.max(
          most,
          4 * (retryCount + 2) * ackTimeoutPs(timeout, story.set) + (rnrRetry + 2) * rnrDelayMaxPs(story),
        );
  const hasDemand = story.programs.some(({ areas }) => areas.some(isOnDemandArea));
  return (
    basePatiencePs +
    most +
    (hasDemand ? messagePagesMax(story) * rnrDelayMaxPs(story) : 0) +
    (Number.isFinite(lossesOf(story)) ? 0 : badCablePs(story)) +
    (mayDropFrames(story) ? psPerSecond : 0)
  );
}

/** On a cable that stays bad each packet of the longest message may need a timeout of its own. */
function badCablePs(story: Story): number {
  let most = 0;
  for (const { program, qp, plan } of sendsOf(story)) {
    const { transport, mtu, timeout } = story.programs[program]!.qps[qp]!;
    if (transport !== 'RC') continue;
    const packets = Math.ceil(lengthOf(plan.sges) / mtuBytes(mtu));
    most = Math.max(most, packets * 4 * ackTimeoutPs(timeout, story.set));
  }
  return most;
}

/** Limit of pages that the longest message covers, also if it is gathered or scattered in pieces. */
function messagePagesMax(story: Story): number {
  const pages = [...sendsOf(story)].map(({ plan }) => lengthOf(plan.sges) / pageBytes + 2 * plan.sges.length);
  return Math.ceil(Math.max(0, ...pages));
}

/** Factor by which a program waits longer for its peers than for its own requests. */
export const peerPatienceFactor = 16;
/** Limit of RNR NAKs during one wait: each takes some fifteen steps of a story's 25 million … */
const rnrNaksMax = 500_000;
/** … and three thousand if long requests follow the refused one, and are retransmitted with it. */
const longRnrNaksMax = 4000;

/**
 * Limits RNR NAKs. If packets arrive twice or operations are refused, a receive may be missing permanently, and a peer
 * with unlimited RNR retries then retransmits until the programs lose patience; if packets get lost it retransmits for
 * a timeout of the program that must post the receive. In stories with long timeouts it retransmits less often.
 */
export function withBearableRnr(story: Story): Story {
  const { climate, programs, set } = story;
  if (climate !== 'broken' && climate !== 'lossy') return story;
  const longestPs = Math.max(
    ...programs.flatMap(({ qps }) =>
      qps.map(({ transport, timeout }) => (transport === 'RC' ? 4 * ackTimeoutPs(timeout, set) : 0)),
    ),
  );
  const forGoodPs = climate === 'broken' ? (peerPatienceFactor * patienceOf(story)) / rnrNaksMax : 0;
  const leastPs = Math.max(forGoodPs, longestPs / longRnrNaksMax);
  const isEndless = programs.some(({ qps }) =>
    qps.some(({ transport, rnrRetry }) => transport === 'RC' && rnrRetry === 7),
  );
  if (!isEndless) return story;
  const slowed = (qp: QpPlan): QpPlan =>
    rnrDelayPs(qp.rnrTimer, set) >= leastPs ? qp : { ...qp, rnrTimer: codeOfAtLeast(leastPs, story) };
  return {
    ...story,
    programs: programs.map((program) => ({ ...program, qps: program.qps.map(slowed) })),
  };
}

/** Returns the code of the shortest delay that is long enough; code 0, the longest, if none is. */
function codeOfAtLeast(ps: number, { set }: Story): number {
  for (let code = 1; code < 32; code++) if (rnrDelayPs(code, set) >= ps) return code;
  return 0;
}
