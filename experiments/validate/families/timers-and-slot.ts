/** Groups H and I: timers and wire bytes of a ConnectX-2; pcie-bench, a measuring device in a host's slot. */
import { bytesPerKib, bytesPerMib, ConfigurationError } from '../../../base/index.ts';
import type { Family, RunFamily } from '../family.ts';
import { circumstance, type Measurement } from '../measurements.ts';
import type { Point, SlotPoint, SlotWindow, TimerPoint } from '../points.ts';
import { stream } from './streams.ts';

const connectx2 = { profile: 'connectx2-gen2' } as const;
/** Frames that hold packets of the MTU that the source declares: 1500 bytes, which hold 1024, or 4200. */
const roceOf = ({ link }: Measurement) => ({
  profile: 'connectx2-10gbe',
  set: { 'ethernet.mtuBytes': /MTU 1024\b/.test(link) ? 1500 : 4200 },
});
const perftestTimeoutCode = 14;
/** H-235 and H-239: what fits a WQE of 64 bytes is inlined. */
const pingPongInlineBytes = 16;

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
    of: { group: 'H', link: /^QDR IB/, workload: /^wire bytes/ },
    workload: 'WRITEs both ways at MTU 4096; their size is not stated: 1 MiB',
    points: () => [
      stream(connectx2, { verb: 'write', sizeBytes: 2 ** 20, window: 4, messages: 12, isBothWays: true }),
    ],
    figure: 'wireOverheadPercent',
    tolerance: 'rate',
  },
  {
    name: 'the same by RoCE',
    of: { group: 'H', link: /^10G RoCE/, workload: /^wire bytes/ },
    workload: 'WRITEs of 1 MiB both ways over 10 Gb/s Ethernet, RoCE v1, at the MTU of the row',
    points: (row) => [
      stream(roceOf(row), {
        verb: 'write',
        sizeBytes: 2 ** 20,
        window: 4,
        messages: 12,
        isBothWays: true,
      }),
    ],
    figure: 'wireOverheadPercent',
    tolerance: 'rate',
  },
  {
    name: 'throughput of a card looped to itself',
    of: { group: 'H', workload: /^RDMA WRITE port1<->port2/ },
    workload: 'WRITEs between two ports of one card',
    notRun: {
      kind: 'workload',
      why: 'the two ports of one card are cabled to each other; a topology has no such cable',
    },
  },
  ...[true, false].map(
    (events): RunFamily => ({
      name: `ping-pong, ${events ? 'events' : 'polling'}`,
      of: { group: 'H', workload: new RegExp(`ping-pong.*${events ? 'events' : 'polling'}`) },
      workload: `ibv_rc_pingpong${events ? ' -e' : ''} between two hosts (measured between the two ports of one); up to 16 bytes are inlined`,
      points: (row) => [
        {
          machine: connectx2,
          workload: {
            kind: 'pingPong',
            sizeBytes: circumstance(row, 'size'),
            inlineBytes: pingPongInlineBytes,
            isByEvents: events,
          },
        },
      ],
      figure: 'roundTripUs',
      tolerance: 'rate',
      over: 'size',
    }),
  ),
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

/** MPS 256 and MRRS 512, as on pcie-bench's host. */
const slotOf =
  (via: SlotPoint['via'], access: SlotPoint['access'], window: number) =>
  (row: Measurement): Point[] => [
    {
      machine: { profile: 'connectx3-qdr-fitted' },
      workload: { kind: 'slot', via, access, sizeBytes: circumstance(row, 'size'), window },
    },
  ];
/** Eleven microengines with eight contexts each: PCIEBENCH_LAST_WORKER_ME of pciebench-nfp, me/pciebench.h. */
const inFlight = 88;
const readRequestBytes = 512;

const latency = (
  name: string,
  workload: RegExp,
  via: SlotPoint['via'],
  access: SlotPoint['access'],
): RunFamily => ({
  name,
  of: { group: 'I', workload },
  workload: `one access at a time by the measuring device's ${via === 'command' ? 'commands' : 'DMA engine'}`,
  points: slotOf(via, access, 1),
  figure: 'latencyNs',
  tolerance: 'rate',
  over: 'size',
});

const bandwidth = (name: string, workload: RegExp, access: SlotPoint['access']): RunFamily => ({
  name,
  of: { group: 'I', workload, metric: /^bandwidth/ },
  workload: `${inFlight} contexts of the measuring device, each with one access at a time by its DMA engine`,
  points: slotOf('engine', access, inFlight),
  figure: 'gbps',
  tolerance: (row) => (circumstance(row, 'size') >= readRequestBytes ? 'ceiling' : 'rate'),
  over: 'size',
  suspects: ['slotPayload', 'measuringDevice'],
});

const slotFamilies: readonly Family[] = [
  latency('PCIe read', /^device read of host memory \(PCIe command/, 'command', 'read'),
  latency('PCIe write, then read', /^device write then read \(PCIe command/, 'command', 'writeThenRead'),
  latency('DMA read', /^device DMA read of host memory \(DMA engine/, 'engine', 'read'),
  latency('DMA write, then read', /^device DMA write then read \(DMA engine/, 'engine', 'writeThenRead'),
  bandwidth('PCIe reads', /^DMA read$/, 'read'),
  bandwidth('PCIe writes', /^DMA write$/, 'write'),
  bandwidth('PCIe reads and writes in turn', /^DMA read and write/, 'both'),
];

/** Accesses of one line at random places of a window of memory, of which the cache holds what the row says. */
const lineBytes = 64;
const cachedBefore = { Cold: 'nothing', DThrash: 'nothing', HWarm: 'byHost', DWarm: 'byDevice' } as const;
/** Last-level caches of an E5-2630 v4 and of an E5-2630: Intel's product specifications. */
const cacheBytesOf = (params: string): number => (params.includes('Broadwell') ? 25 : 15) * bytesPerMib;

function windowOf({ id, params }: Measurement): SlotWindow {
  const [, count, unit] = /window=(\d+)(KB|MB)/.exec(params) ?? [];
  const [, state] = /cache=(Cold|DThrash|HWarm|DWarm)/.exec(params) ?? [];
  if (count === undefined || state === undefined)
    throw new ConfigurationError(id, params, 'a window and a cache');
  return {
    bytes: Number(count) * (unit === 'KB' ? bytesPerKib : bytesPerMib),
    cacheBytes: cacheBytesOf(params),
    cached: cachedBefore[state as keyof typeof cachedBefore],
  };
}

const inWindow = (
  name: string,
  workload: RegExp,
  access: SlotPoint['access'],
  window: number,
  figure: 'gbps' | 'latencyNs',
): Family[] =>
  [false, true].map((isTranslated) => ({
    name: `${name} in a window of memory${isTranslated ? ', with an IOMMU' : ''}`,
    of: { group: 'I', workload, params: isTranslated ? /IOMMU on/ : /IOMMU off/ },
    workload: `${window === 1 ? 'one access' : `${window} accesses`} of 64 B at a time, at random places`,
    points: (row) => [
      {
        machine: {
          profile: 'connectx3-qdr-fitted',
          ...(isTranslated ? { set: { 'pcie.iommu.isEnabled': true } } : {}),
        },
        workload: {
          ...{ kind: 'slot', via: window === 1 ? 'command' : 'engine', access },
          ...{ sizeBytes: lineBytes, window, memory: windowOf(row) },
        },
      },
    ],
    figure,
    tolerance: 'rate',
    suspects: ['iotlb'],
  }));

const windowFamilies: readonly Family[] = [
  ...inWindow('PCIe reads', /^DMA read 64 B, random/, 'read', inFlight, 'gbps'),
  ...inWindow('PCIe writes', /^DMA write 64 B, random/, 'write', inFlight, 'gbps'),
  ...inWindow('PCIe read', /^device read 64 B \(command\), random/, 'read', 1, 'latencyNs'),
];

export const timersAndSlotFamilies: readonly Family[] = [...cardFamilies, ...slotFamilies, ...windowFamilies];
