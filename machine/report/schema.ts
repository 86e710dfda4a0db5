/**
 * The report of a run, version "hca-report/1": the events in the machine, without facts of the computation (partition,
 * threads, wall clock). The same configuration, programs and seed give the same report, byte for byte. All human
 * renderings are made from this JSON.
 */

import type { NetworkCounts, OnDemandStatistics } from '../../driver/index.ts';
import type { CpuCause, MemoryStatistics } from '../../host/index.ts';
import type { MemoryTraffic } from '../node/memory-traffic.ts';
import type { Race } from '../node/race-watch.ts';
import type { MachineConfig } from '../profile/index.ts';
import type { Topology } from '../topology/index.ts';
import type { ExactDigits } from './exact-figures.ts';
import type { FrameLedger } from './frame-ledger.ts';
import type {
  CacheLedger,
  CongestionLedger,
  InlineReceiveLedger,
  LoopbackLedger,
  PageFaultLedger,
} from './hca-ledger.ts';
import type { IommuLedger, NetLedger, UnownedAccessLedger } from './host-ledger.ts';
import type { IwarpLedger } from './iwarp-ledger.ts';
import type { PacketLedger } from './packet-ledger.ts';

export const reportSchema = 'hca-report/1';

/** Cycles of one core by cause. `ahead` counts charged cycles beyond the end of the run. */
export type CoreCycles = Readonly<Record<CpuCause | 'total' | 'ahead', number>>;

/** A device's actions for one MSI-X vector. */
export interface DeviceInterruptRow {
  /** Number of the vector; in a row of the platform, also the name of a legacy pin. */
  readonly vector: number | string;
  /** Reasons of the device to interrupt, and those that moderation merged with another. */
  readonly requested: number;
  readonly moderated: number;
  /** Messages delayed because the vector was masked, and those merged because its pending bit was already set. */
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
  /** Bytes on the link: header, payload and framing. */
  readonly bytes: number;
}

export interface LinkDirection {
  /** Counts by class, as the receiver counted them; classes without TLPs are left out. */
  readonly classes: Readonly<Record<string, ClassCount>>;
  /** Total as the transmitter counted it. */
  readonly total: ClassCount;
  /** Total link bytes: TLPs, DLLPs and padding. */
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
  /** Accesses of programs to buffers owned by the device; left out if they are not watched. */
  readonly races?: readonly Race[];
  /** Number of further accesses: a list has the first thousand. Left out if the list is complete. */
  readonly lostRaces?: number;
  /** Device accesses to memory that was not granted to it; left out if they are not watched. */
  readonly unownedAccesses?: UnownedAccessLedger;
  readonly interrupts: readonly InterruptRow[];
  readonly pcie: { readonly toDevice: LinkDirection; readonly toHost: LinkDirection };
  /** Bytes over the memory bus, by actor. */
  readonly memoryBus: MemoryTraffic;
  /** On-demand paging, as device and driver saw it; left out without on-demand regions. */
  readonly onDemand?: { readonly device: PageFaultLedger; readonly driver: Readonly<OnDemandStatistics> };
  /**
   * The kernel's search for the peers' MACs for RoCE, since its last probe: requests sent, addresses found and not
   * found, answers sent, frames accepted and dropped; zeros are left out; the whole field is left out for InfiniBand
   * ports.
   */
  readonly neighbours?: Readonly<Partial<NetworkCounts>>;
  /** The conventional NIC and the software above it; left out with an HCA. */
  readonly nic?: NicReport;
  /** Parts of the HCA; all are empty with a NIC. */
  readonly hca: {
    readonly blocks: Readonly<Record<string, BlockRow>>;
    readonly caches: Readonly<Record<string, CacheLedger>>;
    /** Commands completed, by name. */
    readonly commands: Readonly<Record<string, number>>;
    readonly doorbells: Readonly<Record<string, number>>;
    /** Frames of the port, without zeros; left out for InfiniBand ports. */
    readonly ethernet?: FrameLedger;
    /** Packets that the port sends to itself. */
    readonly loopback: LoopbackLedger;
    /** Messages put in their receive WQEs, and their bytes, written without a key; left out if there were none. */
    readonly inlineReceives?: InlineReceiveLedger;
    /** Recovery by the transport: NAKs by kind and direction, timeouts, leftovers; zeros are omitted. */
    readonly transport: Readonly<Record<string, number>>;
    /** Segments and TCP connections of iWARP; left out for other transports. */
    readonly iwarp?: IwarpLedger;
    /** Marks of congestion and what followed; left out without congestion control (`hca.congestion`). */
    readonly congestion?: CongestionLedger;
    /** Refusals of the device, by name: rules that software broke, discarded packets, and lawful requests without effect; may be empty. */
    readonly violations: Readonly<Record<string, number>>;
  };
  /** Device accesses that the root complex refused, by reason; may be empty. */
  readonly deviceFaults: Readonly<Record<string, number>>;
}

export interface NicReport {
  readonly blocks: Readonly<Record<string, BlockRow>>;
  /** Counters of the device, of its cable's port, of the kernel, and of programs that drive it, without zeros. */
  readonly device: Readonly<Record<string, number>>;
  readonly transmitted: Readonly<Record<string, number>>;
  readonly received: Readonly<Record<string, number>>;
  readonly kernel: Readonly<Record<string, number>>;
  readonly programmed: Readonly<Record<string, number>>;
  readonly systemDma: NetLedger['systemDma'];
}

/** One data lane in one direction of a cable. */
export interface LaneReport {
  /** Packets put on the link, and bytes from LRH to VCRC. */
  readonly packets: number;
  readonly bytes: number;
  /** Packets that found room in the buffer of the far port. */
  readonly receivedPackets: number;
  /** Time for which its packets waited for credits, whatever other lanes sent meanwhile. */
  readonly creditWaitPs: number;
  /** Most bytes held in the buffer of the far port at once. */
  readonly bufferedBytesMax: number;
}

/** One direction of a cable; on Ethernet, frames that are not RoCE packets have the opcode FRAME. */
export interface WireReport {
  readonly from: number;
  readonly to: number;
  /** Ports of the cable's ends; left out where they are the first. */
  readonly fromPort?: number;
  readonly toPort?: number;
  readonly opcodes: Readonly<Record<string, PacketLedger>>;
  /** Packets whose PSN had been sent before, not included in `opcodes`: requests, READ responses, atomic results. */
  readonly retransmitted: Readonly<Record<string, PacketLedger>>;
  /** Packets that arrived with a wrong CRC, and packets that the far port dropped, among those sent. */
  readonly corrupted: number;
  /**
   * Packets with a wrong CRC that a switch accepted: on InfiniBand their ICRC alone was wrong, and a host drops them;
   * on Ethernet a switch that cuts frames through received them. Left out without any.
   */
  readonly relayedDamage?: number;
  readonly dropped: number;
  /** Effects of faults on the packets sent; left out if there were none. */
  readonly lost?: number;
  readonly duplicated?: number;
  readonly reordered?: number;
  /** Packets never sent because the link was down when they were due, or no lane had their service level; not included in the others. */
  readonly discarded: number;
  /** Data lanes, from lane 0; left out with one. */
  readonly lanes?: readonly LaneReport[];
  readonly packets: number;
  readonly bytes: number;
  readonly flowControlPackets: number;
  readonly linkBytes: number;
  readonly busyPs: number;
  readonly creditWaitPs: number;
  readonly serializerWaitPs: number;
  /** Time that frames waited for the end of a pause, on an Ethernet cable between ports with flow control. */
  readonly pauseWaitPs?: number;
}

export interface OperationReport {
  /** Successfully completed; `silent` of them without a CQE. */
  readonly count: number;
  readonly failed: number;
  readonly silent: number;
  readonly payloadBytes: number;
  /**
   * Latency from posting until the program polled the completion; for operations with a CQE. Quantiles to within 0.4 %.
   */
  readonly latencyPs: {
    readonly min: number;
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  } | null;
  /** Parts of that time, summed over all, by cause of the wait. */
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

/** A requested fault in the form of its option, and its number of occurrences. */
export interface FaultReport {
  readonly fault: string;
  readonly fired: number;
}

/** A switch and its ports; what its ports send is in {@link Report.wire}. */
export interface SwitchReport {
  readonly node: number;
  readonly ports: readonly SwitchPortReport[];
  /** Packets that left in addition to those that came: copies for multicast groups and, on Ethernet, of flooded frames. */
  readonly copies: number;
  /** The buffer that all ports share; left out for InfiniBand. */
  readonly buffer?: SwitchBufferReport;
}

/** The output side of a port of an Ethernet switch. */
export interface SwitchOutputReport {
  /** Frames in its queues, and the longest queue so far. */
  readonly queuedFrames: number;
  readonly queuedBytesMax: number;
  /** Copies of frames for which a queue of a lossy priority had no room. */
  readonly queueDrops: number;
  /** Frames dropped from its queues because a pause did not end (switch.ethernet.pauseWatchdogMs). */
  readonly watchdogDrops: number;
  /** Frames marked as having experienced congestion. */
  readonly markedFrames: number;
}

/** The buffer of an Ethernet switch. */
export interface SwitchBufferReport {
  readonly usedBytes: number;
  readonly usedBytesMax: number;
  /** Frames to groups and to stations that were not known: they left by every port of the tree. */
  readonly floodedFrames: number;
}

/** Packets with a wrong CRC at a port of a switch: a VCRC or ICRC, or the FCS of a frame. */
export interface WrongCrcReport {
  /**
   * Packets that came by this port and were dropped on arrival, malformed ones among them: `corrupted` of the cable.
   */
  readonly dropped: number;
  /**
   * Packets that came by this port and were accepted: their ICRC alone was wrong, or the switch cuts frames through.
   * The frames that it had to store instead are dropped after all, as `wrongFcs`.
   */
  readonly accepted: number;
  /** Packets that left by this port with the wrong CRC with which they had come. */
  readonly sent: number;
}

export interface SwitchPortReport {
  /** Number from 1. */
  readonly port: number;
  readonly receivedPackets: number;
  /** Packets that came by this port and were dropped, by reason. */
  readonly notForwarded: Readonly<Record<string, number>>;
  /** Packets with a wrong CRC; left out without any. */
  readonly wrongCrc?: WrongCrcReport;
  /** Packets that came by this port and wait, and the most that have waited at once. */
  readonly waitingPackets: number;
  readonly waitingPacketsMax: number;
  /** Most bytes held at once: of data in its receive buffer, or on Ethernet of its frames in the shared buffer. */
  readonly bufferedBytesMax: number;
  /**
   * Frames that came by this port and began to leave before their last byte had come; left out for switches that store
   * all of them.
   */
  readonly cutThroughFrames?: number;
  /** Packets that left by this port marked with FECN; left out without marks (`switch.congestion`), and on Ethernet. */
  readonly markedPackets?: number;
  /** Queues of the frames that leave by this port; left out for InfiniBand. */
  readonly output?: SwitchOutputReport;
  /** Pauses that this port has sent, received and obeyed, without zeros; left out for InfiniBand. */
  readonly flowControl?: Readonly<Record<string, number>>;
}

export interface Report {
  readonly schema: typeof reportSchema;
  /** Hash of the configuration and, if any, the faults. */
  readonly configHash: string;
  readonly config: MachineConfig;
  /** Hosts and the cables between them; left out for the default, which is pairs. */
  readonly topology?: Topology;
  /** Requested faults; left out if there were none. */
  readonly faults?: readonly FaultReport[];
  readonly elapsedPs: number;
  readonly nodes: readonly NodeReport[];
  /** Switches, by number; left out without any. */
  readonly switches?: readonly SwitchReport[];
  readonly wire: readonly WireReport[];
  readonly operations: Readonly<Record<string, OperationReport>>;
  readonly checks: ChecksReport;
  /** All digits of the figures above that are 2^53 ps or more, by path; absent if there are none. */
  readonly exactPs?: ExactDigits;
}
