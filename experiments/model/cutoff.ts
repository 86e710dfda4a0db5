/**
 * Finds the size at which one way to move a message becomes cheaper than another, and the resulting cut-off of the
 * messaging layer.
 *
 *     grid of sizes ─► last change of the cheaper way ─► bisection between the two ─► first size at which the other wins
 */

import type { MachineConfig } from '../../machine/profile/index.ts';
import type { MessagingConfig } from '../../userlib/messaging/index.ts';
import { messageTerms, type Way } from './messages.ts';
import { Path } from './path.ts';
import { totalPs } from './terms.ts';
import type { WaitingBy } from './waiting.ts';

/** Latency in picoseconds of a message of this many bytes. */
export type LatencyOf = (lengthBytes: number) => number;

export interface SizeRange {
  readonly least: number;
  readonly most: number;
}

/** Sizes of {@link cutoffOf}'s search. */
const searched: SizeRange = { least: 64, most: 16 * 2 ** 20 };

/** Terms of the formula for one method. */
export function formulaOf(
  config: MachineConfig,
  messaging: MessagingConfig,
  waiting: WaitingBy,
  way: Way,
): LatencyOf {
  const plan = { path: new Path(config), messaging, waiting };
  return (lengthBytes) => totalPs(messageTerms(plan, way, lengthBytes));
}

/** Sizes from least to most, each twice the previous one. */
export function doublings({ least, most }: SizeRange): number[] {
  const sizes: number[] = [];
  for (let size = least; size < most; size *= 2) sizes.push(size);
  return [...sizes, most];
}

/**
 * The size from which on `second` is cheaper, up to the end of the range.
 * @returns undefined if it is not cheaper even at the end; the range's least size if it is cheaper from there on
 */
export function crossingOf(first: LatencyOf, second: LatencyOf, range: SizeRange): number | undefined {
  const wins = (size: number): boolean => second(size) < first(size);
  const sizes = doublings(range);
  if (!wins(range.most)) return undefined;
  const lastLoss = sizes.findLastIndex((size) => !wins(size));
  if (lastLoss < 0) return range.least;
  let loses = sizes[lastLoss]!;
  let high = sizes[lastLoss + 1]!;
  while (high - loses > 1) {
    const middle = Math.floor((loses + high) / 2);
    if (wins(middle)) high = middle;
    else loses = middle;
  }
  return high;
}

/** The largest message that is cheaper to copy: the default cut-off of a channel. */
export function cutoffOf(config: MachineConfig, messaging: MessagingConfig, waiting: WaitingBy): number {
  const way: Way = messaging.cachedRegions > 0 ? 'cached' : 'onTheFly';
  const eager = formulaOf(config, messaging, waiting, 'eager');
  const crossing = crossingOf(eager, formulaOf(config, messaging, waiting, way), searched);
  return crossing === undefined ? messaging.eagerBytes : Math.max(1, crossing - 1);
}

/**
 * The configuration of a program's channels: a cut-off of 0 is computed from the machine's cost profile, and none
 * exceeds the eager buffers.
 */
export function messagingConfigOf(
  config: MachineConfig,
  waiting: WaitingBy,
  changes: Partial<MessagingConfig> = {},
): MessagingConfig {
  const messaging = { ...config.messaging, ...changes };
  const cutoffBytes = messaging.cutoffBytes || cutoffOf(config, messaging, waiting);
  return { ...messaging, cutoffBytes: Math.min(messaging.eagerBytes, cutoffBytes) };
}
