/** Groups E and F: FaSST (OSDI 2016), READs of all machines from all; LITE (SOSP 2017), registration and large regions. */
import { pageBytes } from '../../../base/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Point } from '../points.ts';
import { apt, mopsOf, stream } from './streams.ts';

const swarm: RunFamily = {
  name: 'symmetric READ',
  of: { group: 'E', workload: /^symmetric READ/ },
  workload: 'two machines, each with 8 threads of 6 QPs that stand for the other five, read from one another',
  points: (row) => [
    stream(apt, {
      verb: 'read',
      sizeBytes: circumstance(row, 'size'),
      threads: 8,
      qpsPerThread: circumstance(row, 'QPs/machine') / 8,
      window: circumstance(row, 'window/thread'),
      order: 'random',
      isBothWays: true,
      messages: 600,
    }),
  ],
  figure: 'mops',
  tolerance: 'rate',
  over: 'size',
};

const fasst: Family[] = [
  {
    name: 'FaSST: remote procedure calls',
    of: { group: 'E', workload: /^FaSST RPC \(UD/ },
    workload: 'calls and answers of all machines, by datagrams',
    notRun: {
      kind: 'workload',
      why: 'the echo of fasst-rpc has the size of its request, and every machine of the source both calls and answers',
    },
  },
  {
    name: 'FaSST: statements of the text',
    of: { group: 'E', where: /text/ },
    workload: 'ends of ranges',
    notRun: { kind: 'no measurement', why: 'ends of curves whose rows are run or listed themselves' },
  },
];

const qdr = { profile: 'connectx3-qdr-fitted' } as const;

const registration = (name: string, workload: RegExp, figure: string): RunFamily => ({
  name,
  of: { group: 'F', workload },
  workload: 'one buffer whose pages are present',
  points: (row) => {
    const pages = Math.max(1, circumstance(row, 'size') / pageBytes);
    return [{ machine: qdr, workload: { kind: 'registration', pages } }];
  },
  figure,
  tolerance: 'rate',
  over: 'size',
});

const writesInto = (sizeBytes: number, regionBytes: number): Point => {
  // Room for the region and everything else.
  const sizeMib = Math.min(4096, Math.max(512, (4 * regionBytes) / 2 ** 20));
  const machine = { ...qdr, set: { 'host.memory.sizeMib': sizeMib } };
  return stream(machine, { verb: 'write', sizeBytes, regionBytes, signalEvery: 16, window: 128 });
};
const sizeOfWrite = (row: Measurement): number => Number(/WRITE (\d+) B/.exec(row.workload)?.[1]);
const regionCounts = [1, 50, 100, 200, 400] as const;
const writesIntoRegions = (count: number): Point => ({
  machine: qdr,
  workload: {
    kind: 'perf',
    test: {
      test: 'write-bw',
      size: 64,
      iters: 4000,
      warmup: 4000,
      region: count * pageBytes,
      keys: count,
      pattern: 'random',
    },
  },
});
const reachMegabytes = [1, 2, 4, 8, 16, 32] as const;

export const swarmAndLiteFamilies: readonly Family[] = [
  swarm,
  ...fasst,
  registration('registration', /^ibv_reg_mr/, 'registerUs'),
  registration('deregistration', /^ibv_dereg_mr/, 'deregisterUs'),
  ...[64, 1024].map(
    (sizeBytes): Family => ({
      name: `WRITE of ${sizeBytes} B into large regions`,
      of: { group: 'F', workload: new RegExp(`^Verbs WRITE ${sizeBytes} B at random places`) },
      workload: 'one QP writes at random places of one region',
      points: (row) => [writesInto(sizeOfWrite(row), circumstance(row, 'MR size'))],
      figure: 'mops',
      tolerance: 'rate',
      over: 'MR size',
    }),
  ),
  {
    name: 'number of regions where WRITE slows',
    of: { group: 'F', workload: /^number of MRs/ },
    workload:
      'the most regions of 4 KiB, of 1 to 400, into any of which one QP writes 64 B within 5 % of the rate into one alone',
    points: () => regionCounts.map(writesIntoRegions),
    figure: (figures) =>
      Math.max(...regionCounts.filter((_count, at) => mopsOf(figures[at]) > 0.95 * mopsOf(figures[0]))),
    tolerance: 'least',
  },
  {
    name: 'size of a region where WRITE slows',
    of: { group: 'F', workload: /^total MR size/ },
    workload:
      'the largest region, of 1 to 32 MB, into which 64 B WRITEs go within 5 % of the rate of the smallest',
    points: () => reachMegabytes.map((megabytes) => writesInto(64, megabytes * 2 ** 20)),
    figure: (figures) =>
      Math.max(...reachMegabytes.filter((_size, at) => mopsOf(figures[at]) > 0.95 * mopsOf(figures[0]))),
    tolerance: 'least',
  },
  {
    name: 'six crossings',
    of: { group: 'F', workload: /^six user-kernel crossings/ },
    workload: 'follows from the configuration',
    points: () => [{ machine: qdr, workload: { kind: 'constant' } }],
    figure: 'sixCrossingsUs',
    tolerance: 'rate',
    suspects: ['systemCalls'],
  },
  {
    name: 'two crossings',
    of: { group: 'F', workload: /^two user-to-kernel crossings/ },
    workload: 'follows from the configuration',
    points: () => [{ machine: qdr, workload: { kind: 'constant' } }],
    figure: 'twoCrossingsUs',
    tolerance: 'rate',
  },
];
