/** Group D: Design Guidelines for High Performance RDMA Systems (ATC 2016), its cluster CX3. */
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Point, StreamPlan } from '../points.ts';
import { inboundFamilies } from './herd.ts';
import { apt, mopsOf, stream, unsignalled } from './streams.ts';

const group = 'D';
const cores = 8;
/**
 * Threads of Fig 13, which does not state their number: two for each core, because eight READs of 2.5 us (C-010) at
 * once do not make 6.6 per microsecond (D-022).
 */
const windowThreads = 16;
const inlineMax = 256;
const lineBytes = 64;

const datagrams = (plan: Partial<StreamPlan>): Point =>
  stream(apt, { transport: 'UD', verb: 'send', inlineBytes: inlineMax, ...unsignalled, ...plan });

const table5: readonly Family[] = [
  {
    name: 'UD RECV',
    of: { group, workload: /^UD RECV/ },
    workload: 'many machines send datagrams to one whose cores post receives',
    notRun: {
      kind: 'machines',
      why: 'needs several client machines: one sends fewer datagrams than a card receives',
    },
  },
  {
    name: 'UD SEND of a header alone',
    of: { group, workload: /^UD SEND 0 B/ },
    workload: `${cores} cores post lists of 16`,
    points: () => [datagrams({ sizeBytes: 0, threads: cores, list: 16 })],
    figure: 'mops',
    tolerance: 'rate',
    suspects: ['datagramWqe'],
  },
  {
    name: 'UD SEND with payload',
    of: { group, workload: /^UD SEND >=1 B/ },
    workload: `${cores} cores post lists of 16`,
    points: () => [datagrams({ sizeBytes: 4, threads: cores, list: 16 })],
    figure: 'mops',
    tolerance: 'rate',
  },
  {
    name: 'UD SEND of one core',
    of: { group, where: /Fig 11b/ },
    workload: '60 B, one by one through BlueFlame, or lists of 16 over one QP or more',
    points: (row) => [
      datagrams({
        sizeBytes: 60,
        list: row.params.startsWith('baseline') ? 1 : 16,
        qpsPerThread: Number(/(\d+) QP/.exec(row.params)?.[1] ?? 1),
        window: 256,
      }),
    ],
    figure: 'mops',
    tolerance: 'rate',
    suspects: ['postsOfACore', 'listsOfACore'],
  },
];

const windowed = (verb: 'read' | 'write', row: Measurement): Point[] => {
  const window = circumstance(row, 'window');
  const inlineBytes = verb === 'write' ? inlineMax : 0;
  return [
    stream(apt, {
      verb,
      inlineBytes,
      threads: windowThreads,
      window,
      waits: 'all',
      messages: Math.max(2000, 8 * window),
    }),
  ];
};

const windows = (['read', 'write'] as const).flatMap((verb): RunFamily[] => {
  const name = verb.toUpperCase();
  const common = {
    workload: `${windowThreads} threads with a QP each post a window, all signalled, and wait for all`,
    points: (row: Measurement) => windowed(verb, row),
    over: 'window',
    suspects: ['wqeCache', 'threadsOfRow'],
    tolerance: 'rate',
  } as const;
  return [
    {
      name: `outbound ${name} over windows`,
      of: { group, workload: new RegExp(`^outbound ${name} 8 B`) },
      ...common,
      figure: 'mops',
    },
    {
      name: `PCIe reads of outbound ${name}`,
      of: { group, workload: new RegExp(`^PCIeRdCur counter during outbound ${name}`) },
      ...common,
      figure: 'readLinesMops',
      tolerance: 'ratio',
    },
  ];
});

const atomicsOf = (counters: number): Point =>
  stream(apt, {
    verb: 'atomic',
    threads: cores,
    window: 16,
    regionBytes: counters * lineBytes,
    messages: 1000,
  });

const atomics: readonly Family[] = [
  {
    name: 'inbound atomics',
    of: { group, workload: /^inbound atomics/ },
    workload: `${cores} QPs add to random counters, 4096 for each`,
    points: () => [atomicsOf(4096)],
    figure: 'mops',
    tolerance: 'rate',
  },
  {
    name: 'PUTs of DrTM-KV',
    of: { group, workload: /^DrTM-KV/ },
    workload: 'a key-value store whose PUTs use two atomics',
    notRun: { kind: 'workload', why: 'no ready workload is this store' },
  },
  {
    name: 'atomics over counters',
    of: { group, workload: /^atomics: all serialised/ },
    workload: 'rate over 4096 counters by the rate on one',
    points: () => [1, 4096].map(atomicsOf),
    figure: (figures) => mopsOf(figures[1]) / mopsOf(figures[0]),
    tolerance: 'ratio',
  },
];

const constant = (
  name: string,
  workload: RegExp,
  figure: string,
  tolerance: RunFamily['tolerance'] = 'exact',
): RunFamily => ({
  name,
  of: { group, workload },
  workload: 'follows from the formats and the configuration',
  points: (row) => {
    const generation = /PCIe (\d)\.0/.exec(row.workload)?.[1];
    const set = generation === undefined ? {} : { set: { 'pcie.link.generation': Number(generation) } };
    return [{ machine: { ...apt, ...set }, workload: { kind: 'constant' } }];
  },
  figure,
  tolerance,
  suspects: ['framing'],
});

const constants: readonly Family[] = [
  constant('overhead of a request TLP', /^PCIe \d\.0 request TLP/, 'requestOverheadBytes'),
  constant('overhead of a completion TLP', /^PCIe \d\.0 completion TLP/, 'completionOverheadBytes'),
  constant('bandwidth of a lane', /per-lane bandwidth/, 'laneMegabytesPerSecond', 'ceiling'),
  constant('size of completions', /^CPU read completion combining/, 'completionBytes'),
  constant('header of a connected WQE', /^Mellanox WQE header RC/, 'connectedWqeHeaderBytes'),
  constant('header of a datagram WQE', /^Mellanox WQE header UD/, 'datagramWqeHeaderBytes'),
  constant('header of a receive WQE', /^RECV WQE header/, 'receiveWqeBytes'),
  {
    name: 'where READ meets the bandwidth',
    of: { group, workload: /^READ size where bandwidth/ },
    workload: 'the size from which inbound READ is limited by the cable',
    notRun: {
      kind: 'no measurement',
      why: "the authors' reading of Fig 3b of group C, whose rows are run themselves",
    },
  },
  {
    name: 'bytes by the formula of the paper',
    of: { group, where: /Appendix A/ },
    workload: 'PCIe bytes of ten WQEs of 65 B',
    notRun: { kind: 'no measurement', why: "the result of the paper's formula, which nothing measured" },
  },
];

export const guidelinesFamilies: readonly Family[] = [
  ...table5,
  ...inboundFamilies({ group, where: /Fig 12b/ }, ['UC']),
  ...windows,
  ...atomics,
  ...constants,
];
