/**
 * The memory windows of the function: finds the BAR of an address.
 *
 * `match` allocates nothing: it is in the path between a doorbell and its effect.
 */

import type { BusAddress, Wide } from '../../../base/index.ts';
import type { ConfigSpace } from './config-space.ts';
import type { FunctionConfig } from './function-parameters.ts';

/** Result of `match` without a matching BAR. */
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

  /** Reads the enable bit and addresses after a configuration write or a reset. */
  decode(space: ConfigSpace): void {
    this.#isEnabled = space.isMemoryEnabled;
    this.#bar0Address = space.barAddress(0);
    this.#bar2Address = space.barAddress(2);
  }

  /**
   * The BAR (0 or 2) that holds all of [address, address + lengthBytes), or NO_BAR. Sets {@link matchedOffset}. If software has
   * placed the BARs so that they overlap, the lower one answers.
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
