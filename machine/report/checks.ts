/**
 * The six balances that every run must satisfy. Each compares figures that were counted independently, usually at two
 * ends, so that a lost, spurious or doubly counted event is detected.
 *
 *     cpu          causes of each core                   = cycles of its clock
 *     blocks       busy + idle + stalled of each block   = cycles of the HCA's clock; loopback received = sent
 *     pcie         received by class                     = transmitted, each direction, TLPs and bytes;
 *                  payload of the device's reads, writes = bytes read from memory, written to it
 *     interrupts   requested … sent … delivered … handled, from the device to the handler
 *     wire         received + corrupted + dropped        = transmitted, each direction, by opcode where none dropped; less
 *                                                          packets that faults removed from the cable, plus those added; for
 *                                                          an Ethernet cable by frame-ledger.ts; what comes to a switch
 *                                                          leaves it, waits, or is dropped for a reason
 *     operations   stages of each operation              = its whole time; the host's view = the device's
 *
 * During transfers (a run stopped in the middle) the receiving side may lag; it must never lead. For machines with
 * NICs, the same names have the meanings of nic-checks.ts.
 */
import { exactSumOf } from '../../sim/index.ts';
import {
  directionsOf,
  farPortsOf,
  isSwitched,
  joinedHostsOf,
  type LinkDirectionEnds,
  peersOf,
  portsOf,
  portText,
  type Topology,
} from '../topology/index.ts';
import { behind, checkOf, sumOf, unequal, vectorFailures } from './failures.ts';
import { frameCableFailures, framesGone } from './frame-ledger.ts';
import {
  atPort,
  type CableEndLedger,
  type HcaLedger,
  type HcaOperationLedger,
  notificationsOf,
  type WireEndLedger,
  wiresOf,
} from './hca-ledger.ts';
import type { HostLedger } from './host-ledger.ts';
import { iwarpCableFailures, iwarpLoopbackFailures, pushedBytesOf } from './iwarp-ledger.ts';
import type { LinkEndLedger } from './ledger-link.ts';
import { ethernetFailures, frameFailures, nicBlockFailures, nicCauseFailures } from './nic-checks.ts';
import type { NicLedger } from './nic-ledger.ts';
import type { PacketLedger } from './packet-ledger.ts';
import type { ChecksReport } from './schema.ts';
import { cableEndsOf, keepsAll, type SwitchLedger, switchFailures } from './switch-ledger.ts';

/** @param hosts and their adapters by node: HCAs or NICs */
export function checksOf(
  topology: Topology,
  hosts: readonly HostLedger[],
  hcas: readonly HcaLedger[],
  nics: readonly NicLedger[] = [],
  switches: readonly SwitchLedger[] = [],
): ChecksReport {
  const checks =
    nics.length > 0 ? nicChecksOf(topology, hosts, nics) : hcaChecksOf(topology, hosts, hcas, switches);
  return { balanced: Object.values(checks).every(({ holds }) => holds), ...checks };
}

function hcaChecksOf(
  topology: Topology,
  hosts: readonly HostLedger[],
  hcas: readonly HcaLedger[],
  switches: readonly SwitchLedger[],
): Omit<ChecksReport, 'balanced'> {
  const endAt = cableEndsOf(hcas, switches);
  const each = hosts.map((host, node) => hostFailures(host, hcas[node]!, answerersOf(topology, hcas, node)));
  return {
    cpu: checkOf(each.flatMap(({ cpu }) => cpu)),
    blocks: checkOf(hcas.flatMap(blockFailures)),
    pcie: checkOf(each.flatMap(({ pcie }) => pcie)),
    interrupts: checkOf(each.flatMap(({ interrupts }) => interrupts)),
    wire: checkOf([
      ...directionsOf(topology).flatMap((ends) => wireFailures(endAt(ends.from), endAt(ends.to), ends)),
      ...switches.flatMap(switchFailures),
      ...nakFailures(topology, hcas, switches),
    ]),
    operations: checkOf(each.flatMap(({ operations }) => operations)),
  };
}

/** HCAs that answer a host's requests: those at the other ends of its cables, or all that switches join to them. */
function answerersOf(topology: Topology, hcas: readonly HcaLedger[], node: number): Answerers {
  const ports = portsOf(topology, node);
  return {
    hcas: ports.flatMap((port) => farPortsOf(topology, port).map((far) => atPort(hcas[far.node]!, far))),
    areShared: ports.some((port) => isSwitched(topology, port)),
  };
}

/** Failures of every link of the topology, checked per direction: ends of different links are never compared. */
const linkFailuresOf = <Ledger>(
  topology: Topology,
  byNode: readonly Ledger[],
  failuresOf: (sender: Ledger, receiver: Ledger, direction: LinkDirectionEnds) => string[],
): string[] =>
  directionsOf(topology).flatMap((direction) =>
    failuresOf(byNode[direction.from.node]!, byNode[direction.to.node]!, direction),
  );

/** HCAs that answer the requests of one, once for each of their ports. */
export interface Answerers {
  readonly hcas: readonly HcaLedger[];
  /** Whether they answer requests of others, too: then their answers are an upper bound. */
  readonly areShared: boolean;
}

/** Failed balances between a host and its HCA, in words, by the name of the balance. */
export function hostFailures(
  host: HostLedger,
  hca: HcaLedger,
  peers: Answerers,
): Readonly<Record<'cpu' | 'pcie' | 'interrupts' | 'operations', string[]>> {
  return {
    cpu: cpuFailures(host),
    pcie: pcieFailures(host, hca),
    interrupts: interruptFailures(host, hca),
    operations: [...operationFailures(host, hca), ...requestFailures(host, hca, peers)],
  };
}

function nicChecksOf(
  topology: Topology,
  hosts: readonly HostLedger[],
  nics: readonly NicLedger[],
): Omit<ChecksReport, 'balanced'> {
  const each = hosts.map((host, node) =>
    nicHostFailures(
      host,
      nics[node]!,
      peersOf(topology, node).map((peer) => hosts[peer]!),
    ),
  );
  return {
    cpu: checkOf(each.flatMap(({ cpu }) => cpu)),
    blocks: checkOf(each.flatMap(({ blocks }) => blocks)),
    pcie: checkOf(each.flatMap(({ pcie }) => pcie)),
    interrupts: checkOf(each.flatMap(({ interrupts }) => interrupts)),
    wire: checkOf(linkFailuresOf(topology, nics, ethernetFailures)),
    operations: checkOf(each.flatMap(({ operations }) => operations)),
  };
}

/**
 * Failed balances between a host and its NIC, except those of the cable.
 * @param peers simulated hosts at the other ends of its cables
 */
export function nicHostFailures(
  host: HostLedger,
  nic: NicLedger,
  peers: readonly HostLedger[] = [],
): Readonly<Record<'cpu' | 'blocks' | 'pcie' | 'interrupts' | 'operations', string[]>> {
  return {
    cpu: cpuFailures(host),
    blocks: nicBlockFailures(nic),
    pcie: pcieFailures(host, nic),
    interrupts: [...nicCauseFailures(nic), ...messageFailures(host, nic)],
    operations: frameFailures(host, nic, peers),
  };
}

/** The parts common to all adapters. */
type AdapterLedger = Pick<HcaLedger, 'vectors' | 'unsentMessages' | 'pcie'>;

function pcieFailures(host: HostLedger, adapter: AdapterLedger): string[] {
  return [...linkFailures(host.node, host.pcie, adapter.pcie), ...memoryFailures(host, adapter)];
}

/** Classes whose payload is not read from or written to memory: accesses of cores, interrupts, messages. */
const elsewhere: ReadonlySet<string> = new Set([
  'doorbell',
  'blueFlame',
  'register',
  'config',
  'message',
  'msix',
  'packetBuffer',
]);

/**
 * Bytes that a device read must equal the bytes read from memory, and bytes that it wrote must equal those written to
 * memory, except for refused ones.
 */
function memoryFailures(host: HostLedger, adapter: AdapterLedger): string[] {
  const payloadOf = ({ received }: LinkEndLedger): number =>
    sumOf(Object.entries(received).map(([name, row]) => (elsewhere.has(name) ? 0 : row.payloadBytes)));
  const { deviceReads, deviceWrites } = host.memoryBus;
  const isRefused = Object.values(host.deviceFaults).some((count) => count > 0);
  const isQuiet = host.pcie.isQuiet && adapter.pcie.isQuiet;
  const what = `node ${host.node}`;
  return [
    ...behind(`${what}, bytes read from memory`, payloadOf(adapter.pcie), deviceReads, isQuiet),
    ...behind(`${what}, bytes written to memory`, deviceWrites, payloadOf(host.pcie), isQuiet && !isRefused),
  ];
}

function cpuFailures(host: HostLedger): string[] {
  return host.cores.flatMap(({ cycles, totalCycles, aheadCycles }, core) => {
    const what = `node ${host.node} core ${core}`;
    const negative = Object.entries(cycles).filter(([, value]) => value < 0);
    return [
      ...unequal(`${what}, cycles by cause`, sumOf(Object.values(cycles)), totalCycles + aheadCycles),
      ...negative.map(([cause, value]) => `${what}: ${value} cycles of ${cause}`),
    ];
  });
}

export function blockFailures(hca: HcaLedger): string[] {
  const failures = Object.entries(hca.blocks).flatMap(([name, block]) => {
    const stalled = Object.values(block.stalledCycles);
    const sum = block.busyCycles + block.idleCycles + sumOf(stalled);
    const what = `node ${hca.node} ${name}`;
    const isNegative = [block.busyCycles, block.idleCycles, ...stalled].some((cycles) => cycles < 0);
    return [
      ...unequal(`${what}, cycles`, sum, hca.elapsedCycles),
      ...unequal(`${what}, works that overlapped`, block.overlaps, 0),
      ...(isNegative ? [`${what}: negative cycles`] : []),
    ];
  });
  return [...failures, ...loopbackFailures(hca), ...iwarpLoopbackFailures(hca)];
}

/** An HCA has received all packets that it sent to itself, except those in flight or dropped by a reset. */
function loopbackFailures({ node, loopback }: HcaLedger): string[] {
  const sent = totalOf(loopback.transmitted, loopback.retransmitted);
  const received = totalOf(loopback.received, {});
  const isQuiet = loopback.held === 0;
  const what = `node ${node} to itself`;
  const packets = behind(`${what}, packets`, received.packets + loopback.dropped, sent.packets, isQuiet);
  return loopback.dropped > 0
    ? packets
    : [...packets, ...behind(`${what}, bytes`, received.bytes, sent.bytes, isQuiet)];
}

export function linkFailures(node: number, root: LinkEndLedger, device: LinkEndLedger): string[] {
  return [
    ...directionFailures(`node ${node} to device`, root, device),
    ...directionFailures(`node ${node} to host`, device, root),
  ];
}

function directionFailures(what: string, sender: LinkEndLedger, receiver: LinkEndLedger): string[] {
  const isQuiet = sender.isQuiet && receiver.isQuiet;
  const classes = Object.values(receiver.received);
  const { tlps, bytes, payloadBytes } = sender.transmitted;
  return [
    ...behind(`${what}, TLPs`, sumOf(classes.map((count) => count.tlps)), tlps, isQuiet),
    ...behind(`${what}, bytes`, sumOf(classes.map((count) => count.bytes)), bytes, isQuiet),
    ...behind(`${what}, payload`, sumOf(classes.map((count) => count.payloadBytes)), payloadBytes, isQuiet),
    ...unequal(`${what}, TLPs beyond the credits`, receiver.creditOverflows, 0),
  ];
}

function interruptFailures(host: HostLedger, hca: HcaLedger): string[] {
  const what = `node ${host.node}`;
  return [...hca.vectors.flatMap((vector) => vectorFailures(what, vector)), ...messageFailures(host, hca)];
}

/**
 * Compares a device's messages with the handlers' interrupts; messages of the host's own DMA controller and IOMMU are
 * added on the way.
 */
function messageFailures(host: HostLedger, adapter: AdapterLedger): string[] {
  const isQuiet = host.pcie.isQuiet && adapter.pcie.isQuiet;
  const what = `node ${host.node}`;
  const { messages, interrupts } = host;
  const sent = sumOf(adapter.vectors.map(({ delivered }) => delivered)) - adapter.unsentMessages;
  const own = (host.net?.systemDma.interrupts ?? 0) + (host.iommu?.interrupts ?? 0);
  const passed = messages.arrived - messages.lost - messages.held + messages.spurious + own;
  const delivered = sumOf(
    interrupts.filter(({ vector }) => typeof vector === 'number').map((row) => row.delivered),
  );
  return [
    ...behind(`${what}, messages at the root complex`, messages.arrived, sent, isQuiet),
    ...unequal(
      `${what}, interrupts at the cores and on their way`,
      delivered + messages.unrouted + messages.delivering,
      passed,
    ),
    ...interrupts.flatMap((row) =>
      unequal(
        `${what} vector ${row.vector}, delivered`,
        row.handled + row.spurious + row.merged + row.waiting,
        row.delivered,
      ).concat(
        row.waiting < 0 || row.waiting > 2 ? [`${what} vector ${row.vector}: ${row.waiting} wait`] : [],
      ),
    ),
  ];
}

/** Failed balances of one direction of a cable. */
export function wireFailures(
  sender: CableEndLedger,
  receiver: CableEndLedger,
  { from, to }: LinkDirectionEnds,
): string[] {
  const isQuiet = sender.wire.isQuiet && receiver.wire.isQuiet;
  const what = `cable ${portText(from)} to ${portText(to)}`;
  const counted = totalOf(sender.wire.transmitted, sender.wire.retransmitted);
  const taken = totalOf(...takenOf(sender));
  const due = plus(minus(counted, taken), totalOf(...addedOf(sender)));
  const arrived = totalOf(receiver.wire.received, receiver.wire.corrupted);
  const dropped = sumOf(Object.values(receiver.wire.dropped));
  const failures = [
    ...unequal(`${what}, packets by opcode`, counted.packets, sender.wire.transmittedPackets),
    ...unequal(`${what}, bytes by opcode`, counted.bytes, sender.wire.transmittedBytes),
    ...behind(`${what}, packets`, arrived.packets + dropped, due.packets, isQuiet),
    ...busyFailures(what, sender),
    ...laneFailures(what, sender.wire, receiver.wire, isQuiet && dropped === 0),
    ...behind(
      `${what}, packets corrupted by faults`,
      totalOf(receiver.wire.corrupted).packets + (receiver.wire.relayedDamage?.received ?? 0),
      sender.wire.faultyPackets + (sender.wire.relayedDamage?.sent ?? 0),
      isQuiet && dropped === 0,
    ),
  ];
  failures.push(...frameCableFailures(sender, receiver), ...iwarpCableFailures(sender, receiver));
  if (dropped > 0) return failures;
  return [
    ...failures,
    ...behind(`${what}, bytes`, arrived.bytes, due.bytes, isQuiet),
    ...behind(`${what}, payload`, arrived.payloadBytes, due.payloadBytes, isQuiet),
    ...opcodeFailures(what, sender, receiver, isQuiet),
  ];
}

/**
 * Each data lane, if there are several, carries its packets to the same lane. Packets that faults took are not counted by lane.
 */
function laneFailures(
  what: string,
  { lanes: near = [], rearranged }: WireEndLedger,
  { lanes: far = [] }: WireEndLedger,
  isQuiet: boolean,
): string[] {
  const isWhole = isQuiet && totalOf(rearranged?.lost ?? {}).packets === 0;
  return near.flatMap(({ sent }, lane) => [
    ...behind(`${what}, packets of lane ${lane}`, far[lane]!.received.packets, sent.packets, isWhole),
    ...behind(`${what}, bytes of lane ${lane}`, far[lane]!.received.bytes, sent.bytes, isWhole),
  ]);
}

type LedgerByOpcode = Readonly<Record<string, PacketLedger>>;

/** Packets that faults removed from the cable, and packets that they added. */
const takenOf = ({ wire: { rearranged } }: CableEndLedger): readonly LedgerByOpcode[] =>
  rearranged === undefined ? [] : [rearranged.lost, rearranged.heldBack];
const addedOf = ({ wire: { rearranged } }: CableEndLedger): readonly LedgerByOpcode[] =>
  rearranged === undefined ? [] : [rearranged.copied, rearranged.letGo];

/** The cable's busy time equals the time of its bytes, minus at most a picosecond for each time that it was idle. */
function busyFailures(what: string, sender: CableEndLedger): string[] {
  const { wire, nowPs } = sender;
  const added = addedOf(sender);
  const { busyPs, linkPs, transmittedPackets, flowControlPackets, isQuiet } = wire;
  const roundings = transmittedPackets + totalOf(...added).packets + flowControlPackets + 1;
  const isRight = busyPs <= linkPs + 1 && busyPs >= linkPs - roundings && (!isQuiet || busyPs <= nowPs);
  return isRight ? [] : [`${what}, busy: ${busyPs} ps of ${nowPs}, where its bytes take ${linkPs}`];
}

const nakKinds = ['rnrNak', 'sequenceNak', 'errorNak'] as const;

/**
 * NAKs that HCAs joined by cables have sent equal the NAKs that they received, except those that wait in one of them, were lost, or
 * arrived too late for their QP; copies are added. HCAs count them for all ports together, and so does this balance.
 * @param hcas by node; undefined for a host with another adapter
 */
export const nakFailures = (
  topology: Topology,
  hcas: readonly (HcaLedger | undefined)[],
  switches: readonly SwitchLedger[] = [],
): string[] =>
  joinedHostsOf(topology)
    .filter((group) => group.every((node) => peersOf(topology, node).length > 0))
    .flatMap((group) =>
      nakFailuresAmong(
        group.flatMap((node) => hcas[node] ?? []),
        switches,
      ),
    );

/** @param switches between them */
function nakFailuresAmong(ends: readonly HcaLedger[], switches: readonly SwitchLedger[]): string[] {
  if (ends.length === 0) return [];
  const nodes = ends.map(({ node }) => node);
  const what = nodes.length > 2 ? `cables of ${nodes.join(', ')}` : `cable ${nodes[0]} to ${nodes.at(-1)}`;
  const ports = switches.flatMap((own) => own.ports);
  const wires = [...ends.flatMap(wiresOf), ...ports.map(({ wire }) => wire)];
  const frames = [...ends, ...ports].flatMap(({ ethernet }) =>
    ethernet === undefined ? [] : framesGone(ethernet),
  );
  const isLossless =
    switches.every(keepsAll) &&
    ends.every(
      ({ loopback, violations, heldPackets }) =>
        heldPackets + loopback.dropped + loopback.held === 0 && Object.keys(violations).length === 0,
    ) &&
    frames.every(({ missing, copied, heldBack }) => missing + copied + heldBack === 0) &&
    wires.every(
      ({ dropped, discardedPackets, corrupted, rearranged }) =>
        sumOf(Object.values(dropped)) + discardedPackets + Object.keys(corrupted).length === 0 &&
        rearranged === undefined,
    );
  const countOf = (name: string): number => sumOf(ends.map(({ transport }) => transport[name] ?? 0));
  // Copies of frames are not counted by opcode.
  const copiedFrames = sumOf(frames.map(({ copied }) => copied));
  const copiedAcks = sumOf(
    wires.flatMap(({ rearranged }) =>
      ['RC_ACKNOWLEDGE', 'XRC_ACKNOWLEDGE'].map((name) => rearranged?.copied[name]?.packets ?? 0),
    ),
  );
  return nakKinds.flatMap((kind) =>
    behind(
      `${what}, ${kind}`,
      countOf(`${kind}Received`),
      countOf(`${kind}Sent`) + copiedAcks + copiedFrames,
      wires.every(({ isQuiet }) => isQuiet) && isLossless,
    ),
  );
}

function opcodeFailures(
  what: string,
  sender: CableEndLedger,
  receiver: CableEndLedger,
  isQuiet: boolean,
): string[] {
  const { transmitted, retransmitted } = sender.wire;
  const { received, corrupted } = receiver.wire;
  const taken = takenOf(sender);
  const added = addedOf(sender);
  const names = new Set([transmitted, retransmitted, received, corrupted, ...added].flatMap(Object.keys));
  const packets = (byOpcode: LedgerByOpcode, name: string): number => byOpcode[name]?.packets ?? 0;
  const inAll = (all: readonly LedgerByOpcode[], name: string): number =>
    sumOf(all.map((byOpcode) => packets(byOpcode, name)));
  return [...names].flatMap((name) =>
    behind(
      `${what}, ${name}`,
      packets(received, name) + packets(corrupted, name),
      packets(transmitted, name) + packets(retransmitted, name) - inAll(taken, name) + inAll(added, name),
      isQuiet,
    ),
  );
}

function totalOf(...byOpcode: readonly Readonly<Record<string, PacketLedger>>[]): PacketLedger {
  const rows = byOpcode.flatMap((ledger) => Object.values(ledger));
  return {
    packets: sumOf(rows.map(({ packets }) => packets)),
    bytes: sumOf(rows.map(({ bytes }) => bytes)),
    payloadBytes: sumOf(rows.map(({ payloadBytes }) => payloadBytes)),
  };
}

const plus = (left: PacketLedger, right: PacketLedger): PacketLedger => ({
  packets: left.packets + right.packets,
  bytes: left.bytes + right.bytes,
  payloadBytes: left.payloadBytes + right.payloadBytes,
});

const minus = (left: PacketLedger, right: PacketLedger): PacketLedger => ({
  packets: left.packets - right.packets,
  bytes: left.bytes - right.bytes,
  payloadBytes: left.payloadBytes - right.payloadBytes,
});

const cqeBytes = 32;

/** First transmissions to the cables of any kind, and those that were due while they were down. */
const firstPacketsOf = (hca: HcaLedger): readonly LedgerByOpcode[] =>
  (hca.ethernet?.roce === undefined ? wiresOf(hca) : [hca.ethernet.roce]).flatMap(
    ({ transmitted, discarded }) => [transmitted, discarded],
  );

/** Packets or frames that were never sent because the link was down. */
const discardedOf = (hca: HcaLedger): number =>
  sumOf(wiresOf(hca).map(({ discardedPackets }) => discardedPackets)) +
  (hca.ethernet?.transmitted['discardedFrames'] ?? 0);

/**
 * Compares independent records of requests: posts by software, requests started by the requester, first transmissions
 * at the port, and CQEs sent over PCIe. If requests are in progress, have failed, or include datagrams, the ledger of
 * operations may lag the port.
 *
 * A packet that was due while the link was down was not transmitted; whether it counts as repeated depends on adjacent
 * packets. Each such packet may therefore explain one missing first transmission. The same applies to a READ response
 * whose payload could not be read.
 */
function requestFailures(host: HostLedger, hca: HcaLedger, { hcas: peers, areShared }: Answerers): string[] {
  const what = `node ${hca.node}`;
  const rows = hca.operations;
  const completed = sumOf(rows.map(({ count, failed }) => count + failed));
  const posted = sumOf(host.operations.map((row) => row.posted));
  const cqes = (host.pcie.received['cqe']?.payloadBytes ?? 0) / cqeBytes;
  const withCqe = sumOf(rows.map(({ count, failed, silent }) => count + failed - silent));
  // A datagram that was due while the link was down completes, and counts only among the discarded packets.
  const firsts = [...firstPacketsOf(hca), hca.loopback.transmitted];
  // Segments of iWARP have a balance of their own.
  const isConnected =
    hca.iwarp === undefined && firsts.flatMap(Object.keys).every((name) => /^(RC_|CNP$)/.test(name));
  const isComplete =
    isConnected &&
    posted === completed &&
    rows.every(({ failed }) => failed === 0) &&
    hca.wire.isQuiet &&
    discardedOf(hca) === 0;
  const sent = (pattern: RegExp): PacketLedger =>
    totalOf(...firsts.map((byOpcode) => named(byOpcode, pattern)));
  const answers = totalOf(
    ...[...peers.flatMap(firstPacketsOf), hca.loopback.transmitted].map((byOpcode) =>
      named(byOpcode, /READ_RESPONSE/),
    ),
  );
  const unreadable = sumOf([hca, ...peers].map(({ transport }) => transport['unreadableResponse'] ?? 0));
  const of = (pattern: RegExp, pick: (row: HcaOperationLedger) => number): number =>
    sumOf(rows.filter(({ name }) => pattern.test(name)).map(pick));
  const pushes = sent(/^RC_(SEND|RDMA_WRITE)/);
  return [
    ...notificationFailures(what, hca, sent(/^CNP/).packets),
    ...behind(`${what}, WQEs taken up`, hca.wqesTaken, posted, isComplete),
    ...(host.pcie.isQuiet && hca.pcie.isQuiet
      ? behind(`${what}, completions of requests by CQEs`, withCqe, cqes, false)
      : []),
    ...(hca.iwarp === undefined
      ? []
      : behind(
          `${what}, payload of SENDs and WRITEs`,
          of(/SEND|WRITE/, pickPayload),
          pushedBytesOf(hca.iwarp),
          false,
        )),
    ...(isConnected
      ? [
          ...behind(
            `${what}, packets of SENDs and WRITEs`,
            of(/SEND|WRITE/, pickPsns),
            pushes.packets,
            isComplete,
          ),
          ...behind(
            `${what}, payload of them`,
            of(/SEND|WRITE/, pickPayload),
            pushes.payloadBytes,
            isComplete,
          ),
          ...behind(
            `${what}, READ requests`,
            of(/READ/, pickCount),
            sent(/READ_REQUEST/).packets,
            isComplete,
          ),
          ...behind(
            `${what}, atomic requests`,
            of(/CMP_SWAP|FETCH_ADD/, pickCount),
            sent(/^RC_(MASKED_)?(COMPARE_SWAP|FETCH_ADD)$/).packets,
            isComplete,
          ),
          ...behind(
            `${what}, responses to READs`,
            of(/READ/, pickPsns),
            answers.packets + unreadable,
            isComplete &&
              unreadable === 0 &&
              !areShared &&
              peers.every(
                (peer) =>
                  peer.wire.isQuiet &&
                  discardedOf(peer) === 0 &&
                  peer.operations.every(({ failed }) => failed === 0),
              ),
          ),
        ]
      : []),
  ];
}

/** Compares the notification point's count of CNPs with those at the port, and with the marked packets that it has seen. */
function notificationFailures(
  what: string,
  { congestion, heldPackets }: HcaLedger,
  sentCnps: number,
): string[] {
  if (congestion === undefined) return unequal(`${what}, CNPs without congestion control`, sentCnps, 0);
  const { marked, cnps, becns } = notificationsOf(congestion);
  return [
    ...behind(`${what}, CNPs at the port`, sentCnps, cnps, heldPackets === 0),
    ...behind(`${what}, notifications for marked packets`, cnps + becns, marked, false),
  ];
}

const pickPsns = ({ psnCount }: HcaOperationLedger): number => psnCount;
const pickPayload = ({ payloadBytes }: HcaOperationLedger): number => payloadBytes;
const pickCount = ({ count }: HcaOperationLedger): number => count;

/** The rows of the statistics whose name matches. */
const named = (
  byOpcode: Readonly<Record<string, PacketLedger>>,
  pattern: RegExp,
): Readonly<Record<string, PacketLedger>> =>
  Object.fromEntries(Object.entries(byOpcode).filter(([name]) => pattern.test(name)));

export function operationFailures(host: Pick<HostLedger, 'operations'>, hca: HcaLedger): string[] {
  const failures = unequal(`node ${hca.node}, operations out of order`, hca.operationDisorders, 0);
  for (const row of hca.operations) {
    const what = `node ${hca.node} ${row.name}`;
    const stagesPs = exactSumOf(...Object.values(row.stagesPs), ...Object.values(row.far?.stagesPs ?? {}));
    failures.push(
      ...unequal(`${what}, stages in ps`, stagesPs, exactSumOf(row.lifePs, row.far?.lifePs ?? 0)),
    );
    const seen = host.operations.find(({ opcode }) => opcode === row.opcode);
    if (seen === undefined) continue;
    const withCqe = row.count + row.failed - row.silent;
    failures.push(...behind(`${what}, completions taken`, seen.completed, withCqe, false));
    failures.push(...behind(`${what}, completed`, row.count + row.failed, seen.posted, false));
    const isTiled = row.failed === 0 && row.silent === 0 && seen.completed === row.count;
    if (isTiled && seen.latencyPs !== undefined && seen.latencyPs.count === row.count)
      failures.push(
        ...unequal(
          `${what}, latency in ps`,
          exactSumOf(stagesPs, seen.takenPs, seen.farTakenPs ?? 0),
          seen.latencyPs.exactSum === undefined ? seen.latencyPs.sum : BigInt(seen.latencyPs.exactSum),
        ),
      );
  }
  return failures;
}
