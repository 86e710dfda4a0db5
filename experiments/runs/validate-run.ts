/** One point of `hca validate`: a whole simulation. Also the task of the pool's workers, which receive and return plain data. */
import type { MachineOptions } from '../../machine/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { type Figures, measure, type PerfPoint, type Point } from '../validate/index.ts';
import { type BandwidthResult, type LatencyResult, perfArgsOf } from '../workloads/index.ts';
import runPerf from './perf-run.ts';

/** A point, and parameters changed in addition to its own, to try corrections. */
export interface ValidateOrder {
  readonly point: Point;
  readonly set: NonNullable<MachineOptions['set']>;
}

/** The machine of an order: the changes override the point's own values. */
export const machineOf = ({ point: { machine }, set }: ValidateOrder) =>
  ({
    profile: machine.profile,
    set: { ...machine.set, ...set },
    ...(machine.topology === undefined ? {} : { topology: parsedTopology(machine.topology) }),
  }) satisfies MachineOptions;

export default async function runPoint(order: ValidateOrder): Promise<Figures> {
  const { workload } = order.point;
  const options = machineOf(order);
  return workload.kind === 'perf' ? perfFigures(workload, options) : measure(workload, options);
}

async function perfFigures({ test }: PerfPoint, machine: MachineOptions): Promise<Figures> {
  const args = perfArgsOf(test);
  const { result } = await runPerf({ machine, args });
  if (args.isLatency) return latencyFigures(result as LatencyResult);
  const rates = rateFigures(result as BandwidthResult);
  return 'averagePs' in result ? { ...rates, averageUs: result.averagePs / 1e6 } : rates;
}

const latencyFigures = ({ typicalPs, minPs, p99Ps }: LatencyResult): Figures => ({
  typicalUs: typicalPs / 1e6,
  minUs: minPs / 1e6,
  p99Us: p99Ps / 1e6,
  roundTripUs: (2 * typicalPs) / 1e6,
});

const rateFigures = ({ messagesPerSecond, averageBytesPerSecond }: BandwidthResult): Figures => ({
  mops: messagesPerSecond / 1e6,
  mibPerSecond: averageBytesPerSecond / 2 ** 20,
  gbps: (averageBytesPerSecond * 8) / 1e9,
});
