/** Lanes of a fabric's flows that send nothing: their service level leads to VL15, or their lane has no weight. */
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type FlowArgs, flowsOf } from '../workloads/index.ts';

/** Levels that lead to it have no data lane: IBTA vol 1, 7.6.6. */
const managementLane = 15;

/** Says which, or nothing: with one lane, tables have no effect. */
export function closedLanes(
  args: FlowArgs,
  { wire, lanes }: Pick<MachineConfig, 'wire' | 'lanes'>,
): string | undefined {
  const laneCount = Number(wire.dataVls);
  if (laneCount === 1) return undefined;
  const slToVl: Readonly<Record<string, number>> = lanes.slToVl;
  const [low, high]: readonly Readonly<Record<string, number>>[] = [lanes.low, lanes.high];
  const levels = [...new Set(flowsOf(args).map(({ serviceLevel = 0 }) => serviceLevel))];
  const reasons = levels.flatMap((level) => {
    const vl = slToVl[`sl${level}`]!;
    if (vl === managementLane)
      return [`Ports discard packets of service level ${level}: lanes.slToVl.sl${level} is ${vl}`];
    const lane = vl % laneCount;
    if (low![`vl${lane}`] !== 0 || high![`vl${lane}`] !== 0) return [];
    return [
      `Packets of service level ${level} never leave: lanes.low.vl${lane} and lanes.high.vl${lane} are 0`,
    ];
  });
  return reasons.length === 0 ? undefined : reasons.join('. ');
}
