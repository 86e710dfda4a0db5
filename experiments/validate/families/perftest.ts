/** Logs of perftest, of any source: the columns nic, link and params state the card, the port and the test's options. */
import type { PerfTestName, Workload } from '../../workloads/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement, statedCircumstance } from '../measurements.ts';
import type { Figures, Point } from '../points.ts';
import { knownCard, machineOf, statedMtuBytes } from './machines.ts';

/** Enough for a median and a minimum: after the first, all messages take equally long. */
const latencyIterations = 100;
/** perftest's own number, of which the tenth longest is the 99th percentile. */
const percentileIterations = 1000;

const optionsOf = (test: PerfTestName, row: Measurement): Workload => {
  const [mtu, qps] = [statedMtuBytes(row), statedCircumstance(row, 'QPs')];
  const inline = statedCircumstance(row, 'inline');
  return {
    test,
    ...(test.startsWith('atomic') ? {} : { size: circumstance(row, 'size') }),
    ...(mtu === undefined ? {} : { mtu }),
    ...(qps === undefined ? {} : { qps }),
    ...(inline === undefined ? {} : { inline }),
  };
};

const pointOf = (row: Measurement, test: Workload): Point[] => [
  { machine: machineOf(row), workload: { kind: 'perf', test } },
];

const latencyPoint =
  (test: PerfTestName, more: Partial<Workload> = {}, iterations = latencyIterations) =>
  (row: Measurement): Point[] => {
    const options = optionsOf(test, row);
    const iters = Math.max(8, Math.min(iterations, Math.floor(2 ** 26 / (options.size ?? 8))));
    return pointOf(row, { ...options, ...more, iters });
  };

const bandwidthPoint =
  (test: PerfTestName, more: Partial<Workload> = {}) =>
  (row: Measurement): Point[] =>
    pointOf(row, { ...optionsOf(test, row), ...more });

/** Bandwidths of whole packets are ceilings. */
const bandwidthTolerance = (row: Measurement) =>
  circumstance(row, 'size') >= (statedMtuBytes(row) ?? 2048) ? 'ceiling' : 'rate';

/** perftest prints MiB/s or, with --report_gbits, Gb/s. */
const bandwidthOf = ([figures]: readonly Figures[], { unit }: Measurement): number =>
  figures?.[unit === 'Gb/s' ? 'gbps' : 'mibPerSecond'] ?? Number.NaN;

const verbs = ['write', 'send', 'read'] as const;
const millions = /^(?:Mops|Mpps|M\/s)$/;
/** Connected tests, in a log named `ib_send_bw -a` or a workload of this name alone. */
const connected = (test: string) => new RegExp(`^ib_${test}(?!.*\\bUD\\b)`);

const latencies = [...verbs, 'atomic' as const].flatMap((verb): RunFamily[] => {
  const workload = connected(`${verb}_lat`);
  const of = (metric: RegExp) => ({ nic: knownCard, workload, metric, unit: /^us$/ });
  const common = {
    workload: `ib_${verb}_lat`,
    points: latencyPoint(`${verb}-lat`),
    tolerance: 'rate',
    ...(verb === 'atomic' ? {} : { over: 'size' }),
  } as const;
  return [
    { name: `${verb} latency, median`, of: of(/t_typical/), ...common, figure: 'typicalUs' },
    { name: `${verb} latency, least`, of: of(/t_min/), ...common, figure: 'minUs', suspects: ['spread'] },
    {
      name: `${verb} latency, 99th percentile`,
      of: of(/99th percentile/),
      ...common,
      points: latencyPoint(`${verb}-lat`, {}, percentileIterations),
      figure: 'p99Us',
      suspects: ['spread'],
    },
  ];
});

const rates = verbs.flatMap((verb): RunFamily[] => {
  const of = (metric: RegExp) => ({ nic: knownCard, workload: connected(`${verb}_bw`), metric });
  const common = {
    workload: `ib_${verb}_bw`,
    points: bandwidthPoint(`${verb}-bw`),
    over: 'size',
  } as const;
  return [
    {
      name: `${verb} message rate`,
      of: { ...of(/message rate/), unit: millions },
      ...common,
      figure: 'mops',
      tolerance: 'rate',
    },
    {
      name: `${verb} bandwidth`,
      of: { ...of(/bandwidth/), unit: /^(?:Gb|MiB)\/s$/ },
      ...common,
      figure: bandwidthOf,
      tolerance: bandwidthTolerance,
    },
  ];
});

const datagramLatency = (name: string, metric: RegExp, figure: string, iterations: number): RunFamily => ({
  name,
  of: { nic: knownCard, workload: /^ib_send_lat.*\bUD\b/, metric, unit: /^us$/ },
  workload: 'ib_send_lat -c UD',
  points: latencyPoint('send-lat', { connection: 'UD' }, iterations),
  figure,
  tolerance: 'rate',
  over: 'size',
});

const others: readonly RunFamily[] = [
  datagramLatency('datagram latency, median', /t_typical/, 'typicalUs', latencyIterations),
  {
    ...datagramLatency('datagram latency, 99th percentile', /99th/, 'p99Us', percentileIterations),
    suspects: ['spread'],
  },
  {
    name: 'atomic rate',
    of: { nic: knownCard, workload: /^ib_atomic_bw/, unit: millions },
    workload: 'ib_atomic_bw, one QP',
    points: bandwidthPoint('atomic-bw'),
    figure: 'mops',
    tolerance: 'rate',
  },
  {
    name: 'datagram rate',
    of: { nic: knownCard, workload: /^ib_send_bw.*\bUD\b/, metric: /message rate/, unit: millions },
    workload: 'ib_send_bw -c UD, one QP',
    points: bandwidthPoint('send-bw', { connection: 'UD' }),
    figure: 'mops',
    tolerance: 'rate',
    over: 'size',
  },
];

const otherCards: readonly Family[] = [
  {
    name: 'perftest on a ConnectX-4',
    of: { nic: /ConnectX-4/, workload: /^ib_/ },
    workload: 'perftest',
    notRun: { kind: 'card', why: 'no profile is of a ConnectX-4' },
  },
];

export const perftestFamilies: readonly Family[] = [...latencies, ...rates, ...others, ...otherCards];
