/**
 * Copies between a device's memory and the host's that adjoin at both ends, in order: no observer sees memory before the
 * last, so they are done as one. A long copy costs little more than a short one.
 */
import type { BusAddress, Wide } from '../../../base/index.ts';

export class AdjoiningCopies {
  /** Copies put off. */
  count = 0;
  /** What they are together: so many bytes, from or to `address` of the host, at `place` of the device. */
  lengthBytes = 0;
  address: Wide = 0;
  place = 0;
  #endAddress: Wide = 0;
  #endPlace = 0;

  /** Whether a copy there adjoins those put off. */
  adjoin(address: BusAddress, place: number): boolean {
    return this.count > 0 && address === this.#endAddress && place === this.#endPlace;
  }

  /** Puts off a copy that adjoins those before it, or is the first. */
  add(address: BusAddress, place: number, lengthBytes: number): void {
    if (this.count === 0) {
      this.address = address;
      this.place = place;
      this.lengthBytes = 0;
    }
    this.count++;
    this.lengthBytes += lengthBytes;
    this.#endAddress = address + lengthBytes;
    this.#endPlace = place + lengthBytes;
  }

  /** They have been done. */
  clear(): void {
    this.count = 0;
  }
}
