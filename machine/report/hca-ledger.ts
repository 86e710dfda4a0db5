/** The statistics of one HCA, copied as plain data at the end of a run. */
import { Opcode } from '../../abi/index.ts';
import {
  type ContextCache,
  type FarTimes,
  type Hca,
  type OperationStage,
  operationNames,
  pageRequestSides,
  portNames,
} from '../../hw/hca/index.ts';
import type { BlockAccount, ExactPs } from '../../sim/index.ts';
import { byteTimeOf, type WirePort } from '../../wire/index.ts';
import type { HcaNode } from '../node/hca-node.ts';
import type { NodePort } from '../topology/index.ts';
import { type FrameLedger, frameLedgerOf } from './frame-ledger.ts';
import { type IwarpLedger, iwarpLedgerOf } from './iwarp-ledger.ts';
import { type LinkEndLedger, linkEndLedgerOf, unsentMessagesOf } from './ledger-link.ts';
import { type PacketLedger, packetsOf } from './packet-ledger.ts';

export interface BlockLedger {
  readonly busyCycles: number;
  readonly idleCycles: number;
  readonly stalledCycles: Readonly<Record<string, number>>;
  /** Works started before the previous one had ended: a defect of the block. */
  readonly overlaps: number;
}

/** Works that hit in a cache, and works that waited for a miss. */
export interface CacheUseLedger {
  readonly hits: number;
  readonly misses: number;
}

export interface CacheLedger extends CacheUseLedger {
  readonly evictions: number;
  /**
   * Uses by block: a translation counts once for each piece of payload, WQEs or CQE that it served, a context once for
   * each step, packet or CQE; a WQE is a hit if it needed no read of its own.
   */
  readonly users: Readonly<Record<string, CacheUseLedger>>;
}

/** One vector of the device: reasons to interrupt, and their outcomes. */
export interface VectorLedger {
  readonly vector: number;
  readonly requested: number;
  readonly moderated: number;
  /** Requested from the PCIe function; then masked (waits in the pending bit), merged with a waiting one, or sent. */
  readonly messages: number;
  readonly masked: number;
  readonly coalesced: number;
  readonly dropped: number;
  readonly delivered: number;
}

export interface WireEndLedger {
  readonly transmitted: Readonly<Record<string, PacketLedger>>;
  readonly retransmitted: Readonly<Record<string, PacketLedger>>;
  /** The transmitter's own totals, in addition to its statistics by opcode. */
  readonly transmittedPackets: number;
  readonly transmittedBytes: number;
  /** Packets that were due while the link was down: neither sent nor counted elsewhere; and the same by opcode. */
  readonly discardedPackets: number;
  readonly discarded: Readonly<Record<string, PacketLedger>>;
  readonly received: Readonly<Record<string, PacketLedger>>;
  readonly corrupted: Readonly<Record<string, PacketLedger>>;
  /** Packets that arrived and were dropped, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly flowControlPackets: number;
  readonly linkBytes: number;
  readonly busyPs: number;
  /** Time of the link bytes at the data rate, independent of the serializer's count; and packets that a fault corrupted. */
  readonly linkPs: number;
  readonly faultyPackets: number;
  /** Packets with a wrong ICRC that a switch received, and that it passed on; left out without any. */
  readonly relayedDamage?: { readonly received: number; readonly sent: number };
  /** Effects of other faults on packets; left out without such faults. */
  readonly rearranged?: RearrangedLedger;
  /** Figures by data lane; left out with one. */
  readonly lanes?: readonly LaneLedger[];
  readonly creditWaitPs: number;
  readonly serializerWaitPs: number;
  readonly isQuiet: boolean;
}

/** One data lane of a port. */
export interface LaneLedger {
  /** Packets put on the link, and packets that found room in the receive buffer; bytes from LRH to VCRC. */
  readonly sent: { readonly packets: number; readonly bytes: number };
  readonly received: { readonly packets: number; readonly bytes: number };
  readonly creditWaitPs: number;
  readonly bufferedBytesMax: number;
}

/** Packets sent that never arrive; copies added to the link; delayed packets, and those of them sent later. */
export interface RearrangedLedger {
  readonly lost: Readonly<Record<string, PacketLedger>>;
  readonly copied: Readonly<Record<string, PacketLedger>>;
  readonly heldBack: Readonly<Record<string, PacketLedger>>;
  readonly letGo: Readonly<Record<string, PacketLedger>>;
}

/** One operation of the send queue as the device saw it. */
export interface HcaOperationLedger {
  readonly opcode: number;
  readonly name: string;
  readonly count: number;
  readonly failed: number;
  readonly silent: number;
  readonly payloadBytes: number;
  /** PSNs that the completed ones used. */
  readonly psnCount: number;
  /** Time from posting until the device has finished the request, summed over all. */
  readonly lifePs: number;
  /** The same time, by cause of the wait. */
  readonly stagesPs: Readonly<Record<OperationStage, number>>;
  /** The parts above both; absent if numbers hold all. */
  readonly far?: FarTimes;
}

/** Packets that a port sends to itself and that cross no cable. */
export interface LoopbackLedger {
  readonly transmitted: Readonly<Record<string, PacketLedger>>;
  readonly retransmitted: Readonly<Record<string, PacketLedger>>;
  readonly received: Readonly<Record<string, PacketLedger>>;
  /** Discarded by a reset; and in transit or being written to memory. */
  readonly dropped: number;
  readonly held: number;
}

/** On-demand paging as the device saw it; each record by the waiting unit: requester, responder, response. */
/** Messages put in their receive WQEs, and their bytes. */
export interface InlineReceiveLedger {
  readonly messages: number;
  readonly bytes: number;
}

export interface PageFaultLedger {
  readonly requests: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
  /** Cycles from request to resumption. */
  readonly waitCycles: Readonly<Record<string, number>>;
  readonly rnrNaks: number;
  /** Packets of unreliable services dropped because a page was missing. */
  readonly droppedPackets: number;
  readonly invalidateDoorbells: number;
}

/** Congestion control of RoCE v2, by the names of mlx5's counters. */
export interface RoceCongestionLedger {
  /** Packets that arrived with a mark of congestion. */
  readonly npEcnMarkedRocePackets: number;
  /** CNPs made for them. */
  readonly npCnpSent: number;
  /** CNPs that arrived: for a QP with a rate, and others. */
  readonly rpCnpHandled: number;
  readonly rpCnpIgnored: number;
}

/** Congestion control of InfiniBand, by the names of performance management (PortRcvConCtrl, annex A10). */
export interface InfinibandCongestionLedger {
  /** Packets that arrived with FECN. */
  readonly pktRcvFecn: number;
  /** CNPs made for them, and responses that carry BECN instead. */
  readonly cnpSent: number;
  readonly becnSent: number;
  /** BECNs that arrived, in CNPs and responses: for a QP with a rate, and others. */
  readonly pktRcvBecn: number;
  readonly becnIgnored: number;
}

export type CongestionLedger = RoceCongestionLedger | InfinibandCongestionLedger;

/** Notifications that a card sent for marked packets: in CNPs, and in its responses. */
export interface SentNotifications {
  readonly marked: number;
  readonly cnps: number;
  readonly becns: number;
}

export const notificationsOf = (ledger: CongestionLedger): SentNotifications =>
  'pktRcvFecn' in ledger
    ? { marked: ledger.pktRcvFecn, cnps: ledger.cnpSent, becns: ledger.becnSent }
    : { marked: ledger.npEcnMarkedRocePackets, cnps: ledger.npCnpSent, becns: 0 };

export interface HcaLedger {
  readonly node: number;
  readonly nowPs: ExactPs;
  readonly clockMHz: number;
  readonly elapsedCycles: number;
  readonly blocks: Readonly<Record<string, BlockLedger>>;
  readonly caches: Readonly<Record<string, CacheLedger>>;
  readonly vectors: readonly VectorLedger[];
  /**
   * Messages of the vectors that are not on the link: they wait for the DMA engine, or a reset or the loss of bus
   * mastering stopped them.
   */
  readonly unsentMessages: number;
  readonly pcie: LinkEndLedger;
  /** The end of port 1's cable. */
  readonly wire: WireEndLedger;
  /** Ledger of port 2's wire; left out without a second port. */
  readonly secondWire?: WireEndLedger | undefined;
  /** Frames of Ethernet ports, for which `wire` is empty; left out for InfiniBand ports. */
  readonly ethernet?: FrameLedger | undefined;
  readonly loopback: LoopbackLedger;
  readonly operations: readonly HcaOperationLedger[];
  readonly operationDisorders: number;
  /** Send WQEs that the requester started. */
  readonly wqesTaken: number;
  /** Occurrences of each fault of the plan in this device. */
  readonly faultsFired: readonly number[];
  /** Commands completed, by opcode name. */
  readonly commands: Readonly<Record<string, number>>;
  readonly pageFaults: PageFaultLedger;
  readonly doorbells: Readonly<Record<'send' | 'blueFlame' | 'arm' | 'eventQueue', number>>;
  /** Packets to be sent, or received and not fully processed. */
  readonly heldPackets: number;
  /** Messages put in their receive WQEs. */
  readonly inlineReceives: InlineReceiveLedger;
  /** Recovery by the transport, by name, and its ACK timeouts; zeros are omitted. */
  readonly transport: Readonly<Record<string, number>>;
  /** Undefined for another transport. */
  readonly iwarp: IwarpLedger | undefined;
  /** Undefined without congestion control. */
  readonly congestion: CongestionLedger | undefined;
  /** Refusals of the device, by name. */
  readonly violations: Readonly<Record<string, number>>;
}

/** The ends of all cables of an HCA. */
export const wiresOf = ({ wire, secondWire }: HcaLedger): WireEndLedger[] =>
  secondWire === undefined ? [wire] : [wire, secondWire];

/** One end of a cable: a port of an HCA or of a switch. */
export type CableEndLedger = Pick<HcaLedger, 'node' | 'nowPs' | 'wire' | 'ethernet' | 'iwarp'>;

/** An HCA whose only cable is the one in this port. */
export function atPort(hca: HcaLedger, { port }: NodePort): HcaLedger {
  const { secondWire, ...first } = hca;
  return port === 1 ? first : { ...first, wire: secondWire! };
}

export function hcaLedgerOf(node: HcaNode): HcaLedger {
  const { hca, lp } = node;
  const { dataPath, control, domain } = hca;
  const { blocks } = dataPath;
  const cycle = domain.clock.cyclesElapsed(lp.nowPs);
  return {
    node: node.node,
    nowPs: lp.instantPs,
    clockMHz: domain.clock.frequencyMHz,
    elapsedCycles: lp.epochUs * domain.clock.frequencyMHz + cycle,
    blocks: blocksOf(node, cycle),
    caches: cachesOf(node),
    vectors: vectorsOf(node),
    unsentMessages: unsentMessagesOf(hca.dmaWrite),
    pcie: linkEndLedgerOf(hca.linkPort, lp.nowPs, lp.isDrained),
    wire: wireLedgerOf(hca.wirePort, lp.isDrained),
    ...(node.hasSecondCable ? { secondWire: wireLedgerOf(hca.wirePorts[1]!, lp.isDrained) } : {}),
    ...(hca.ethernetPort === undefined ? {} : { ethernet: frameLedgerOf(hca) }),
    loopback: loopbackLedgerOf(hca),
    operations: operationsOf(node),
    operationDisorders: dataPath.parts.operations.disorderCount,
    wqesTaken: dataPath.parts.lines.useCount,
    faultsFired: node.faultLog.counts(),
    commands: commandsOf(node),
    pageFaults: pageFaultsOf(node),
    doorbells: {
      send: dataPath.blocks.doorbells.sendCount,
      blueFlame: dataPath.blocks.doorbells.blueFlameCount,
      arm: dataPath.blocks.doorbells.armCount,
      eventQueue: dataPath.blocks.doorbells.eqCount,
    },
    heldPackets: heldPacketsOf(hca),
    inlineReceives: { messages: blocks.scatter.inlinedCount, bytes: blocks.scatter.inlinedBytes },
    transport: transportOf(hca),
    iwarp: iwarpLedgerOf(hca),
    congestion: congestionOf(hca),
    violations: { ...control.violations.report(), ...dataPath.parts.violations.report() },
  };
}

function congestionOf({ ibta }: Hca): CongestionLedger | undefined {
  const { notificationPoint: notifies, reactionPoint: reacts } = ibta?.blocks ?? {};
  if (notifies === undefined || reacts?.isOn !== true) return undefined;
  if (notifies.marks.hasBecn)
    return {
      pktRcvFecn: notifies.markedCount,
      cnpSent: notifies.sentCount,
      becnSent: notifies.becnCount,
      pktRcvBecn: reacts.handledCount,
      becnIgnored: reacts.ignoredCount,
    };
  return {
    npEcnMarkedRocePackets: notifies.markedCount,
    npCnpSent: notifies.sentCount,
    rpCnpHandled: reacts.handledCount,
    rpCnpIgnored: reacts.ignoredCount,
  };
}

function heldPacketsOf({ dataPath, ibta }: Hca): number {
  const { frameReceiver } = dataPath.blocks;
  const ends = ibta === undefined ? [] : [ibta.blocks.receiver, ibta.blocks.transmitter];
  return ends.reduce((sum, { heldCount }) => sum + heldCount, frameReceiver.heldCount);
}

function transportOf({ ibta }: Hca): Record<string, number> {
  if (ibta === undefined) return {};
  const ackTimeout = ibta.blocks.timers.timeoutCount;
  return { ...ibta.parts.transport.report(), ...(ackTimeout === 0 ? {} : { ackTimeout }) };
}

function pageFaultsOf({ hca }: HcaNode): PageFaultLedger {
  const { pageFaults, doorbells } = hca.dataPath.blocks;
  const bySide = (figures: Float64Array): Record<string, number> =>
    Object.fromEntries(pageRequestSides.map((side, index) => [side, figures[index]!]));
  return {
    requests: bySide(pageFaults.requestCount),
    refused: bySide(pageFaults.refusedCount),
    waitCycles: bySide(pageFaults.waitCycles),
    rnrNaks: pageFaults.rnrNakCount,
    droppedPackets: pageFaults.droppedPacketCount,
    invalidateDoorbells: doorbells.invalidateCount,
  };
}

const commandNames = new Map<number, string>(Object.entries(Opcode).map(([name, opcode]) => [opcode, name]));

const commandsOf = ({ hca }: HcaNode): Record<string, number> =>
  byCommandName(hca.control.processor.completedByOpcode);

/** Converts figures by opcode to figures by name, in opcode order. */
export function byCommandName(figures: ReadonlyMap<number, number>): Record<string, number> {
  const ordered = [...figures].toSorted(([left], [right]) => left - right);
  return Object.fromEntries(
    ordered.map(([opcode, figure]) => [commandNames.get(opcode) ?? `0x${opcode.toString(16)}`, figure]),
  );
}

/** Converts figures by opcode and modifier (`CommandProcessor.badOperations`) to figures by name. */
export function byOperationName(figures: ReadonlyMap<number, number>): Record<string, number> {
  const ordered = [...figures].toSorted(([left], [right]) => left - right);
  return Object.fromEntries(
    ordered.map(([operation, figure]) => {
      const opcode = operation >>> 4;
      const name = commandNames.get(opcode) ?? `0x${opcode.toString(16)}`;
      return [`${name} modifier ${operation & 15}`, figure];
    }),
  );
}

function blocksOf({ hca }: HcaNode, cycle: number): Record<string, BlockLedger> {
  const { dataPath, control, pcieFunction, dmaRead, dmaWrite } = hca;
  const accounts = [
    pcieFunction.account,
    pcieFunction.completer.account,
    control.processor.account,
    control.events.account,
    ...dataPath.accounts,
    dmaRead.account,
    dmaRead.returnAccount,
    dmaWrite.account,
  ];
  return Object.fromEntries(accounts.map((account) => [account.name, blockLedgerOf(account, cycle)]));
}

/** @param cycle of the epoch up to which the ledger shows the account */
export function blockLedgerOf(running: BlockAccount, cycle: number): BlockLedger {
  const account = running.closedAt(cycle);
  const stalled = account.stallReasons.map(
    (reason, index) => [reason, account.stalledCycles[index]!] as const,
  );
  return {
    busyCycles: account.busyCycles,
    idleCycles: account.idleCycles,
    stalledCycles: Object.fromEntries(stalled),
    overlaps: account.overlapCount,
  };
}

function cachesOf({ hca }: HcaNode): Record<string, CacheLedger> {
  const { qpcCache, cqcCache, srqcCache, mptCache, mttCache, translator, lines } = hca.dataPath.parts;
  const contextsOf = ({ users, evictionCount }: ContextCache, names: readonly string[]): CacheLedger =>
    cacheOf(
      evictionCount,
      users.map(({ hitCount, missCount }, index) => [names[index]!, hitCount, missCount]),
    );
  return {
    qpc: contextsOf(qpcCache, portNames),
    cqc: contextsOf(cqcCache, portNames),
    eqc: contextsOf(hca.eqcCache, ['eventWriter']),
    srqc: contextsOf(srqcCache, portNames),
    mpt: cacheOf(mptCache.directory.evictionCount, [
      ...translator.users.map(
        ({ mptUses, mptMisses }, index) =>
          [portNames[index]!, hitsOf(mptUses, mptMisses), mptMisses] as const,
      ),
      ...aheadRow(translator.aheadPorts.map(({ mptMisses }) => mptMisses)),
    ]),
    mtt: cacheOf(mttCache.directory.evictionCount, [
      ...translator.users.map(
        ({ mttUses, mttMisses }, index) =>
          [portNames[index]!, hitsOf(mttUses, mttMisses), mttMisses] as const,
      ),
      ...aheadRow(translator.aheadPorts.map(({ mttMisses }) => mttMisses)),
    ]),
    wqe: cacheOf(lines.evictionCount, [
      ['requester', hitsOf(lines.useCount, lines.readCount), lines.readCount],
    ]),
  };
}

/** The misses of look-ups ahead, which use nothing themselves; no row without such look-ups. */
const aheadRow = (misses: readonly number[]): readonly (readonly [string, number, number])[] =>
  misses.length === 0 ? [] : [['responseAhead', 0, misses.reduce((sum, count) => sum + count)]];

/** A miss whose user no longer needed the data is a miss without a use. */
const hitsOf = (uses: number, misses: number): number => Math.max(0, uses - misses);

function cacheOf(evictions: number, counts: readonly (readonly [string, number, number])[]): CacheLedger {
  const users = counts
    .filter(([, hits, misses]) => hits + misses > 0)
    .map(([name, hits, misses]) => [name, { hits, misses }] as const);
  const sum = (pick: (row: CacheUseLedger) => number): number =>
    users.reduce((total, [, row]) => total + pick(row), 0);
  return {
    hits: sum(({ hits }) => hits),
    misses: sum(({ misses }) => misses),
    evictions,
    users: Object.fromEntries(users),
  };
}

function vectorsOf({ hca }: HcaNode): VectorLedger[] {
  const { moderation } = hca.control.blocks;
  const { counters, vectorCount } = hca.pcieFunction.msix;
  const rows = Array.from({ length: vectorCount }, (_, vector) => ({
    vector,
    requested: moderation.requestedCount[vector] ?? 0,
    moderated: moderation.moderatedCount[vector] ?? 0,
    messages: moderation.messageCount[vector] ?? 0,
    masked: counters.masked[vector]!,
    coalesced: counters.coalesced[vector]!,
    dropped: counters.dropped[vector]!,
    delivered: counters.delivered[vector]!,
  }));
  return rows.filter(({ requested, messages }) => requested > 0 || messages > 0);
}

function loopbackLedgerOf({ ibta }: Hca): LoopbackLedger {
  if (ibta === undefined) return { transmitted: {}, retransmitted: {}, received: {}, dropped: 0, held: 0 };
  const { first, retransmitted, delivered, droppedCount, heldCount } = ibta.blocks.loopback;
  return {
    transmitted: packetsOf(first),
    retransmitted: packetsOf(retransmitted),
    received: packetsOf(delivered),
    dropped: droppedCount,
    held: heldCount,
  };
}

export function wireLedgerOf(port: WirePort, isQuiet: boolean): WireEndLedger {
  const { transmitted, received } = port;
  return {
    transmitted: packetsOf(transmitted.first),
    retransmitted: packetsOf(transmitted.retransmitted),
    transmittedPackets: transmitted.packetCount,
    transmittedBytes: transmitted.packetBytes,
    discardedPackets: transmitted.discardedCount,
    discarded: packetsOf(transmitted.discarded),
    received: packetsOf(received.delivered),
    corrupted: packetsOf(received.corrupted),
    dropped: {
      linkDown: received.linkDownDrops,
      management: received.managementDrops,
      overrun: received.overruns,
    },
    flowControlPackets: transmitted.flowControlCount,
    linkBytes: port.linkBytes,
    busyPs: Math.floor(port.busyPs),
    linkPs: linkPsOf(port),
    faultyPackets: transmitted.corruptedCount,
    ...relayedDamageOf(port),
    ...rearrangedOf(transmitted),
    ...(port.laneFigures.length === 0 ? {} : { lanes: port.laneFigures }),
    creditWaitPs: transmitted.creditWaitPs,
    serializerWaitPs: transmitted.serializerWaitPs,
    isQuiet,
  };
}

function relayedDamageOf({ received, transmitted }: WirePort): Pick<WireEndLedger, 'relayedDamage'> {
  const relayedDamage = { received: received.relayedDamageCount, sent: transmitted.relayedDamageCount };
  return relayedDamage.received + relayedDamage.sent === 0 ? {} : { relayedDamage };
}

function rearrangedOf({ lost, copied, heldBack, letGo }: WirePort['transmitted']): {
  rearranged?: RearrangedLedger;
} {
  if (lost.packetTotal + copied.packetTotal + heldBack.packetTotal === 0) return {};
  const rearranged = {
    lost: packetsOf(lost),
    copied: packetsOf(copied),
    heldBack: packetsOf(heldBack),
    letGo: packetsOf(letGo),
  };
  return { rearranged };
}

function linkPsOf({ config, linkBytes }: WirePort): number {
  const { numeratorPs, denominator } = byteTimeOf(config);
  return (linkBytes * numeratorPs) / denominator;
}

function operationsOf({ hca }: HcaNode): HcaOperationLedger[] {
  const rows: HcaOperationLedger[] = [];
  hca.dataPath.parts.operations.rows.forEach((row, opcode) => {
    const {
      count,
      failedCount: failed,
      silentCount: silent,
      payloadBytes,
      packetCount: psnCount,
      lifePs,
      stagesPs,
      far,
    } = row;
    if (count + failed === 0) return;
    const name = operationNames[opcode] ?? `0x${opcode.toString(16)}`;
    const farTimes = far === undefined ? {} : { far };
    rows.push({
      opcode,
      name,
      count,
      failed,
      silent,
      payloadBytes,
      psnCount,
      lifePs,
      stagesPs: { ...stagesPs },
      ...farTimes,
    });
  });
  return rows;
}
