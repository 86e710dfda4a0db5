/**
 * Memories, caches, queues and counters of the data path. They are made once, before the blocks; data-path-blocks.ts hands each of
 * them to the blocks that use it.
 */
import type { ClockDomain, LogicalProcess } from '../../sim/index.ts';
import type { CapabilityConfig } from './capabilities.ts';
import type { CostAttribution } from './costs/index.ts';
import { ReceiveTurns } from './frames/index.ts';
import type { ContextFormats, HostFormats, Personality } from './host-interface/index.ts';
import type { PortAddress } from './ibta/packets/index.ts';
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
import { PACKET_PAYLOAD_BYTES_MAX, ReadUnit } from './packets/index.ts';
import type { HcaConfig } from './parameters.ts';
import type { EthernetAttachment } from './port/index.ts';
import { WqeLines } from './send-queue/index.ts';
import {
  DiagnosticCounters,
  OperationLedger,
  type OperationTap,
  ViolationCounters,
} from './statistics/index.ts';
import type { Transport, TransportParts } from './transport/index.ts';

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

/** Traffic of port 1: packets; frames if it is an Ethernet port; both with RoCE. */
export type Carried = 'packets' | 'frames' | 'both';

/** The device around the data path. */
export interface DataPathSite<Parts extends TransportParts, Blocks extends object> {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly tables: DataPathTables;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly monitors: WordMonitors;
  readonly sram: SramAllocator;
  readonly transport: Transport<Parts, Blocks>;
  readonly carries: Carried;
  /** The addresses of the ports that carry packets. */
  readonly addresses: readonly PortAddress[];
  /** The card's host interface. */
  readonly personality: Pick<
    Personality,
    'contextMemory' | 'keys' | 'translations' | 'makeFormats' | 'makeDoorbells'
  >;
  /** Left out on a port of InfiniBand. */
  readonly ethernet?: EthernetAttachment | undefined;
  readonly tap: OperationTap | undefined;
  /** Attribution of TLPs to operations, if requested. */
  readonly costs?: CostAttribution | undefined;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

/** Everything that blocks of the data path are made with. */
export type DataPathParts<Parts extends TransportParts = TransportParts> = ReturnType<
  typeof makeEngineParts
> &
  Parts;

type Site = DataPathSite<TransportParts, object>;

export function makeParts<Parts extends TransportParts, Blocks extends object>(
  site: DataPathSite<Parts, Blocks>,
): DataPathParts<Parts> {
  const { lp, domain, config, ethernet, transport } = site;
  const engines = makeEngineParts(site);
  const { qps, records, allocateSram, violations } = engines;
  const requestSlotBytes = packetSlotBytes(ethernet?.port.frameBytesMax);
  return {
    ...engines,
    ...transport.makeParts({
      lp,
      domain,
      config,
      qps,
      records,
      allocateSram,
      requestSlotBytes,
      ethernet,
      violations,
    }),
  };
}

function makeEngineParts(site: Site) {
  const { tables, sram, tap: _, misses: __, transport: ___, ...surroundings } = site;
  const translation = makeTranslation(site);
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
    /** Arbitration between the two receivers if the port carries both packets and frames. */
    receiveTurns: site.carries === 'both' ? new ReceiveTurns() : undefined,
    ...tables,
    ...translation,
    ...contexts,
    ...queues,
    ...makeCounters(site),
  };
}

/** Formats of work requests and completions, as the card has them. */
function makeFormats(site: Site, records: SendRecords, sramView: DataView): HostFormats {
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
function makeTranslation(site: Site) {
  const { config, domain, tables, personality } = site;
  const { mptCacheEntries, mptCacheWays, mttCacheLines, mttCacheWays, cacheReplacement } = config;
  const { keys, translations, contextMemory } = personality;
  const mptCache = new MptCache(mptCacheEntries, mptCacheWays, cacheReplacement, keys);
  const mttCache = new MttCache(mttCacheLines, mttCacheWays, cacheReplacement, translations);
  const translator = makeTranslator({ ...site, contextMemory }, mptCache, mttCache);
  return { mptCache, mttCache, translator, pageFaults: new PageFaults({ domain, qps: tables.qps }) };
}

function makeContextCaches(site: Site) {
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

/** Send requests that have been started, and WQEs on chip. */
function makeQueues({ config, sram, tables }: Site) {
  const { wqeLineCount } = config;
  return {
    records: new SendRecords(config.outstandingWqes),
    lines: new WqeLines(wqeLineCount, sram.allocate(wqeLineCount * WQE_LINE_BYTES), tables.qps.rows),
    readUnit: new ReadUnit(),
  };
}

function makeCounters({ domain, tables, tap }: Site) {
  return {
    violations: new ViolationCounters(),
    diagnostics: new DiagnosticCounters(),
    operations: new OperationLedger(domain.clock, tables.qps, tap),
  };
}

/** Room for one payload, or for one frame where the port is of Ethernet. */
export const packetSlotBytes = (frameBytesMax = 0): number =>
  Math.max(PACKET_PAYLOAD_BYTES_MAX, Math.ceil(frameBytesMax / SLOT_ALIGNMENT) * SLOT_ALIGNMENT);

const SLOT_ALIGNMENT = 64;
