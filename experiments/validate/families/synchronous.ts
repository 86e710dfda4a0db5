/**
 * Group G and parts of F: threads that wait for each request before the next one. RFP (EuroSys 2017), Performance
 * Isolation Anomalies (KBNets 2017), LITE (SOSP 2017). And Storm (SYSTOR 2019): READs over many connections.
 */
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement, statedCircumstance } from '../measurements.ts';
import type { Figures, Point, PointMachine, StreamPlan } from '../points.ts';
import { machineOf } from './machines.ts';
import { requestersOf, stream } from './streams.ts';

/** Client threads and server threads of the figures over sizes. */
const rfpThreads = (row: Measurement): number =>
  statedCircumstance(row, 'threads') ?? Number(/(\d+) (?:client|server) threads/.exec(row.workload)?.[1]);
/** Two Xeon E5-2640 v2 in each machine. */
const rfpClockMHz = 2000;
const rfpMessageBytes = 32;
/** Time from one post of a process to the next, and the same for each of its threads: G-009, G-004. */
export const rfpSectionNs = { post: 378, thread: 34 } as const;
/** G-001: a WRITE of 32 bytes is 0.4 us too slow unless it is inlined. Messages of perftest are, up to this size. */
export const rfpInlineBytes = 220;
const rfpCycles = (ns: number): number => Math.round((ns * rfpClockMHz) / 1000);
/** The host, with threads of one process; a program that represents all of them has the section of all. */
const rfpHost = (threadsOfProgram = 0): PointMachine['set'] => ({
  'host.core.clockMHz': rfpClockMHz,
  'host.cost.postSection': rfpCycles(rfpSectionNs.post + threadsOfProgram * rfpSectionNs.thread),
  'host.cost.postSectionPerThread': threadsOfProgram === 0 ? rfpCycles(rfpSectionNs.thread) : 0,
});

const clientMachines = 7;
/** The threads of each machine as QPs of one thread, with a request of each in flight. */
const onMachines = (threads: number, machines: number): Partial<StreamPlan> => ({
  threads: machines,
  qpsPerThread: threads / machines,
  window: threads / machines,
});

const withSet = (machine: PointMachine, set: PointMachine['set']): PointMachine => ({
  ...machine,
  set: { ...machine.set, ...set },
});

const synchronous = (machine: PointMachine, plan: Partial<StreamPlan> & Pick<StreamPlan, 'verb'>): Point =>
  stream(machine, { window: 1, messages: 300, ...plan });

const rfp = (
  name: string,
  workload: RegExp,
  verb: 'read' | 'write',
  over: string,
  machine: (row: Measurement) => PointMachine,
  machines = 0,
): RunFamily => ({
  name,
  of: { group: 'G', workload, params: new RegExp(`\\b${over}=`) },
  workload: 'each thread waits for its request before the next',
  points: (row) => {
    const threads = rfpThreads(row);
    const isOnMachines = machines > 0;
    return [
      synchronous(withSet(machine(row), rfpHost(isOnMachines ? threads / machines : 0)), {
        verb,
        ...(verb === 'write' ? { inlineBytes: rfpInlineBytes } : {}),
        ...(isOnMachines ? onMachines(threads, machines) : { threads, isOneProcess: true }),
        sizeBytes: statedCircumstance(row, 'size') ?? rfpMessageBytes,
      }),
    ];
  },
  figure: 'mops',
  tolerance: 'rate',
  over,
  suspects: ['sharedHost'],
});
const requesters = (row: Measurement): PointMachine => requestersOf(machineOf(row));
/**
 * The same in the slots of the source's machines: each thread waits for its READ, so the latency of both slots counts,
 * and at 13 million READs of 32 bytes a second or 4 GB/s neither slot is the limit.
 */
const rfpClients = (row: Measurement): PointMachine => {
  const machine = requesters(row);
  const { 'pcie.link.generation': _generation, ...set } = machine.set!;
  return { ...machine, set };
};

const rfpFamilies: readonly Family[] = [
  rfp('RFP: outbound WRITE over threads', /^out-bound WRITE/, 'write', 'threads', machineOf),
  rfp('RFP: outbound WRITE over sizes', /^out-bound WRITE/, 'write', 'size', machineOf),
  rfp('RFP: inbound READ over threads', /^in-bound READ/, 'read', 'threads', rfpClients, clientMachines),
  rfp('RFP: inbound READ over sizes', /^in-bound READ/, 'read', 'size', rfpClients, clientMachines),
  {
    name: 'RFP: peaks in the text',
    of: { group: 'G', where: /text/, workload: /^(?:in|out)-bound/ },
    workload: 'the highest points of Fig 3 and 4',
    notRun: { kind: 'no measurement', why: 'points of Fig 3 and 4, whose rows are run themselves' },
  },
];

const isolationInlineBytes = 100;
/** The source states no path MTU: that of a subnet manager's default partition, at which G-041 has its slope. */
export const isolationMtuBytes = 2048;
/**
 * Time from a completion to the next post in the program of Fig 2, fitted to G-058. The program of Fig 1b stops its
 * clock at the completion.
 */
export const isolationLoopNs = 610;
/** More does not fit the memory of a run. */
const sizeMax = 100_000_000;

const isolated = (row: Measurement, verb: 'read' | 'write'): Point[] => {
  const sizeBytes = circumstance(row, 'size');
  const sizeMib = Math.max(512, Math.ceil((4 * sizeBytes) / 2 ** 20));
  const inlineBytes = sizeBytes <= isolationInlineBytes ? isolationInlineBytes : 0;
  const messages = sizeBytes >= 1e6 ? 4 : 100;
  return [
    synchronous(withSet(machineOf(row), { 'host.memory.sizeMib': sizeMib }), {
      verb,
      sizeBytes,
      messages,
      pathMtuBytes: isolationMtuBytes,
      ...(verb === 'write' ? { inlineBytes } : {}),
    }),
  ];
};

const isolationFamilies = (['write', 'read'] as const).flatMap((verb): Family[] => {
  const name = verb.toUpperCase();
  const group = 'G';
  const common = {
    workload: 'one request at a time, from its post to its completion',
    points: (row: Measurement) => isolated(row, verb),
    over: 'size',
    tolerance: 'rate',
  } as const;
  return [
    {
      name: `isolation: ${name}, median`,
      of: { group, where: /Fig 1b/, workload: new RegExp(`^${name} median`) },
      ...common,
      figure: 'latencyUs',
    },
    {
      name: `isolation: ${name}, 99th percentile`,
      of: { group, where: /Fig 1b/, workload: new RegExp(`^${name} 99th`) },
      ...common,
      figure: 'latencyUs',
      suspects: ['spread'],
    },
    {
      name: `isolation: ${name} throughput`,
      of: { group, where: /Fig 2/, workload: new RegExp(`^${name} throughput`), params: /size=1\d{3,8} B/ },
      ...common,
      figure: ([figures], row) => {
        const bits = circumstance(row, 'size') * 8;
        return bits / (bits / (figures?.['gbps'] ?? Number.NaN) + isolationLoopNs);
      },
    },
  ];
});

const isolationLeft: readonly Family[] = [
  {
    name: 'isolation: SEND, median',
    of: { group: 'G', workload: /^SEND median/ },
    workload: 'one SEND at a time',
    points: (row) => [
      {
        machine: machineOf(row),
        workload: {
          kind: 'perf',
          test: {
            ...{ test: 'send-bw', size: circumstance(row, 'size'), txDepth: 1, cqMod: 1, iters: 100 },
            inline: circumstance(row, 'size') <= isolationInlineBytes ? isolationInlineBytes : 0,
            mtu: isolationMtuBytes,
          },
        },
      },
    ],
    figure: ([figures]) => 1 / (figures?.['mops'] ?? Number.NaN),
    tolerance: 'rate',
    over: 'size',
  },
  {
    name: 'isolation: throughput of larger messages',
    of: { group: 'G', where: /Fig 2/, params: /size=1\d{9,} B/ },
    workload: `messages above ${sizeMax / 1e6} MB`,
    notRun: { kind: 'workload', why: 'a message needs more memory than a simulated host of a run has' },
  },
];

/** LITE's machines: 40 Gb/s cards on one switch. */
const lite = (row: Measurement, plan: Partial<StreamPlan>): Point =>
  synchronous(machineOf(row), { verb: 'write', sizeBytes: circumstance(row, 'size'), ...plan });
/** The paper's GB are decimal. */
const gigabytes = ([figures]: readonly Figures[]): number => (figures?.['gbps'] ?? Number.NaN) / 8;

const liteFamilies: readonly Family[] = [
  {
    name: 'LITE: WRITE latency',
    of: { group: 'F', workload: /^Verbs WRITE \(user level\)/ },
    workload: 'one WRITE at a time, from its post to its completion',
    points: (row) => [lite(row, {})],
    figure: 'latencyUs',
    tolerance: 'rate',
    over: 'size',
  },
  ...[1, 8].map(
    (threads): Family => ({
      name: `LITE: WRITE throughput of ${threads} ${threads === 1 ? 'thread' : 'threads'}`,
      of: { group: 'F', workload: new RegExp(`^Verbs WRITE, ${threads} thread`) },
      workload: 'each thread waits for its WRITE before the next',
      points: (row) => [lite(row, { threads, messages: 200 })],
      figure: gigabytes,
      tolerance: 'rate',
      over: 'size',
      suspects: threads === 1 ? [] : ['sharedHost'],
    }),
  ),
  {
    name: 'LITE: WRITE latency over regions',
    of: { group: 'F', workload: /^Verbs WRITE 64 B, MR chosen/ },
    workload: 'one WRITE of 64 B at a time into any of N regions of 4 KiB',
    points: (row) => {
      const keys = Number(/^(\d+) MRs/.exec(row.params)?.[1]);
      const count = Math.min(keys, keysMax);
      return [
        {
          machine: machineOf(row),
          workload: {
            kind: 'perf',
            test: {
              ...{ test: 'write-bw', size: 64, txDepth: 1, cqMod: 1, iters: 400, warmup: 400 },
              ...{ region: count * 4096, keys: count, pattern: 'random', fixedLocal: true },
            },
          },
        },
      ];
    },
    figure: ([figures]) => 1 / (figures?.['mops'] ?? Number.NaN),
    tolerance: 'rate',
    suspects: ['keysMax'],
  },
];
/** The most regions of a run. */
const keysMax = 65_536;

/** All threads together: each has a part of its own. */
const stormRegionBytes = 20 * 2 ** 30;
/** An estimate: the paper does not state the number of threads; its machines have two processors of 14 cores. */
const stormThreads = 8;
const stormFamilies: readonly Family[] = [
  {
    name: 'Storm: READ over connections',
    of: { group: 'G', workload: /^random READ 64 B over 20 GB, 2 MB pages/ },
    workload: `read-bw of ${stormThreads} threads over N QPs, at random places of 20 GiB of sparse memory`,
    points: (row) => [
      {
        machine: withSet(machineOf(row), { 'host.core.count': stormThreads }),
        workload: {
          kind: 'perf',
          test: {
            ...{ test: 'read-bw', size: 64, qps: circumstance(row, 'connections'), iters: 12, warmup: 12 },
            ...{
              region: stormRegionBytes / stormThreads,
              pattern: 'random',
              fixedLocal: true,
              txDepth: 16,
              cqMod: 1,
            },
            ...{ threads: stormThreads, pageSize: '2M' },
          },
        },
      },
    ],
    figure: 'mops',
    tolerance: 'rate',
    over: 'connections',
    suspects: ['contextCache'],
  },
  {
    name: 'Storm: READ over connections, 4 KiB pages',
    of: { group: 'G', workload: /^random READ 64 B over 20 GB, 4 KB pages/ },
    workload: 'the same in pages of 4 KiB',
    notRun: { kind: 'workload', why: 'ten million translation entries; the driver has a million' },
  },
  {
    name: 'Storm: statements of the text',
    of: { group: 'G', where: /text/, nic: /ConnectX-3 Pro/ },
    workload: 'the ends of the curve of Fig 1',
    notRun: { kind: 'no measurement', why: 'ends of the curve of Fig 1, whose rows are run themselves' },
  },
];

/** "On the Impact of Cluster Configuration on RoCE Application Design" (APNet 2019): 16 clients, 8 processes to read from. */
const roceClients = 16;
const roceWindow = 16;
const roceFamilies: readonly Family[] = [
  {
    name: 'RoCE at 10 Gb/s: inbound READ of 16 clients',
    of: { workload: /^READ by 16 clients from one server/ },
    workload: '128 QPs of a machine that stands for 16 clients, 16 READs of each in flight',
    points: (row) => {
      const qps = Number(/(\d+) connections/.exec(row.params)?.[1]);
      return [
        stream(requesters(row), {
          verb: 'read',
          sizeBytes: circumstance(row, 'size'),
          threads: roceClients,
          qpsPerThread: qps / roceClients,
          window: (qps / roceClients) * roceWindow,
          messages: 1200,
        }),
      ];
    },
    figure: 'gbps',
    tolerance: 'rate',
    over: 'size',
    suspects: ['standIn'],
  },
  {
    name: 'RoCE at 10 Gb/s: READ, events',
    of: { workload: /^READ, one at a time, completion by interrupt/ },
    workload: 'read-lat that sleeps until an event',
    points: (row) => [
      {
        machine: machineOf(row),
        workload: {
          kind: 'perf',
          test: { test: 'read-lat', size: circumstance(row, 'size'), iters: 100, mtu: 4096, events: true },
        },
      },
    ],
    figure: 'typicalUs',
    tolerance: 'rate',
    over: 'size',
  },
];

export const synchronousFamilies: readonly Family[] = [
  ...rfpFamilies,
  ...isolationFamilies,
  ...isolationLeft,
  ...liteFamilies,
  ...stormFamilies,
  ...roceFamilies,
];
