/** Interface of this room: see README.md. */
export type {
  CommandSet,
  CommandSetParts,
  CommandSetPorts,
  ContextTables,
  RegisterSpace,
  ResetObserver,
} from './command-set.ts';
export type { CompletionFormat } from './completion-format.ts';
export type {
  CompletionQueueFormat,
  ContextFormats,
  EventQueueFormat,
  PortTraits,
  QueuePairFormat,
  SharedQueueFormat,
} from './context-formats.ts';
export type { DataPathControl } from './data-path-control.ts';
export type { DoorbellBlock, DoorbellParts, DoorbellPorts, EqDoorbells } from './doorbell-block.ts';
export type { EventFormat } from './event-format.ts';
export type { FormatParts, HostFormats, Personality } from './host-interface.ts';
export type { KeyFormat, TranslationFormat } from './key-format.ts';
export type { ReceiveFormat } from './receive-format.ts';
export type { SendFormat } from './send-format.ts';
