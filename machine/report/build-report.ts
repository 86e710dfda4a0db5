/** Combines the ledgers of all logical processes into one report. */
import { type OperationStage, operationStages, rateStages, streamStages } from '../../hw/hca/index.ts';
import { type ExactPs, exactSumOf, Histogram, type HistogramData } from '../../sim/index.ts';
import { type Fault, faultText } from '../faults/index.ts';
import type { MachineConfig } from '../profile/index.ts';
import {
  declaredOf,
  directionsOf,
  type LinkDirectionEnds,
  type NodePort,
  type Topology,
} from '../topology/index.ts';
import { blocksOf, nonZero } from './block-rows.ts';
import { checksOf } from './checks.ts';
import type { SwitchBufferLedger } from './ethernet-switch-ledger.ts';
import { ExactFigures } from './exact-figures.ts';
import type { FrameLedger } from './frame-ledger.ts';
import type { CableEndLedger, HcaLedger, HcaOperationLedger, WireEndLedger } from './hca-ledger.ts';
import type { HostLedger } from './host-ledger.ts';
import type { LinkEndLedger } from './ledger-link.ts';
import type { NicLedger } from './nic-ledger.ts';
import { type BetweenFrames, ethernetOf, frameOverheadBytes, nicDeviceOf, nicOf } from './nic-report.ts';
import type { PacketLedger } from './packet-ledger.ts';
import {
  type DeviceInterruptRow,
  type FaultReport,
  type InterruptRow,
  type LinkDirection,
  type NodeReport,
  type OperationReport,
  type Report,
  reportSchema,
  type SwitchBufferReport,
  type SwitchPortReport,
  type SwitchReport,
  type WireReport,
} from './schema.ts';
import { cableEndsOf, type SwitchLedger, type SwitchPortLedger } from './switch-ledger.ts';

/** The machine that a report describes. */
export interface ReportedMachine {
  readonly config: MachineConfig;
  readonly configHash: string;
  readonly topology: Topology;
}

/** @param hosts and their adapters in any order: an HCA or a NIC for every node */
export function buildReport(
  { config, configHash, topology }: ReportedMachine,
  elapsedPs: ExactPs,
  hosts: readonly HostLedger[],
  hcas: readonly HcaLedger[],
  nics: readonly NicLedger[] = [],
  faults: readonly Fault[] = [],
  switches: readonly SwitchLedger[] = [],
): Report {
  const byNode = <Ledger extends { readonly node: number }>(ledgers: readonly Ledger[]): Ledger[] =>
    ledgers.toSorted((left, right) => left.node - right.node);
  const exact = new ExactFigures();
  const declared = declaredOf(topology);
  const directions = directionsOf(topology);
  const [hostByNode, hcaByNode, nicByNode] = [byNode(hosts), byNode(hcas), byNode(nics)];
  const switchByNode = byNode(switches);
  const endAt = cableEndsOf(hcaByNode, switchByNode);
  return {
    schema: reportSchema,
    configHash,
    config,
    ...(declared === undefined ? {} : { topology: declared }),
    ...faultsOf(faults, [...hosts, ...hcas, ...nics, ...switches]),
    elapsedPs: exact.numberOf('elapsedPs', elapsedPs),
    nodes: hostByNode.map((host, node) => nodeReportOf(host, hcaByNode[node], nicByNode[node])),
    ...(switches.length === 0 ? {} : { switches: switchByNode.map(switchReportOf) }),
    wire: [
      ...(hcaByNode.length === 0
        ? []
        : directions.map((ends) => wireOf(endAt(ends.from), endAt(ends.to), ends, config.ethernet))),
      ...alongLinks(directions, nicByNode, (near, far) => ethernetOf(near, far, config.ethernet)),
    ],
    operations: operationsOf(hostByNode, hcaByNode, exact),
    checks: checksOf(topology, hostByNode, hcaByNode, nicByNode, switchByNode),
    ...exact.field,
  };
}

/** A row for each direction of each link, in order; empty if the nodes have other adapters. */
function alongLinks<Ledger, Row>(
  directions: readonly LinkDirectionEnds[],
  byNode: readonly Ledger[],
  rowOf: (sender: Ledger, receiver: Ledger, direction: LinkDirectionEnds) => Row,
): Row[] {
  if (byNode.length === 0) return [];
  return directions.map((direction) =>
    rowOf(byNode[direction.from.node]!, byNode[direction.to.node]!, direction),
  );
}

/** Every fault of a plan, and its number of occurrences in all parts together; empty without faults. */
export function faultsOf(
  faults: readonly Fault[],
  parts: readonly { readonly faultsFired: readonly number[] }[],
): { readonly faults?: readonly FaultReport[] } {
  if (faults.length === 0) return {};
  const firedOf = (index: number): number =>
    parts.reduce((sum, { faultsFired }) => sum + (faultsFired[index] ?? 0), 0);
  return { faults: faults.map((fault, index) => ({ fault: faultText(fault), fired: firedOf(index) })) };
}

/** A host and the adapter in its slot. */
export function nodeReportOf(
  host: HostLedger,
  hca: HcaLedger | undefined,
  nic: NicLedger | undefined,
): NodeReport {
  const adapter = hca ?? nic!;
  const cores = host.cores.map(({ cycles, totalCycles, aheadCycles }, core) => ({
    cycles: { total: totalCycles, ...cycles, ahead: aheadCycles },
    contextSwitches: host.contextSwitches[core]!,
  }));
  return {
    cpu: { cores, systemCalls: host.systemCalls },
    memory: nonZero({ ...host.memory }),
    ...(host.iommu === undefined ? {} : { iommu: host.iommu }),
    ...(host.races === undefined ? {} : { races: host.races }),
    ...(host.lostRaces === 0 ? {} : { lostRaces: host.lostRaces }),
    ...(host.unownedAccesses === undefined ? {} : { unownedAccesses: host.unownedAccesses }),
    interrupts: interruptsOf(host, adapter),
    pcie: linkOf(host.pcie, adapter.pcie),
    memoryBus: host.memoryBus,
    ...onDemandOf(host, hca),
    ...(host.neighbours === undefined ? {} : { neighbours: nonZero({ ...host.neighbours }) }),
    ...(nic === undefined ? {} : { nic: nicOf(host, nic) }),
    hca: hca === undefined ? nicDeviceOf() : deviceOf(hca),
    deviceFaults: nonZero(host.deviceFaults),
  };
}

/** Undefined if no page was ever requested or provided. */
function onDemandOf(host: HostLedger, hca: HcaLedger | undefined): Pick<NodeReport, 'onDemand'> {
  const driver = host.onDemand;
  if (hca === undefined || driver === undefined || hca.commands['PAGE_FAULT_RESUME'] === undefined) return {};
  return { onDemand: { device: hca.pageFaults, driver } };
}

/** The HCA's own part of a node. */
export function deviceOf(hca: HcaLedger): NodeReport['hca'] {
  return {
    blocks: blocksOf(hca),
    caches: hca.caches,
    commands: hca.commands,
    doorbells: hca.doorbells,
    ...(hca.ethernet === undefined ? {} : { ethernet: framesOf(hca.ethernet) }),
    loopback: hca.loopback,
    ...(hca.inlineReceives.messages === 0 ? {} : { inlineReceives: hca.inlineReceives }),
    transport: hca.transport,
    ...(hca.iwarp === undefined ? {} : { iwarp: hca.iwarp }),
    ...(hca.congestion === undefined ? {} : { congestion: hca.congestion }),
    violations: hca.violations,
  };
}

/** Returns the frame counts without zeros. */
const framesOf = ({
  transmitted,
  received,
  flowControl,
  dropped,
  linkPs: _,
  heldBack: __,
  ...counts
}: FrameLedger): FrameLedger => ({
  transmitted: nonZero(transmitted),
  received: nonZero(received),
  flowControl: nonZero(flowControl),
  dropped: nonZero(dropped),
  ...counts,
});

/** Both directions of a PCIe link, from the statistics of its ends. */
export const linkOf = (root: LinkEndLedger, device: LinkEndLedger): NodeReport['pcie'] => ({
  toDevice: directionOf(root, device),
  toHost: directionOf(device, root),
});

function directionOf(sender: LinkEndLedger, receiver: LinkEndLedger): LinkDirection {
  const classes = Object.entries(receiver.received)
    .filter(([, { tlps }]) => tlps > 0)
    .map(([name, { tlps, bytes }]) => [name, { tlps, bytes }]);
  const { tlps, bytes, linkBytes, busyPs, waitedPs } = sender.transmitted;
  return {
    classes: Object.fromEntries(classes) as LinkDirection['classes'],
    total: { tlps, bytes },
    linkBytes,
    busyPs,
    waitedPs,
  };
}

/** Rows of the device's vectors and of the platform's, which the device lacks. */
function interruptsOf(host: HostLedger, hca: Pick<HcaLedger, 'vectors'>): InterruptRow[] {
  const known = new Set<number | string>(hca.vectors.map(({ vector }) => vector));
  const vectors = [
    ...hca.vectors.map(({ vector }) => vector),
    ...host.interrupts.map(({ vector }) => vector).filter((vector) => !known.has(vector)),
  ];
  return vectors.map((vector) => {
    const platform = host.interrupts.find((row) => row.vector === vector);
    return {
      ...deviceInterruptsOf(hca, vector),
      delivered: platform?.delivered ?? 0,
      handled: platform?.handled ?? 0,
      merged: platform?.merged ?? 0,
      spurious: platform?.spurious ?? 0,
    };
  });
}

/** A device's counters of a vector, all zero if only the platform uses it. */
export function deviceInterruptsOf(
  { vectors }: Pick<HcaLedger, 'vectors'>,
  vector: number | string,
): DeviceInterruptRow {
  const row = vectors.find((one) => one.vector === vector);
  return {
    vector,
    requested: row?.requested ?? 0,
    moderated: row?.moderated ?? 0,
    masked: row?.masked ?? 0,
    coalesced: row?.coalesced ?? 0,
    sent: row?.delivered ?? 0,
  };
}

/** One direction of a cable. */
export function wireOf(
  sender: CableEndLedger,
  receiver: CableEndLedger,
  { from, to }: LinkDirectionEnds,
  between: BetweenFrames,
): WireReport {
  const { wire, ethernet } = sender;
  if (ethernet !== undefined && receiver.ethernet !== undefined)
    return {
      ...frameWireOf(
        { node: sender.node, ...ethernet },
        { node: receiver.node, ...receiver.ethernet },
        between,
      ),
      ...portNumbersOf(from, to),
    };
  const packetsOf = (byOpcode: Readonly<Record<string, PacketLedger>>): number =>
    Object.values(byOpcode).reduce((sum, { packets }) => sum + packets, 0);
  return {
    from: sender.node,
    to: receiver.node,
    ...portNumbersOf(from, to),
    opcodes: wire.transmitted,
    retransmitted: wire.retransmitted,
    corrupted: packetsOf(receiver.wire.corrupted),
    ...relayedDamageOf(receiver.wire),
    dropped: Object.values(receiver.wire.dropped).reduce((sum, count) => sum + count, 0),
    ...(wire.rearranged === undefined
      ? {}
      : {
          lost: packetsOf(wire.rearranged.lost),
          duplicated: packetsOf(wire.rearranged.copied),
          reordered: packetsOf(wire.rearranged.heldBack),
        }),
    discarded: wire.discardedPackets,
    ...lanesOf(wire, receiver.wire),
    packets: wire.transmittedPackets,
    bytes: wire.transmittedBytes,
    flowControlPackets: wire.flowControlPackets,
    linkBytes: wire.linkBytes,
    busyPs: wire.busyPs,
    creditWaitPs: wire.creditWaitPs,
    serializerWaitPs: wire.serializerWaitPs,
  };
}

/** Packets with a wrong ICRC that a switch at the far end accepted. */
const relayedDamageOf = ({ relayedDamage }: WireEndLedger): Pick<WireReport, 'relayedDamage'> =>
  (relayedDamage?.received ?? 0) === 0 ? {} : { relayedDamage: relayedDamage!.received };

/** Both ends of each data lane of a direction, if there are several. */
function lanesOf(
  { lanes: near = [] }: WireEndLedger,
  { lanes: far = [] }: WireEndLedger,
): Pick<WireReport, 'lanes'> {
  if (near.length === 0) return {};
  const rows = near.map(({ sent, creditWaitPs }, lane) => ({
    ...sent,
    receivedPackets: far[lane]!.received.packets,
    creditWaitPs,
    bufferedBytesMax: far[lane]!.bufferedBytesMax,
  }));
  return { lanes: rows };
}

/** Ports of a cable's ends, where they are not the first. */
const portNumbersOf = (from: NodePort, to: NodePort): Pick<WireReport, 'fromPort' | 'toPort'> => ({
  ...(from.port === 1 ? {} : { fromPort: from.port }),
  ...(to.port === 1 ? {} : { toPort: to.port }),
});

/** A switch: for each port with a cable the packets that were kept back, and the buffer that was needed. */
export function switchReportOf({ node, ports, copies, buffer }: SwitchLedger): SwitchReport {
  return {
    node,
    ports: ports.map((own) => ({
      port: own.port,
      receivedPackets: receivedPacketsOf(own),
      notForwarded: nonZero({ ...own.notForwarded }),
      ...wrongCrcOf(own),
      waitingPackets: own.waitingPackets,
      waitingPacketsMax: own.waitingPacketsMax,
      bufferedBytesMax: own.bufferedBytesMax,
      ...(own.cutThroughFrames === undefined ? {} : { cutThroughFrames: own.cutThroughFrames }),
      ...(own.markedPackets === undefined ? {} : { markedPackets: own.markedPackets }),
      ...(own.output === undefined ? {} : { output: own.output }),
      ...(own.ethernet === undefined ? {} : { flowControl: nonZero({ ...own.ethernet.flowControl }) }),
    })),
    copies,
    ...(buffer === undefined ? {} : { buffer: bufferReportOf(buffer) }),
  };
}

const wrongCrcOf = ({ wrongCrc }: SwitchPortLedger): Pick<SwitchPortReport, 'wrongCrc'> =>
  wrongCrc.dropped + wrongCrc.accepted + wrongCrc.sent === 0 ? {} : { wrongCrc };

const receivedPacketsOf = ({ wire, ethernet }: SwitchPortLedger): number =>
  ethernet === undefined
    ? Object.values(wire.received).reduce((sum, { packets }) => sum + packets, 0)
    : (ethernet.received['deliveredFrames'] ?? 0);

const bufferReportOf = ({ queuedBytes: _, ...buffer }: SwitchBufferLedger): SwitchBufferReport => buffer;

/** Frames with RoCE packets have their opcodes; other frames, and copies made by faults, have the opcode FRAME. */
function frameWireOf(sender: FrameEnd, receiver: FrameEnd, between: BetweenFrames): WireReport {
  const wire = ethernetOf(sender, receiver, between);
  const { roce } = sender;
  if (roce === undefined) return wire;
  const packets = [roce.transmitted, roce.retransmitted].flatMap(Object.values<PacketLedger>);
  const rest = (pick: (row: PacketLedger) => number): number =>
    pick(wire.opcodes['FRAME']!) - packets.reduce((sum, row) => sum + pick(row), 0);
  const others = rest((row) => row.packets);
  const bytes = rest((row) => row.bytes);
  const frames = { packets: others, bytes, payloadBytes: bytes - others * frameOverheadBytes };
  return {
    ...wire,
    opcodes: { ...roce.transmitted, ...(others === 0 ? {} : { FRAME: frames }) },
    retransmitted: roce.retransmitted,
    // Packets with a wrong FCS, and with a wrong ICRC under a right FCS.
    corrupted: wire.corrupted + (receiver.dropped['packetDamaged'] ?? 0),
  };
}

type FrameEnd = FrameLedger & { readonly node: number };

/** Operations of all nodes together, in the order of their opcodes. */
export function operationsOf(
  hosts: readonly Pick<HostLedger, 'operations'>[],
  hcas: readonly HcaLedger[],
  exact: ExactFigures,
): Record<string, OperationReport> {
  const rows = hcas.flatMap(({ operations }) => operations);
  const absent = [
    ...(hcas.some(({ iwarp }) => iwarp !== undefined) ? [] : streamStages),
    ...(hcas.some(({ congestion }) => congestion !== undefined) ? [] : rateStages),
  ];
  const opcodes = [...new Set(rows.map(({ opcode }) => opcode))].toSorted((left, right) => left - right);
  const named = opcodes.map((opcode) => {
    const device = rows.filter((row) => row.opcode === opcode);
    const host = hosts.flatMap(({ operations }) => operations.filter((row) => row.opcode === opcode));
    return [device[0]!.name, operationOf(device, host, absent, exact)];
  });
  return Object.fromEntries(named) as Record<string, OperationReport>;
}

function operationOf(
  device: readonly HcaOperationLedger[],
  host: HostLedger['operations'],
  absent: readonly OperationStage[],
  exact: ExactFigures,
): OperationReport {
  const { name } = device[0]!;
  const figureOf = (stage: string, parts: readonly ExactPs[]) =>
    exact.numberOf(`operations.${name}.milestonesPs.${stage}`, exactSumOf(...parts));
  const sum = (pick: (row: HcaOperationLedger) => number) =>
    device.reduce((total, row) => total + pick(row), 0);
  const stages = operationStages.filter((stage) => !absent.includes(stage));
  const milestones = stages.map((stage) => [
    stage,
    figureOf(
      stage,
      device.flatMap((row) => [row.stagesPs[stage], row.far?.stagesPs[stage] ?? 0]),
    ),
  ]);
  const takenPs = figureOf(
    'taken',
    host.flatMap((row) => [row.takenPs, row.farTakenPs ?? 0]),
  );
  return {
    count: sum(({ count }) => count),
    failed: sum(({ failed }) => failed),
    silent: sum(({ silent }) => silent),
    payloadBytes: sum(({ payloadBytes }) => payloadBytes),
    latencyPs: latencyOf(host.flatMap(({ latencyPs }) => (latencyPs === undefined ? [] : [latencyPs]))),
    milestonesPs: { ...(Object.fromEntries(milestones) as Record<string, number>), taken: takenPs },
  };
}

function latencyOf(parts: readonly HistogramData[]): OperationReport['latencyPs'] {
  const all = new Histogram();
  for (const part of parts) all.merge(Histogram.from(part));
  if (all.count === 0) return null;
  return { min: all.min, p50: all.percentile(50), p99: all.percentile(99), max: all.max };
}
