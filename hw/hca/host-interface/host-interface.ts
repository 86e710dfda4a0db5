/**
 * The host interface of a card: the formats by which software and the device exchange work requests, completions and events, its
 * doorbells, its commands, and the form of contexts and keys in host memory. The engines work on neutral records (SendRecord, scatter
 * list, PostedCompletion, QueuePair, KeyRecord) and reach a card only through here.
 */
import type { PortAddress } from '../ibta/packets/index.ts';
import type { ContextMemory } from '../memory/index.ts';
import type { QpTable, SendRecords } from '../objects/index.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type { CommandSet, CommandSetParts } from './command-set.ts';
import type { CompletionFormat } from './completion-format.ts';
import type { ContextFormats, PortTraits } from './context-formats.ts';
import type { DoorbellBlock, DoorbellParts } from './doorbell-block.ts';
import type { EventFormat } from './event-format.ts';
import type { KeyFormat, TranslationFormat } from './key-format.ts';
import type { ReceiveFormat } from './receive-format.ts';
import type { SendFormat } from './send-format.ts';

export interface HostFormats {
  readonly sends: SendFormat;
  readonly receives: ReceiveFormat;
  readonly completions: CompletionFormat;
}

/** Parts of the device that formats use. */
export interface FormatParts {
  /** The addresses of each port. */
  readonly addresses: readonly PortAddress[];
  readonly ethernet: EthernetAttachment | undefined;
  readonly qps: QpTable;
  readonly records: SendRecords;
  /** Memory of the HCA, where WQEs are read and CQEs are built. */
  readonly sram: Uint8Array;
  readonly sramView: DataView;
}

/** The host interface of one device, which makes its parts once. */
export interface Personality {
  /** Address at which the vendor-specific gateway of the configuration space reaches the device's registers. */
  readonly gatewayAddress: number;
  readonly contextMemory: ContextMemory;
  readonly keys: KeyFormat;
  readonly translations: TranslationFormat;
  readonly events: EventFormat;
  /** Patterns with which commands fill memory: see CommandDma. */
  readonly fillPatterns: readonly Uint8Array[];
  makeContextFormats(ports: PortTraits): ContextFormats;
  makeFormats(parts: FormatParts): HostFormats;
  makeDoorbells(parts: DoorbellParts): DoorbellBlock;
  makeCommandSet(parts: CommandSetParts): CommandSet;
}
