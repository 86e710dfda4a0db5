/**
 * The host interface of a card: the formats by which software and the device exchange work requests and completions, and its
 * doorbells. The engines work on neutral records (SendRecord, scatter list, PostedCompletion) and reach a card only through here.
 */
import type { QpTable, SendRecords } from '../objects/index.ts';
import type { PortAddress } from '../packets/index.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type { CompletionFormat } from './completion-format.ts';
import type { DoorbellBlock, DoorbellParts } from './doorbell-block.ts';
import type { EventFormat } from './event-format.ts';
import type { ReceiveFormat } from './receive-format.ts';
import type { SendFormat } from './send-format.ts';

export interface HostFormats {
  readonly sends: SendFormat;
  readonly receives: ReceiveFormat;
  readonly completions: CompletionFormat;
}

/** Parts of the device that formats use. */
export interface FormatParts {
  readonly address: PortAddress;
  readonly ethernet: EthernetAttachment | undefined;
  readonly qps: QpTable;
  readonly records: SendRecords;
  /** Memory of the HCA, where WQEs are read and CQEs are built. */
  readonly sram: Uint8Array;
  readonly sramView: DataView;
}

/** A card's host interface: makes its parts, once for each device. */
export interface Personality {
  makeFormats(parts: FormatParts): HostFormats;
  makeDoorbells(parts: DoorbellParts): DoorbellBlock;
  readonly events: EventFormat;
}
