/** Skipped PSNs of a flow: packets that the capture does not show yet and may show later. */
import { psnAdd, psnDistance } from '../../wire/index.ts';

/** Greatest number of kept ranges; a further range replaces the oldest. */
const RANGES_MAX = 64;

interface Range {
  first: number;
  count: number;
  /** Packets of the flow seen before the range was skipped. */
  readonly seenBefore: number;
  /** Whether the receiver has reported these as missing. */
  isRefused: boolean;
}

export interface Unseen {
  /** Packets seen in its place. */
  readonly passedBy: number;
  readonly isRefused: boolean;
}

export class UnseenPsns {
  #ranges: Range[] = [];
  /** Packets of the flow seen so far. */
  #seen = 0;

  sawPacket(): void {
    this.#seen++;
  }

  /** Notes that the packet just seen skipped `count` PSNs from `first` on. */
  passOver(first: number, count: number): void {
    this.#ranges.push({ first, count, seenBefore: this.#seen, isRefused: false });
    if (this.#ranges.length > RANGES_MAX) this.#ranges.shift();
  }

  /** Notes that the receiver lacks `psn` and therefore accepts nothing after it. */
  refuse(psn: number): void {
    for (const range of this.#ranges)
      if (psnDistance(psnAdd(range.first, range.count - 1), psn) >= 0) range.isRefused = true;
  }

  /** Removes a PSN, seen now, from the skipped ones; undefined if it was not among them. */
  show(psn: number): Unseen | undefined {
    const index = this.#ranges.findIndex(({ first, count }) => {
      const distance = psnDistance(psn, first);
      return distance >= 0 && distance < count;
    });
    const range = this.#ranges[index];
    if (range === undefined) return undefined;
    const before = psnDistance(psn, range.first);
    const after = range.count - before - 1;
    const parts = [
      { ...range, count: before },
      { ...range, first: psnAdd(psn, 1), count: after },
    ];
    this.#ranges.splice(index, 1, ...parts.filter(({ count }) => count > 0));
    return { passedBy: this.#seen - range.seenBefore, isRefused: range.isRefused };
  }
}
