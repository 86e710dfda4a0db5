/**
 * Over iWARP a WRITE or SEND completes when TCP has it, before the peer has (RFC 5040, 5.1). A READ of no bytes after it is answered when
 * everything before it was handed to placement (RFC 5040, 5.5): with its completion the messages have crossed the cable.
 */
import type { PerfLink } from './perf-link.ts';

/** Waits until the peer has all messages of this side that have completed, if completions do not say so. */
export async function confirmArrival({ completesEarly, streams, sends }: PerfLink): Promise<void> {
  if (!completesEarly) return;
  for (const stream of streams) stream.postEmptyRead();
  for (let left = streams.length; left > 0; ) left -= sends.checked(await sends.arrival());
}
