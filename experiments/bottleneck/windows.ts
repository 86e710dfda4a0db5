/**
 * Limits on the number of things in flight. A full window fills the earlier ones: they are listed with the one nearest
 * to the cause first.
 */
import { psPerNs } from '../../base/index.ts';
import type { NodeReport } from '../../machine/index.ts';
import { Opcode, receiveBufferBytesOf, rnrTimerUnitsByCode } from '../../wire/index.ts';
import { cableOf } from '../model/index.ts';
import { isReliable, lengthsOf, rcDefaults } from '../workloads/index.ts';
import {
  type CableRow,
  gathers,
  hcaShare,
  hostText,
  isEthernet,
  isIwarp,
  isRequest,
  isSwitch,
  less,
  type Measured,
  messagesOf,
  more,
  mtuBytesOf,
  type Resource,
  switchLatencyOf,
  trafficOf,
  turnsOfCable,
} from './measured.ts';

/** @param tcp windows of TCP: see iwarp.ts */
export function windowResources(measured: Measured, tcp: readonly Resource[]): Resource[] {
  const { figures } = measured;
  const nodes = figures.nodes.map((report, node) => ({ report, node }));
  return [
    ...nodes.flatMap(({ report, node }) => creditWindows(measured, report, node)),
    ...nodes.map(({ report, node }) => tagWindow(measured, report, node)),
    ...tcp,
    ...nodes.flatMap(({ report, node }) => payloadWindows(measured, report, node)),
    ...nodes.map(({ report, node }) => receiveWindow(measured, report, node)),
    ...nodes.flatMap(({ report, node }) => pageWindow(measured, report, node)),
    ...(isEthernet(measured.config) ? [] : figures.wire).map((cable) => bufferWindow(measured, cable)),
    ...nodes.map(({ report, node }) =>
      stallWindow(measured, report, node, 'requester', 'transmitBuffer', 'transmit buffer', [
        ...more('hca.transmitBufferPackets'),
        ...less('pcie.rootComplex.readLatencyPs'),
      ]),
    ),
    ...nodes.map(({ report, node }) =>
      stallWindow(measured, report, node, 'requester', 'records', 'send WQEs in flight', [
        ...more('hca.outstandingWqes'),
      ]),
    ),
    ...nodes.map(({ report, node }) =>
      stallWindow(measured, report, node, 'responseEngine', 'responseBuffer', 'response buffer', [
        ...more('hca.responseBufferPackets'),
        ...less('pcie.rootComplex.readLatencyPs'),
      ]),
    ),
    ...readWindows(measured),
    ...sendWindows(measured),
    ...nodes.map(({ report, node }) => fetchWindow(measured, report, node)),
  ];
}

/** Share of time: more waiting for credits than single packets cause. */
const oftenWaited = 0.2;
/** Also if the cable has no time left: its waits are compared with the time of its bytes. */
const seldomWaited = 0.05;
const hardlyIdle = 0.95;
const nearlyAlways = 0.8;

/**
 * Credits of the port at the other end. A busy receiver, or a switch with a busy output, returns none; otherwise they
 * are in flight: the buffer limits the bytes on the cable, and the cable is saturated if it sends or waits for them.
 */
function bufferWindow(measured: Measured, row: CableRow): Resource {
  const { to, toPort = 1, busyPs, creditWaitPs } = row;
  const { durationPs } = measured;
  const isOccupied = emptyingShare(measured, to) >= nearlyAlways;
  const waited = creditWaitPs / durationPs;
  const filled = waited + busyPs / durationPs;
  const isOften = waited >= oftenWaited || (waited >= seldomWaited && filled >= hardlyIdle);
  const isCable = isOften && !isOccupied;
  return {
    name: isSwitch(measured, to)
      ? `receive buffer of switch ${to} port ${toPort}`
      : `receive buffer of the port of ${hostText(measured, to)}`,
    kind: 'window',
    share: isCable ? Math.min(1, filled) : waited,
    turn: turnsOfCable(measured, row, [
      ...more(isSwitch(measured, to) ? 'switch.inputBufferBytes' : 'wire.receiveBufferBytes'),
      ...(isCable ? less('wire.cableMetres', 'wire.portLatencyNs', 'wire.switchLatencyNs') : []),
      ...(isCable && fillsBadly(measured, to) ? less('--mtu') : []),
    ]),
  };
}

/** Share of time in which the block that empties a receive buffer is busy, or the busiest output of a switch. */
function emptyingShare(measured: Measured, node: number): number {
  const { figures, durationPs } = measured;
  if (isSwitch(measured, node)) {
    const outputs = figures.wire.filter(({ from }) => from === node);
    return Math.max(...outputs.map(({ busyPs, creditWaitPs }) => (busyPs + creditWaitPs) / durationPs));
  }
  const { busyCycles = 0, stalledCycles = {} } = figures.nodes[node]?.hca.blocks['receiver'] ?? {};
  const stalled = Object.values(stalledCycles).reduce((sum, cycles) => sum + cycles, 0);
  return hcaShare(measured, busyCycles + stalled);
}

/** A buffer accepts whole packets: whether packets of half the length would leave clearly less of it empty. */
function fillsBadly(measured: Measured, to: number): boolean {
  const { config, args } = measured;
  const ownBytes = isSwitch(measured, to) ? { receiveBufferBytes: config.switch.inputBufferBytes } : {};
  const bufferBytes = receiveBufferBytesOf({ ...config.wire, ...ownBytes });
  const headerBytes = cableOf(config).linkBytesOf(Opcode.RC_RDMA_WRITE_MIDDLE, 0);
  const heldBytes = (bytes: number): number => bytes * Math.floor(bufferBytes / (bytes + headerBytes));
  const mtu = mtuBytesOf(args);
  const longest = Math.max(...lengthsOf(args).map(({ bytes }) => bytes));
  return args.connection !== 'UD' && longest >= mtu && heldBytes(mtu / 2) > clearly * heldBytes(mtu);
}
const clearly = 1.1;

/**
 * Receives: the receiver waits until their WQEs are fetched. A message without a posted receive is sent again after the
 * delay in the RNR NAK, for which its QP waits. The receiver waits only while it has nothing else to do, so only that
 * part of the time counts.
 */
function receiveWindow(measured: Measured, { hca, onDemand }: NodeReport, node: number): Resource {
  const { busyCycles = 0, stalledCycles = {} } = hca.blocks['receiver'] ?? {};
  const naks = (hca.transport['rnrNakSent'] ?? 0) - (onDemand?.device.rnrNaks ?? 0);
  const fetchShare = hcaShare(measured, stalledCycles['receiveWqe'] ?? 0);
  const delayShare = shareOfRnrDelays(measured, naks);
  const { context = 0, translation = 0 } = stalledCycles;
  const freeShare = Math.max(fetchShare, 1 - hcaShare(measured, busyCycles + context + translation));
  return {
    name: `receive WQEs of ${hostText(measured, node)}`,
    kind: 'window',
    share: (fetchShare === 0 ? 0 : fetchShare / freeShare) + delayShare,
    turn: receiveTurns(measured, fetchShare > delayShare),
  };
}

/**
 * Receives of a shared queue are a linked list, fetched one after another: depth and prefetching do not help, and each
 * program has its own queue. If more queues are in use than have WQEs on chip, each message repeats the prefetch.
 */
function receiveTurns({ args, config }: Measured, isFetch: boolean): Resource['turn'] {
  const latency = less('pcie.rootComplex.readLatencyPs', 'pcie.link.latencyPs');
  if (isFetch && (args.connection === 'XRC' || args.usesSrq === true))
    return [...latency, ...more('--threads')];
  const { receiveQueueLineCount } = config.hca;
  if (isFetch && args.qpCount > receiveQueueLineCount) {
    const because = `${args.qpCount} QPs take turns, and the receive WQEs of ${receiveQueueLineCount} are on chip.`;
    const [lines] = more('hca.receiveQueueLineCount');
    return [{ ...lines!, because }, ...less('--qps'), ...latency];
  }
  return [
    ...(isFetch
      ? more('hca.receivePrefetchCount', '--rx-depth')
      : more('--rx-depth', 'hca.receivePrefetchCount')),
    ...(isFetch ? latency : []),
    ...less('host.cost.postRecv'),
  ];
}

/** Time for which this many RNR NAKs make QPs wait, as a share of the QPs' time. */
function shareOfRnrDelays({ args, config, durationPs }: Measured, naks: number): number {
  const delayPs = rnrTimerUnitsByCode[rcDefaults.rnrTimerCode]! * config.hca.rnrTimerUnitNs * psPerNs;
  return (naks * delayPs) / durationPs / args.qpCount;
}

/**
 * Missing pages of on-demand regions: the QP waits until the page is present or, if its peer's request needs it, for
 * the delay of an RNR NAK. A request after a READ that must be answered again has no delay: the sum may exceed the
 * time.
 */
function pageWindow(measured: Measured, { onDemand }: NodeReport, node: number): Resource[] {
  if (onDemand === undefined) return [];
  const { waitCycles, rnrNaks } = onDemand.device;
  const { requester = 0, response = 0 } = waitCycles;
  const waited = hcaShare(measured, requester + response) / measured.args.qpCount;
  return [
    {
      name: `absent pages of ${hostText(measured, node)}`,
      kind: 'window',
      share: Math.min(1, waited + shareOfRnrDelays(measured, rnrNaks)),
      turn: [...more('driver.pageRequestPagesMax'), ...less('--region')],
    },
  ];
}

const flowNames = { posted: 'posted', nonPosted: 'nonPosted' } as const;

/** Credits that the other end of a PCIe link grants; those for completions are infinite. */
function creditWindows(measured: Measured, { pcie }: NodeReport, node: number): Resource[] {
  const ends = [
    ['toDevice', 'endpointPort', 'device'],
    ['toHost', 'rootPort', 'root port'],
  ] as const;
  return ends.flatMap(([direction, port, giver]) =>
    Object.values(flowNames).map((flow): Resource => {
      const { headerCredits = 0, dataCredits = 0 } = pcie[direction].waitedPs[flow] ?? {};
      return {
        name: `${flow === 'posted' ? 'posted' : 'non-posted'} credits of the ${giver} of ${hostText(measured, node)}`,
        kind: 'window',
        share: (headerCredits + dataCredits) / measured.durationPs,
        turn: more(`pcie.${port}.${flow}${headerCredits >= dataCredits ? 'Headers' : 'Data'}`),
      };
    }),
  );
}

function tagWindow(measured: Measured, report: NodeReport, node: number): Resource {
  return stallWindow(measured, report, node, 'dmaRead', 'tags', 'DMA tags', [
    ...more('dma.tagCount', 'pcie.enumeration.maxReadRequestBytes'),
    ...less('pcie.rootComplex.readLatencyPs'),
  ]);
}

/** Payload on its way from and to memory: the DMA engines accept a limited number of requests of a block at a time. */
function payloadWindows(measured: Measured, report: NodeReport, node: number): Resource[] {
  const ofReads = less('pcie.rootComplex.readLatencyPs', 'pcie.link.latencyPs');
  const ofWrites = less('pcie.rootComplex.writeLatencyPs');
  return [
    stallWindow(measured, report, node, 'responseEngine', 'dma', 'payload reads of the responder', ofReads),
    stallWindow(measured, report, node, 'requester', 'dma', 'payload reads of the requester', ofReads),
    stallWindow(measured, report, node, 'receiver', 'dma', 'payload writes of the receiver', ofWrites),
  ];
}

function stallWindow(
  measured: Measured,
  { hca }: NodeReport,
  node: number,
  block: string,
  reason: string,
  name: string,
  turn: Resource['turn'],
): Resource {
  const cycles = hca.blocks[block]?.stalledCycles[reason] ?? 0;
  return {
    name: `${name} of ${hostText(measured, node)}`,
    kind: 'window',
    share: hcaShare(measured, cycles),
    turn,
  };
}

/** Unloaded latency from a request to the first byte of its completion over PCIe. */
const readLatencyPs = ({ config }: Measured): number =>
  2 * config.pcie.link.latencyPs + config.pcie.rootComplex.readLatencyPs;

/** Unloaded round trip to the other host. */
function cableTripPs({ config, switchCount, cablesPs }: Measured): number {
  const { hca } = config;
  const devicePs = (2 * (hca.transmitLatencyCycles + hca.receiveLatencyCycles) * 1e6) / hca.coreClockMHz;
  return 2 * (cablesPs + switchCount * switchLatencyOf(config).ns * psPerNs) + devicePs;
}

/** READs and atomics in flight, by the least time of one. */
function readWindows(measured: Measured): Resource[] {
  const { args, durationPs } = measured;
  if (args.verb !== 'read' && args.verb !== 'atomic') return [];
  const tripPs = cableTripPs(measured) + readLatencyPs(measured);
  const share = (messagesOf(measured) * tripPs) / durationPs / (args.qpCount * rcDefaults.readAtomicMax);
  return [{ name: 'READs in flight of a QP', kind: 'window', share, turn: more('--qps') }];
}

/**
 * Send WQEs of a QP that are executed and not acknowledged, by the least time of one: payload is read or arrives with
 * the answer, and the answer to the last packet is delayed. An unreliable request ends when it is sent.
 */
function sendWindows(measured: Measured): Resource[] {
  const { args, config, durationPs } = measured;
  const { outstandingWqesPerQp, ackDelayCycles, coreClockMHz } = config.hca;
  // Over iWARP a WRITE or SEND ends when it is sent.
  if (isIwarp(config) && isRequest(args)) return [];
  if (!isReliable(trafficOf(measured).service) || args.txDepth <= outstandingWqesPerQp) return [];
  const readPs = isRequest(args) && !gathers(args) ? 0 : readLatencyPs(measured);
  const tripPs = cableTripPs(measured) + readPs + (ackDelayCycles * 1e6) / coreClockMHz;
  const ways = args.isBidirectional === true ? 2 : 1;
  const perQp = messagesOf(measured) / args.qpCount / ways;
  const share = (perQp * tripPs) / durationPs / outstandingWqesPerQp;
  const turn = more('hca.outstandingWqesPerQp', '--qps');
  return [{ name: 'send WQEs in flight of a QP', kind: 'window', share, turn }];
}

const nearlyWhole = 0.9;

/** Fetches of send WQEs: one at a time for each QP. */
function fetchWindow(measured: Measured, { hca }: NodeReport, node: number): Resource {
  const { config, args, durationPs } = measured;
  const fetches = hca.caches['wqe']?.misses ?? 0;
  const { wqeFetchOutstanding, wqeLineCount, wqePrefetchCount } = config.hca;
  const atOnce = Math.min(args.qpCount, wqeFetchOutstanding);
  // With more QPs than lines, each repeats the prefetch.
  const isBeyondLines = args.qpCount > wqeLineCount;
  const isAllAtOnce = args.qpCount > wqeFetchOutstanding;
  // A fetch that finds fewer WQEs than its limit would not find more.
  const { postList = 1, usesBlueFlame = true } = args;
  const isFull =
    messagesOf(measured) > nearlyWhole * fetches * wqePrefetchCount || postList > wqePrefetchCount;
  // A single request through BlueFlame is not fetched.
  const isByBlueFlame = usesBlueFlame && postList === 1;
  const ways = [
    ...(isAllAtOnce ? ['hca.wqeFetchOutstanding'] : []),
    ...(isFull ? ['hca.wqePrefetchCount'] : []),
    ...(isBeyondLines ? ['hca.wqeLineCount'] : []),
    ...(!isAllAtOnce && isByBlueFlame ? ['--inline'] : []),
    ...(isBeyondLines || isAllAtOnce ? [] : ['--qps']),
  ];
  return {
    name: `WQE fetches in flight of ${hostText(measured, node)}`,
    kind: 'window',
    share: (fetches * readLatencyPs(measured)) / durationPs / atOnce,
    turn: [...more(...ways), ...less('pcie.rootComplex.readLatencyPs')],
  };
}
