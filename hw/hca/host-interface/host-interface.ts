/**
 * The host interface of a card: the formats by which software and the device exchange work requests and completions. The engines
 * work on neutral records (SendRecord, scatter list, PostedCompletion) and reach these formats only through here.
 */
import type { QpTable, SendRecords } from '../objects/index.ts';
import type { PortAddress } from '../packets/index.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type { CompletionFormat } from './completion-format.ts';
import type { ReceiveFormat } from './receive-format.ts';
import type { SendFormat } from './send-format.ts';

export interface HostInterface {
  readonly sends: SendFormat;
  readonly receives: ReceiveFormat;
  readonly completions: CompletionFormat;
}

/** Parts of the device that formats use. */
export interface PersonalityParts {
  readonly address: PortAddress;
  readonly ethernet: EthernetAttachment | undefined;
  readonly qps: QpTable;
  readonly records: SendRecords;
  /** Memory of the HCA, where WQEs are read and CQEs are built. */
  readonly sram: Uint8Array;
  readonly sramView: DataView;
}

/** Makes the formats of a card, once for each device. */
export type Personality = (parts: PersonalityParts) => HostInterface;
