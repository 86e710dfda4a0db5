/** Groups A and J: logs of perftest. */
import type { PerfTestName, Workload } from '../../workloads/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Point } from '../points.ts';

/** Path MTU of a pair, in bytes. */
const mtuBytes = 2048;
/** Enough for a median and a minimum: after the first, all messages take equally long. */
const latencyIterations = 100;

const latencyPoint =
  (test: PerfTestName) =>
  (row: Measurement): Point[] => {
    const size = test === 'atomic-lat' ? {} : { size: circumstance(row, 'size') };
    const iters = Math.max(8, Math.min(latencyIterations, Math.floor(2 ** 26 / (size.size ?? 8))));
    const workload: Workload = { test, ...size, iters, mtu: mtuBytes };
    return [{ machine: { profile: 'connectx3-qdr-fitted' }, workload: { kind: 'perf', test: workload } }];
  };

/** @param hasMtu whether the source states the path MTU; else it is the port's */
const bandwidthPoint =
  (test: PerfTestName, profile = 'connectx3-qdr-fitted', hasMtu = true) =>
  (row: Measurement): Point[] => {
    const workload: Workload = {
      test,
      ...(test === 'atomic-bw' ? {} : { size: circumstance(row, 'size') }),
      ...(hasMtu ? { mtu: mtuBytes } : {}),
    };
    return [{ machine: { profile }, workload: { kind: 'perf', test: workload } }];
  };

/** Bandwidths of whole packets are ceilings. */
const bandwidthTolerance = (row: Measurement) => (circumstance(row, 'size') >= mtuBytes ? 'ceiling' : 'rate');

const verbs = ['write', 'send', 'read'] as const;

const latencies = verbs.flatMap((verb): RunFamily[] => {
  const of = (metric: RegExp) => ({ group: 'A', workload: new RegExp(`^ib_${verb}_lat`), metric });
  const common = {
    workload: `ib_${verb}_lat, MTU 2048`,
    points: latencyPoint(`${verb}-lat`),
    tolerance: 'rate',
    over: 'size',
  } as const;
  return [
    { name: `${verb} latency, median`, of: of(/t_typical/), ...common, figure: 'typicalUs' },
    { name: `${verb} latency, least`, of: of(/t_min/), ...common, figure: 'minUs', suspects: ['spread'] },
  ];
});

const rates = verbs.flatMap((verb): RunFamily[] => {
  const of = (metric: RegExp) => ({ group: 'A', workload: new RegExp(`^ib_${verb}_bw`), metric });
  const common = {
    workload: `ib_${verb}_bw, one QP, MTU 2048`,
    points: bandwidthPoint(`${verb}-bw`),
    over: 'size',
  } as const;
  return [
    { name: `${verb} message rate`, of: of(/message rate/), ...common, figure: 'mops', tolerance: 'rate' },
    {
      name: `${verb} bandwidth`,
      of: of(/bandwidth/),
      ...common,
      figure: 'mibPerSecond',
      tolerance: bandwidthTolerance,
    },
  ];
});

const atomics: RunFamily[] = [
  {
    name: 'atomic latency, median',
    of: { group: 'A', workload: /^ib_atomic_lat/, metric: /t_typical/ },
    workload: 'ib_atomic_lat',
    points: latencyPoint('atomic-lat'),
    figure: 'typicalUs',
    tolerance: 'rate',
  },
  {
    name: 'atomic latency, least',
    of: { group: 'A', workload: /^ib_atomic_lat/, metric: /t_min/ },
    workload: 'ib_atomic_lat',
    points: latencyPoint('atomic-lat'),
    figure: 'minUs',
    tolerance: 'rate',
  },
  {
    name: 'atomic rate',
    of: { group: 'A', workload: /^ib_atomic_bw/ },
    workload: 'ib_atomic_bw, one QP',
    points: bandwidthPoint('atomic-bw'),
    figure: 'mops',
    tolerance: 'rate',
  },
];

const gen3Ceilings = verbs.map(
  (verb): RunFamily => ({
    name: `${verb} bandwidth at Gen3 x8`,
    of: { group: 'J', workload: new RegExp(`^ib_${verb}_bw`) },
    workload: `ib_${verb}_bw of 1 MiB, which the slot limits`,
    points: bandwidthPoint(`${verb}-bw`, 'connectx5-100gbe', false),
    figure: 'gbps',
    tolerance: 'ceiling',
  }),
);

export const perftestFamilies: readonly Family[] = [...latencies, ...atomics, ...rates, ...gen3Ceilings];
