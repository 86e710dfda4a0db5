/**
 * Services of the root complex for one core: posted stores under back-pressure, loads, configuration accesses. The core's port
 * of hw/pcie (`RootComplex.corePort(index)`) fits it by structure.
 *
 *     store buffer ── write-combining ──> cpuStore ──┐
 *     stalled core ─────────────────────> cpuLoad  ──┤── the core's fifo ── root complex ── link
 *     stalled core ─────────────────────> cpuConfig ─┘
 *
 * The root complex keeps a core's requests in the order given, so a load never overtakes a store given before it.
 */

/** Called once, in the software half of an instant: the status (0 is success) and the little-endian value read. */
export type AccessDone = (status: number, value: number) => void;

/** A sender of stores, which waits while the port accepts none. */
export interface StoreSender {
  /** Stores are accepted again; called at a clock edge of the root complex. */
  storeSpace(): void;
}

export interface DevicePort {
  /** Whether {@link cpuStore} accepts another store now. */
  canStore(): boolean;
  /**
   * Accepts one posted write of up to 64 bytes that crosses no 64-byte boundary; the bytes are copied at once.
   * @param trafficClass passed through for accounting
   */
  cpuStore(
    busAddress: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
  ): void;
  /** Connects the sender of stores, which is called when {@link canStore} has become true again. */
  connect(ports: { readonly stores: StoreSender }): void;
  /** Reads 1 to 4 bytes of device space within a dword. Always accepted from a core that waits for no other access. */
  cpuLoad(busAddress: number, lengthBytes: number, done: AccessDone): void;
  /** Reads a configuration dword of a function, named by bus, device and function number. */
  cpuConfigRead(functionId: number, offset: number, done: AccessDone): void;
  /** Writes a configuration dword. */
  cpuConfigWrite(functionId: number, offset: number, value: number, done: AccessDone): void;
}

/** Regions of device space. */
export interface BusMap {
  /** The traffic class to which a store to this bus address is counted. */
  trafficClassAt(busAddress: number): number;
}

/** Value of a failed load: all ones, as in hardware. */
export const failedLoadValue = 0xffff_ffff;
