/** Activity of a fabric's cables at one instant: the share of a short time around it for which a port sent. */
import type { Spans } from '../protocol.ts';

/** Time of the spans between two instants. */
export function sharedTime(spans: Spans, fromPs: number, toPs: number): number {
  let sumPs = 0;
  for (let at = firstAfter(spans, fromPs); at < spans.length && spans[at]! < toPs; at += 2)
    sumPs += Math.min(toPs, spans[at + 1]!) - Math.max(fromPs, spans[at]!);
  return sumPs;
}

/** Whether an instant lies in a span. */
export const isWithin = (spans: Spans, atPs: number): boolean => sharedTime(spans, atPs, atPs + 1) > 0;

/** Index of the first span that ends after an instant. */
function firstAfter(spans: Spans, atPs: number): number {
  let [low, high] = [0, spans.length / 2];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (spans[2 * middle + 1]! > atPs) high = middle;
    else low = middle + 1;
  }
  return 2 * low;
}
