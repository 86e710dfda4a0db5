/**
 * The slice of a PCIe link port (hw/pcie/link/pcie-link-port.ts) that the DMA engines use.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { ChannelReader } from '../../sim/index.ts';
import type { MemoryReadFields, MemoryWriteFields, PcieLinkPort } from '../pcie/index.ts';

export interface DmaReadLink {
  /** The receiving end of the link: completions are read in place, at the offset they were announced with. */
  readonly reader: ChannelReader;
  /** Whether consuming a completion gives credits back. */
  readonly returnsCompletionCredits: boolean;
  canSend(flow: number): boolean;
  /** The request that {@link sendMemoryRead} sends. */
  readonly read: MemoryReadFields;
  sendMemoryRead(): void;
  /** Gives the buffer space of a received TLP back to the sender. */
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

/** What the write engine asks the PCIe function: may it speak, and how much at a time. */
export interface DmaWriteFunction {
  /** Bus Master Enable of the command register. */
  isBusMaster(): boolean;
  /** Max_Payload_Size of the device control register, in bytes. */
  maxPayloadBytes(): number;
}

/** What the read engine asks of the PCIe function, and reports to it. */
export interface DmaReadFunction {
  isBusMaster(): boolean;
  /** Max_Read_Request_Size of the device control register, in bytes. */
  maxReadRequestBytes(): number;
  /** Bus, device and function number captured from the last configuration write. */
  requesterId(): number;
  /** Tags below this number may be used: 32, or 256 with extended tags. */
  readonly tagCountMax: number;
  /** Time a read may take in picoseconds; Infinity when software switched the timeout off. */
  readonly completionTimeoutPs: Picoseconds;
  /** A completion that answers no outstanding read; its record is still there. */
  reportUnexpectedCompletion(offset: number): void;
  reportCompletionTimeout(): void;
}
