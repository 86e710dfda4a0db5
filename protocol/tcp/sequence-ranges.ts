/**
 * Disjoint ranges of sequence numbers after a gap, the one that grew last first. A receiver reports them as SACK blocks in this order
 * (RFC 2018, 4); a sender keeps those that its peer has reported.
 */
import { isAfter, isBefore, sequenceDistance } from './sequence.ts';

interface Range {
  start: number;
  end: number;
}

export class SequenceRanges {
  readonly #max: number;
  readonly #ranges: Range[] = [];

  /** @param max ranges that are kept; of more, the one that grew first is forgotten */
  constructor(max: number) {
    this.#max = max;
  }

  get count(): number {
    return this.#ranges.length;
  }

  /** Bytes of all ranges. */
  get bytes(): number {
    return this.#ranges.reduce((sum, { start, end }) => sum + sequenceDistance(end, start), 0);
  }

  /** Adds a range and joins those that it overlaps or touches. @returns false if all of it was known */
  add(start: number, end: number): boolean {
    if (this.covers(start, end)) {
      this.#moveToFront(
        this.#ranges.findIndex((range) => !isBefore(start, range.start) && !isAfter(end, range.end)),
      );
      return false;
    }
    const joined: Range = { start, end };
    for (let index = this.#ranges.length - 1; index >= 0; index--) {
      const range = this.#ranges[index]!;
      if (isAfter(range.start, joined.end) || isBefore(range.end, joined.start)) continue;
      if (isBefore(range.start, joined.start)) joined.start = range.start;
      if (isAfter(range.end, joined.end)) joined.end = range.end;
      this.#ranges.splice(index, 1);
      // The joined range may touch others that were passed.
      index = this.#ranges.length;
    }
    this.#ranges.unshift(joined);
    if (this.#ranges.length > this.#max) this.#ranges.pop();
    return true;
  }

  /** Whether one range has all of these bytes. */
  covers(start: number, end: number): boolean {
    return this.#ranges.some((range) => !isBefore(start, range.start) && !isAfter(end, range.end));
  }

  /** Forgets everything before `sequence`. */
  removeBefore(sequence: number): void {
    for (let index = this.#ranges.length - 1; index >= 0; index--) {
      const range = this.#ranges[index]!;
      if (!isAfter(range.end, sequence)) this.#ranges.splice(index, 1);
      else if (isBefore(range.start, sequence)) range.start = sequence;
    }
  }

  /** The end of the last range, or `otherwise` without one. */
  highest(otherwise: number): number {
    return this.#ranges.reduce((highest, { end }) => (isAfter(end, highest) ? end : highest), otherwise);
  }

  /** Ranges and bytes after `sequence`. */
  countAfter(sequence: number): number {
    return this.#ranges.filter(({ start }) => isAfter(start, sequence)).length;
  }

  bytesAfter(sequence: number): number {
    return this.#ranges.reduce(
      (sum, { start, end }) => (isAfter(start, sequence) ? sum + sequenceDistance(end, start) : sum),
      0,
    );
  }

  /** Writes the edges of the first ranges. @returns blocks written */
  write(edges: Uint32Array, blocksMax: number): number {
    const count = Math.min(this.#ranges.length, blocksMax);
    for (let index = 0; index < count; index++) {
      edges[2 * index] = this.#ranges[index]!.start;
      edges[2 * index + 1] = this.#ranges[index]!.end;
    }
    return count;
  }

  clear(): void {
    this.#ranges.length = 0;
  }

  #moveToFront(index: number): void {
    this.#ranges.unshift(...this.#ranges.splice(index, 1));
  }
}
