/**
 * The report of a run, version "hca-report/1": what happened in the machine, and nothing of how it was computed (no
 * partition, threads or wall clock). The same configuration, programs and seed give the same report, byte for byte.
 * All human renderings are made from this JSON.
 */

import type { NetworkCounts, OnDemandStatistics } from '../../driver/index.ts';
import type { CpuCause, MemoryStatistics } from '../../host/index.ts';
import type { MemoryTraffic } from '../node/memory-traffic.ts';
import type { Race } from '../node/race-watch.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { Topology } from '../topology/index.ts';
import type { ExactDigits } from './exact-figures.ts';
import type { FrameLedger } from './frame-ledger.ts';
import type { CacheLedger, InlineReceiveLedger, LoopbackLedger, PageFaultLedger } from './hca-ledger.ts';
import type { IommuLedger, NetLedger, UnownedAccessLedger } from './host-ledger.ts';
import type { PacketLedger } from './packet-ledger.ts';

export const reportSchema = 'hca-report/1';

/** Cycles of one core by cause. `ahead` are charged cycles that lie beyond the end of the run. */
export type CoreCycles = Readonly<Record<CpuCause | 'total' | 'ahead', number>>;

/** A device's actions for one MSI-X vector. */
export interface DeviceInterruptRow {
  /** In a row of the platform, the name of a legacy pin as well. */
  readonly vector: number | string;
  /** Reasons of the device to interrupt, and those that moderation joined to another. */
  readonly requested: number;
  readonly moderated: number;
  /** Messages that found the vector masked, and those that found its pending bit set. */
  readonly masked: number;
  readonly coalesced: number;
  /** Messages sent. */
  readonly sent: number;
}

export interface InterruptRow extends DeviceInterruptRow {
  /** Interrupts delivered to a core, served by a handler, found pending there, without a handler. */
  readonly delivered: number;
  readonly handled: number;
  readonly merged: number;
  readonly spurious: number;
}

export interface ClassCount {
  readonly tlps: number;
  /** On the link: header, payload and framing. */
  readonly bytes: number;
}

export interface LinkDirection {
  /** As the receiver counted them; classes without TLPs are left out. */
  readonly classes: Readonly<Record<string, ClassCount>>;
  /** As the transmitter counted them. */
  readonly total: ClassCount;
  /** Link bytes of all: TLPs, DLLPs and padding. */
  readonly linkBytes: number;
  readonly busyPs: number;
  /** Picoseconds that the oldest TLP of a flow waited, by flow and reason. */
  readonly waitedPs: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

export interface BlockRow {
  readonly elapsedCycles: number;
  readonly busyCycles: number;
  readonly idleCycles: number;
  readonly stalledCycles: Readonly<Record<string, number>>;
}

export interface NodeReport {
  readonly cpu: {
    readonly cores: readonly { readonly cycles: CoreCycles; readonly contextSwitches: number }[];
    readonly systemCalls: {
      readonly control: number;
      readonly dataPath: number;
      readonly byName: Readonly<Record<string, number>>;
    };
  };
  /** Events of memory management, by kind (host/mm/memory-statistics.ts); zeros are omitted. */
  readonly memory: Readonly<Partial<MemoryStatistics>>;
  /** Counters of the IOMMU; left out if none exists. */
  readonly iommu?: IommuLedger;
  /** Programs that touched buffers which were the device's; left out when that is not watched. */
  readonly races?: readonly Race[];
  /** How many more there were: a list has the first thousand. Left out when it has all. */
  readonly lostRaces?: number;
  /** Accesses of the device to memory that was not given to it; left out when they are not watched. */
  readonly unownedAccesses?: UnownedAccessLedger;
  readonly interrupts: readonly InterruptRow[];
  readonly pcie: { readonly toDevice: LinkDirection; readonly toHost: LinkDirection };
  /** Bytes over the memory bus, by who moved them. */
  readonly memoryBus: MemoryTraffic;
  /** On-demand paging, as device and driver saw it; left out when there were no on-demand regions. */
  readonly onDemand?: { readonly device: PageFaultLedger; readonly driver: Readonly<OnDemandStatistics> };
  /**
   * How the kernel found the MACs of others for RoCE, since its last probe: requests sent, addresses found and not found, answers given, frames that it
   * took and dropped; zeros left out, all left out where ports are of InfiniBand.
   */
  readonly neighbours?: Readonly<Partial<NetworkCounts>>;
  /** The conventional NIC and the software above it; left out with an HCA. */
  readonly nic?: NicReport;
  /** With a NIC all parts of it are empty. */
  readonly hca: {
    readonly blocks: Readonly<Record<string, BlockRow>>;
    readonly caches: Readonly<Record<string, CacheLedger>>;
    /** Commands completed, by name. */
    readonly commands: Readonly<Record<string, number>>;
    readonly doorbells: Readonly<Record<string, number>>;
    /** Frames of the port, zeros left out; left out where ports are of InfiniBand. */
    readonly ethernet?: FrameLedger;
    /** Packets of the port to itself. */
    readonly loopback: LoopbackLedger;
    /** Messages put in their receive WQEs, and their bytes: written without a key; left out when there were none. */
    readonly inlineReceives?: InlineReceiveLedger;
    /** Recovery by the transport: NAKs by kind and direction, timeouts, leftovers; zeros are omitted. */
    readonly transport: Readonly<Record<string, number>>;
    /** Refusals of the device, by name: rules that software broke, discarded packets, and lawful requests without effect; may be empty. */
    readonly violations: Readonly<Record<string, number>>;
  };
  /** Device accesses that the root complex refused, by reason; may be empty. */
  readonly deviceFaults: Readonly<Record<string, number>>;
}

export interface NicReport {
  readonly blocks: Readonly<Record<string, BlockRow>>;
  /** Counters of the device, of its cable's port, of the kernel, of programs that drive it; zeros left out. */
  readonly device: Readonly<Record<string, number>>;
  readonly transmitted: Readonly<Record<string, number>>;
  readonly received: Readonly<Record<string, number>>;
  readonly kernel: Readonly<Record<string, number>>;
  readonly programmed: Readonly<Record<string, number>>;
  readonly systemDma: NetLedger['systemDma'];
}

/** One direction of a cable; frames of an Ethernet cable that are no packets of RoCE are of the one opcode FRAME. */
export interface WireReport {
  readonly from: number;
  readonly to: number;
  readonly opcodes: Readonly<Record<string, PacketLedger>>;
  /** Packets whose PSN had left the port before, not among those of `opcodes`: requests, READ responses, atomic results. */
  readonly retransmitted: Readonly<Record<string, PacketLedger>>;
  /** Of the packets sent, those that arrived with a wrong CRC, and those that the far port dropped. */
  readonly corrupted: number;
  readonly dropped: number;
  /** Of the packets sent, what faults did to them; left out where they did nothing. */
  readonly lost?: number;
  readonly duplicated?: number;
  readonly reordered?: number;
  /** Packets that were never sent, because the link was down when their turn came; not among the others. */
  readonly discarded: number;
  readonly packets: number;
  readonly bytes: number;
  readonly flowControlPackets: number;
  readonly linkBytes: number;
  readonly busyPs: number;
  readonly creditWaitPs: number;
  readonly serializerWaitPs: number;
  /** Of an Ethernet cable between ports with flow control: how long something waited for the end of a pause. */
  readonly pauseWaitPs?: number;
}

export interface OperationReport {
  /** Successfully completed; `silent` of them without a CQE. */
  readonly count: number;
  readonly failed: number;
  readonly silent: number;
  readonly payloadBytes: number;
  /** From posting until the program took the completion; of those with a CQE. Quantiles to within 0.4 %. */
  readonly latencyPs: {
    readonly min: number;
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  } | null;
  /** Where that time went, summed over all: named after what was waited for. */
  readonly milestonesPs: Readonly<Record<string, number>>;
}

export interface CheckReport {
  readonly holds: boolean;
  /** Failed checks, in words; empty if all hold. */
  readonly failures: readonly string[];
}

export interface ChecksReport {
  readonly balanced: boolean;
  readonly cpu: CheckReport;
  readonly blocks: CheckReport;
  readonly pcie: CheckReport;
  readonly interrupts: CheckReport;
  readonly wire: CheckReport;
  readonly operations: CheckReport;
}

/** A fault that was asked for, as the option that says the same, and how often it has happened. */
export interface FaultReport {
  readonly fault: string;
  readonly fired: number;
}

export interface Report {
  readonly schema: typeof reportSchema;
  /** Of the configuration and, where there are any, the faults. */
  readonly configHash: string;
  readonly config: MachineConfig;
  /** Hosts and the cables between them; left out for the default, which is pairs. */
  readonly topology?: Topology;
  /** Faults that were asked for; left out when there were none. */
  readonly faults?: readonly FaultReport[];
  readonly elapsedPs: number;
  readonly nodes: readonly NodeReport[];
  readonly wire: readonly WireReport[];
  readonly operations: Readonly<Record<string, OperationReport>>;
  readonly checks: ChecksReport;
  /** All digits of the figures above that are 2^53 ps or more, by their places; absent when there are none. */
  readonly exactPs?: ExactDigits;
}
