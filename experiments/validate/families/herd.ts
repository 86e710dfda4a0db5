/** Group C: HERD (SIGCOMM 2014), a ConnectX-3 at FDR among many machines. */
import { parsedWorkload } from '../../workloads/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Point, StreamPlan } from '../points.ts';
import { apt, bestOf, manyRequesters, mopsOf, shallow, stream, tuned } from './streams.ts';

const group = 'C';
/** Processes on the machine with the measured card. */
const processes = 16;
const inlineMax = 256;

const size = (row: Measurement): number => circumstance(row, 'size');

const verbLatency = (
  name: string,
  workload: RegExp,
  plan: Pick<StreamPlan, 'verb' | 'inlineBytes'>,
): RunFamily => ({
  name,
  of: { group, where: /Fig 2b/, workload },
  workload: 'one thread, one verb at a time, from the post to its completion',
  points: (row) => [stream(apt, { ...plan, window: 1, messages: 200, sizeBytes: size(row) })],
  figure: 'latencyUs',
  tolerance: 'rate',
  over: 'size',
});

const echo = (name: string, workload: RegExp, figure: string): RunFamily => ({
  name,
  of: { group, where: /Fig 2b/, workload },
  workload: 'two inlined WRITEs, there and back',
  points: (row) => [
    {
      machine: apt,
      workload: {
        kind: 'perf',
        test: { test: 'write-lat', size: size(row), iters: 100, inline: inlineMax },
      },
    },
  ],
  figure,
  tolerance: 'rate',
  over: 'size',
});

const latencies: readonly Family[] = [
  verbLatency('inlined WRITE, signalled', /^WRITE inline/, { verb: 'write', inlineBytes: inlineMax }),
  verbLatency('WRITE not inlined, signalled', /^WRITE non-inline/, { verb: 'write', inlineBytes: 0 }),
  verbLatency('READ, signalled', /^READ/, { verb: 'read', inlineBytes: 0 }),
  echo('ECHO', /^ECHO =/, 'roundTripUs'),
  echo('half an ECHO', /^ECHO\/2/, 'typicalUs'),
];

/** Many machines that write to one or read from it; also the setup of Fig 12b of group D. */
export function inboundFamilies(
  of: { readonly group: string; readonly where: RegExp },
  transports: readonly ('UC' | 'RC')[],
): Family[] {
  const writes = transports.map(
    (transport): RunFamily => ({
      name: `${of.group}: inbound WRITE ${transport}`,
      of: { ...of, workload: new RegExp(`^inbound WRITE ${transport}`) },
      workload: `${processes} QPs of a machine that stands for many write to one, at the best window`,
      points: (row) => inbound({ transport, verb: 'write', inlineBytes: inlineMax, sizeBytes: size(row) }),
      figure: bestOf,
      tolerance: 'rate',
      over: 'size',
      suspects: ['responderRate'],
    }),
  );
  return [
    ...writes,
    {
      name: `${of.group}: inbound READ`,
      of: { ...of, workload: /^inbound READ/ },
      workload: `${processes} QPs of a machine that stands for many read from one, at the best window`,
      points: (row) => inbound({ verb: 'read', sizeBytes: size(row) }),
      figure: bestOf,
      tolerance: 'rate',
      over: 'size',
    },
  ];
}

const inbound = (plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>): Point[] =>
  tuned.map((window) => stream(manyRequesters, { threads: processes, ...plan, ...window }));

const outbound = (plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>): Point =>
  stream(apt, { threads: processes, ...plan });

const outboundFamily = (
  name: string,
  workload: RegExp,
  plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>,
  suspects: NonNullable<RunFamily['suspects']> = [],
): RunFamily => ({
  name,
  of: { group, where: /Fig 4b/, workload },
  workload: `${processes} processes with one QP each, at the best window`,
  points: (row) => tuned.map((window) => outbound({ ...plan, ...window, sizeBytes: size(row) })),
  figure: bestOf,
  tolerance: 'rate',
  over: 'size',
  suspects,
});

const outgoing: readonly Family[] = [
  outboundFamily('outbound WRITE UC, inlined', /^outbound WRITE UC inline/, {
    transport: 'UC',
    verb: 'write',
    inlineBytes: inlineMax,
  }),
  outboundFamily('outbound SEND UD, inlined', /^outbound SEND UD inline/, {
    transport: 'UD',
    verb: 'send',
    inlineBytes: inlineMax,
  }),
  outboundFamily(
    'outbound WRITE UC, not inlined',
    /^outbound WRITE UC not inlined/,
    { transport: 'UC', verb: 'write' },
    ['gatherSteps'],
  ),
  outboundFamily('outbound READ', /^outbound READ RC/, { verb: 'read' }),
];

/** N processes with N QPs each; the next QP is random. */
const allToAll = (
  plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb' | 'transport'>,
  count: number,
): StreamPlan => {
  const point = stream(apt, {
    sizeBytes: 32,
    inlineBytes: inlineMax,
    threads: count,
    qpsPerThread: plan.transport === 'UD' ? 1 : count,
    order: 'random',
    ...shallow,
    ...plan,
  });
  return (point.workload as { readonly plan: StreamPlan }).plan;
};
const peers = (row: Measurement): number => circumstance(row, 'N');

const allToAllFamilies: readonly Family[] = [
  {
    name: 'all to all, inbound WRITE UC',
    of: { group, where: /Fig 6/, workload: /inbound WRITE/, params: /N=(?:1|2|4|6|8|12);/ },
    workload: 'N machines, each with a process of N QPs, write to one',
    points: (row) => [
      {
        machine: peers(row) === 1 ? apt : manyRequesters,
        workload: { kind: 'stream', plan: allToAll({ transport: 'UC', verb: 'write' }, peers(row)) },
      },
    ],
    figure: 'mops',
    tolerance: 'rate',
    over: 'N',
    suspects: ['standIn', 'responderRate'],
  },
  {
    name: 'all to all, inbound WRITE UC, 256 QPs',
    of: { group, where: /Fig 6/, workload: /inbound WRITE/, params: /N=16;/ },
    workload: '16 machines, each with a process of 16 QPs, write to one',
    notRun: {
      kind: 'machines',
      why: 'needs 16 client machines with context caches of their own; one that stands for them has 256 QPs in one cache',
    },
  },
  {
    name: 'all to all, outbound WRITE UC',
    of: { group, where: /Fig 6/, workload: /outbound WRITE/ },
    workload: 'N processes with N QPs each',
    points: (row) => [
      {
        machine: apt,
        workload: { kind: 'stream', plan: allToAll({ transport: 'UC', verb: 'write' }, peers(row)) },
      },
    ],
    figure: 'mops',
    tolerance: 'rate',
    over: 'N',
    suspects: ['sendContexts'],
  },
  {
    name: 'all to all, outbound SEND UD',
    of: { group, where: /Fig 6/, workload: /outbound SEND UD/ },
    workload: 'N processes with one QP each',
    points: (row) => [
      {
        machine: apt,
        workload: { kind: 'stream', plan: allToAll({ transport: 'UD', verb: 'send' }, peers(row)) },
      },
    ],
    figure: 'mops',
    tolerance: 'rate',
    over: 'N',
  },
];

const inlinedOf = (sizeBytes: number): Point =>
  outbound({ transport: 'UC', verb: 'write', inlineBytes: inlineMax, sizeBytes, ...stepWindow });
const stepWindow = tuned[1];
/** Sizes on either side of the first cache line of a WQE. */
const stepSizes = [4, 16, 24, 28, 32, 40] as const;

const inText: readonly Family[] = [
  {
    name: 'inbound WRITE, in the text',
    of: { group, where: /text/, workload: /^inbound WRITE$/ },
    workload: 'as Fig 3b, 16 B',
    points: () => inbound({ transport: 'UC', verb: 'write', inlineBytes: inlineMax, sizeBytes: 16 }),
    figure: bestOf,
    tolerance: 'rate',
  },
  {
    name: 'inbound READ, in the text',
    of: { group, where: /text/, workload: /^inbound READ$/ },
    workload: 'as Fig 3b, 8 B',
    points: () => inbound({ verb: 'read', sizeBytes: 8 }),
    figure: bestOf,
    tolerance: 'rate',
  },
  {
    name: 'outbound READ, in the text',
    of: { group, where: /text/, workload: /^outbound READ$/ },
    workload: 'as Fig 4b, 8 B',
    points: () => tuned.map((window) => outbound({ verb: 'read', sizeBytes: 8, ...window })),
    figure: bestOf,
    tolerance: 'rate',
  },
  {
    name: 'ECHO rate',
    of: { group, workload: /^(?:ECHO|WRITE ECHO)/, metric: /throughput/ },
    workload: 'echoes of many clients, by verb and by step of optimisation',
    notRun: {
      kind: 'machines',
      why: 'the number of clients and their windows are not stated; many machines send to one',
    },
  },
  {
    name: 'inbound WRITE of 1600 processes',
    of: { group, workload: /^inbound WRITE UC, 1600/ },
    workload: '1600 processes of 16 machines write to one',
    notRun: { kind: 'machines', why: 'needs 16 client machines with context caches of their own' },
  },
  {
    name: 'outstanding READs of a QP',
    of: { group, where: /text/, workload: /^READ outstanding/ },
    workload: 'ibv_query_device, max_qp_rd_atom',
    points: () => [{ machine: apt, workload: { kind: 'device' } }],
    figure: 'readsPerQp',
    tolerance: 'exact',
  },
  {
    name: 'collapse of outbound WRITE',
    of: { group, where: /text/, workload: /^outbound WRITE UC, N=16/ },
    workload: '256 QPs over the best of 16, 64 and 256',
    points: () =>
      [4, 8, 16].map((count) => ({
        machine: apt,
        workload: { kind: 'stream', plan: allToAll({ transport: 'UC', verb: 'write' }, count) },
      })),
    figure: (figures) => mopsOf(figures[2]) / Math.max(...figures.map(mopsOf)),
    tolerance: 'ratio',
  },
  {
    name: 'step of inlined WRITE',
    of: { group, where: /text/, workload: /^outbound WRITE limited by PIO/ },
    workload: 'the largest inlined WRITE that goes at the rate of the smallest',
    points: () => stepSizes.map(inlinedOf),
    figure: (figures) =>
      Math.max(...stepSizes.filter((_size, at) => mopsOf(figures[at]) > 0.95 * mopsOf(figures[0]))),
    tolerance: 'exact',
  },
  {
    name: 'CPU time of post_send',
    of: { group, where: /text/, workload: /^post_send/ },
    workload: 'one thread posts inlined WRITEs of 32 B one by one',
    points: () => [
      stream(apt, { transport: 'UC', verb: 'write', sizeBytes: 32, inlineBytes: inlineMax, ...shallow }),
    ],
    figure: 'postNs',
    tolerance: 'rate',
  },
];

/** Measured requests of all clients together, and requests of each that warm the caches. */
const requestsTotal = 15_000;
const warmup = 100;

/** The whole system, with all clients on one machine. */
function storeOf(row: Measurement): Point {
  const clients = circumstance(row, 'clients');
  const iters = Math.ceil(requestsTotal / clients);
  const ready = parsedWorkload('herd');
  return {
    machine: { ...apt, set: { ...apt.set, 'host.core.count': clients } },
    workload: {
      kind: 'perf',
      test: {
        ...ready,
        ...{ threads: clients, iters, warmup, servers: circumstance(row, 'servers') },
        ...{ window: circumstance(row, 'window'), gets: circumstance(row, 'gets') },
        valueSize: circumstance(row, 'values'),
      },
    },
  };
}

const wholeSystem: readonly Family[] = [
  {
    name: 'HERD, requests per second',
    of: { group, workload: /^HERD key-value store$/ },
    workload: 'the ready workload herd, all clients on one machine',
    points: (row) => [storeOf(row)],
    figure: 'mops',
    tolerance: 'rate',
    suspects: ['postsOfACore', 'linesInSlot'],
  },
  {
    name: 'HERD, mean latency',
    of: { group, workload: /^HERD key-value store, average latency/ },
    workload: 'the same, from before a request is made until its answer is taken',
    points: (row) => [storeOf(row)],
    figure: 'averageUs',
    tolerance: 'rate',
    suspects: ['postsOfACore', 'linesInSlot'],
  },
];

export const herdFamilies: readonly Family[] = [
  ...latencies,
  ...inboundFamilies({ group, where: /Fig 3b/ }, ['UC', 'RC']),
  ...outgoing,
  ...allToAllFamilies,
  ...inText,
  ...wholeSystem,
];
