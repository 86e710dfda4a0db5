/** Checks the bottleneck that `perf` names: the rate rises if the named parameter changes, and does not rise if another one changes. */
import { expect, it } from 'vitest';
import runPerf, { type PerfRow } from '../../experiments/runs/perf-run.ts';
import type { BandwidthResult, LatencyResult } from '../../experiments/workloads/perf-result.ts';
import { parsedWorkload, perfArgsOf } from '../../experiments/workloads/workload.ts';
import { configurationOf, type ParameterValues } from '../../machine/profile/index.ts';
import { rowsOf } from '../../test/extent.ts';

interface Case {
  readonly binds: string;
  readonly workload: string;
  readonly set?: ParameterValues;
  /** The change, to a parameter or to a field of the workload; the advice contains it. */
  readonly turned: ParameterValues | string;
  /** An unrelated parameter, of which more would usually be better. */
  readonly other: ParameterValues;
}

const fast = { 'host.core.clockMHz': 5000 };
/** Few messages of a QP at a time: each needs the QP's context again. */
const shallow = 'write-bw,size=256,qps=64,threads=4,iters=60,warmup=15,txDepth=8';
const four = 'size=64,iters=150,qps=32,threads=4';

/** One of each kind: core, queue pair, scheduler, engine, PCIe in both directions, cable, memory, cache, receives. */
const ofKinds: readonly Case[] = [
  {
    binds: 'core of host 0',
    workload: 'write-bw,size=64,iters=500,qps=4',
    turned: 'threads=4',
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'same-QP interval',
    workload: 'write-bw,size=64,iters=600',
    set: fast,
    turned: { 'hca.sameQpIntervalCycles': 50 },
    other: { 'dma.tagCount': 64 },
  },
  {
    binds: 'requester of host 0',
    workload: `write-bw,${four}`,
    set: { ...fast, 'hca.requestPacketCycles': 30 },
    turned: { 'hca.requestPacketCycles': 20 },
    other: { 'pcie.link.generation': 4 },
  },
  {
    binds: 'PCIe link of host 0 to the device',
    workload: `write-bw,${four},inline=64`,
    set: fast,
    turned: { 'pcie.link.generation': 4 },
    other: { 'hca.requestPacketCycles': 4 },
  },
  {
    binds: 'PCIe link of host 0 to the host',
    workload: 'read-bw,size=65536,iters=40',
    set: { 'pcie.link.lanes': 2, 'pcie.enumeration.maxPayloadBytes': 128 },
    turned: { 'pcie.link.lanes': 4 },
    other: { 'pcie.rootComplex.completionCombineBytes': 512, 'pcie.link.maxPayloadBytes': 512 },
  },
  {
    // The scheduler switches to another QP after each packet, and that QP's context is not on chip.
    binds: 'requester of host 0 (QPC misses)',
    workload: 'write-bw,size=4096,mtu=256,iters=20,warmup=10,qps=64,threads=4',
    set: { 'hca.sendContextEntries': 16, 'hca.contextFetchesInFlight': 1, 'hca.burstPackets': 1 },
    turned: { 'hca.burstPackets': 4 },
    other: { 'hca.requestPacketCycles': 3, 'wire.speed': 'FDR' },
  },
  {
    binds: 'cable from host 0 to 1',
    workload: 'write-bw,size=65536,iters=60',
    turned: { 'wire.speed': 'FDR' },
    other: { 'pcie.link.generation': 4 },
  },
  {
    binds: 'response engine of host 1 (memory of atomics)',
    workload: 'atomic-bw,iters=200,qps=4',
    turned: { 'pcie.rootComplex.readLatencyPs': 100_000 },
    other: { 'host.core.clockMHz': 4000 },
  },
  {
    binds: 'receiver of host 1 (MTT misses)',
    workload: 'write-bw,size=64,region=64Mi,pattern=random,iters=500,qps=4',
    set: { 'host.memory.framePlacement': 'scattered' },
    turned: { 'hca.mttCacheLines': 8192 },
    other: { 'hca.mptCacheEntries': 1024 },
  },
  {
    binds: 'receive WQEs of host 1',
    workload: 'send-bw,size=64,iters=400,qps=4,rxDepth=4',
    turned: 'rxDepth=64',
    other: { 'wire.speed': 'FDR' },
  },
  {
    // The requester serves other QPs while a context is read; the receiver waits for each context.
    binds: 'receiver of host 1 (QPC misses)',
    workload: shallow,
    set: { 'hca.qpcCacheEntries': 8 },
    turned: { 'hca.qpcCacheEntries': 128 },
    other: { 'hca.contextFetchesInFlight': 64 },
  },
  {
    // The requester has its own part of the cache, and the receiver the rest: neither helps the other.
    binds: 'requester of host 0 (QPC misses)',
    workload: shallow,
    set: { 'hca.sendContextEntries': 32, 'hca.contextFetchesInFlight': 1 },
    turned: { 'hca.sendContextEntries': 64 },
    other: { 'hca.qpcCacheEntries': 1024 },
  },
  {
    binds: 'requester of host 0 (QPC misses)',
    workload: shallow,
    set: { 'hca.sendContextEntries': 32, 'hca.contextFetchesInFlight': 1 },
    turned: { 'hca.contextFetchesInFlight': 4 },
    other: { 'hca.requestPacketCycles': 3 },
  },
];

const others: readonly Case[] = [
  {
    binds: 'PCIe link of host 0 to the host',
    workload: 'read-bw,size=65536,iters=40',
    set: { 'pcie.link.lanes': 2, 'pcie.enumeration.maxPayloadBytes': 128 },
    turned: { 'pcie.enumeration.maxPayloadBytes': 256 },
    other: { 'dma.tagCount': 64 },
  },
  {
    binds: 'PCIe link of host 1 to the device',
    workload: 'read-bw,size=65536,iters=40',
    set: { 'pcie.link.lanes': 2, 'pcie.rootComplex.completionCombineBytes': 64 },
    turned: { 'pcie.rootComplex.completionCombineBytes': 128 },
    other: { 'dma.tagCount': 64, 'pcie.link.maxPayloadBytes': 512 },
  },
  {
    // The device fetches four WQEs; the program has posted one of them.
    binds: 'PCIe link of host 0 to the device',
    workload: 'write-bw,size=64,iters=60,warmup=20,qps=160,txDepth=1,cqMod=1,threads=4',
    set: fast,
    turned: { 'hca.wqePrefetchCount': 1 },
    other: { 'hca.wqeFetchOutstanding': 64 },
  },
  ...(
    [
      ['write-bw', 'writeGapCycles', 'sendGapCycles'],
      ['write-bw,connection=UC', 'writeGapCycles', 'sendGapCycles'],
      ['send-bw', 'sendGapCycles', 'writeGapCycles'],
      ['send-bw,connection=UD', 'writeGapCycles', 'readGapCycles'],
      ['read-bw', 'readGapCycles', 'sendGapCycles'],
    ] as const
  ).map(([test, gap, ofOthers]) => ({
    binds: 'gap between messages of a QP',
    workload: `${test},size=1024,iters=200`,
    set: { [`hca.${gap}`]: 1000, [`hca.${ofOthers}`]: 100 },
    turned: { [`hca.${gap}`]: 500 },
    other: { [`hca.${ofOthers}`]: 0, 'hca.transmitBufferPackets': 64 },
  })),
  ...['write-bw', 'read-bw'].map((test) => ({
    binds: 'send WQEs in flight of a QP',
    workload: `${test},size=64,iters=300`,
    set: { 'hca.outstandingWqesPerQp': 2 },
    turned: { 'hca.outstandingWqesPerQp': 4 },
    other: { 'hca.outstandingWqes': 4096, 'hca.sameQpIntervalCycles': 40 },
  })),
  {
    binds: 'response buffer of host 1',
    workload: 'read-bw,size=64,iters=300,qps=8,threads=2',
    set: { 'hca.responseBufferPackets': 2 },
    turned: { 'hca.responseBufferPackets': 4 },
    other: { 'hca.transmitBufferPackets': 64, 'wire.speed': 'FDR' },
  },
  {
    binds: 'WQE fetches in flight of host 0',
    workload: 'write-bw,size=64,iters=300,qps=8,threads=2',
    set: { 'hca.wqeFetchOutstanding': 1 },
    turned: { 'hca.wqeFetchOutstanding': 2 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'same-QP interval',
    workload: 'read-bw,size=64,iters=600',
    set: { ...fast, 'hca.readIntervalCycles': 150 },
    turned: { 'hca.readIntervalCycles': 100 },
    other: { 'hca.sameQpIntervalCycles': 40 },
  },
  {
    binds: 'same-QP interval',
    workload: 'write-bw,size=64,iters=600,connection=UC',
    set: { ...fast, 'hca.unreliableIntervalCycles': 150 },
    turned: { 'hca.unreliableIntervalCycles': 100 },
    other: { 'hca.sameQpIntervalCycles': 40 },
  },
  {
    // Its interval is shorter than the core's posting time; that of reliable connections is longer.
    binds: 'core of host 0',
    workload: 'write-bw,size=64,iters=600,connection=UC,inline=64',
    set: { 'hca.unreliableIntervalCycles': 34, 'hca.sameQpIntervalCycles': 150 },
    turned: { 'host.core.clockMHz': 4000 },
    other: { 'hca.sameQpIntervalCycles': 77 },
  },
  {
    binds: 'requester of host 0',
    workload: `read-bw,${four}`,
    set: { ...fast, 'hca.readRequestCycles': 40 },
    turned: { 'hca.readRequestCycles': 25 },
    other: { 'hca.requestPacketCycles': 3 },
  },
  {
    binds: 'requester of host 0',
    workload: 'write-bw,size=256,iters=150,qps=32,threads=4',
    set: { ...fast, 'hca.gatherCycles': 60 },
    turned: { 'hca.gatherCycles': 40 },
    other: { 'pcie.link.generation': 4 },
  },
  {
    binds: 'response engine of host 1',
    workload: `read-bw,${four}`,
    set: { ...fast, 'hca.readResponseCycles': 40 },
    turned: { 'hca.readResponseCycles': 25 },
    other: { 'hca.responseCycles': 3 },
  },
  {
    // More queues than the chip keeps WQEs for: depth and prefetching have no effect.
    binds: 'receive WQEs of host 1',
    workload: 'send-bw,size=64,iters=60,warmup=15,qps=128,threads=2,inline=64,txDepth=2',
    set: { 'pcie.rootComplex.readLatencyPs': 600_000 },
    turned: { 'hca.receiveQueueLineCount': 128 },
    other: { 'host.core.clockMHz': 5000 },
  },
  {
    // A receiver that waits for WQEs after each message, and is busy most of the time.
    binds: 'receive WQEs of host 1',
    workload: 'send-bw,size=4096,iters=40,warmup=10,qps=128,threads=2',
    set: { 'hca.receiveBytesPerCycle': 16, 'wire.speed': 'FDR' },
    turned: { 'hca.receiveQueueLineCount': 128 },
    other: { 'hca.transmitBufferPackets': 64 },
  },
  {
    binds: 'WQE fetches in flight of host 0',
    workload: 'read-bw,size=64,iters=200,warmup=50,qps=2,postList=2,txDepth=8',
    set: { ...fast, 'pcie.rootComplex.readLatencyPs': 300_000 },
    turned: { 'pcie.rootComplex.readLatencyPs': 150_000 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'non-posted credits of the root port of host 0',
    workload: 'write-bw,size=64,iters=200,warmup=50,qps=4,threads=4',
    set: { 'pcie.rootPort.nonPostedHeaders': 2 },
    turned: { 'pcie.rootPort.nonPostedHeaders': 4 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'transmit buffer of host 0',
    workload: 'write-bw,size=256,iters=200,warmup=50,qps=4,threads=2',
    set: { 'hca.transmitBufferPackets': 2 },
    turned: { 'hca.transmitBufferPackets': 4 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'core of host 0',
    workload: 'read-bw,size=64,iters=500,qps=4',
    turned: { 'host.core.clockMHz': 4000 },
    other: { 'hca.sameQpIntervalCycles': 40 },
  },
  {
    binds: 'core of host 1',
    // More messages than receives posted before the test begins.
    workload: 'send-bw,size=64,iters=1500,qps=4',
    set: { 'host.cost.postRecv': 600 },
    turned: { 'host.cost.postRecv': 100 },
    other: { 'hca.receivePacketCycles': 5 },
  },
  {
    binds: 'doorbell decoder of host 0',
    workload: `write-bw,${four}`,
    set: { ...fast, 'hca.doorbellCycles': 20 },
    turned: { 'hca.doorbellCycles': 10 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'receiver of host 1',
    workload: `write-bw,${four}`,
    set: { ...fast, 'hca.receivePacketCycles': 40 },
    turned: { 'hca.receivePacketCycles': 25 },
    other: { 'pcie.link.generation': 4 },
  },
  {
    binds: 'receiver of host 1',
    workload: `write-bw,${four}`,
    set: { ...fast, 'hca.receiveHeadCycles': 30 },
    turned: { 'hca.receiveHeadCycles': 15 },
    other: { 'pcie.link.generation': 4 },
  },
  {
    binds: 'cable from host 1 to 0',
    workload: 'read-bw,size=65536,iters=60',
    turned: { 'wire.speed': 'FDR' },
    other: { 'dma.tagCount': 64 },
  },
  {
    binds: 'DMA tags of host 0',
    workload: 'write-bw,size=4096,iters=200,qps=2',
    set: { 'dma.tagCount': 2 },
    turned: { 'dma.tagCount': 3 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    binds: 'receiver of host 1 (MPT misses)',
    workload: 'write-bw,size=64,region=128Ki,pattern=random,keys=128,iters=500,qps=4',
    set: { 'hca.mptCacheEntries': 32 },
    turned: { 'hca.mptCacheEntries': 512 },
    other: { 'hca.mttCacheLines': 4096 },
  },
  {
    // READs consume no receive: they are refused temporarily because a page is missing.
    binds: 'absent pages of host 1',
    workload: 'read-bw,size=8,iters=100,region=256Ki,pattern=random,onDemand',
    turned: 'region=16Ki',
    other: { 'hca.receivePrefetchCount': 16 },
  },
  {
    binds: 'messages in flight of host 0',
    workload: 'write-bw,size=64,iters=400,txDepth=2,cqMod=1',
    turned: 'txDepth=32',
    other: { 'wire.speed': 'FDR' },
  },
  {
    // Each of the 16 payload reads under way waits for a walk of 800 ns.
    binds: 'payload reads of the responder of host 1',
    workload: 'read-bw,size=64,iters=300,warmup=100,qps=16,threads=4,region=1Mi,pageSize=2M,pattern=random',
    set: { 'pcie.iommu.isEnabled': true, 'pcie.iommu.walkLevelNs': 200, 'dma.tagCount': 64 },
    turned: { 'pcie.iommu.iotlbEntries': 4096 },
    other: { 'wire.speed': 'FDR', 'hca.readIntervalCycles': 40 },
  },
  {
    // One message of each QP takes 3 µs: the core is busy for half of the time, even with a faster clock.
    binds: 'messages in flight of host 0',
    workload: 'write-bw,size=256,qps=16,iters=188,warmup=63,txDepth=1,cqMod=1,bidirectional',
    set: { 'wire.cableMetres': 300, 'hca.coreClockMHz': 300, 'pcie.rootComplex.outstandingReadCount': 8 },
    turned: 'txDepth=4',
    other: { 'wire.speed': 'FDR' },
  },
  // Both directions carry data, and credits return after a data packet: three packets of 4 KiB fill a buffer of 16 KiB.
  ...['write-bw', 'send-bw', 'read-bw'].flatMap((test): Case[] =>
    [{ 'wire.receiveBufferBytes': 65_536 }, 'mtu=2048'].map((turned) => ({
      binds: 'receive buffer of the port of host 1',
      workload: `${test},size=65536,iters=60,bidirectional`,
      turned,
      other: {
        'hca.transmitBufferPackets': 64,
        'hca.responseBufferPackets': 64,
        'pcie.rootComplex.readLatencyPs': 80_000,
      },
    })),
  ),
  {
    // All are posted at once. Within the QP each waits for its translation, the first of a page, and then for the
    // interval.
    binds: 'same-QP interval',
    workload: 'write-bw,size=64,iters=500,txDepth=1000,region=64Mi,pattern=random',
    turned: 'pageSize=2M',
    other: { 'hca.mttCacheLines': 4096 },
  },
  {
    binds: 'same-QP interval',
    workload: 'write-bw,size=64,iters=500,region=64Mi,pattern=random',
    set: { 'hca.mttCacheLines': 16 },
    turned: { 'hca.mttCacheLines': 512 },
    other: { 'wire.speed': 'FDR' },
  },
  {
    // When awake it works, but it sleeps repeatedly: faster work would only make it fall asleep sooner.
    binds: 'core of host 0',
    workload: 'send-bw,size=64,iters=600,qps=2,txDepth=16,cqMod=16,events',
    turned: 'txDepth=32',
    other: { 'host.cost.postSend': 120 },
  },
  {
    // Four messages are in flight, and one event covers sixteen: each time the period has to elapse.
    binds: 'messages in flight of host 0',
    workload: 'write-bw,size=64,iters=100,txDepth=4,cqMod=1,events,moderation=16:50',
    turned: 'moderation=2:50',
    other: { 'host.core.clockMHz': 4000 },
  },
];

const measured = (workload: string, set: ParameterValues): Promise<PerfRow> =>
  runPerf({ machine: { set }, args: perfArgsOf(parsedWorkload(workload)) });
const rateOf = ({ result }: PerfRow): number => (result as BandwidthResult).messagesPerSecond;
/** The workload with one field replaced. */
const changed = (workload: string, field: string): string =>
  [...workload.split(',').filter((part) => part.split('=')[0] !== field.split('=')[0]), field].join(',');

it.each(rowsOf(ofKinds, others))(
  '$binds binds $workload',
  async ({ binds, workload, set = {}, turned, other }) => {
    const before = await measured(workload, set);
    const found = before.bottleneck!;
    expect(found.binds.name, JSON.stringify(found)).toBe(binds);
    const names = found.binds.turn.map(({ what }) =>
      what.replace(/^--/, '').replaceAll('-', '').toLowerCase(),
    );
    const isOption = typeof turned === 'string';
    const turnedName = isOption ? turned.split('=')[0]! : Object.keys(turned)[0]!;
    expect(names).toContain(turnedName.toLowerCase());
    const after = isOption
      ? await measured(changed(workload, turned), set)
      : await measured(workload, { ...set, ...turned });
    const elsewhere = await measured(workload, { ...set, ...other });
    expect(rateOf(after) / rateOf(before)).toBeGreaterThan(1.1);
    expect(rateOf(elsewhere) / rateOf(before)).toBeLessThan(1.04);
  },
);

interface AlongCase {
  readonly binds: string;
  readonly workload: string;
  readonly set?: ParameterValues;
  readonly turned: string;
  readonly along: string;
  /** The bottleneck if only the first parameter changes. */
  readonly bindsThen: string;
}

/** More of this one alone is worse: the chip has no room for its use. */
const together: readonly AlongCase[] = [
  {
    binds: 'core of host 0',
    workload: 'read-bw,size=64,iters=60,warmup=40,qps=128,region=64Mi,pattern=zipf',
    turned: 'threads=2',
    along: 'pageSize=2M',
    bindsThen: 'receiver of host 0 (MTT misses)',
  },
  {
    binds: 'core of host 0',
    workload: 'write-bw,size=64,iters=200,warmup=50,qps=8,region=1Mi,keys=200,pattern=random',
    turned: 'threads=2',
    along: 'keys=50',
    bindsThen: 'requester of host 0 (MPT misses)',
  },
];

it.each(together)('says that $turned needs $along, of $workload', async (row) => {
  const { binds, workload, turned, along, bindsThen } = row;
  const rows = [workload, changed(workload, turned), changed(changed(workload, turned), along)];
  const [before, alone, both] = await Promise.all(rows.map((each) => measured(each, {})));
  const { name, turn } = before!.bottleneck!.binds;
  expect(name).toBe(binds);
  const optionOf = (field: string): string =>
    `--${field.split('=')[0]!.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)}`;
  const found = turn.find(({ what }) => what === optionOf(turned))!;
  expect(found.along!.map(({ what }) => what)).toEqual([optionOf(along)]);
  expect(rateOf(alone!) / rateOf(before!)).toBeLessThan(0.8);
  expect(alone!.bottleneck!.binds.name).toBe(bindsThen);
  expect(rateOf(both!) / rateOf(before!)).toBeGreaterThan(1.8);
});

it('advises only more threads for a region that stays on chip with twice the threads', async () => {
  const { bottleneck } = await measured('read-bw,size=64,iters=300,qps=4,region=2Mi,pattern=zipf', {});
  expect(bottleneck!.binds.turn).toContainEqual({ what: '--threads', towards: 'more' });
});

it('counts contiguous frames as one translation, like the driver', async () => {
  const workload = 'write-bw,size=64,iters=400,warmup=100,qps=8,region=16Mi,pattern=random';
  const before = await measured(workload, {});
  expect(before.bottleneck!.binds.name).toBe('core of host 0');
  expect(before.bottleneck!.binds.turn).toContainEqual({ what: '--threads', towards: 'more' });
  expect(rateOf(await measured(`${workload},threads=2`, {})) / rateOf(before)).toBeGreaterThan(1.5);
});

it.each([
  ['--post-list', 'send-bw,size=64,iters=300,qps=4,txDepth=32,inline=64,cqMod=16,echo', {}],
  ['--threads', 'send-bw,size=64,iters=300,qps=4,txDepth=8,cqMod=1,echo,events', {}],
  ['--mtu', 'write-bw,size=64,iters=150,qps=16,threads=4,mtu=1024', { 'wire.speed': 'SDR' }],
  [
    'ethernet.mtuBytes',
    'write-bw,size=64,iters=150,qps=16,threads=4',
    { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
  ],
])('does not advise %s, which has no effect or is rejected, for %s', async (what, workload, set) => {
  const { binds } = (await measured(workload, set)).bottleneck!;
  expect(binds.turn.length).toBeGreaterThan(0);
  expect(binds.turn.map((turn) => turn.what)).not.toContain(what);
});

it('reports that all cores are in use, and that a list cannot exceed the send queue', async () => {
  const { bottleneck } = await measured('read-bw,size=64,iters=60,qps=48,txDepth=1,cqMod=1,threads=4', {});
  const { name, turn } = bottleneck!.binds;
  expect(name).toBe('core of host 0');
  const [threads] = turn;
  expect(threads).toMatchObject({ what: '--threads', along: [{ what: 'host.core.count', towards: 'more' }] });
  expect(turn.map(({ what }) => what)).not.toContain('--post-list');
});

it.each([
  ['hca.scheduleCycles', 500],
  ['hca.sameQpIntervalCycles', 4000],
] as const)('where the time of a message goes is the scheduler: %s', async (name, cycles) => {
  const latencyOf = ({ result }: PerfRow): number => (result as LatencyResult).averagePs;
  const workload = 'write-lat,size=64,iters=20';
  const before = await measured(workload, { [name]: cycles });
  const [first] = before.stages!;
  expect(first).toMatchObject({ name: 'scheduling', turn: [{ what: name, towards: 'less' }] });
  const after = await measured(workload, { [name]: cycles / 2 });
  const elsewhere = await measured(workload, { [name]: cycles, 'hca.requestPacketCycles': 3 });
  expect(latencyOf(before) / latencyOf(after)).toBeGreaterThan(1.1);
  expect(latencyOf(before) / latencyOf(elsewhere)).toBeLessThan(1.04);
});

it('no share exceeds 100 %, although counters continue after the last message', async () => {
  const { bottleneck } = await measured(shallow, {
    'hca.sendContextEntries': 32,
    'hca.contextFetchesInFlight': 1,
    'hca.completionCycles': 30,
  });
  expect(bottleneck!.binds).toMatchObject({ name: 'requester of host 0 (QPC misses)', share: 1 });
  for (const { share } of bottleneck!.next) expect(share).toBeLessThanOrEqual(1);
});

it('advises no parameter that is already at the end of its range', async () => {
  const fastest = {
    'wire.speed': 'NDR',
    'pcie.link.generation': 5,
    'pcie.link.lanes': 16,
    'dma.dataPathBytes': 512,
  };
  const atMemory = { 'pcie.rootComplex.readLatencyPs': 80_000 };
  const rows = await Promise.all(
    [
      'write-bw,size=65536,iters=60',
      'write-bw,size=64,iters=100,txDepth=4,qps=2',
      'read-lat,size=64,iters=20',
    ].map((workload) => measured(workload, { ...fastest, ...atMemory })),
  );
  const turns = rows.flatMap(({ stages = [], bottleneck }) => [
    ...stages.flatMap(({ turn }) => turn),
    ...(bottleneck === undefined ? [] : [bottleneck.binds, ...bottleneck.next].flatMap(({ turn }) => turn)),
  ]);
  const names = turns.map(({ what }) => what);
  expect(names).toContain('wire.lanes');
  for (const path of [
    ...Object.keys(fastest),
    ...Object.keys(atMemory),
    'dma.readIssueCycles',
    'dma.writeIssueCycles',
  ])
    expect(names).not.toContain(path);
});

it.each([0, 300])('names the switch on the way where there is one, of %i ns', async (ns) => {
  const set = { 'wire.switchLatencyNs': ns };
  const { stages } = await measured('write-lat,size=64,iters=20', set);
  const { bottleneck } = await measured('write-bw,size=65536,iters=40', { ...set, 'wire.cableMetres': 1000 });
  const turns = [stages!.find(({ name }) => name === 'remote')!.turn, bottleneck!.binds.turn];
  const what = 'wire.switchLatencyNs';
  expect(turns.map((turn) => turn.some((each) => each.what === what))).toEqual([ns > 0, ns > 0]);
});

it.each(['read-bw,size=64,iters=100,qps=4,txDepth=2', 'read-lat,size=64,iters=20'])(
  'advises nothing that %s does not have',
  async (workload) => {
    const { bottleneck, stages } = await measured(workload, {});
    const turns = [
      ...(stages ?? []),
      ...(bottleneck === undefined ? [] : [bottleneck.binds, ...bottleneck.next]),
    ];
    const names = turns.flatMap(({ turn }) => turn.map(({ what }) => what));
    expect(names).not.toEqual([]);
    for (const option of ['--inline', '--region', '--page-size', '--keys', '--mtu', 'hca.gatherCycles'])
      expect(names).not.toContain(option);
  },
);

it('weights packets of messages with drawn lengths, instead of counting all as the longest', async () => {
  const set = { 'hca.requestPacketCycles': 20 };
  const { bottleneck, result } = await measured('write-bw,sizes=64:19,32768:1,mtu=4096,iters=400', set);
  // One message in 20 has 7 packets in addition to the first: 77 + 20 * 7 / 20 cycles per message.
  const { coreClockMHz } = configurationOf({ set }).hca;
  const busyPs = (400 * (77 + 7) * 1e6) / coreClockMHz;
  const interval = bottleneck!.next.find(({ name }) => name === 'same-QP interval');
  expect(interval!.share).toBeCloseTo(busyPs / (result as BandwidthResult).durationPs, 6);
});
