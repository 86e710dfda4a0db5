/**
 * The memory windows of the function: which BAR an address falls into.
 *
 * `match` allocates nothing: it stands between a doorbell and its effect.
 */

import type { BusAddress, Wide } from '../../../base/index.ts';
import type { ConfigSpace } from './config-space.ts';
import type { FunctionConfig } from './function-parameters.ts';

/** `match` when no BAR is hit. */
export const NO_BAR = -1;

export class Bars {
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
}
