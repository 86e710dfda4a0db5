/** The part of a PCIe link port (hw/pcie/link/pcie-link-port.ts) that the DMA engines use. */
import type { Picoseconds } from '../../base/index.ts';
import type { ChannelReader } from '../../sim/index.ts';
import type { MemoryReadFields, MemoryWriteFields, PcieLinkPort } from '../pcie/index.ts';

export interface DmaReadLink {
  /** The receiving end of the link: completions are read in place, at their announced offset. */
  readonly reader: ChannelReader;
  /** Whether consuming a completion returns credits. */
  readonly returnsCompletionCredits: boolean;
  canSend(flow: number): boolean;
  /** The request that {@link sendMemoryRead} sends. */
  readonly read: MemoryReadFields;
  sendMemoryRead(): void;
  /** Releases the buffer space of a received TLP to the sender. */
  consume(offset: number): void;
  passCompletion: PcieLinkPort['passCompletion'];
  passLimits: PcieLinkPort['passLimits'];
  countCompletions: PcieLinkPort['countCompletions'];
}

export interface DmaWriteLink {
  canSend(flow: number): boolean;
  /** The request that {@link sendMemoryWrite} sends. */
  readonly write: MemoryWriteFields;
  sendMemoryWrite(): void;
}

/** Permissions and limits that the write engine reads from the PCIe function. */
export interface DmaWriteFunction {
  /** Bus Master Enable of the command register. */
  isBusMaster(): boolean;
  /** Max_Payload_Size of the device control register, in bytes. */
  maxPayloadBytes(): number;
}

/** Limits that the read engine reads from the PCIe function, and its reports to it. */
export interface DmaReadFunction {
  isBusMaster(): boolean;
  /** Max_Read_Request_Size of the device control register, in bytes. */
  maxReadRequestBytes(): number;
  /** Bus, device and function number captured from the last configuration write. */
  requesterId(): number;
  /** Tags below this number may be used: 32, or 256 with extended tags. */
  readonly tagCountMax: number;
  /** Timeout of a read in picoseconds; Infinity if software switched it off. */
  readonly completionTimeoutPs: Picoseconds;
  /** A completion that answers no outstanding read; its record is still valid. */
  reportUnexpectedCompletion(offset: number): void;
  reportCompletionTimeout(): void;
}
