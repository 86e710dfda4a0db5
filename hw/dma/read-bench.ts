/** Helpers for the specs of the read engine: requesters whose reports are recorded. */
import type { Cycles } from '../../base/index.ts';
import type { DmaBench } from './dma-bench.ts';

export interface Report {
  readonly requester: number;
  readonly cookie: number;
  readonly status: number;
  readonly cycle: Cycles;
}

/**
 * Adds this many requesters to the bench's read engine.
 * @param spaceCycles by requester, receives the cycles at which it had room again; left out: not recorded
 * @returns the list of their reports
 */
export function withRequesters(
  bench: DmaBench,
  count: number,
  fifoDepth = 8,
  weights: readonly number[] = [],
  spaceCycles: readonly number[][] = [],
): Report[] {
  const reports: Report[] = [];
  for (let requester = 0; requester < count; requester++) {
    const options = {
      name: `r${requester}`,
      trafficClass: 3 + requester,
      fifoDepth,
      weight: weights[requester] ?? 1,
    };
    bench.reads.addRequester(options, {
      done: (cookie, status, cycle) => reports.push({ requester, cookie, status, cycle }),
      space: () => spaceCycles[requester]?.push(bench.domain.cycle),
    });
  }
  return reports;
}
