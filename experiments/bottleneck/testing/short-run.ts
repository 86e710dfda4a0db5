/**
 * A drawn run of few messages, for judges that inspect every record: bandwidth and latency tests with randomly drawn
 * PCIe links, and reliable services with packets that faults drop.
 */

import type { ParameterValue } from '../../../machine/profile/index.ts';
import { Random } from '../../../sim/index.ts';
import { type DrawnRun, drawRun, type FieldValue } from './drawn-run.ts';

export interface ShortRun extends DrawnRun {
  /** In the form of `--fault`. */
  readonly faults: readonly string[];
}

/** Percent of the runs, parameter, values. */
const bus: readonly (readonly [number, string, readonly ParameterValue[]])[] = [
  [40, 'pcie.rootComplex.readCompletionBoundaryBytes', [64, 128]],
  [40, 'pcie.link.packetAlignmentBytes', [4, 8, 16, 32, 64]],
  [30, 'pcie.link.ackEveryTlps', [1, 3, 8]],
  [30, 'pcie.link.updateFcPercent', [0, 50, 100]],
  [20, 'pcie.rootComplex.completionOrder', ['shuffled']],
  [20, 'pcie.iommu.isEnabled', [true]],
  [20, 'hca.mttCacheLines', [8, 16]],
];

const payloadMax = 2 ** 20;

const pick = <Value>(random: Random, values: readonly Value[]): Value => values[random.below(values.length)]!;

export function drawShortRun(seed: number, messages: number): ShortRun {
  const run = drawRun(seed);
  const random = new Random(seed, 'bus');
  const isLatency = random.below(100) < 25;
  const fields = isLatency
    ? latencyFields(run.fields, messages, random)
    : bandwidthFields(run.fields, messages, random);
  const set = { ...run.set, ...drawBus(run.set, random) };
  return { ...run, fields, set, faults: drawFaults(fields, messages, random) };
}

function drawBus(
  set: Readonly<Record<string, ParameterValue>>,
  random: Random,
): Readonly<Record<string, ParameterValue>> {
  const drawn: Record<string, ParameterValue> = {};
  for (const [percent, path, values] of bus)
    if (random.below(100) < percent) drawn[path] = pick(random, values);
  if (random.below(100) < 40) {
    const payloadBytes = pick(random, [128, 256, 512, 1024, 2048]);
    drawn['pcie.link.maxPayloadBytes'] = payloadBytes;
    drawn['pcie.enumeration.maxPayloadBytes'] = payloadBytes;
  }
  // A root complex answers with at least one whole boundary.
  const boundary = Number(drawn['pcie.rootComplex.readCompletionBoundaryBytes'] ?? 64);
  const combined = Number(set['pcie.rootComplex.completionCombineBytes'] ?? 256);
  drawn['pcie.rootComplex.completionCombineBytes'] = Math.max(boundary, combined);
  return drawn;
}

/** Fields that latency tests also have. */
const ofBoth = ['connection', 'size', 'mtu', 'inline', 'blueflame'] as const;
const ofPlaces = ['region', 'pattern', 'keys', 'pageSize'] as const;

function latencyFields(
  fields: DrawnRun['fields'],
  messages: number,
  random: Random,
): Record<string, FieldValue> {
  const verb = String(fields['test']).replace('-bw', '');
  const kept = [...ofBoth, ...(verb === 'write' ? [] : ofPlaces)].filter(
    (name) => fields[name] !== undefined,
  );
  return {
    test: `${verb}-lat`,
    ...Object.fromEntries(kept.map((name) => [name, fields[name]!])),
    iters: Math.min(40, messages),
    ...(verb !== 'write' && random.below(2) === 0 ? { events: true } : {}),
  };
}

function bandwidthFields(
  fields: DrawnRun['fields'],
  messages: number,
  random: Random,
): Record<string, FieldValue> {
  const may = (percent: number): boolean => random.below(100) < percent;
  const { size, warmup: _, ...rest } = fields;
  const total = Math.max(8, Math.min(messages, Math.ceil(payloadMax / Number(size))));
  const iters = Math.max(2, Math.ceil(total / Number(fields['qps'])));
  const drawn: Record<string, FieldValue> = { ...rest, size: size!, iters };
  if (may(50)) drawn['warmup'] = Math.max(1, Math.ceil(iters / 3));
  if (may(30)) {
    drawn['events'] = true;
    if (may(50)) drawn['moderation'] = pick(random, ['4:10', '16:5', '1:0']);
  }
  if (fields['test'] === 'send-bw' && may(20)) drawn['useSrq'] = true;
  if (fields['test'] !== 'atomic-bw' && fields['connection'] !== 'UD' && may(15)) {
    delete drawn['size'];
    drawn['sizes'] = '64:50,512:20,3000:10';
  }
  return drawn;
}

/** Faults from which a reliable service recovers. */
function drawFaults(fields: DrawnRun['fields'], messages: number, random: Random): string[] {
  const isReliable = fields['connection'] === 'RC' || fields['connection'] === 'XRC';
  if (!isReliable || random.below(100) < 50) return [];
  return Array.from({ length: 1 + random.below(3) }, () => {
    const what = pick(random, ['lost', 'lost', 'corrupted']);
    return `packet=${what},node=${random.below(2)},nth=${1 + random.below(messages)}`;
  });
}
