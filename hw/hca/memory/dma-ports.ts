/**
 * The DMA engines and the PCIe function as the HCA uses them: the consumer's slice of `hw/dma` and `hw/pcie`.
 *
 * Reads land in the HCA's own memory and are reported in the requester's order; writes leave in one order over all
 * requesters, and the source bytes stay unchanged until the write is reported. Reports only leave work for later edges.
 */
import type { BusAddress, Cycles } from '../../../base/index.ts';

/** A requester as the read engine calls it, inside the engine's stage. */
export interface ReadRequesterPort {
  /** A read has ended: status 0 is success, else 1 UR, 2 CA, 3 poisoned, 4 timeout. */
  done(cookie: number, status: number, cycle: Cycles): void;
  /** The full fifo has room again; left out by a requester that never waits for room. */
  space?(): void;
}

/** A requester as the write engine calls it, likewise. */
export interface WriteRequesterPort {
  /** The last TLP of a write has been handed to the link port. */
  done?(cookie: number, cycle: Cycles): void;
  space?(): void;
}

/** A requester of an engine as others see it. Its requests end in the order in which they were made. */
export interface DmaRequester {
  readonly trafficClass: number;
  /** Requests that have not ended. */
  readonly count: number;
  /** Requests ever made. */
  readonly counters: { readonly requests: number };
}

export interface DmaReads {
  /** All requesters, in the order added. */
  readonly requesters: readonly DmaRequester[];
  addRequester(
    options: {
      name: string;
      trafficClass: number;
      fifoDepth: number;
      weight: number;
      placesEarly?: boolean;
    },
    port: ReadRequesterPort,
  ): number;
  canRequest(requester: number): boolean;
  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    sramOffset: number,
    cookie: number,
  ): void;
  /** The caller reuses the buffers of all requests that have not ended: the engine must not write to them any more. */
  withdrawPlaces(): void;
}

export interface DmaWrites {
  readonly requesters: readonly DmaRequester[];
  /** TLPs of a write of this many bytes, by Max_Payload_Size. */
  tlpCount(address: BusAddress, lengthBytes: number): number;
  addRequester(
    options: { name: string; trafficClass: number; fifoDepth: number },
    port?: WriteRequesterPort,
  ): number;
  canRequest(requester: number): boolean;
  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    source: Uint8Array,
    sourceOffset: number,
    cookie: number,
  ): void;
}

/** The interrupts of the PCIe function. */
export interface InterruptPort {
  /** True when the host has switched MSI-X on; otherwise the pin is used. */
  readonly msixEnabled: boolean;
  /**
   * Sends the message of a vector after all writes requested before, or sets its pending bit if it is masked. False:
   * there is no room, nothing has happened, and the caller retries in a later cycle.
   */
  requestInterrupt(vector: number, cycle: Cycles): boolean;
  /** Drives the INTx pin. */
  setIntx(isAsserted: boolean, cycle: Cycles): void;
}

/** Memory of the HCA into which reads land, handed out once at construction. */
export interface SramAllocator {
  readonly bytes: Uint8Array;
  /** Offset of `lengthBytes` new bytes, aligned to 64. */
  allocate(lengthBytes: number): number;
}
