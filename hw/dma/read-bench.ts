/** What the specs of the read engine share: requesters whose reports are noted. */
import type { Cycles } from '../../base/units.ts';
import type { DmaBench } from './dma-bench.ts';

export interface Report {
  readonly requester: number;
  readonly cookie: number;
  readonly status: number;
  readonly cycle: Cycles;
}

/** Adds so many requesters to the bench's read engine. Returns where their reports go. */
export function withRequesters(
  bench: DmaBench,
  count: number,
  fifoDepth = 8,
  weights: readonly number[] = [],
): Report[] {
  const reports: Report[] = [];
  for (let requester = 0; requester < count; requester++) {
    const options = {
      name: `r${requester}`,
      trafficClass: 3 + requester,
      fifoDepth,
      weight: weights[requester] ?? 1,
    };
    bench.reads.addRequester(options, (cookie, status, cycle) =>
      reports.push({ requester, cookie, status, cycle }),
    );
  }
  return reports;
}
