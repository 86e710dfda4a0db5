/**
 * Hardware of a story: a few parameters of the machine, each over its declared range, more often near the ends, where queues are
 * one entry deep and caches hold one line. Costs and latencies stay within some tens of their defaults, since a story in which
 * every load takes a millisecond tests nothing and never ends; sizes and counts go to both ends.
 */
import { ConfigurationError, type NumberParameter, type Parameter } from '../base/index.ts';
import {
  configurationOf,
  type ParameterValue,
  type ParameterValues,
  parametersByPath,
} from '../machine/profile/index.ts';
import type { Random } from '../sim/index.ts';

const drawnPrefixes = [
  'host.core.',
  'host.interrupt.',
  'host.cost.',
  'host.memory.framePlacement',
  'pcie.link.',
  'pcie.rootPort.',
  'pcie.endpointPort.',
  'pcie.rootComplex.',
  'pcie.enumeration.max',
  'pcie.iommu.',
  'pcie.function.maxPayloadSupportedBytes',
  'pcie.function.mmioReadCycles',
  'pcie.function.requestFifoDepth',
  'dma.',
  'hca.',
  'wire.',
  'driver.completionVectorsMax',
  'driver.commandsInFlightMax',
  'driver.eqUpdateInterval',
  'driver.useMsix',
];

/** What would make another machine, another memory map or a driver that gives up, not another timing. */
const keptPaths = [
  'host.core.count',
  'host.core.storeSpaceKib',
  'pcie.rootComplex.messageWindowAddress',
  'pcie.rootComplex.deviceBus',
  'pcie.rootComplex.completionTimeoutPs',
  'hca.capability.',
  'hca.control.embeddedSubnetManager',
  'hca.control.portLid',
  'hca.control.subnetManagerLid',
  'hca.control.eqCountMax',
  'hca.qpCountMax',
  'hca.cqCountMax',
  'hca.srqCountMax',
  'hca.control.initialiseCycles',
  'wire.trainingUs',
  // The judges count time-outs and delays in the standard's units.
  'hca.rnrTimerUnitNs',
  'hca.ackTimeoutUnitNs',
  'hca.ackTimeoutCodeMin',
  // Drawn apart: see bytesShare.
  'wire.packetForm',
];

/** What came last: stories have it by draws of its own (draw-receive-path.ts, draw-send-contexts.ts, draw-wqe-buffer.ts). */
const newestPaths = [
  'hca.receiveHeadCycles',
  'hca.sendContextEntries',
  'hca.contextFetchesInFlight',
  'hca.wqeBufferLines',
];
/** Costs of the fitted profiles when the first stories had them: a seed stays its story, though the profiles are fitted anew. */
const fittedCosts: ParameterValues = {
  'hca.receivePacketCycles': 12,
  'hca.gatherBytesPerCycle': 16,
  'hca.wqeDecodeCycles': 5,
  'hca.wqeLineCycles': 8,
  'hca.blueFlameWqes': 16,
  'hca.unreliableIntervalCycles': 34,
  'hca.readIntervalCycles': 90,
  'hca.gatherCycles': 8,
  'hca.readRequestCycles': 21,
  'hca.readResponseCycles': 17,
  'hca.readResponseBytesPerCycle': 32,
  'hca.readResponseLatencyCycles': 128,
  'hca.writeGapCycles': 11,
  'hca.sendGapCycles': 29,
  'hca.readGapCycles': 29,
  'pcie.rootComplex.readLatencyPs': 80_000,
};

/**
 * What came later than the first seeds that pages and tables name. It is drawn after everything else: an entry more in the list of
 * the others would make other hardware of every seed.
 */
const laterPaths = [
  ...Object.keys(fittedCosts).filter((path) => path.startsWith('hca.')),
  'hca.keyOperationCycles',
  'wire.switchLatencyNs',
].filter((path) => !['hca.receivePacketCycles', 'hca.wqeDecodeCycles'].includes(path));

/** Of the stories whose packets travel as bytes … */
const bytesShare = 0.2;
/** … that have some of the later parameters … */
const laterShare = 0.3;
/** … and, of those, that have all costs of the fitted profiles, but for what the story itself has drawn. */
const fittedShare = 0.3;

type Drawn = readonly (readonly [string, Parameter])[];

const drawnParameters: Drawn = [...parametersByPath].filter(
  ([path]) =>
    drawnPrefixes.some((prefix) => path.startsWith(prefix)) &&
    !keptPaths.some((kept) => path.startsWith(kept)) &&
    !laterPaths.includes(path) &&
    !newestPaths.includes(path),
);
const laterParameters: Drawn = laterPaths.map((path) => [path, parametersByPath.get(path)!] as const);

/** Parameters that torture draws, by path. */
export const drawnPaths: readonly string[] = [
  ...[...drawnParameters, ...laterParameters].map(([path]) => path),
  ...newestPaths,
];

/** Combinations that have exposed defects in many devices, drawn together more often than by chance. */
export const knots: readonly ParameterValues[] = [
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.completionOrder': 'shuffled' },
  { 'pcie.rootComplex.completionOrder': 'shuffled', 'dma.tagCount': 4 },
  { 'pcie.iommu.isEnabled': true, 'pcie.iommu.iotlbEntries': 1, 'pcie.iommu.iotlbWays': 1 },
  { 'hca.mptCacheEntries': 1, 'hca.mptCacheWays': 1, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'hca.qpcCacheEntries': 1, 'hca.qpcCacheWays': 1, 'hca.cqcCacheEntries': 1, 'hca.cqcCacheWays': 1 },
  { 'hca.transmitBufferPackets': 2, 'hca.responseBufferPackets': 2 },
  { 'hca.wqeLineCount': 2, 'hca.wqePrefetchCount': 1, 'hca.wqeFetchOutstanding': 1 },
  { 'hca.receiveQueueLineCount': 2, 'hca.receivePrefetchCount': 1 },
  { 'hca.completionFifoDepth': 2 },
  { 'hca.outstandingWqes': 4, 'hca.outstandingWqesPerQp': 1 },
  { 'hca.burstPackets': 1 },
  { 'hca.responderAtomicResults': 1 },
  { 'wire.speed': 'SDR', 'wire.lanes': '1' },
  { 'wire.receiveBufferBytes': 8448, 'wire.creditReturnBytes': 64 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
  { 'pcie.rootComplex.outstandingReadCount': 1 },
  { 'pcie.endpointPort.nonPostedHeaders': 1, 'pcie.rootPort.nonPostedHeaders': 1 },
  { 'pcie.rootPort.postedHeaders': 1 },
  { 'driver.completionVectorsMax': 1 },
  { 'driver.useMsix': false },
  { 'hca.sameQpIntervalCycles': 1, 'hca.scheduleCycles': 1 },
];

/** @returns changes that the machine's own checks accept */
export function drawHardware(random: Random): ParameterValues {
  const set: Record<string, ParameterValue> = { 'host.memory.sizeMib': 64 };
  if (random.chance(0.2)) return set;
  const knotCount = random.below(4);
  for (let count = 0; count < knotCount; count++) Object.assign(set, knots[random.below(knots.length)]);
  drawSome(random, set, drawnParameters, random.chance(0.5) ? random.below(4) : random.below(14));
  if (random.chance(bytesShare)) set['wire.packetForm'] = 'bytes';
  if (!random.chance(laterShare)) return acceptable(set);
  const isFitted = random.chance(fittedShare);
  const later = isFitted ? { ...fittedCosts } : {};
  drawSome(random, later, laterParameters, random.below(isFitted ? 3 : 6));
  return acceptable({ ...later, ...set });
}

function drawSome(random: Random, set: Record<string, ParameterValue>, from: Drawn, times: number): void {
  for (let time = 0; time < times; time++) {
    const [path, parameter] = from[random.below(from.length)]!;
    set[path] = drawValue(random, parameter);
  }
}

/**
 * What a scene needs together with drawn hardware, of which it leaves out what the configuration's checks name until they accept
 * the rest.
 */
export function acceptable(hardware: ParameterValues, needed: ParameterValues = {}): ParameterValues {
  const drawn: Record<string, ParameterValue> = { ...hardware };
  for (;;) {
    const set = { ...drawn, ...needed };
    try {
      configurationOf({ set });
      return set;
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      const { field } = error;
      const paths = Object.keys(drawn).filter((path) => path !== 'host.memory.sizeMib');
      const blamed = paths.find((path) => path === field) ?? paths.at(-1);
      if (blamed === undefined) throw error;
      delete drawn[blamed];
    }
  }
}

function drawValue(random: Random, parameter: Parameter): ParameterValue {
  if (parameter.kind === 'flag') return random.chance(0.5);
  if (parameter.kind === 'choice') return parameter.choices[random.below(parameter.choices.length)]!;
  const [min, max] = rangeOf(parameter);
  const value = drawNumber(random, min, max);
  return parameter.powerOfTwo === true ? 2 ** Math.round(Math.log2(Math.max(1, value))) : value;
}

const latencyUnits = ['ps', 'ns', 'us', 'cycles', 'symbols', 'blocks'];

/** The declared range; of costs and latencies no more than forty times the default, or 4,000 from nothing. */
function rangeOf({ min, max, unit, default: usual }: NumberParameter): readonly [number, number] {
  const isLatency = latencyUnits.includes(unit);
  if (unit === 'MHz')
    return [Math.max(min, usual / 8), Math.min(max, usual * 4)].map(Math.round) as [number, number];
  return isLatency
    ? [min, Math.min(max, Math.max(40 * usual, 4000))]
    : [min, Math.min(max, Math.max(16 * usual, 1024))];
}

function drawNumber(random: Random, min: number, max: number): number {
  const kind = random.below(8);
  if (kind < 3) return Math.min(max, min + random.below(3));
  if (kind === 3) return max;
  const low = Math.log2(min + 1);
  const drawn = 2 ** (low + random.unit() * (Math.log2(max + 1) - low)) - 1;
  return Math.min(max, Math.max(min, Math.round(drawn)));
}
