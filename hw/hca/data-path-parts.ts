/**
 * Memories, caches, queues and counters of the data path. They are made once, before the blocks; data-path-blocks.ts hands each of
 * them to the blocks that use it.
 */
import type { ClockDomain, LogicalProcess } from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { CapabilityConfig } from './capabilities.ts';
import type { CostAttribution } from './costs/index.ts';
import type { ContextFormats, HostFormats, Personality } from './host-interface/index.ts';
import type { WordMonitors } from './lifecycle/index.ts';
import {
  type ContextMisses,
  type DmaReads,
  type DmaWrites,
  MptCache,
  MttCache,
  makeContextCache,
  makeTranslator,
  PageFaults,
  type SramAllocator,
} from './memory/index.ts';
import { CqTable, QpTable, SendRecords, SrqTable, WQE_LINE_BYTES } from './objects/index.ts';
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
import type { EthernetAttachment } from './port/index.ts';
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

/** The tables of objects. */
export interface DataPathTables {
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
}

/** The tables of objects, with the number of contexts that the capabilities report. A context costs no memory before it is used. */
export function makeTables(
  capabilities: Pick<CapabilityConfig, 'logMaxQps' | 'logMaxCqs' | 'logMaxSrqs'>,
  formats: Pick<ContextFormats, 'queuePairs' | 'completionQueues' | 'sharedQueues'>,
): DataPathTables {
  return {
    qps: new QpTable(2 ** capabilities.logMaxQps, formats.queuePairs),
    cqs: new CqTable(2 ** capabilities.logMaxCqs, formats.completionQueues),
    srqs: new SrqTable(2 ** capabilities.logMaxSrqs, formats.sharedQueues),
  };
}

/** The device around the data path. */
export interface DataPathSite {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly tables: DataPathTables;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly monitors: WordMonitors;
  readonly sram: SramAllocator;
  /** The ports that carry packets, and their addresses. */
  readonly ports: readonly PacketPort[];
  readonly addresses: readonly PortAddress[];
  readonly specialQps: SpecialQps;
  /** Of each port. */
  readonly managers: readonly EmbeddedManager[];
  readonly groups: MulticastGroups;
  /** The card's host interface. */
  readonly personality: Pick<
    Personality,
    'contextMemory' | 'keys' | 'translations' | 'makeFormats' | 'makeDoorbells'
  >;
  /** Left out on a port of InfiniBand. With it `ports` carry nothing: RoCE has one of its own. */
  readonly ethernet?: EthernetAttachment | undefined;
  readonly tap: OperationTap | undefined;
  /** On request: which operation each TLP is due to. */
  readonly costs?: CostAttribution | undefined;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

/** Everything that blocks of the data path are made with. */
export type DataPathParts = ReturnType<typeof makeParts>;

export function makeParts(site: DataPathSite) {
  const { tables, sram, tap: _, misses: __, ...surroundings } = site;
  const translation = makeTranslation(site);
  const wire = makeWireParts(site);
  const contexts = makeContextCaches(site);
  const queues = makeQueues(site);
  const sramView = new DataView(sram.bytes.buffer, sram.bytes.byteOffset, sram.bytes.byteLength);
  const { contextMemory, keys: keyFormat } = site.personality;
  return {
    ...surroundings,
    contextMemory,
    keyFormat,
    formats: makeFormats(site, queues.records, sramView),
    ethernet: site.ethernet,
    costs: site.costs,
    /** Memory of the HCA, and an offset of new bytes of it, aligned to 64. */
    sram: sram.bytes,
    sramView,
    allocateSram: (lengthBytes: number): number => sram.allocate(lengthBytes),
    ...tables,
    ...translation,
    ...wire,
    ...contexts,
    ...queues,
    ...makeCounters(site),
  };
}

/** Formats of work requests and completions, as the card has them. */
function makeFormats(site: DataPathSite, records: SendRecords, sramView: DataView): HostFormats {
  const { personality, addresses, ethernet, tables, sram } = site;
  return personality.makeFormats({
    addresses,
    ethernet,
    qps: tables.qps,
    records,
    sram: sram.bytes,
    sramView,
  });
}

/** Keys, translations and the pages that they lack. */
function makeTranslation(site: DataPathSite) {
  const { config, domain, tables, personality } = site;
  const { mptCacheEntries, mptCacheWays, mttCacheLines, mttCacheWays, cacheReplacement } = config;
  const { keys, translations, contextMemory } = personality;
  const mptCache = new MptCache(mptCacheEntries, mptCacheWays, cacheReplacement, keys);
  const mttCache = new MttCache(mttCacheLines, mttCacheWays, cacheReplacement, translations);
  const translator = makeTranslator({ ...site, contextMemory }, mptCache, mttCache);
  return { mptCache, mttCache, translator, pageFaults: new PageFaults({ domain, qps: tables.qps }) };
}

function makeContextCaches(site: DataPathSite) {
  const { qps, cqs, srqs } = site.tables;
  const { qpcCacheEntries, qpcCacheWays, cqcCacheEntries, cqcCacheWays, srqcCacheEntries, srqcCacheWays } =
    site.config;
  const parts = { ...site, contextMemory: site.personality.contextMemory };
  return {
    qpcCache: makeContextCache(parts, 'qpc', qps, qpcCacheEntries, qpcCacheWays),
    cqcCache: makeContextCache(parts, 'cqc', cqs, cqcCacheEntries, cqcCacheWays),
    srqcCache: makeContextCache(parts, 'srqc', srqs, srqcCacheEntries, srqcCacheWays),
  };
}

/** The ways to and from the cable, the loopback among them. */
function makeWireParts({ config, tables, addresses, ethernet, ports: packetPorts }: DataPathSite) {
  const violations = new ViolationCounters();
  const roceLink = new RoceLink(ethernet, addresses[0]!, violations, tables.qps);
  const hasRoce = roceLink.isOn;
  const ports = hasRoce ? [roceLink] : packetPorts;
  const loopback = new Loopback(config);
  const received = new ReceivedPackets(ports, addresses, loopback);
  const receiveBuffers = ethernet === undefined || hasRoce ? received : frameBuffers(ethernet.port);
  const receiveTurns = hasRoce ? new ReceiveTurns() : undefined;
  return { violations, roceLink, ports, loopback, received, receiveBuffers, receiveTurns };
}

/** Send requests that have been started, WQEs on chip, packets on their way out. */
function makeQueues({ config, sram, tables, ethernet }: DataPathSite) {
  const { wqeLineCount } = config;
  const slotBytes = packetSlotBytes(ethernet?.port.frameBytesMax);
  return {
    records: new SendRecords(config.outstandingWqes),
    lines: new WqeLines(wqeLineCount, sram.allocate(wqeLineCount * WQE_LINE_BYTES), tables.qps.rows),
    requestPackets: packetQueue(config.transmitBufferPackets, sram, slotBytes),
    responsePackets: packetQueue(config.responseBufferPackets, sram, PACKET_PAYLOAD_BYTES_MAX),
    readUnit: new ReadUnit(),
  };
}

function makeCounters({ domain, tables, tap }: DataPathSite) {
  return {
    transport: new TransportCounters(),
    diagnostics: new DiagnosticCounters(),
    operations: new OperationLedger(domain.clock, tables.qps, tap),
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
