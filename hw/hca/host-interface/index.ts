/** Interface of this room: see README.md. */
export type { CompletionFormat } from './completion-format.ts';
export type { HostInterface, Personality, PersonalityParts } from './host-interface.ts';
export type { ReceiveFormat } from './receive-format.ts';
export type { SendFormat } from './send-format.ts';
