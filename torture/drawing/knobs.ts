/**
 * The table of knobs: which parameters stories turn, over which values, how often, and under which condition.
 *
 *     groups ──► knobs that belong together, in some stories       pool ──► any other parameter, over its declared range
 *     knots  ──► settings that have exposed defects in many devices, drawn together
 */
import { type ParameterValues, parametersByPath, profileValues } from '../../machine/profile/index.ts';
import type { Climate } from '../story.ts';
import { from, logFrom, type Values } from './choice.ts';

/** Facts of a story that conditions test. */
export interface Facts {
  readonly climate: Climate;
  readonly isOfPlayers: boolean;
  readonly hasOnDemand: boolean;
  /** Programs sleep until events arrive. */
  readonly sleeps: boolean;
}

type Condition = (facts: Facts) => boolean;

interface Knob {
  readonly path: string;
  readonly values: Values;
  /** Share among the stories in which its group is drawn; omitted: all. */
  readonly share?: number;
  readonly when?: Condition;
}

export interface KnobGroup {
  /** Share among the stories that meet the condition. */
  readonly share: number;
  readonly when?: Condition;
  readonly knobs: readonly Knob[];
}

const ofPlayers: Condition = ({ isOfPlayers }) => isOfPlayers;
const losesPackets: Condition = ({ climate }) => climate === 'lossy' || climate === 'broken';
const keepsPackets: Condition = (facts) => !losesPackets(facts);

export const groups: readonly KnobGroup[] = [
  { share: 0.16, knobs: [{ path: 'wire.packetForm', values: ['bytes'] }] },
  // Few lines of a WQE at once, each of which takes time.
  {
    share: 0.1,
    knobs: [
      { path: 'hca.wqeBufferLines', values: from(1, 6) },
      { path: 'hca.wqeLineCycles', values: from(1, 12) },
    ],
  },
  // A part of the QPC cache for the requester alone, two lines of a context, registers for few of them, few or many
  // reads under way.
  {
    share: 0.15,
    knobs: [
      { path: 'hca.sendContextEntries', values: from(1, 7), share: 0.6 },
      { path: 'hca.contextFetchesInFlight', values: from(1, 20), share: 0.6 },
      { path: 'hca.qpcLinesPerContext', values: [2], share: 0.6 },
      { path: 'hca.sendContextRegisters', values: from(1, 4), share: 0.6 },
      { path: 'hca.sendContextLoadCycles', values: logFrom(1, 1000), share: 0.6 },
    ],
  },
  // Segments of READ responses that take time each.
  { share: 0.1, knobs: [{ path: 'hca.readSegmentCycles', values: logFrom(1, 1000) }] },
  // Selective repeat with windows and buffers of all sizes, and timeouts that expire by themselves.
  {
    share: 0.25,
    when: ofPlayers,
    knobs: [
      { path: 'hca.lossRecovery', values: ['selective-repeat'] },
      { path: 'hca.recoveryWindowPackets', values: [4, 8, 16, 64, 128, 1024], share: 0.7 },
      { path: 'hca.reorderBufferPackets', values: logFrom(1, 256), share: 0.7 },
      { path: 'hca.retransmitLowUs', values: logFrom(2, 1000), share: 0.4 },
      { path: 'hca.retransmitHighUs', values: logFrom(5, 5000), share: 0.4 },
      { path: 'hca.retransmitLowPackets', values: from(1, 40), share: 0.3 },
    ],
  },
  // Headers that pass the receive datapath ahead of their payload.
  { share: 0.05, when: ofPlayers, knobs: [{ path: 'hca.receiveHeadCycles', values: from(1, 64) }] },
  /*
   * Timeouts and RNR delays of other cards (ConnectX-3's are rows H-195 to H-225 of reference/measurements.csv). Those
   * shorter than the standard's expire by themselves on slow hardware, so they are drawn only if that is no
   * contradiction.
   */
  {
    share: 0.2,
    when: ofPlayers,
    knobs: [
      { path: 'hca.ackTimeoutUnitNs', values: logFrom(4096, 100_000), share: 0.6, when: keepsPackets },
      { path: 'hca.ackTimeoutUnitNs', values: logFrom(100, 100_000), share: 0.6, when: losesPackets },
      { path: 'hca.ackTimeoutCodeMin', values: from(1, 16), share: 0.48 },
      { path: 'hca.ackTimeoutCodeMin', values: from(1, 31), share: 0.12 },
      { path: 'hca.rnrTimerUnitNs', values: logFrom(1000, 1_000_000), share: 0.6 },
    ],
  },
  {
    share: 1,
    when: ({ hasOnDemand }) => hasOnDemand,
    knobs: [
      { path: 'driver.pageRequestPagesMax', values: from(1, 8), share: 0.5 },
      // Each request touches up to 64 pages; with a smaller limit, pages are evicted as fast as they arrive.
      { path: 'driver.onDemandPagesMax', values: from(128, 527), share: 0.4 },
    ],
  },
  {
    share: 0.4,
    when: ({ sleeps }) => sleeps,
    knobs: [{ path: 'driver.eqUpdateInterval', values: from(1, 2) }],
  },
];

/**
 * Knobs of Ethernet ports, except frame sizes, rates and lengths of cables, which depend on each other (ethernet.ts).
 */
export const ethernetGroups: readonly KnobGroup[] = [
  {
    share: 1,
    knobs: [
      { path: 'hca.capability.roce', values: ['v1', 'v1', 'v2', 'v2', 'v2'] },
      { path: 'ethernet.portLatencyNs', values: logFrom(1, 6000), share: 0.4 },
      { path: 'ethernet.cablePsPerMetre', values: from(3336, 10_000), share: 0.2 },
      { path: 'ethernet.preambleBytes', values: from(0, 64), share: 0.15 },
      { path: 'ethernet.interFrameGapBytes', values: from(0, 1024), share: 0.08 },
      { path: 'ethernet.interFrameGapBytes', values: from(0, 12), share: 0.08 },
      { path: 'ethernet.transmitAheadBytes', values: logFrom(1, 65_536), share: 0.14 },
      { path: 'ethernet.transmitAheadBytes', values: [0], share: 0.06 },
      { path: 'ethernet.pauseQuanta', values: logFrom(512, 65_535), share: 0.5 },
    ],
  },
  {
    share: 0.6,
    knobs: [
      { path: 'ethernet.pauseXoffPercent', values: from(1, 100) },
      { path: 'ethernet.pauseXonPercent', values: [0, 99] },
      { path: 'ethernet.pauseXonPercent', values: from(0, 99), share: 0.33 },
    ],
  },
];

/** Parameters that depend on each other (ethernet.ts). */
const ethernetOthers = [
  'hca.capability.linkLayer',
  'driver.usesPause',
  ...['cableMetres', 'pauseCableMetres', 'mtuBytes', 'gigabitsPerSecond', 'receiveFifoFrames'].map(
    (name) => `ethernet.${name}`,
  ),
  'ethernet.lossPerMillion',
  'ethernet.corruptionPerMillion',
];

/** Combinations that have exposed defects in many devices, drawn together more often than by chance. */
export const knots: readonly ParameterValues[] = [
  { 'dma.tagCount': 1 },
  { 'dma.tagCount': 2, 'hca.mttCacheLines': 1, 'hca.mttCacheWays': 1 },
  { 'pcie.link.generation': 1, 'pcie.link.lanes': 1 },
  { 'pcie.rootComplex.readLatencyPs': 5_000_000 },
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
  { 'pcie.rootComplex.outstandingReadCount': 1 },
  { 'pcie.endpointPort.nonPostedHeaders': 1, 'pcie.rootPort.nonPostedHeaders': 1 },
  { 'pcie.rootPort.postedHeaders': 1 },
  { 'driver.completionVectorsMax': 1 },
  { 'driver.useMsix': false },
  { 'hca.sameQpIntervalCycles': 1, 'hca.scheduleCycles': 1 },
];
/** Combinations that make a device slow: memory is taken away while it has work. */
export const slowKnots: readonly ParameterValues[] = knots.slice(0, 4);

/** Costs as measurements show them, all together in some stories. */
export const fitted: ParameterValues = profileValues('connectx3-qdr-fitted');

const poolPrefixes = [
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
  'driver.blueFlameForAll',
];

/** Parameters that would make another machine, another memory map or a driver that gives up, not another timing. */
const keptPrefixes = [
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
];

const pathsOf = (all: readonly KnobGroup[]): string[] =>
  all.flatMap(({ knobs }) => knobs.map(({ path }) => path));
/** Groups draw these within narrower ranges. */
const ofGroups: ReadonlySet<string> = new Set(
  pathsOf(groups).filter((path) => path !== 'driver.eqUpdateInterval' && path !== 'hca.wqeLineCycles'),
);

/** Parameters of which each story varies a few over their declared ranges. */
export const pool: readonly string[] = [...parametersByPath.keys()].filter(
  (path) =>
    poolPrefixes.some((prefix) => path.startsWith(prefix)) &&
    !keptPrefixes.some((kept) => path.startsWith(kept)) &&
    !ofGroups.has(path),
);

/** All parameters that stories turn, by path. */
export const drawnPaths: readonly string[] = [
  ...new Set([...pool, ...pathsOf(groups), ...pathsOf(ethernetGroups), ...ethernetOthers]),
];
