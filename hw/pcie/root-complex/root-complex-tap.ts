/**
 * The view of a bus analyser between the host and the link: called when a TLP crosses the root complex, in the order of
 * crossing. Without a tap, a root complex makes one comparison for each TLP.
 *
 *     cores ── store, request ──►│ root complex │──► link        store:      as the link accepts it
 *           ◄─ completion ───────│              │◄── link        completion: as the core gets it
 *     memory ◄─ deviceWrite ─────│              │◄── link        deviceWrite: as it takes effect
 *            ── deviceRead ─────►│              │──► link        deviceRead: a call per completion with data
 *
 * A tap only observes: it must not change any time or value. Byte arrays belong to the model: they are valid only during the
 * call.
 */
import type { BusAddress, Picoseconds } from '../../../base/index.ts';
import type { RootComplex } from './root-complex.ts';
import type { DeviceFault } from './root-complex-interfaces.ts';

/** A non-posted request of a core. */
export interface TappedRequest {
  readonly tag: number;
  /** MEMORY_READ, CONFIG_READ or CONFIG_WRITE. */
  readonly kind: number;
  /** Bus, device, function of a configuration access. */
  readonly target: number;
  /** Bus address, or configuration register. */
  readonly address: number;
  readonly lengthBytes: number;
  /** Value of a configuration write. */
  readonly value: number;
}

/** Payload at bus address `address`: `lengthBytes` bytes from `source[offset]` on. */
export interface TappedData {
  readonly address: number;
  readonly source: Uint8Array;
  readonly offset: number;
  readonly lengthBytes: number;
  readonly trafficClass: number;
}

/** One completion of a device's read. */
export interface TappedCompletion extends TappedData {
  readonly tag: number;
  /** Outstanding bytes of the read, including these. */
  readonly remainingBytes: number;
  /** Completion status; any except STATUS_SUCCESS ends the read and carries no bytes. */
  readonly status: number;
}

export interface LinkTap {
  /** A posted write of a core. */
  store(
    address: BusAddress,
    source: Uint8Array,
    offset: number,
    lengthBytes: number,
    nowPs: Picoseconds,
  ): void;
  /** A non-posted request of a core. */
  request(request: TappedRequest, nowPs: Picoseconds): void;
  /** The request under this tag has ended: status as in AccessDone, the little-endian value. */
  completion(tag: number, status: number, value: number, nowPs: Picoseconds): void;
  /** A memory write of the device, carried out. */
  deviceWrite(data: TappedData, nowPs: Picoseconds): void;
  /** A completion of a device's read. Completions of one read are in order, with those of others possibly in between. */
  deviceRead(completion: TappedCompletion, nowPs: Picoseconds): void;
  /** A request of the device that was dropped, or will be answered with an error. */
  refused(
    fault: DeviceFault,
    address: BusAddress,
    lengthBytes: number,
    trafficClass: number,
    nowPs: Picoseconds,
  ): void;
  /** MSI or MSI-X: a write to the message window. */
  message(address: BusAddress, data: number, nowPs: Picoseconds): void;
  /** The virtual wire of pin 0 (INTA) to 3 (INTD). */
  intx(pin: number, isAsserted: boolean, nowPs: Picoseconds): void;
}

/** Attaches `tap` to all TLPs that cross this root complex; `undefined` detaches it. */
export function attachTap(rootComplex: RootComplex, tap: LinkTap | undefined): void {
  rootComplex.cpu.tap = tap;
  rootComplex.reads.tap = tap;
  rootComplex.writes.tap = tap;
}
