/**
 * A block device as memory management sees it: the completion time of a request made now. Requests are served one after another
 * at the device's rate; latency is the same for each and overlaps.
 *
 *     start = max(request, device free)      device free = start + bytes / rate      done = device free + latency
 *
 * Exact in picoseconds, rounded up per request.
 */
import { nsToPs, type Picoseconds } from '../../base/index.ts';
import type { BlockDeviceConfig } from './mm-parameters.ts';

const psPerMicrosecond = 1e6;

export class BlockDevice {
  readCount = 0;
  writeCount = 0;
  busyPs = 0;
  readonly #config: BlockDeviceConfig;
  #freePs = 0;

  constructor(config: BlockDeviceConfig) {
    this.#config = config;
  }

  /** @returns the instant at which the data of a read requested at `atPs` are in memory */
  read(atPs: Picoseconds, lengthBytes: number): number {
    this.readCount++;
    return this.#serve(atPs, lengthBytes) + nsToPs(this.#config.readLatencyNs);
  }

  /** @returns the instant at which a write requested at `atPs` is acknowledged */
  write(atPs: Picoseconds, lengthBytes: number): number {
    this.writeCount++;
    return this.#serve(atPs, lengthBytes) + nsToPs(this.#config.writeLatencyNs);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#freePs -= ps;
  }

  /** A megabyte per second equals a byte per microsecond. */
  #serve(atPs: Picoseconds, lengthBytes: number): number {
    const durationPs = Math.ceil((lengthBytes * psPerMicrosecond) / this.#config.megabytesPerSecond);
    this.#freePs = Math.max(this.#freePs, atPs) + durationPs;
    this.busyPs += durationPs;
    return this.#freePs;
  }
}
