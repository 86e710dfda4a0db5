/**
 * The features that one story uses: each story a random part of them (swarm testing: Groce et al., ISSTA 2012), so that rare events
 * coincide.
 */
import type { Random } from '../../sim/index.ts';
import { IBV_WR_SEND } from '../../userlib/index.ts';
import type { Climate, Transport } from '../story.ts';
import { pick, some } from './choice.ts';
import { verbsOf } from './draft.ts';

interface FeatureRow {
  /** Share among the stories in whose climates it occurs. */
  readonly share: number;
  /** Climates in which it occurs; omitted: all. */
  readonly climates?: readonly Climate[];
}

const features = {
  srqs: { share: 0.25 },
  events: { share: 0.4 },
  inline: { share: 0.5 },
  lists: { share: 0.5 },
  fences: { share: 0.3 },
  peeks: { share: 0.3 },
  overlaps: { share: 0.4 },
  resizes: { share: 0.15 },
  moderation: { share: 0.2 },
  churn: { share: 0.2 },
  drains: { share: 0.6 },
  lateReceives: { share: 0.4 },
  turns: { share: 0.2 },
  windows: { share: 0.3 },
  /** Send queues are drained and started again with notification … */
  quiesces: { share: 0.25 },
  /** … or stopped while requests are posted. */
  postsWhileStopped: { share: 0.6 },
  limits: { share: 0.5 },
  /** Programs sleep until all of their requests have completed. */
  sleeps: { share: 0.5 },
  /** Numbers of QPs that differ in no low bit. */
  qpnGap: { share: 0.04 },
  longestRnrDelay: { share: 0.06 },
  /** Areas registered on demand: some of them, or all; and pages that the program returns. */
  someOnDemand: { share: 0.1 },
  allOnDemand: { share: 0.1 },
  givesBack: { share: 0.7 },
  /** Regions that are deregistered are registered once more, under other keys. */
  renewsKeys: { share: 0.5, climates: ['flawed'] },
  /** A region is deregistered right after a post. */
  suddenDeregistration: { share: 0.35, climates: ['flawed'] },
  /** One QP allows less than its peer requests. */
  strictQp: { share: 0.3, climates: ['flawed'] },
  /** One side sends requests, and some of the other's responses are lost. */
  lostAnswers: { share: 0.35, climates: ['lossy'] },
} as const satisfies Readonly<Record<string, FeatureRow>>;
export type Feature = keyof typeof features;

export interface Swarm {
  readonly features: ReadonlySet<Feature>;
  readonly transports: readonly Transport[];
  readonly verbs: ReadonlySet<number>;
  readonly sizes: 'tiny' | 'mtu' | 'large';
  readonly operations: number;
}

export function drawSwarm(random: Random, climate: Climate): Swarm {
  const rows = Object.entries<FeatureRow>(features).filter(
    ([, { share, climates }]) => (climates?.includes(climate) ?? true) && random.chance(share),
  );
  return {
    features: new Set(rows.map(([name]) => name as Feature)),
    transports: random.chance(0.6) ? ['RC'] : some(random, ['RC', 'UC', 'UD'] as const, 0.6),
    verbs: new Set(random.chance(0.5) ? verbsOf.RC : [...some(random, verbsOf.RC, 0.4), IBV_WR_SEND]),
    sizes: pick(random, ['tiny', 'mtu', 'large'] as const, [3, 5, 1]),
    operations: random.between(1, pick(random, [10, 60, 300], [3, 4, 1])),
  };
}
