/**
 * Limits of the time of packets in switches of InfiniBand, as the story has them: which may drop packets, and how old a
 * packet can be (IBTA volume 1, 18.2.5.4).
 */
import { switchesOf } from '../../../machine/topology/index.ts';
import { hasPacketFault, isOnEthernet, type PlayedFabric } from '../played.ts';

/** Codes above 19 are no limit. */
const limitPs = (code: number): number => (code > 19 ? Number.POSITIVE_INFINITY : 4_096_000 * 2 ** code);

interface Limits {
  /** Shortest HOQLife, greatest VLStallCount and LifeTimeValue of all ports. */
  readonly headPs: number;
  readonly stallCount: number;
  readonly lifetimePs: number;
}

function limitsOf({ report, story }: PlayedFabric): Limits {
  const { hoqLife, vlStallCount, lifetimeValue } = report.config.switch;
  const codes = [hoqLife, ...story.cables.flatMap((cable) => cable.hoqLife ?? [])];
  const counts = [vlStallCount, ...story.cables.flatMap((cable) => cable.vlStallCount ?? [])];
  return {
    headPs: Math.min(...codes.map(limitPs)),
    stallCount: Math.max(...counts),
    lifetimePs: limitPs(lifetimeValue),
  };
}

/** Congestion ends within a part of a millisecond, unless it is a deadlock. */
const congestionPs = 4_000_000_000;

/** Whether congestion alone may end the time of packets. */
export function mayExpire(played: PlayedFabric): boolean {
  const { headPs, lifetimePs } = limitsOf(played);
  return !isOnEthernet(played) && Math.min(headPs, lifetimePs) < congestionPs;
}

/**
 * Whether congestion alone may outlast the timers of selective repeat, which are shorter than those of IBTA 9.7.6.1.3.
 */
export function mayTimeOut({ report: { config } }: PlayedFabric): boolean {
  const { lossRecovery, retransmitLowUs, retransmitHighUs } = config.hca;
  const shortestPs = Math.min(retransmitLowUs, retransmitHighUs) * 1_000_000;
  return lossRecovery === 'selective-repeat' && shortestPs < congestionPs;
}

/** Longest packet on the slowest cable, the latency of a switch before or after it, and 60 m of cable. */
const passagePs = 4200 * 4000 + 2_000_000;

/** Longest time from a packet's passage at the cable of its sender to that at its receiver's. */
export function ageMaxPs(played: PlayedFabric): number {
  if (isOnEthernet(played) || hasPacketFault(played, 'late', 'reordered')) return Number.POSITIVE_INFINITY;
  const switches = switchesOf(played.topology).length;
  return passagePs + switches * (limitsOf(played).lifetimePs + 2 * passagePs);
}

export function judgeLimits(played: PlayedFabric): string[] {
  if (isOnEthernet(played)) return [];
  const { headPs, stallCount, lifetimePs } = limitsOf(played);
  return (played.report.switches ?? []).flatMap(({ node, ports }) => {
    const countOf = (reason: string): number =>
      ports.reduce((sum, { notForwarded }) => sum + (notForwarded[reason] ?? 0), 0);
    const [old, stalled, overdue] = [countOf('hoqLife'), countOf('vlStalled'), countOf('switchLifetime')];
    return [
      ...(old > 0 && headPs === Number.POSITIVE_INFINITY ? [`${old} drops by HOQLife without a limit`] : []),
      ...(stalled > 0 && (stallCount === 0 || old === 0)
        ? [`${stalled} drops of lanes that no drop stalled`]
        : []),
      ...(overdue > 0 && lifetimePs === Number.POSITIVE_INFINITY
        ? [`${overdue} drops by LifeTimeValue without a limit`]
        : []),
    ].map((text) => `switch ${node}: ${text}`);
  });
}
