/**
 * The memory windows of the function: which BAR an address falls into, and the register image of BAR0 in shared
 * memory, which a debugger may read from any thread without disturbing the machine.
 *
 * `match` allocates nothing: it stands between a doorbell and its effect.
 */

import { assertRange, type BusAddress, type Wide } from '../../../base/index.ts';
import type { ConfigSpace } from './config-space.ts';
import type { FunctionConfig } from './function-parameters.ts';

/** `match` when no BAR is hit. */
export const NO_BAR = -1;

export class Bars {
  /**
   * Register image of BAR0. The MSI-X table and the pending bits live in it; the device core may keep its own
   * registers there too.
   */
  readonly registerImage: SharedArrayBuffer;
  readonly registerBytes: Uint8Array<SharedArrayBuffer>;
  readonly registerView: DataView<SharedArrayBuffer>;
  readonly bar0Bytes: number;
  readonly bar2Bytes: number;
  /** Offset in its BAR of the last address matched. */
  matchedOffset = 0;

  #isEnabled = false;
  #bar0Address: Wide = 0;
  #bar2Address: Wide = 0;

  constructor(config: FunctionConfig) {
    this.bar0Bytes = config.bar0Bytes;
    this.bar2Bytes = config.bar2Bytes;
    this.registerImage = new SharedArrayBuffer(config.bar0Bytes);
    this.registerBytes = new Uint8Array(this.registerImage);
    this.registerView = new DataView(this.registerImage);
  }

  /** Takes over enable bit and addresses after a configuration write or a reset. */
  decode(space: ConfigSpace): void {
    this.#isEnabled = space.isMemoryEnabled;
    this.#bar0Address = space.barAddress(0);
    this.#bar2Address = space.barAddress(2);
  }

  /**
   * The BAR (0 or 2) that holds all of [address, address + lengthBytes), or NO_BAR. Sets {@link matchedOffset}.
   * Where software has laid the BARs over one another, the lower one answers.
   */
  match(address: BusAddress, lengthBytes: number): number {
    if (!this.#isEnabled) return NO_BAR;
    let offset = address - this.#bar0Address;
    // A BAR is less than 2^31 bytes: narrowed (build/README.md).
    if (offset >= 0 && offset + lengthBytes <= this.bar0Bytes) {
      this.matchedOffset = offset | 0;
      return 0;
    }
    offset = address - this.#bar2Address;
    if (offset >= 0 && offset + lengthBytes <= this.bar2Bytes) {
      this.matchedOffset = offset | 0;
      return 2;
    }
    return NO_BAR;
  }

  /**
   * The dword at `offset` of the register image as the bus would deliver it (little-endian), for debugging views.
   * @throws ConfigurationError for an offset that is unaligned or outside BAR0
   */
  readRegister(offset: number): number {
    assertRange('register offset / 4', offset / 4, 0, this.bar0Bytes / 4 - 1);
    return this.registerView.getUint32(offset, true);
  }
}
