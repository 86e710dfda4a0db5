/** Makes the translator with its room in the HCA's memory. */
import type { ClockDomain } from '../../../sim/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { ContextMemory } from './context-memory.ts';
import type { DmaReads, SramAllocator } from './dma-ports.ts';
import { PORT_COUNT } from './ports.ts';
import { type MptCache, MTT_LINE_BYTES, type MttCache } from './translation-cache.ts';
import { Translator } from './translator.ts';

export interface TranslatorParts {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'cacheMissCycles' | 'readTranslationsAhead'>;
  readonly contextMemory: ContextMemory;
  readonly dmaRead: DmaReads;
  readonly sram: SramAllocator;
}

export function makeTranslator(parts: TranslatorParts, mptCache: MptCache, mttCache: MttCache): Translator {
  const { config, contextMemory, dmaRead, sram, domain } = parts;
  const portCount = PORT_COUNT + config.readTranslationsAhead;
  return new Translator({
    mptCache,
    mttCache,
    missCycles: config.cacheMissCycles,
    portCount,
    domain,
    contextMemory,
    dmaRead,
    readDepth: portCount,
    sram: sram.bytes,
    sramOffset: sram.allocate(2 * portCount * MTT_LINE_BYTES),
  });
}
