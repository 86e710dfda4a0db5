/**
 * A histogram of whole numbers of 0 to 2^53 (durations in picoseconds, sizes in bytes): buckets of equal width
 * within an octave, 128 to the octave.
 *
 * Promises: count, minimum and maximum are exact, the sum too ({@link Histogram.exactSum}); values below 256 are kept exactly;
 * a percentile is off by less than 0.4 % (half a bucket of 1/128 of its octave). Histograms of parts merge into
 * that of the whole, in any order.
 *
 * The bucket is read off the float64 itself: exponent and the first seven bits of the fraction.
 *
 *     63  62       52 51     45 44                    0
 *     ┌─┬───────────┬─────────┬──────────────────────┐
 *     │s│ exponent  │ 7 bits  │                      │      bucket = bits 62:45, from that of 1.0 on
 *     └─┴───────────┴─────────┴──────────────────────┘
 */

import { InvariantError, type Wide } from '../base/index.ts';
import { type ExactPs, exactSumOf } from './epoch.ts';

const BUCKETS_PER_OCTAVE = 128;
const HIGH_WORD_SHIFT = 13;
const SUM_MAX = Number.MAX_SAFE_INTEGER;
const BUCKET_OF_ONE = 1023 * BUCKETS_PER_OCTAVE;
/** Octaves up to which a bucket is at most 1 wide, so that it holds at most one whole number. */
const EXACT_BUCKET_COUNT = 8 * BUCKETS_PER_OCTAVE;

const scratch = new Float64Array(1);
const scratchWords = new Uint32Array(scratch.buffer);
/** Index of the word of a float64 that holds its sign: 1 on little-endian machines. */
const HIGH_WORD = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 1 : 0;

/** A histogram as plain data. */
export interface HistogramData {
  readonly count: number;
  readonly sum: number;
  /** All digits of the sum, if the number field is only the nearest value. */
  readonly exactSum?: string;
  readonly min: number;
  readonly max: number;
  readonly zeroCount: number;
  /** Pairs of bucket and count, buckets ascending. */
  readonly buckets: readonly (readonly [bucket: number, count: number])[];
}

export class Histogram {
  count = 0;
  /** Sum of all values except {@link #farSum}: exact. */
  #sum: Wide = 0;
  /** The part of the sum that no longer fits: values of {@link recordFar}, or carries. */
  #farSum = 0n;
  /** Least value, Infinity if the histogram is empty. */
  min = Number.POSITIVE_INFINITY;
  /** Greatest value, -Infinity if the histogram is empty. */
  max = Number.NEGATIVE_INFINITY;
  #zeroCount = 0;
  #buckets = new Float64Array(20 * BUCKETS_PER_OCTAVE);

  /** Counts `value`, `times` times. */
  record(value: number, times = 1): void {
    if (!(value >= 0)) throw new InvariantError('value of a histogram', value, 'at least 0');
    this.count += times;
    const sum = this.#sum + value * times;
    if (sum <= SUM_MAX) this.#sum = sum;
    else this.#farSum += BigInt(value) * BigInt(times);
    this.#place(value, times);
  }

  /** Counts a value that may exceed an exact number: minimum, maximum and quantiles use the nearest number. */
  recordFar(value: bigint): void {
    this.count++;
    this.#farSum += value;
    this.#place(Number(value), 1);
  }

  #place(value: number, times: number): void {
    if (value < this.min) this.min = value;
    if (value > this.max) this.max = value;
    if (value < 1) {
      this.#zeroCount += times;
      return;
    }
    scratch[0] = value;
    const bucket = (scratchWords[HIGH_WORD]! >>> HIGH_WORD_SHIFT) - BUCKET_OF_ONE;
    if (bucket >= this.#buckets.length) this.#grow(bucket);
    this.#buckets[bucket] = this.#buckets[bucket]! + times;
  }

  /** Sum of all values: a bigint if a number would not be exact. */
  get exactSum(): ExactPs {
    return exactSumOf(this.#farSum, this.#sum);
  }

  /** The sum as the nearest number. */
  get sum(): number {
    return Number(this.exactSum);
  }

  /** Mean of all values, NaN if the histogram is empty. */
  get mean(): number {
    return this.sum / this.count;
  }

  /**
   * The value below or at which `percent` per cent of the values lie (nearest rank): 0 returns the minimum, 100 the maximum.
   * NaN if the histogram is empty.
   */
  percentile(percent: number): number {
    if (this.count === 0) return Number.NaN;
    const rank = Math.max(1, Math.ceil((percent / 100) * this.count));
    if (rank === 1) return this.min;
    if (rank >= this.count) return this.max;
    let seen = this.#zeroCount;
    if (seen >= rank) return this.min;
    let bucket = -1;
    while (seen < rank) seen += this.#buckets[++bucket]!;
    return Math.min(this.max, Math.max(this.min, representativeOf(bucket)));
  }

  /** Adds all values of another histogram. */
  merge(other: Histogram): void {
    if (other.#buckets.length > this.#buckets.length) this.#grow(other.#buckets.length - 1);
    this.count += other.count;
    this.#farSum += other.#farSum + BigInt(other.#sum);
    this.min = Math.min(this.min, other.min);
    this.max = Math.max(this.max, other.max);
    this.#zeroCount += other.#zeroCount;
    for (let bucket = 0; bucket < other.#buckets.length; bucket++) {
      this.#buckets[bucket] = this.#buckets[bucket]! + other.#buckets[bucket]!;
    }
  }

  /** All of it as plain data, from which {@link Histogram.from} restores it. Minimum and maximum of an empty one are 0. */
  toData(): HistogramData {
    const buckets: [number, number][] = [];
    this.#buckets.forEach((count, bucket) => {
      if (count > 0) buckets.push([bucket, count]);
    });
    const [min, max] = this.count === 0 ? [0, 0] : [this.min, this.max];
    const total = this.exactSum;
    const digits = typeof total === 'bigint' ? { exactSum: total.toString() } : {};
    return {
      count: this.count,
      sum: Number(total),
      ...digits,
      min,
      max,
      zeroCount: this.#zeroCount,
      buckets,
    };
  }

  static from(data: HistogramData): Histogram {
    const histogram = new Histogram();
    if (data.count === 0) return histogram;
    histogram.count = data.count;
    if (data.exactSum === undefined) histogram.#sum = data.sum;
    else histogram.#farSum = BigInt(data.exactSum);
    histogram.min = data.min;
    histogram.max = data.max;
    histogram.#zeroCount = data.zeroCount;
    histogram.#grow(data.buckets.at(-1)?.[0] ?? 0);
    for (const [bucket, count] of data.buckets) histogram.#buckets[bucket] = count;
    return histogram;
  }

  #grow(bucket: number): void {
    const octaves = Math.ceil((bucket + 1) / BUCKETS_PER_OCTAVE);
    if (octaves * BUCKETS_PER_OCTAVE <= this.#buckets.length) return;
    const buckets = new Float64Array(octaves * BUCKETS_PER_OCTAVE);
    buckets.set(this.#buckets);
    this.#buckets = buckets;
  }
}

/** The whole number of a narrow bucket, or the middle of a wide one. */
function representativeOf(bucket: number): number {
  const octave = 2 ** Math.floor(bucket / BUCKETS_PER_OCTAVE);
  const width = octave / BUCKETS_PER_OCTAVE;
  const start = octave + (bucket % BUCKETS_PER_OCTAVE) * width;
  return bucket < EXACT_BUCKET_COUNT ? start : start + width / 2;
}
