/**
 * A bandwidth test on a machine, both randomly drawn from a seed: variations that an architect may try, with just
 * enough messages to show the bottleneck.
 */

import type { ParameterValue } from '../../../machine/profile/index.ts';
import { Random } from '../../../sim/index.ts';

export type FieldValue = string | number | boolean;

export interface DrawnRun {
  /** Fields of the workload, the test first. */
  readonly fields: Readonly<Record<string, FieldValue>>;
  readonly set: Readonly<Record<string, ParameterValue>>;
  readonly profile?: string;
}

/** Percent of the runs, parameter, values. */
const hardware: readonly (readonly [number, string, readonly ParameterValue[]])[] = [
  [40, 'pcie.link.generation', [1, 2, 3, 4, 5]],
  [40, 'pcie.link.lanes', [1, 2, 4, 8, 16]],
  [40, 'wire.speed', ['SDR', 'DDR', 'QDR', 'FDR', 'EDR']],
  [30, 'host.core.clockMHz', [1200, 2500, 4000]],
  [30, 'pcie.rootComplex.readLatencyPs', [80_000, 170_000, 300_000, 600_000]],
  [20, 'dma.tagCount', [4, 8, 16, 32, 64]],
  [20, 'pcie.enumeration.maxReadRequestBytes', [128, 256, 512, 1024, 4096]],
  [20, 'pcie.rootComplex.outstandingReadCount', [8, 16, 48, 120]],
  [15, 'pcie.rootPort.nonPostedHeaders', [4, 8, 16, 64]],
  [15, 'pcie.rootPort.postedHeaders', [4, 8, 16, 64]],
  [15, 'pcie.endpointPort.postedHeaders', [4, 8, 16, 64]],
  [20, 'hca.coreClockMHz', [200, 300, 427, 600]],
  [20, 'hca.requestPacketCycles', [3, 6, 20]],
  [20, 'hca.receivePacketCycles', [5, 10, 30]],
  [20, 'hca.sameQpIntervalCycles', [20, 77, 200]],
  [20, 'hca.mttCacheLines', [16, 64, 256, 1024]],
  [20, 'hca.mptCacheEntries', [16, 64, 256, 1024]],
  [20, 'hca.qpcCacheEntries', [16, 64, 256, 1024]],
  [15, 'hca.wqeLineCount', [8, 64, 256]],
  [15, 'hca.wqeFetchOutstanding', [2, 16, 64]],
  [15, 'hca.wqePrefetchCount', [1, 4, 8]],
  [15, 'hca.transmitBufferPackets', [4, 32]],
  [15, 'hca.responseBufferPackets', [4, 32]],
  [15, 'hca.outstandingWqesPerQp', [4, 16, 256]],
  [15, 'hca.receiveQueueLineCount', [8, 64]],
  [10, 'hca.completionCycles', [4, 20, 60]],
  [10, 'hca.receiveBytesPerCycle', [8, 16, 32]],
  [10, 'hca.transmitBytesPerCycle', [8, 16, 32]],
  [15, 'wire.receiveBufferBytes', [16_384, 65_536]],
  [15, 'wire.cableMetres', [3, 100, 300]],
  [10, 'dma.dataPathBytes', [8, 16, 32]],
  [10, 'dma.readIssueCycles', [1, 10]],
  [10, 'dma.writeIssueCycles', [1, 10]],
  [10, 'pcie.rootComplex.completionCombineBytes', [64, 128, 256]],
  [10, 'host.memory.framePlacement', ['scattered']],
  [10, 'pcie.iommu.isEnabled', [true]],
];

const servicesOf: Readonly<Record<string, readonly string[]>> = {
  'write-bw': ['RC', 'RC', 'UC', 'XRC'],
  'read-bw': ['RC', 'RC', 'XRC'],
  'send-bw': ['RC', 'RC', 'UC', 'UD', 'XRC'],
  'atomic-bw': ['RC', 'XRC'],
};
const tests = ['write-bw', 'write-bw', 'read-bw', 'read-bw', 'send-bw', 'send-bw', 'atomic-bw'] as const;
const mtus = [256, 512, 1024, 2048, 4096];

const pick = <Value>(random: Random, values: readonly Value[]): Value => values[random.below(values.length)]!;

export function drawRun(seed: number): DrawnRun {
  const random = new Random(seed, 'run');
  const may = (percent: number): boolean => random.below(100) < percent;
  const set: Record<string, ParameterValue> = {};
  for (const [percent, path, values] of hardware) if (may(percent)) set[path] = pick(random, values);
  const profile = may(25) ? pick(random, ['connectx3-qdr-fitted', 'connectx3-fdr-fitted']) : undefined;
  return { fields: drawFields(random), set, ...(profile === undefined ? {} : { profile }) };
}

function drawFields(random: Random): Record<string, FieldValue> {
  const may = (percent: number): boolean => random.below(100) < percent;
  const test = pick(random, tests);
  const connection = pick(random, servicesOf[test]!);
  const isDatagram = connection === 'UD';
  const size =
    test === 'atomic-bw'
      ? 8
      : pick(random, [
          1,
          16,
          64,
          64,
          128,
          256,
          512,
          1024,
          2048,
          4096,
          ...(isDatagram ? [] : [16_384, 65_536]),
        ]);
  const threads = pick(random, [1, 1, 2, 4]);
  const qps = Math.max(threads, pick(random, [1, 2, 4, 8, 16, 32, 64, 128]));
  const iters = Math.max(8, Math.ceil((size >= 16_384 ? 300 : size >= 2048 ? 1000 : 3000) / qps));
  const txDepth = pick(random, [1, 2, 4, 8, 16, 64, 128]);
  const postList = pick(
    random,
    [1, 1, 2, 4, 8, 16].filter((count) => txDepth % count === 0),
  );
  const marks = [1, 2, 4, 16, 64].filter((count) => count % postList === 0 && count <= txDepth);
  const fields: Record<string, FieldValue> = {
    test,
    connection,
    size,
    threads,
    qps,
    iters,
    txDepth,
    postList,
  };
  fields['warmup'] = Math.max(4, Math.ceil(iters / 3));
  if (marks.length > 0) fields['cqMod'] = pick(random, marks);
  if (test === 'send-bw') fields['rxDepth'] = pick(random, [32, 128, 512]);
  if ((test === 'write-bw' || test === 'send-bw') && may(50)) fields['inline'] = pick(random, [0, 64, 188]);
  if (may(20)) fields['blueflame'] = 'off';
  if (may(40)) fields['mtu'] = pick(random, isDatagram ? mtus.filter((bytes) => bytes >= size) : mtus);
  if (may(20) && (test !== 'send-bw' || connection === 'RC' || connection === 'XRC'))
    fields['bidirectional'] = true;
  const region = pick(random, [2 ** 16, 2 ** 20, 2 ** 22, 2 ** 24]);
  if (test !== 'send-bw' && may(50) && region >= 256 * size) {
    fields['region'] = region;
    fields['pattern'] = pick(random, ['sequential', 'random', 'zipf', 'stride']);
    fields['keys'] = pick(random, [1, 1, 2, 16, 200]);
    fields['pageSize'] = pick(random, ['4K', '4K', '2M']);
  }
  return fields;
}
