/**
 * Flow counters of a device whose ports are of Ethernet: frames and bytes of the queue pairs whose contexts name a
 * counter, each way. They replace the performance agent of InfiniBand ports: Linux assigns one to each port, and
 * answers PortCounters from it (mlx4_ib, iboe_process_mad). Bytes are those of frames, from the destination to the FCS,
 * as measured on a card (measurements.csv H-262).
 *
 * The last counter is the sink: for QPs that name none, or an absent one. Source: interface sheet 3.7 (flag 48), 3.19.
 */
import type { BlockState } from '../../../sim/index.ts';

export interface FlowTotals {
  readonly rxFrames: number;
  readonly rxBytes: number;
  readonly txFrames: number;
  readonly txBytes: number;
}

export class FlowCounters {
  readonly count: number;
  readonly #received: Float64Array;
  readonly #receivedBytes: Float64Array;
  readonly #transmitted: Float64Array;
  readonly #transmittedBytes: Float64Array;

  constructor(count: number) {
    this.count = count;
    this.#received = new Float64Array(count);
    this.#receivedBytes = new Float64Array(count);
    this.#transmitted = new Float64Array(count);
    this.#transmittedBytes = new Float64Array(count);
  }

  /** @param index as the context has it */
  countReceived(index: number, frameBytes: number): void {
    const counter = this.#counterOf(index);
    this.#received[counter]!++;
    this.#receivedBytes[counter]! += frameBytes;
  }

  countTransmitted(index: number, frameBytes: number): void {
    const counter = this.#counterOf(index);
    this.#transmitted[counter]!++;
    this.#transmittedBytes[counter]! += frameBytes;
  }

  /** Frames and bytes of a counter. @param index below {@link count} */
  totals(index: number): FlowTotals {
    return {
      rxFrames: this.#received[index]!,
      rxBytes: this.#receivedBytes[index]!,
      txFrames: this.#transmitted[index]!,
      txBytes: this.#transmittedBytes[index]!,
    };
  }

  /** Clears one counter. */
  clear(index: number): void {
    for (const totals of this.#all) totals[index] = 0;
  }

  /** Restores the state of a fresh device. */
  reset(): void {
    for (const totals of this.#all) totals.fill(0);
  }

  inspect(): BlockState {
    return { received: [...this.#received], transmitted: [...this.#transmitted] };
  }

  #counterOf(index: number): number {
    return index < this.count ? index : this.count - 1;
  }

  get #all(): readonly Float64Array[] {
    return [this.#received, this.#receivedBytes, this.#transmitted, this.#transmittedBytes];
  }
}
