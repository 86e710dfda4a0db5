/**
 * The report of a served machine, version "hca-serve-report/1": the device's part is that of "hca-report/1", figure for figure;
 * the host's part is the slot's view of the guest, because the guest's processors are not simulated.
 *
 * The report itself states which figures are measurements ({@link meaning}).
 */

import type { Analysis } from '../../machine/analysis/index.ts';
import { type Fault, faultText } from '../../machine/faults/index.ts';
import {
  behind,
  blockFailures,
  type CheckReport,
  cableEndsOf,
  checkOf,
  type DeviceInterruptRow,
  deviceInterruptsOf,
  deviceOf,
  type ExactDigits,
  ExactFigures,
  ethernetOf,
  type FaultReport,
  type FrameLedger,
  faultsOf,
  frameCableFailures,
  type HcaLedger,
  type HostLedger,
  hostFailures,
  type LogLine,
  linkFailures,
  linkOf,
  macFailures,
  type NicLedger,
  type NodeReport,
  nakFailures,
  nicEndOf,
  nicHostFailures,
  nodeReportOf,
  nonZero,
  type OperationReport,
  operationFailures,
  operationsOf,
  type SwitchReport,
  sumOf,
  switchFailures,
  switchReportOf,
  unequal,
  vectorFailures,
  type WireReport,
  wireFailures,
  wireOf,
} from '../../machine/index.ts';
import { configHashOf, type MachineConfig } from '../../machine/profile/index.ts';
import {
  declaredOf,
  directionsOf,
  type LinkDirectionEnds,
  peersOf,
  type Topology,
} from '../../machine/topology/index.ts';
import type { ExactPs } from '../../sim/index.ts';
import type { FrameSocketCounters } from '../slot/index.ts';
import type { Defect } from './defect.ts';
import type { FabricLedgers } from './fabric-part.ts';
import type { PeerState } from './peer-host.ts';
import { type Cabling, servedTopology, strangerNode } from './served-plan.ts';
import type { NotModelled, SlotAccesses, SlotLedger } from './slot-ledger.ts';
import type { StrangerPaceCounters } from './stranger-pace.ts';

const serveReportSchema = 'hca-serve-report/1';

/** Which figures mean what. */
export const meaning = {
  measured:
    'Everything under nodes, wire and operations counts what the device and its links did; times among them (Ps, cycles) ' +
    'are simulated time of the device, as in the simulated machine: the time a card of this configuration takes for it.',
  notMeasured:
    "The guest's processors are not simulated. Between its accesses simulated time follows the wall clock (followedPs), so " +
    'elapsedPs, idle cycles, rates over them, and whatever the guest itself measures (latency, bandwidth) say how fast ' +
    'this computer ran guest and emulator, not how fast a card is. run is wall-clock time of the emulator.',
} as const;

/** Meaning of the figures with a simulated host next to the guest. */
export const peerMeaning =
  'Under peer, times and cycles of host 1 and its adapter are simulated time too. But what it waited for of the guest came at the ' +
  "guest's pace, which is host time: latencies and rates between the two, its idle and polling cycles and endedPs measure no card.";

/**
 * One MSI-X vector from the device's cause to the guest.
 * @public
 */
export interface ServedInterruptRow extends DeviceInterruptRow {
  readonly vector: number;
  /** Messages that reached the guest's machine, and descriptors written to signal the guest. */
  readonly delivered: number;
  readonly raised: number;
  /** Interrupts raised since the guest's machine last enabled MSI-X: the count of a guest's driver. */
  readonly raisedSinceEnabled: number;
  /** Event queues of the vector that hold events, or were not armed since their last message: the guest has not served them yet. */
  readonly unservedQueues: number;
}

export interface CommandRow {
  readonly count: number;
  /** Total simulated time from latching to completing. */
  readonly takenPs: number;
}

export interface ServedNodeReport {
  /** Guests that were connected, and resets requested by their machines. */
  readonly sessions: number;
  readonly resets: number;
  readonly accesses: SlotAccesses;
  readonly interrupts: readonly ServedInterruptRow[];
  readonly intx: { readonly asserted: number; readonly raised: number };
  readonly pcie: NodeReport['pcie'];
  readonly hca: Omit<NodeReport['hca'], 'commands'> & {
    readonly commands: Readonly<Record<string, CommandRow>>;
  };
  readonly deviceFaults: Readonly<Record<string, number>>;
  readonly notModelled: NotModelled;
}

export interface ServeChecks {
  readonly balanced: boolean;
  /** Check of the simulated host; left out if none exists. */
  readonly cpu?: CheckReport;
  readonly blocks: CheckReport;
  readonly pcie: CheckReport;
  readonly interrupts: CheckReport;
  readonly wire: CheckReport;
  readonly operations: CheckReport;
}

/** Performance of the emulator itself: wall-clock time and turns of the loop. */
export interface ServeRun {
  readonly node: string;
  readonly wallMs: number;
  /** Spent on the model, on guests' messages while it was busy, and waiting for them or for a timer. */
  readonly workMs: number;
  readonly pollMs: number;
  readonly waitMs: number;
  readonly slices: number;
  readonly cutSlices: number;
}

/** The statistics of devices in guests' slots, whatever runs the guests; no figure is of the wall clock. */
export interface DevicesReport {
  readonly configHash: string;
  readonly config: MachineConfig;
  /** Requested faults, and how often each has occurred; left out without faults. */
  readonly faults?: readonly FaultReport[];
  readonly hcas: number;
  readonly cabling: Cabling;
  /** Hosts, switches and cables of a fabric; left out if none exists. */
  readonly topology?: Topology;
  readonly elapsedPs: number;
  readonly nodes: readonly ServedNodeReport[];
  /** The switches of a fabric; left out if none exist. */
  readonly switches?: readonly SwitchReport[];
  /** The simulated host at the other end of the cable; left out if none exists. */
  readonly peer?: PeerReport;
  /** Frames through the socket at the other end of the cable; left out if none exists. Under `wire` that end is number 1. */
  readonly stranger?: StrangerReport;
  readonly wire: readonly WireReport[];
  readonly operations: Readonly<Record<string, OperationReport>>;
  readonly checks: ServeChecks;
  /** Errors thrown by the model; the statistics count from the last of them on. Any entry is a defect of the emulator. */
  readonly defects: readonly Defect[];
  /** Findings of the analysers of the guests; empty unless requested. */
  readonly analyses: readonly Analysis[];
  /** All digits of the figures above that are 2^53 ps or more, by their paths; absent if none is. */
  readonly exactPs?: ExactDigits;
}

export interface ServeReport extends DevicesReport {
  readonly schema: typeof serveReportSchema;
  /** Meaning of the figures; with `peer` if a simulated host exists. */
  readonly meaning: typeof meaning & { readonly peer?: typeof peerMeaning };
  readonly timeScale: number;
  /** The part of the elapsed time that passed because wall-clock time did. */
  readonly followedPs: number;
  readonly run: ServeRun;
}

/** A simulated host next to a guest: its program's results, and node 1 as in "hca-report/1". */
export interface PeerReport {
  readonly program: Omit<PeerState, 'endedPs'> & { readonly endedPs?: number };
  readonly log: readonly PeerLogLine[];
  readonly node: NodeReport;
}

/**
 * A third-party endpoint at the other end of a cable: frames through its socket.
 * @public
 */
export interface StrangerReport {
  /** Endpoints that connected, one after another; and those that came while one was connected. */
  readonly clients: number;
  readonly refused: number;
  readonly framesFromClient: number;
  readonly framesToClient: number;
  /** Frames of the HCA that no third-party endpoint read: none was connected, or it did not read. */
  readonly unreadFrames: number;
  /**
   * Number of times that simulated time stood still until the third-party endpoint had read, and the total wall-clock
   * time of that.
   */
  readonly holds: number;
  readonly heldMs: number;
  /**
   * Number of these times that simulated time continued although the third-party endpoint had not read: frames without
   * room then are among `unreadFrames`.
   */
  readonly expiredHolds: number;
  /** Frames of third-party endpoints that no cable carries: without a whole header, or longer than the MTU allows. */
  readonly unfitFrames: number;
  /** Frames of third-party endpoints that still waited for the cable when the endpoint disconnected; and those that wait now. */
  readonly forgottenFrames: number;
  readonly waitingFrames: number;
  /** Frames of third-party endpoints that found the link down. */
  readonly discardedFrames: number;
}

/**
 * Messages of the program or the kernel, with their times.
 * @public
 */
export interface PeerLogLine {
  readonly atPs: number;
  readonly program: string;
  readonly text: string;
}

export interface DevicesReportParts {
  readonly config: MachineConfig;
  readonly faults: readonly Fault[];
  readonly cabling: Cabling;
  readonly elapsedPs: ExactPs;
  readonly slots: readonly SlotLedger[];
  /** The simulated host, if any. */
  readonly peer?: PeerParts | undefined;
  /** The socket at the other end of the cable, if any. */
  readonly stranger?: StrangerParts | undefined;
  /** The simulated part of a fabric, if any, and the fabric. */
  readonly fabric?: FabricParts | undefined;
  readonly defects: readonly Defect[];
  readonly analyses: readonly Analysis[];
}

export interface ServeReportParts extends DevicesReportParts {
  readonly timeScale: number;
  readonly followedPs: ExactPs;
  readonly run: ServeRun;
}

interface StrangerParts {
  readonly port: FrameLedger;
  readonly faultsFired: readonly number[];
  readonly isQuiet: boolean;
  readonly unfitFrames: number;
  readonly forgottenFrames: number;
  readonly waitingFrames: number;
  readonly socket: FrameSocketCounters;
  readonly pace: StrangerPaceCounters;
}

/** The simulated host, and the adapter in its slot: one of the two. */
export interface PeerLedgers {
  readonly host: HostLedger;
  readonly hca: HcaLedger | undefined;
  readonly nic: NicLedger | undefined;
}

interface FabricParts extends FabricLedgers {
  readonly topology: Topology;
}

interface PeerParts extends PeerLedgers {
  readonly state: PeerState;
  readonly log: readonly LogLine[];
}

export function buildServeReport(parts: ServeReportParts): ServeReport {
  const { timeScale, followedPs, peer, run } = parts;
  const exact = new ExactFigures();
  return {
    schema: serveReportSchema,
    meaning: peer === undefined ? meaning : { ...meaning, peer: peerMeaning },
    ...devicesOf(parts, exact),
    timeScale,
    followedPs: exact.numberOf('followedPs', followedPs),
    run,
    ...exact.field,
  };
}

/** The part of devices alone, for a report of its own. */
export function buildDevicesReport(parts: DevicesReportParts): DevicesReport {
  const exact = new ExactFigures();
  return { ...devicesOf(parts, exact), ...exact.field };
}

function devicesOf(parts: DevicesReportParts, exact: ExactFigures): DevicesReport {
  const { config, faults, cabling, elapsedPs, slots, peer, stranger, fabric, defects, analyses } = parts;
  const peers = peer === undefined ? [] : [peer];
  const hcas = hcasOf(parts);
  const topology = fabric?.topology ?? servedTopology(cabling, slots.length);
  const endAt = cableEndsOf(hcas, fabric?.switches ?? []);
  // A cable that leads out of the machine has no second HCA for comparison.
  const links = peer?.nic === undefined ? directionsOf(topology) : [];
  const ends = endsOf(slots[0]!.hca, farEndOf(peer, stranger));
  return {
    configHash: configHashOf(config, faults.map(faultText), fabric && declaredOf(fabric.topology)),
    config,
    ...faultsOf(faults, [
      ...slots.flatMap((slot) => [slot, slot.hca]),
      ...peers.flatMap(({ host, hca, nic }) => [host, hca ?? nic!]),
      ...(fabric === undefined ? [] : [...fabric.hosts, ...fabric.hcas, ...fabric.switches]),
      ...(stranger === undefined ? [] : [stranger]),
    ]),
    hcas: slots.length,
    cabling,
    ...(fabric === undefined ? {} : { topology: fabric.topology }),
    elapsedPs: exact.numberOf('elapsedPs', elapsedPs),
    nodes: slots.map(nodeOf),
    ...(peer === undefined ? {} : { peer: peerOf(peer, exact) }),
    ...(stranger === undefined ? {} : { stranger: strangerOf(stranger) }),
    ...(fabric === undefined ? {} : { switches: fabric.switches.map(switchReportOf) }),
    wire: [
      ...links.map((link) => wireOf(endAt(link.from), endAt(link.to), link, config.ethernet)),
      ...ends.map(([sender, receiver]) =>
        ethernetOf(
          { node: sender.node, ...sender.ethernet },
          { node: receiver.node, ...receiver.ethernet },
          config.ethernet,
        ),
      ),
    ],
    operations: operationsOf([...peers.map(({ host }) => host), ...(fabric?.hosts ?? [])], hcas, exact),
    // After a defect the cable's end is a new one, not the one for which the socket has counted.
    checks: checksOf(parts, topology, links, ends, defects.length === 0 ? stranger : undefined),
    defects,
    analyses,
  };
}

function peerOf({ host, hca, nic, state, log }: PeerParts, exact: ExactFigures): PeerReport {
  const { endedPs, ...program } = state;
  return {
    program: {
      ...program,
      ...(endedPs === undefined ? {} : { endedPs: exact.numberOf('peer.program.endedPs', endedPs) }),
    },
    log: log.map(({ atPs, program: name, text }) => ({ atPs: Number(atPs), program: name, text })),
    node: nodeReportOf(host, hca, nic),
  };
}

/** An end of an Ethernet cable, of any owner. */
type CableEnd = Parameters<typeof frameCableFailures>[0] & { readonly ethernet: FrameLedger };

/** The far end of the single HCA's cable if it is not an HCA's. */
function farEndOf(peer: PeerParts | undefined, stranger: StrangerParts | undefined): CableEnd | undefined {
  if (peer?.nic !== undefined) return nicEndOf(peer.nic);
  return stranger && { node: strangerNode, ethernet: stranger.port, wire: { isQuiet: stranger.isQuiet } };
}

/** Both directions of that cable. */
function endsOf(hca: HcaLedger, far: CableEnd | undefined): [CableEnd, CableEnd][] {
  if (hca.ethernet === undefined || far === undefined) return [];
  const near: CableEnd = { node: hca.node, ethernet: hca.ethernet, wire: hca.wire };
  return [
    [near, far],
    [far, near],
  ];
}

const strangerOf = (parts: StrangerParts): StrangerReport => {
  const { port, unfitFrames, forgottenFrames, waitingFrames, socket, pace } = parts;
  return {
    ...socket,
    ...pace,
    unfitFrames,
    forgottenFrames,
    waitingFrames,
    discardedFrames: port.transmitted['discardedFrames'] ?? 0,
  };
};

/** Frames that passed the socket have passed the far end of the cable, except those that the report accounts for otherwise. */
function socketFailures(parts: StrangerParts): string[] {
  const { port, socket } = parts;
  const { unfitFrames, forgottenFrames, waitingFrames, discardedFrames } = strangerOf(parts);
  const taken = (port.transmitted['frames'] ?? 0) + discardedFrames;
  const explained = taken + unfitFrames + forgottenFrames + waitingFrames;
  return [
    ...unequal('frames of strangers', explained, socket.framesFromClient),
    ...unequal(
      'frames to strangers',
      socket.framesToClient + socket.unreadFrames,
      port.received['deliveredFrames'] ?? 0,
    ),
  ];
}

function nodeOf(slot: SlotLedger): ServedNodeReport {
  const { hca, commandCycles } = slot;
  const device = deviceOf(hca);
  const commands = Object.entries(device.commands).map(([name, count]) => [
    name,
    { count, takenPs: Math.round(((commandCycles[name] ?? 0) * 1e6) / hca.clockMHz) },
  ]);
  return {
    sessions: slot.sessions,
    resets: slot.resets,
    accesses: slot.accesses,
    interrupts: interruptsOf(slot),
    intx: slot.pin,
    pcie: linkOf(slot.pcie, hca.pcie),
    hca: { ...device, commands: Object.fromEntries(commands) as Record<string, CommandRow> },
    deviceFaults: nonZero(slot.deviceFaults),
    notModelled: slot.notModelled,
  };
}

function interruptsOf({ hca, vectors }: SlotLedger): ServedInterruptRow[] {
  const known = [...new Set([...hca.vectors, ...vectors].map(({ vector }) => vector))];
  return known
    .toSorted((left, right) => left - right)
    .map((vector) => {
      const line = vectors.find((row) => row.vector === vector);
      return {
        ...deviceInterruptsOf(hca, vector),
        vector,
        delivered: line?.arrived ?? 0,
        raised: line?.raised ?? 0,
        raisedSinceEnabled: line?.raisedSinceEnabled ?? 0,
        unservedQueues: line?.unservedQueues ?? 0,
      };
    });
}

/** All HCAs, by node. */
const hcasOf = ({ slots, peer, fabric }: DevicesReportParts): HcaLedger[] => [
  ...slots.map(({ hca }) => hca),
  ...(peer?.hca === undefined ? [] : [peer.hca]),
  ...(fabric?.hcas ?? []),
];

function checksOf(
  parts: DevicesReportParts,
  topology: Topology,
  links: readonly LinkDirectionEnds[],
  ends: readonly (readonly [sender: CableEnd, receiver: CableEnd])[],
  stranger: StrangerParts | undefined,
): ServeChecks {
  const { slots, peer, fabric } = parts;
  const hcas = hcasOf(parts);
  const endAt = cableEndsOf(hcas, fabric?.switches ?? []);
  const host =
    peer &&
    peerFailures(
      peer,
      links.length === 0 ? [] : peersOf(topology, peer.host.node).map((node) => hcas[node]!),
      fabric !== undefined,
    );
  const checks = {
    ...(host === undefined ? {} : { cpu: checkOf(host.cpu) }),
    blocks: checkOf([...hcas.flatMap(blockFailures), ...(host?.blocks ?? [])]),
    pcie: checkOf([
      ...slots.flatMap(({ node, pcie, hca }) => linkFailures(node, pcie, hca.pcie)),
      ...(host?.pcie ?? []),
    ]),
    interrupts: checkOf([...slots.flatMap(interruptFailures), ...(host?.interrupts ?? [])]),
    wire: checkOf([
      ...links.flatMap((link) => wireFailures(endAt(link.from), endAt(link.to), link)),
      ...(fabric?.switches ?? []).flatMap(switchFailures),
      ...(links.length === 0 ? [] : nakFailures(topology, hcas, fabric?.switches)),
      ...ends.flatMap(([sender, receiver]) => frameCableFailures(sender, receiver)),
      ...(stranger === undefined ? [] : socketFailures(stranger)),
      ...(peer?.nic === undefined ? [] : macFailures(peer.nic)),
    ]),
    operations: checkOf([
      ...slots.flatMap(({ hca }) => operationFailures({ operations: [] }, hca)),
      ...(host?.operations ?? []),
    ]),
  };
  return { balanced: Object.values(checks).every(({ holds }) => holds), ...checks };
}

/** Failed balances of the simulated host; an HCA's blocks are among those of all HCAs. */
function peerFailures({ host, hca, nic }: PeerParts, peers: readonly HcaLedger[], areShared: boolean) {
  if (hca !== undefined) return { ...hostFailures(host, hca, { hcas: peers, areShared }), blocks: [] };
  return nicHostFailures(host, nic!);
}

/** Compares the device's messages with the guest's descriptors. A missing descriptor is a guest's choice. */
function interruptFailures({ node, hca, pcie, messages, vectors }: SlotLedger): string[] {
  const isQuiet = pcie.isQuiet && hca.pcie.isQuiet;
  const what = `node ${node}`;
  const sent = sumOf(hca.vectors.map(({ delivered }) => delivered)) - hca.unsentMessages;
  const passed = messages.arrived - messages.lost - messages.held + messages.spurious;
  const delivered = sumOf(vectors.map(({ arrived }) => arrived));
  return [
    ...hca.vectors.flatMap((vector) => vectorFailures(what, vector)),
    ...behind(`${what}, messages at the root complex`, messages.arrived, sent + messages.stray, isQuiet),
    ...behind(`${what}, messages of vectors`, delivered + messages.stray, passed, isQuiet),
    ...vectors.flatMap(({ vector, arrived, raised }) =>
      behind(`${what} vector ${vector}, raised`, raised, arrived, false),
    ),
  ];
}
