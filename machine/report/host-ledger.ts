/** The statistics of one host, copied as plain data at the end of a run. */
import type { NetworkCounts, OnDemandStatistics } from '../../driver/index.ts';
import type { CpuReport, InterruptStatistics, MemoryStatistics } from '../../host/index.ts';
import type { ExactPs, HistogramData } from '../../sim/index.ts';
import type { UnownedAccess } from '../node/access-watch.ts';
import type { HostNode } from '../node/host-node.ts';
import { type MemoryTraffic, memoryTrafficOf } from '../node/memory-traffic.ts';
import type { NicSoftware } from '../node/nic-software.ts';
import type { Race } from '../node/race-watch.ts';
import { type LinkEndLedger, linkEndLedgerOf } from './ledger-link.ts';

/** One WQE opcode as the host saw it. */
export interface HostOperationLedger {
  readonly opcode: number;
  readonly posted: number;
  readonly completed: number;
  readonly takenPs: number;
  /** The part above it; absent if a number holds all. */
  readonly farTakenPs?: bigint;
  /** Time from posting until the program polled the completion, in picoseconds. */
  readonly latencyPs: HistogramData | undefined;
}

export interface HostLedger {
  readonly node: number;
  readonly nowPs: ExactPs;
  readonly bootedPs: ExactPs | undefined;
  readonly cores: readonly CpuReport[];
  readonly contextSwitches: readonly number[];
  readonly systemCalls: {
    readonly control: number;
    readonly dataPath: number;
    readonly byName: Readonly<Record<string, number>>;
  };
  readonly interrupts: readonly InterruptStatistics[];
  /** Messages at the root complex; messages lost, still delayed and added by faults; messages that named no vector. */
  readonly messages: {
    readonly arrived: number;
    readonly lost: number;
    readonly held: number;
    readonly spurious: number;
    readonly unrouted: number;
    /** Messages on their way to a core. */
    readonly delivering: number;
  };
  /** Reads of the device that the root complex accepted, and those that a fault left unanswered. */
  readonly reads: { readonly taken: number; readonly lost: number };
  /** Counters of memory management. */
  readonly memory: Readonly<MemoryStatistics>;
  readonly pcie: LinkEndLedger;
  /** Accesses that the root complex refused or dropped, by reason. */
  readonly deviceFaults: Readonly<Record<string, number>>;
  readonly operations: readonly HostOperationLedger[];
  /** Occurrences of each fault of the plan at this host. */
  readonly faultsFired: readonly number[];
  /** Counters of the IOMMU; undefined if none exists. */
  readonly iommu: IommuLedger | undefined;
  /** Violations of buffer ownership; undefined if they are not watched. */
  readonly races: readonly Race[] | undefined;
  /** Number of violations beyond the kept ones. */
  readonly lostRaces: number;
  /** Device accesses to memory that was not granted; undefined if they are not watched. */
  readonly unownedAccesses: UnownedAccessLedger | undefined;
  /** Bytes over the memory bus, by actor. */
  readonly memoryBus: MemoryTraffic;
  /** Cost of on-demand paging for the driver; undefined if no driver was probed. */
  readonly onDemand: Readonly<OnDemandStatistics> | undefined;
  /** Results of the kernel's search for MACs; undefined unless ports are Ethernet. */
  readonly neighbours: NetworkCounts | undefined;
  /** The traditional path; undefined with an HCA. */
  readonly net: NetLedger | undefined;
}

/** Software's use of a NIC: counters by name (net/net-statistics.ts, ProgrammedStatistics), and the DMA controller's. */
export interface NetLedger {
  readonly kernel: Readonly<Record<string, number>>;
  readonly programmed: Readonly<Record<string, number>>;
  readonly systemDma: {
    readonly words: number;
    readonly interrupts: number;
    readonly failures: number;
    readonly busTaken: number;
    readonly busHeldPs: number;
  };
}

/** Their number, and the first of them. */
export interface UnownedAccessLedger {
  readonly count: number;
  readonly first: readonly UnownedAccess[];
}

export interface IommuLedger {
  readonly hits: number;
  readonly misses: number;
  readonly walks: number;
  readonly invalidations: number;
  readonly mappedPages: number;
  readonly faults: number;
  /** Faults lost because the log was full. */
  readonly lostFaults: number;
  /** Fault event interrupts: one for all faults that occur before the processor has read the log. */
  readonly interrupts: number;
}

export function hostLedgerOf(node: HostNode): HostLedger {
  const { host, lp, interruptGate } = node;
  const report = host.report();
  return {
    node: node.node,
    nowPs: lp.instantPs,
    bootedPs: node.bootedPs,
    cores: report.cores,
    contextSwitches: host.cores.map(({ contextSwitchCount }) => contextSwitchCount),
    systemCalls: { ...report.systemCalls, byName: sortedByName(host.systemCalls.byName) },
    interrupts: report.interrupts,
    messages: {
      arrived: interruptGate.messageCount,
      lost: interruptGate.lostCount,
      held: interruptGate.heldCount,
      spurious: interruptGate.spuriousCount,
      unrouted: host.interrupts.unroutedMessageCount,
      delivering: host.interrupts.deliveringCount,
    },
    reads: { taken: node.rootComplex.reads.readCount, lost: node.rootComplex.reads.lostCount },
    memory: report.memory,
    pcie: linkEndLedgerOf(node.port, lp.nowPs, lp.isDrained),
    deviceFaults: { ...node.rootComplex.log.counts },
    operations: operationsOf(node),
    faultsFired: node.faultLog.counts(),
    iommu: iommuOf(node),
    races: node.races?.races.slice(),
    lostRaces: node.races?.lostRaces ?? 0,
    unownedAccesses:
      node.accesses === undefined
        ? undefined
        : { count: node.accesses.unownedCount, first: node.accesses.unowned.slice() },
    memoryBus: memoryTrafficOf(node),
    onDemand: countsOf(node.driver?.onDemandCounts()),
    neighbours: node.driver?.neighbourCounts(),
    net: netOf(node),
  };
}

const countsOf = (counts: OnDemandStatistics | undefined): OnDemandStatistics | undefined =>
  counts === undefined ? undefined : { ...counts };

function netOf({ nic, systemDma, lp }: HostNode): NetLedger | undefined {
  if (systemDma === undefined) return undefined;
  const { dma, bus, wordsMoved } = systemDma;
  return {
    kernel: { ...nic?.network?.counts },
    programmed: programmedOf(nic),
    systemDma: {
      words: wordsMoved,
      interrupts: dma.interruptCount,
      failures: dma.channels.reduce((sum, { failures }) => sum + failures, 0),
      busTaken: bus.takenCount,
      busHeldPs: bus.heldPsAt(lp.nowPs),
    },
  };
}

const programmedOf = (nic: NicSoftware | undefined): Record<string, number> => ({ ...nic?.programmed });

function iommuOf({ iommu, host }: HostNode): IommuLedger | undefined {
  if (iommu === undefined) return undefined;
  return {
    hits: iommu.iotlb.hits,
    misses: iommu.iotlb.misses,
    walks: iommu.blocks.walker.walkCount,
    invalidations: iommu.invalidationCount,
    mappedPages: host.iommu?.mappedPages ?? 0,
    faults: iommu.blocks.faultLog.faultCount,
    lostFaults: iommu.blocks.faultLog.lostFaultCount,
    interrupts: iommu.blocks.faultLog.interruptCount,
  };
}

function operationsOf({ operations }: HostNode): HostOperationLedger[] {
  const rows: HostOperationLedger[] = [];
  for (let opcode = 0; opcode < operations.postedCount.length; opcode++) {
    if (operations.postedCount[opcode] === 0) continue;
    rows.push({
      opcode,
      posted: operations.postedCount[opcode]!,
      completed: operations.completedCount[opcode]!,
      takenPs: operations.takenPs[opcode]!,
      ...(operations.farTakenPs[opcode] === 0n ? {} : { farTakenPs: operations.farTakenPs[opcode]! }),
      latencyPs: operations.latencyOf(opcode)?.toData(),
    });
  }
  return rows;
}

function sortedByName(counts: ReadonlyMap<string, number>): Record<string, number> {
  return Object.fromEntries([...counts].toSorted(([left], [right]) => (left < right ? -1 : 1)));
}
