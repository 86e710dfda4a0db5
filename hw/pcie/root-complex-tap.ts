/**
 * What a bus analyser between the host and the link would see: called where a TLP crosses the root complex, in the
 * order in which it crosses. A root complex without a tap pays one comparison for each TLP.
 *
 *     cores ── store, request ──►│ root complex │──► link        store:      as the link takes it
 *           ◄─ completion ───────│              │◄── link        completion: as the core gets it
 *     memory ◄─ deviceWrite ─────│              │◄── link        deviceWrite: as it takes effect
 *            ── deviceRead ─────►│              │──► link        deviceRead: a call per completion with data
 *
 * A tap looks and never acts: nothing it does may change a time or a value. Byte arrays are those of the model: they
 * are valid during the call only.
 */
import type { Picoseconds } from '../../base/units.ts';
import type { RootComplex } from './root-complex.ts';
import type { DeviceFault } from './root-complex-interfaces.ts';

export interface LinkTap {
  /** A posted write of a core. */
  store(address: number, source: Uint8Array, offset: number, lengthBytes: number, nowPs: Picoseconds): void;
  /**
   * A non-posted request of a core.
   * @param kind MEMORY_READ, CONFIG_READ or CONFIG_WRITE
   * @param target bus, device, function of a configuration access
   * @param address bus address, or configuration register
   * @param value what a configuration write writes
   */
  request(
    tag: number,
    kind: number,
    target: number,
    address: number,
    lengthBytes: number,
    value: number,
    nowPs: Picoseconds,
  ): void;
  /** The request under this tag has ended: status as in AccessDone, the little-endian value. */
  completion(tag: number, status: number, value: number, nowPs: Picoseconds): void;
  /** A memory write of the device, carried out. */
  deviceWrite(
    address: number,
    source: Uint8Array,
    offset: number,
    lengthBytes: number,
    trafficClass: number,
    nowPs: Picoseconds,
  ): void;
  /**
   * A completion of a device's read. Those of one read come in order, those of others may lie between.
   * @param status completion status; other than STATUS_SUCCESS: it ends the read and carries no bytes
   * @param remainingBytes of the read, with this completion
   */
  deviceRead(
    tag: number,
    address: number,
    source: Uint8Array,
    offset: number,
    lengthBytes: number,
    remainingBytes: number,
    trafficClass: number,
    status: number,
    nowPs: Picoseconds,
  ): void;
  /** A request of the device that was dropped, or will be answered with an error. */
  refused(
    fault: DeviceFault,
    address: number,
    lengthBytes: number,
    trafficClass: number,
    nowPs: Picoseconds,
  ): void;
  /** MSI or MSI-X: a write to the message window. */
  message(address: number, data: number, nowPs: Picoseconds): void;
  /** The virtual wire of pin 0 (INTA) to 3 (INTD). */
  intx(pin: number, isAsserted: boolean, nowPs: Picoseconds): void;
}

/** Attaches `tap` to all that crosses this root complex; `undefined` takes it off. */
export function attachTap(rootComplex: RootComplex, tap: LinkTap | undefined): void {
  rootComplex.cpu.tap = tap;
  rootComplex.reads.tap = tap;
  rootComplex.writes.tap = tap;
}
