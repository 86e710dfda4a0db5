/** Makes a context cache with its room in the HCA's memory; the same for every kind of context. */

import type { ClockDomain } from '../../../sim/index.ts';
import type { ContextTable } from '../objects/index.ts';
import type { HcaConfig } from '../parameters.ts';
import { ContextCache, type ContextMisses, contextReadDepth } from './context-cache.ts';
import type { ContextMemory } from './context-memory.ts';
import type { DmaReads, DmaWrites, SramAllocator } from './dma-ports.ts';
import { type ContextKind, type ContextUser, contextUsers, PORT_COUNT } from './ports.ts';

/** Limit of write-backs of one cache in flight. */
const WRITE_DEPTH = 8;

export interface ContextCacheParts {
  readonly domain: ClockDomain;
  readonly config: Pick<
    HcaConfig,
    'sendContextEntries' | 'contextFetchesInFlight' | 'cacheReplacement' | 'cacheMissCycles' | 'qpcMissCycles'
  >;
  readonly contextMemory: ContextMemory;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: SramAllocator;
  /** See ContextCacheSetup. */
  readonly misses?: ContextMisses | undefined;
}

export function makeContextCache<K extends ContextKind>(
  parts: ContextCacheParts,
  kind: K,
  contexts: ContextTable,
  entries: number,
  ways: number,
): ContextCache<ContextUser<K>> {
  const { contextMemory, dmaRead, dmaWrite, sram, config, domain, misses } = parts;
  const { sendContextEntries, contextFetchesInFlight } = config;
  const isOfQueuePairs = kind === 'qpc';
  const ownEntries = isOfQueuePairs ? { requester: sendContextEntries } : {};
  const readsInFlight = isOfQueuePairs ? { requester: contextFetchesInFlight } : {};
  const depth = contextReadDepth({ portCount: PORT_COUNT, readsInFlight }) + WRITE_DEPTH + 1;
  const staging = depth * contexts.contextBytes;
  return new ContextCache<ContextUser<K>>({
    entries,
    ways,
    policy: config.cacheReplacement,
    isHashed: isOfQueuePairs,
    missCycles: isOfQueuePairs ? config.qpcMissCycles : config.cacheMissCycles,
    ownMissCycles: config.cacheMissCycles,
    portCount: PORT_COUNT,
    users: contextUsers[kind],
    table: contexts,
    kind,
    contextMemory,
    domain,
    dmaRead,
    dmaWrite,
    sram: sram.bytes,
    sramOffset: sram.allocate(staging),
    writeDepth: WRITE_DEPTH,
    ownEntries,
    readsInFlight,
    misses,
  });
}
