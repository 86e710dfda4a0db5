/**
 * The 64-bit arithmetic of atomics, on low and high words:
 *
 *   add    fields of any lengths, each by itself: a set boundary bit is the highest of its field, and nothing is carried beyond it
 *   swap   the bits of one mask are compared, and if all are equal those of another are replaced
 *
 * Without boundaries all 64 bits are one field; with masks of ones all bits are compared and replaced: the atomics of
 * the standard. Source: MLNX_OFED, enhanced atomic operations; Linux, include/rdma/ib_verbs.h (ib_atomic_wr).
 */
export class AtomicValue {
  /** Unsigned 32-bit halves of the value. */
  low = 0;
  high = 0;

  set(low: number, high: number): void {
    this.low = low >>> 0;
    this.high = high >>> 0;
  }

  /** Adds field by field: bits below the boundaries propagate the carry, bits at them receive it and propagate none. */
  add(low: number, high: number, boundaryLow: number, boundaryHigh: number): void {
    const sumLow = ((this.low & ~boundaryLow) >>> 0) + ((low & ~boundaryLow) >>> 0);
    const carry = sumLow > 0xffff_ffff ? 1 : 0;
    const sumHigh = ((this.high & ~boundaryHigh) >>> 0) + ((high & ~boundaryHigh) >>> 0) + carry;
    this.set(sumLow ^ ((this.low ^ low) & boundaryLow), sumHigh ^ ((this.high ^ high) & boundaryHigh));
  }

  /** True when all bits of the mask are equal to those of another value. */
  isEqual(low: number, high: number, maskLow: number, maskHigh: number): boolean {
    return ((this.low ^ low) & maskLow) === 0 && ((this.high ^ high) & maskHigh) === 0;
  }

  /** Replaces the bits of the mask by those of another value. */
  replace(low: number, high: number, maskLow: number, maskHigh: number): void {
    this.set((this.low & ~maskLow) | (low & maskLow), (this.high & ~maskHigh) | (high & maskHigh));
  }
}
