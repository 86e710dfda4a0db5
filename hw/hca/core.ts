/**
 * What the blocks of the data path share: time, configuration, memories, tables, caches and engines. It is made once, before
 * the blocks; each takes from it what it needs. Which blocks a block calls stands in the table of wires (data-path.ts).
 */
import type { ClockDomain, LogicalProcess } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { CostAttribution } from './costs/index.ts';
import type { DoorbellGeometry } from './doorbells/index.ts';
import {
  type ContextCache,
  type ContextMisses,
  type ContextUser,
  type DmaReads,
  type DmaWrites,
  type IcmMap,
  MptCache,
  MttCache,
  makeContextCache,
  makeTranslator,
  PageFaults,
  type SramAllocator,
  type Translator,
} from './memory/index.ts';
import { type CqTable, type QpTable, SendRecords, type SrqTable, WQE_LINE_BYTES } from './objects/index.ts';
import {
  Loopback,
  PACKET_PAYLOAD_BYTES_MAX,
  type PacketPort,
  PacketQueue,
  type PortAddress,
  ReadUnit,
  ReceivedPackets,
  TransportCounters,
} from './packets/index.ts';
import type { HcaConfig } from './parameters.ts';
import type { EthernetSide } from './port/index.ts';
import type { ReceiveBuffers } from './receive-queue/index.ts';
import type { EmbeddedManager, MulticastGroups, SpecialQps } from './receiver/index.ts';
import { ReceiveTurns, RoceLink } from './roce/index.ts';
import { WqeLines } from './send-queue/index.ts';
import {
  DiagnosticCounters,
  OperationLedger,
  type OperationTap,
  ViolationCounters,
} from './statistics/index.ts';

/** The tables that QUERY_DEV_CAP names. */
export interface DataPathTables {
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
}

/** Port 1 as Ethernet: its end of the cable, and what software has set up. */
export interface EthernetCore {
  readonly port: EthernetPort;
  readonly side: EthernetSide;
}

/** Reports of dwords of host memory that have changed: see hw/pcie/root-complex/word-monitor.ts. */
interface WordMonitors {
  /** Requests a report when the big-endian dword at `address` differs from `word`; replaces the monitor of the same number. */
  monitor(number: number, address: number, word: number): void;
  endMonitor(number: number): void;
}

/** What the data path is put into: the device around it. */
interface DataPathSite {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly icm: IcmMap;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly monitors: WordMonitors;
  readonly port: PacketPort;
  /** The addresses of the port. */
  readonly address: PortAddress;
  readonly specialQps: SpecialQps;
  readonly manager: EmbeddedManager;
  readonly groups: MulticastGroups;
  readonly geometry: DoorbellGeometry;
  /** Left out on a port of InfiniBand. With it `port` carries nothing: RoCE has one of its own. */
  readonly ethernet?: EthernetCore | undefined;
}

export interface HcaCore extends DataPathSite, DataPathTables {
  /** Memory of the HCA, and an offset of new bytes of it, aligned to 64. */
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  allocateSram(lengthBytes: number): number;
  readonly mptCache: MptCache;
  readonly mttCache: MttCache;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly qpcCache: ContextCache<ContextUser<'qpc'>>;
  readonly cqcCache: ContextCache<ContextUser<'cqc'>>;
  readonly srqcCache: ContextCache<ContextUser<'srqc'>>;
  /** Send requests that have been started, and WQEs on chip. */
  readonly records: SendRecords;
  readonly lines: WqeLines;
  /** Packets on their way out, those for this very port on their way back in, and the one that the receiver works on. */
  readonly requestPackets: PacketQueue;
  readonly responsePackets: PacketQueue;
  readonly loopback: Loopback;
  /** Of a port of Ethernet with RoCE, whose packet port it is; on others it is off. */
  readonly roceLink: RoceLink;
  readonly receiveTurns: ReceiveTurns | undefined;
  readonly readUnit: ReadUnit;
  readonly received: ReceivedPackets;
  /** What the port that is in use holds of what it received. */
  readonly receiveBuffers: ReceiveBuffers;
  readonly violations: ViolationCounters;
  readonly transport: TransportCounters;
  readonly diagnostics: DiagnosticCounters;
  readonly operations: OperationLedger;
  /** On request: which operation each TLP is due to. */
  readonly costs: CostAttribution | undefined;
}

export interface HcaCoreSetup extends DataPathSite {
  readonly tables: DataPathTables;
  readonly sram: SramAllocator;
  readonly tap: OperationTap | undefined;
  readonly costs?: CostAttribution | undefined;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

export function makeCore(setup: HcaCoreSetup): HcaCore {
  const { config, tables, sram, domain, tap, costs, misses: _, ...site } = setup;
  const { qps, cqs, srqs } = tables;
  const mptCache = new MptCache(config.mptCacheEntries, config.mptCacheWays, config.cacheReplacement);
  const mttCache = new MttCache(config.mttCacheLines, config.mttCacheWays, config.cacheReplacement);
  const translator = makeTranslator(setup, mptCache, mttCache);
  const pageFaults = new PageFaults({ domain, qps });
  const { qpcCacheEntries, qpcCacheWays, cqcCacheEntries, cqcCacheWays, srqcCacheEntries, srqcCacheWays } =
    config;
  const { ethernet, address } = setup;
  const violations = new ViolationCounters();
  const roceLink = new RoceLink(ethernet, address, violations, qps);
  const hasRoce = roceLink.isOn;
  const port = hasRoce ? roceLink : setup.port;
  const loopback = new Loopback(config);
  const received = new ReceivedPackets(port, loopback);
  const slotBytes = packetSlotBytes(ethernet?.port.frameBytesMax);
  return {
    ...site,
    ...tables,
    config,
    domain,
    port,
    sram: sram.bytes,
    sramView: new DataView(sram.bytes.buffer, sram.bytes.byteOffset, sram.bytes.byteLength),
    allocateSram: (lengthBytes) => sram.allocate(lengthBytes),
    mptCache,
    mttCache,
    translator,
    pageFaults,
    qpcCache: makeContextCache(setup, 'qpc', qps, qpcCacheEntries, qpcCacheWays),
    cqcCache: makeContextCache(setup, 'cqc', cqs, cqcCacheEntries, cqcCacheWays),
    srqcCache: makeContextCache(setup, 'srqc', srqs, srqcCacheEntries, srqcCacheWays),
    records: new SendRecords(config.outstandingWqes),
    lines: new WqeLines(config.wqeLineCount, sram.allocate(config.wqeLineCount * WQE_LINE_BYTES), qps.rows),
    requestPackets: packetQueue(config.transmitBufferPackets, sram, slotBytes),
    responsePackets: packetQueue(config.responseBufferPackets, sram, PACKET_PAYLOAD_BYTES_MAX),
    loopback,
    roceLink,
    receiveTurns: hasRoce ? new ReceiveTurns() : undefined,
    readUnit: new ReadUnit(),
    received,
    receiveBuffers: ethernet === undefined || hasRoce ? received : frameBuffers(ethernet.port),
    violations,
    transport: new TransportCounters(),
    diagnostics: new DiagnosticCounters(),
    operations: new OperationLedger(domain.clock, qps, tap),
    costs,
  };
}

function packetQueue(packets: number, sram: SramAllocator, slotBytes: number): PacketQueue {
  return new PacketQueue(packets, sram.allocate(packets * slotBytes), slotBytes);
}

/** Room for one payload, or for one frame where the port is of Ethernet. */
export const packetSlotBytes = (frameBytesMax = 0): number =>
  Math.max(PACKET_PAYLOAD_BYTES_MAX, Math.ceil(frameBytesMax / SLOT_ALIGNMENT) * SLOT_ALIGNMENT);

const SLOT_ALIGNMENT = 64;

/** Frames are named by their slots. */
const frameBuffers = (port: EthernetPort): ReceiveBuffers => ({
  receivePacketsMax: port.slotCount,
  consume: (slot) => port.consume(slot),
});
