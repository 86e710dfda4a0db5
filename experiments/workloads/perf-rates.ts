/** Computes the result of a bandwidth test from the times of its posts and completions. */
import type { BandwidthResult } from './perf-result.ts';

/**
 * The peak is the best rate over all pairs of a post and a completion, over all QPs in the order of both, as in
 * perftest (perftest_parameters.c, print_report_bw). If the number of completions equals the posts before message `i`
 * plus `m`, then `m` messages posted since have passed the link. So the peak never exceeds the link's rate.
 */
export function resultOf(
  sizeBytes: number,
  total: number,
  postedPs: readonly number[],
  doneCounts: readonly number[],
  donePs: readonly number[],
  qpCount: number,
): BandwidthResult {
  const durationPs = donePs[donePs.length - 1]! - postedPs[0]!;
  const peak = steepest(postedPs, doneCounts, donePs);
  const messagesPerSecond = (total / durationPs) * 1e12;
  return {
    iterations: total / qpCount,
    durationPs,
    peakBytesPerSecond: peak * 1e12 * sizeBytes,
    averageBytesPerSecond: messagesPerSecond * sizeBytes,
    messagesPerSecond,
  };
}

/**
 * The best of (done − i) / (its time − the time of post i): the steepest line from a point (time, number) of a post to
 * a later one of a completion. Only the lower convex hull of the posts counts; along it the slope to a completion first
 * rises and then falls, and the maximum is near that of the previous completion.
 */
function steepest(
  postedPs: readonly number[],
  doneCounts: readonly number[],
  donePs: readonly number[],
): number {
  const hull: number[] = [];
  let [best, added, place] = [0, 0, 0];
  for (let index = 0; index < doneCounts.length; index++) {
    const [done, atPs] = [doneCounts[index]!, donePs[index]!];
    // Sends have completed, and no answer has arrived.
    if (done === 0) continue;
    for (; added < done; added++) {
      while (hull.length > 1 && !isBelow(postedPs, hull.at(-2)!, hull.at(-1)!, added)) hull.pop();
      hull.push(added);
    }
    place = Math.min(place, hull.length - 1);
    const slopeFrom = (at: number): number => (done - hull[at]!) / (atPs - postedPs[hull[at]!]!);
    let slope = slopeFrom(place);
    for (; place + 1 < hull.length && slopeFrom(place + 1) >= slope; place++) slope = slopeFrom(place + 1);
    for (; place > 0 && slopeFrom(place - 1) > slope; place--) slope = slopeFrom(place - 1);
    if (slope > best) best = slope;
  }
  return best;
}

/** Whether post `middle` lies below the line from post `from` to post `to`. */
function isBelow(postedPs: readonly number[], from: number, middle: number, to: number): boolean {
  const [fromPs, middlePs, toPs] = [postedPs[from]!, postedPs[middle]!, postedPs[to]!];
  return (middle - from) * (toPs - fromPs) < (to - from) * (middlePs - fromPs);
}
