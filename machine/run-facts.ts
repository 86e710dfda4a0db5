/** Facts of how a run was computed: printed on the terminal and stored next to the report, never in it. */
import { runtime } from '../base/index.ts';
import type { PartEffort } from './partition/machine-part.ts';
import type { Partition } from './partition/placement.ts';

export interface RunFacts {
  readonly partition: Partition;
  readonly threads: number;
  readonly cpus: number;
  readonly node: string;
  readonly wallMs: number;
  /** Simulated picoseconds per picosecond of wall time. */
  readonly speed: number;
  readonly events: number;
  readonly records: number;
  readonly clockEdges: number;
  readonly turns: number;
}

export function runFactsOf(
  partition: Partition,
  threads: number,
  wallMs: number,
  nowPs: number,
  efforts: readonly PartEffort[],
): RunFacts {
  const sum = (pick: (effort: PartEffort) => number): number =>
    efforts.reduce((total, effort) => total + pick(effort), 0);
  return {
    partition,
    threads,
    cpus: navigator.hardwareConcurrency,
    node: runtime().version,
    wallMs,
    speed: wallMs === 0 ? 0 : nowPs / (wallMs * 1e9),
    events: sum(({ eventCount }) => eventCount),
    records: sum(({ recordCount }) => recordCount),
    clockEdges: sum(({ edgeCount }) => edgeCount),
    turns: sum(({ turnCount }) => turnCount),
  };
}
