/** Figures of a whole fabric, for a sweep: those of flows, outputs and hosts together, whose number differs between points. */
import type { Report } from '../../machine/index.ts';
import { nodeNameOf } from './fabric-figures.ts';
import type { FabricRow } from './fabric-run.ts';

export interface FabricTotals
  extends Pick<
    FabricRow,
    'bytesPerSecond' | 'cableBytesPerSecond' | 'fairness' | 'durationPs' | 'elapsedPs'
  > {
  /** Left out for an all-reduce and for parameter servers. */
  readonly slowestBytesPerSecond?: number;
  readonly fastestBytesPerSecond?: number;
  /** Times of the messages of all flows, from post to completion. */
  readonly medianPs: number;
  readonly p99Ps: number;
  readonly maxPs: number;
  /** The output that waits longest for credits or the end of a pause: its share of the time of the traffic. */
  readonly farWaitShare: number;
  /** The same of the hosts' own ports. */
  readonly senderWaitShare: number;
  /** Most bytes that waited at one input of a switch. */
  readonly heldBytesMax: number;
  /** Present for parameter servers: the medians of both phases of a round, and the port that sends longest with its share of the time. */
  readonly pushPs?: number;
  readonly pullPs?: number;
  readonly busiestPort?: string;
  readonly busiestShare?: number;
  /** Present for SENDs: QPs and receive queues of a host. */
  readonly qpCount?: number;
  readonly receiveQueueCount?: number;
  readonly drops: number;
  readonly marks: number;
  /** Hits, misses and the like of each cache of the cards, over all hosts. */
  readonly caches: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export function fabricTotalsOf(row: FabricRow): FabricTotals {
  const { bytesPerSecond, cableBytesPerSecond, fairness, durationPs, elapsedPs, flows, outputs } = row;
  const rates = flows.map((flow) => flow.bytesPerSecond);
  return {
    ...{ bytesPerSecond, cableBytesPerSecond, fairness, durationPs, elapsedPs },
    ...(rates.length === 0
      ? {}
      : { slowestBytesPerSecond: Math.min(...rates), fastestBytesPerSecond: Math.max(...rates) }),
    ...row.messageTimes,
    ...row.phases,
    ...row.queues,
    ...busiestFigures(row),
    farWaitShare: Math.max(0, ...outputs.map(({ farWaitShare }) => farWaitShare)),
    senderWaitShare: row.hostWaitShare,
    heldBytesMax: Math.max(0, ...outputs.map(({ bufferedBytesMax }) => bufferedBytesMax)),
    drops: outputs.reduce((sum, { drops }) => sum + drops, 0),
    marks: outputs.reduce((sum, { marks }) => sum + marks, 0),
    caches: cacheSums(row.report),
  };
}

/** The busiest port by the ends of its cable. */
function busiestFigures({ busiest, report }: FabricRow): Partial<FabricTotals> {
  if (busiest === undefined) return {};
  const { from, to, busyShare } = busiest;
  return {
    busiestPort: `${nodeNameOf(report, from)} to ${nodeNameOf(report, to)}`,
    busiestShare: busyShare,
  };
}

function cacheSums({ nodes }: Pick<Report, 'nodes'>): FabricTotals['caches'] {
  const sums: Record<string, Record<string, number>> = {};
  for (const { hca } of nodes)
    for (const [cache, ledger] of Object.entries(hca.caches)) {
      sums[cache] ??= {};
      const sum = sums[cache];
      for (const [name, value] of Object.entries(ledger))
        if (typeof value === 'number') sum[name] = (sum[name] ?? 0) + value;
    }
  return sums;
}
