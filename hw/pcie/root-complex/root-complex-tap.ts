/**
 * What a bus analyser between the host and the link would see: called where a TLP crosses the root complex, in the
 * order in which it crosses. A root complex without a tap pays one comparison for each TLP.
 *
 *     cores ── store, request ──►│ root complex │──► link        store:      as the link takes it
 *           ◄─ completion ───────│              │◄── link        completion: as the core gets it
 *     memory ◄─ deviceWrite ─────│              │◄── link        deviceWrite: as it takes effect
 *            ── deviceRead ─────►│              │──► link        deviceRead: a call per completion with data
 *
 * A tap observes and never acts: nothing it does may change a time or a value. Byte arrays are those of the model: they
 * are valid during the call only.
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
  /** What a configuration write writes. */
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
  /** Bytes of the read still to come, these included. */
  readonly remainingBytes: number;
  /** Completion status; other than STATUS_SUCCESS: it ends the read and carries no bytes. */
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
  /** A completion of a device's read. Those of one read come in order, those of others may lie between. */
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

/** Attaches `tap` to all that crosses this root complex; `undefined` takes it off. */
export function attachTap(rootComplex: RootComplex, tap: LinkTap | undefined): void {
  rootComplex.cpu.tap = tap;
  rootComplex.reads.tap = tap;
  rootComplex.writes.tap = tap;
}
