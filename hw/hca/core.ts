/**
 * What the blocks of the data path share: time, memory, tables and engines. Wired once by data-path.ts; a block takes
 * from it what it needs and reaches its neighbours only through the functions handed to it there.
 */
import type { ClockDomain, LogicalProcess } from '../../sim/index.ts';
import type { ContextCache, DmaReads, DmaWrites, IcmMap, PageFaults, Translator } from './memory/index.ts';
import type { CqTable, QpTable, SrqTable } from './objects/index.ts';
import type { TransportCounters } from './packets/index.ts';
import type { HcaConfig } from './parameters.ts';
import type { ViolationCounters } from './statistics/index.ts';

export interface HcaCore {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: HcaConfig;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  readonly qps: QpTable;
  readonly cqs: CqTable;
  readonly srqs: SrqTable;
  readonly icm: IcmMap;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly qpcCache: ContextCache;
  readonly cqcCache: ContextCache;
  readonly srqcCache: ContextCache;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly violations: ViolationCounters;
  readonly transport: TransportCounters;
}
