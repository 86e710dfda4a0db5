/** Services that the root complex needs of the host. */

import type { Picoseconds } from '../../../base/index.ts';
import type { PayloadReferences } from '../link/index.ts';

/**
 * Notified of each write to a watched page, after the bytes are in memory, and of each change of the page's mapping: it then
 * sets its watch again, but not within the call.
 */
export interface MemoryWatcher {
  pageWritten(): void;
}

/** Physical memory as devices see it: within [0, sizeBytes). Accesses outside it do nothing and return false. */
export interface HostMemory {
  readonly sizeBytes: number;
  /** Whether all of the bytes can be read; left out if memory has no holes and loses no parts while it is in use. */
  canRead?(address: number, lengthBytes: number): boolean;
  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean;
  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean;
  /**
   * Reads for the model, not for the device, within one page: without time, counts or fault records; left out if {@link
   * readInto} has no such side effects either.
   */
  peek?(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean;
  /** Calls the watcher after each write to the page of `address`; left out if writes of processors are invisible. */
  watch?(address: number, watcher: MemoryWatcher): void;
  /** Ends the watch that {@link watch} began, if any. Present with {@link watch}. */
  unwatch?(watcher: MemoryWatcher): void;
  /**
   * Returns the time that a request that arrives now waits for its address translation; omitted without an IOMMU.
   */
  translationPs?(address: number, nowPs: Picoseconds): Picoseconds;
  /**
   * Returns the time that a read takes longer because the last-level cache does not hold all of its bytes; omitted if
   * every read takes `readLatencyPs`.
   */
  missPs?(address: number, lengthBytes: number): Picoseconds;
}

/**
 * Destinations of a device's reads, offered by a device in the same thread: bytes can be stored there when memory is sampled,
 * instead of travelling in the completion's record. The device does not use them before the completion has arrived.
 */
export interface EarlyPlaces {
  readonly memory: Uint8Array;
  /**
   * Offset in {@link memory} for the bytes of a completion, or -1: they must travel.
   * @param descriptor of the read
   * @param byteCount outstanding bytes of the read, including those of this completion
   */
  placeOf(descriptor: number, byteCount: number): number;
}

/** Resources that a device in the same thread shares with the root complex; no result depends on them. */
export interface SharedDevice {
  /** Destinations of the device's reads. */
  readonly earlyPlaces: EarlyPlaces | undefined;
  /** The references by which its writes carry payload. */
  readonly references: PayloadReferences | undefined;
}

/** The interrupt controller. Called at a clock edge, after earlier writes of the device. */
export interface InterruptSink {
  /** MSI or MSI-X: a write of `data` to the message window. */
  message(address: number, data: number, nowPs: Picoseconds): void;
  /** INTx: the virtual wire of pin 0 (INTA) to 3 (INTD) has changed. */
  intx(pin: number, isAsserted: boolean, nowPs: Picoseconds): void;
}

/** Status of a core's load or configuration access, in addition to the completion statuses of tlp.ts. */
export const ACCESS_TIMEOUT = 8;
export const ACCESS_POISONED = 9;

/** Value of a failed load. */
export const FAILED_LOAD_VALUE = 0xffff_ffff;

/** Called once, in the software half of an instant: status (0 is success) and the little-endian value read. */
export type AccessDone = (status: number, value: number) => void;

/** Why the root complex rejected or dropped a TLP of a device; the log keeps the first few. */
export const DEVICE_FAULTS = [
  'writeOutsideMemory',
  'readOutsideMemory',
  'malformed',
  'poisonedWrite',
  'unexpectedCompletion',
  'unsupportedRequest',
  'overflow',
] as const;
export type DeviceFault = (typeof DEVICE_FAULTS)[number];

/** Faults of the host in answering a device's reads. */
export interface ReadFaults {
  /**
   * A read has arrived. @returns STATUS_SUCCESS, STATUS_UNSUPPORTED_REQUEST, STATUS_ABORT, READ_LOST or READ_POISONED
   */
  answerTo(trafficClass: number): number;
}

/** Injected answers besides the completion statuses of tlp.ts: no completion at all, or data marked as poisoned. */
export const READ_LOST = 8;
export const READ_POISONED = 9;
