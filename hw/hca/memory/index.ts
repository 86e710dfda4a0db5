/** Interface of this room: see README.md. */
export { AccessFence, type AccessFencePorts } from './access-fence.ts';
export { type ContextCache, type ContextMisses, type ContextPort, RESPONDER_HALF } from './context-cache.ts';
export { makeContextCache } from './context-cache-parts.ts';
export { type ContextMemory, TRANSLATION_ENTRY_BYTES } from './context-memory.ts';
export { DmaFence } from './dma-fence.ts';
export type {
  DmaReads,
  DmaWrites,
  InterruptPort,
  ReadRequesterPort,
  SramAllocator,
  WriteRequesterPort,
} from './dma-ports.ts';
export { KeyRecord, KeyState, NO_REGION } from './key-record.ts';
export {
  PageFaults,
  type PageRequest,
  type PageRequestSink,
  pageRequestSides,
  SIDE_REQUESTER,
  SIDE_RESPONDER,
  SIDE_RESPONSE,
  type WantedPages,
} from './page-faults.ts';
export {
  type ContextUser,
  contextUsers,
  PORT_COMPLETION,
  PORT_COUNT,
  PORT_RECEIVE_FETCH,
  PORT_RECEIVER,
  PORT_REQUESTER,
  PORT_RESPONSE,
  PORT_WQE_FETCH,
  portNameOf,
  portNames,
} from './ports.ts';
export {
  BAD_KEY,
  BAD_PD,
  MISSING_RIGHT,
  OUT_OF_BOUNDS,
  PAGE_FAULT,
  PENDING,
  RESERVED_LKEY,
  TRANSLATED,
} from './translation.ts';
export {
  MptCache,
  MttCache,
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
  RIGHT_REMOTE_ATOMIC,
  RIGHT_REMOTE_READ,
  RIGHT_REMOTE_WRITE,
} from './translation-cache.ts';
export type { TranslationPort } from './translation-port.ts';
export type { Translator } from './translator.ts';
export { makeTranslator } from './translator-parts.ts';
