/**
 * Where received packets lie: in the wire port's buffer or in that of the loopback. The receiver selects the side whose
 * packet it works on; its two halves then read the packet here, whichever side it came from.
 *
 * A packet of the loopback is named by the complement of its offset, so that one number says both.
 */
import type { Loopback } from './loopback.ts';
import type { PacketPort } from './packet-port.ts';

export class ReceivedPackets {
  /** Of the packet being worked on. */
  rxBytes: Uint8Array;
  rxWords: Int32Array;
  rxFloats: Float64Array;
  /** True when it came by the loopback. */
  isLoopback = false;
  readonly #port: PacketPort;
  readonly #loopback: Loopback;

  constructor(port: PacketPort, loopback: Loopback) {
    this.#port = port;
    this.#loopback = loopback;
    this.rxBytes = port.rxBytes;
    this.rxWords = port.rxWords;
    this.rxFloats = port.rxFloats;
  }

  /** Most packets that can be received and not yet consumed. */
  get receivePacketsMax(): number {
    return this.#port.receivePacketsMax + this.#loopback.capacity;
  }

  select(isLoopback: boolean): void {
    this.isLoopback = isLoopback;
    const side = isLoopback ? this.#loopback : undefined;
    this.rxBytes = side?.bytes ?? this.#port.rxBytes;
    this.rxWords = side?.words ?? this.#port.rxWords;
    this.rxFloats = side?.floats ?? this.#port.rxFloats;
  }

  /** Gives a packet's buffer back, by its name. */
  consume(name: number): void {
    if (name < 0) this.#loopback.consume(~name);
    else this.#port.consume(name);
  }
}
