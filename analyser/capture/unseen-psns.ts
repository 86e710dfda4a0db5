/** PSNs of a flow that were passed over: packets that a capture has not shown yet, and may show later. */
import { psnAdd, psnDistance } from '../../wire/index.ts';

/** Ranges that are kept; the oldest is forgotten. */
const RANGES_MAX = 64;

interface Range {
  first: number;
  count: number;
  /** Packets of the flow that were seen before the range was passed over. */
  readonly seenBefore: number;
  /** The receiver has said that it lacks these. */
  isRefused: boolean;
}

export interface Unseen {
  /** Packets that were seen in its place. */
  readonly passedBy: number;
  readonly isRefused: boolean;
}

export class UnseenPsns {
  #ranges: Range[] = [];
  /** Packets of the flow that were seen. */
  #seen = 0;

  sawPacket(): void {
    this.#seen++;
  }

  /** Notes that `count` PSNs from `first` on were passed over by the packet that has just been seen. */
  passOver(first: number, count: number): void {
    this.#ranges.push({ first, count, seenBefore: this.#seen, isRefused: false });
    if (this.#ranges.length > RANGES_MAX) this.#ranges.shift();
  }

  /** The receiver lacks `psn`, and so takes nothing after it. */
  refuse(psn: number): void {
    for (const range of this.#ranges)
      if (psnDistance(psnAdd(range.first, range.count - 1), psn) >= 0) range.isRefused = true;
  }

  /** Takes a PSN that is seen now out of those that were passed over; undefined when it was not among them. */
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
