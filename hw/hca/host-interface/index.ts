/** Interface of this room: see README.md. */
export type { CompletionFormat } from './completion-format.ts';
export type { DoorbellBlock, DoorbellParts, DoorbellPorts, EqDoorbells } from './doorbell-block.ts';
export type { EventFormat } from './event-format.ts';
export type { FormatParts, HostFormats, Personality } from './host-interface.ts';
export type { ReceiveFormat } from './receive-format.ts';
export type { SendFormat } from './send-format.ts';
