/**
 * What the blocks of the data path share: time, memory, tables and engines. Wired once by data-path.ts; a block takes
 * from it what it needs and reaches its neighbours only through the functions handed to it there.
 */
import type { ClockDomain, LogicalProcess } from '../../sim/index.ts';
import type { ContextCache } from './context-cache.ts';
import type { CqTable } from './cq-table.ts';
import type { DmaReads, DmaWrites } from './dma-ports.ts';
import type { IcmMap } from './icm.ts';
import type { PageFaults } from './page-faults.ts';
import type { HcaConfig } from './parameters.ts';
import type { QpTable } from './qp-table.ts';
import type { SrqTable } from './srq-table.ts';
import type { Translator } from './translator.ts';
import type { TransportCounters } from './transport-counters.ts';
import type { ViolationCounters } from './violation-counters.ts';

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
