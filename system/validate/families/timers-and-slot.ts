/** Groups H and I: timers and wire bytes of a ConnectX-2; pcie-bench, a measuring device in a host's slot. */
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { SlotPoint, TimerPoint } from '../points.ts';
import { stream } from './streams.ts';

const connectx2 = { profile: 'connectx2-gen2' } as const;
const perftestTimeoutCode = 14;

const timer = (
  name: string,
  workload: RegExp,
  words: string,
  point: (row: Measurement) => Omit<TimerPoint, 'kind'>,
): RunFamily => ({
  name,
  of: { group: 'H', workload },
  workload: words,
  points: (row) => [{ machine: connectx2, workload: { kind: 'timer', ...point(row) } }],
  figure: 'elapsedUs',
  tolerance: 'rate',
  suspects: ['timerUnits'],
});

const cardFamilies: readonly Family[] = [
  {
    name: 'wire bytes over application bytes',
    of: { group: 'H', link: /^QDR IB/ },
    workload: 'WRITEs both ways at MTU 4096; their size is not stated: 1 MiB',
    points: () => [
      stream(connectx2, { verb: 'write', sizeBytes: 2 ** 20, window: 4, messages: 12, isBothWays: true }),
    ],
    figure: 'wireOverheadPercent',
    tolerance: 'rate',
  },
  {
    name: 'the same by RoCE',
    of: { group: 'H', link: /^10G RoCE/ },
    workload: 'WRITEs both ways over 10 Gb/s Ethernet',
    notRun: { kind: 'card', why: 'RoCE is not modelled' },
  },
  timer(
    'RNR timer',
    /^RC SEND into an empty RQ/,
    'a SEND that finds no receive; one is posted after the first RNR NAK',
    (row) => ({
      waits: 'receive',
      rnrTimerCode: circumstance(row, 'code'),
      timeoutCode: perftestTimeoutCode,
      retryCount: 7,
    }),
  ),
  timer('retry time-out', /^RC with no responder/, 'a SEND to a QP that takes no packets', (row) => ({
    waits: 'responder',
    rnrTimerCode: 0,
    timeoutCode: circumstance(row, 'timeout'),
    retryCount: circumstance(row, 'retry_cnt'),
  })),
];

/** MPS 256 and MRRS 512, as pcie-bench's host. */
const slotOf = (access: SlotPoint['access'], window: number) => (row: Measurement) =>
  [
    {
      machine: { profile: 'connectx3-qdr' },
      workload: { kind: 'slot', access, sizeBytes: circumstance(row, 'size'), window },
    },
  ] as const;
const inFlight = 32;
const readRequestBytes = 512;

const latency = (name: string, workload: RegExp, access: SlotPoint['access']): RunFamily => ({
  name,
  of: { group: 'I', workload },
  workload: 'one access at a time, by a device that takes no time of its own',
  points: slotOf(access, 1),
  figure: 'latencyNs',
  tolerance: 'rate',
  suspects: access === 'read' ? ['idleRead'] : ['writeThenRead'],
});

const bandwidth = (name: string, workload: RegExp, access: SlotPoint['access']): RunFamily => ({
  name,
  of: { group: 'I', workload, metric: /^bandwidth/, params: access === 'write' ? /^size=(?!64\b)/ : /./ },
  workload: `${inFlight} accesses in flight, by a device that takes no time of its own`,
  points: slotOf(access, inFlight),
  figure: 'gbps',
  tolerance: (row) => (circumstance(row, 'size') >= readRequestBytes ? 'ceiling' : 'rate'),
  over: 'size',
  suspects: ['slotPayload'],
});

const slotFamilies: readonly Family[] = [
  latency('PCIe read', /^device read of host memory \(PCIe command/, 'read'),
  latency('PCIe write, then read', /^device write then read \(PCIe command/, 'writeThenRead'),
  {
    name: "latency through the measuring device's DMA engine",
    of: { group: 'I', workload: /\(DMA engine\)/ },
    workload: 'accesses by a Netronome NFP-6000',
    notRun: { kind: 'card', why: 'holds the DMA engine of the measuring device, which is not modelled' },
  },
  bandwidth('PCIe reads', /^DMA read$/, 'read'),
  bandwidth('PCIe writes', /^DMA write$/, 'write'),
  bandwidth('PCIe reads and writes in turn', /^DMA read and write/, 'both'),
  {
    name: 'PCIe writes of 64 B',
    of: { group: 'I', workload: /^DMA write$/, params: /^size=64\b/ },
    workload: 'writes by a Netronome NFP-6000',
    notRun: { kind: 'card', why: "the measuring device's own limit, says measurements.md" },
  },
];

export const timersAndSlotFamilies: readonly Family[] = [...cardFamilies, ...slotFamilies];
