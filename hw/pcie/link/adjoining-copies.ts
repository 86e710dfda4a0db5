/**
 * Copies between a device's memory and the host's that are adjacent in both: no observer sees memory before the last one, so
 * they are done as one. A long copy costs little more than a short one.
 */
import type { BusAddress, Wide } from '../../../base/index.ts';

export class AdjoiningCopies {
  /** Postponed copies. */
  count = 0;
  /** Union of the postponed copies: length, address in the host, and offset in the device. */
  lengthBytes = 0;
  address: Wide = 0;
  place = 0;
  #endAddress: Wide = 0;
  #endPlace = 0;

  /** Whether a copy adjoins the postponed ones. */
  adjoin(address: BusAddress, place: number): boolean {
    return this.count > 0 && address === this.#endAddress && place === this.#endPlace;
  }

  /** Postpones a copy that adjoins the earlier ones, or is the first. */
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

  /** They were carried out. */
  clear(): void {
    this.count = 0;
  }
}
