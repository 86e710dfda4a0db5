/**
 * Aligned runs of a power of two of entries, for the MTT table: a buddy allocator, as in Linux. A run of 2^n entries
 * starts at a multiple of 2^n; the smallest free run that fits is split, freed halves join again.
 */
import { InvariantError, log2Ceil } from '../base/index.ts';

export class BuddyAllocator {
  private readonly logCount: number;
  /** Starts of the free runs of each order, kept in ascending order. */
  private readonly free: number[][];
  private readonly orderOf = new Map<number, number>();
  private takenEntries = 0;

  /** `count` entries, a power of two; those below `reserved` are never handed out. */
  constructor(count: number, reserved: number) {
    this.logCount = log2Ceil(count);
    this.free = Array.from({ length: this.logCount + 1 }, () => []);
    for (let start = reserved; start < count; ) {
      let order = this.logCount;
      while (start % 2 ** order !== 0 || start + 2 ** order > count) order--;
      this.free[order]!.push(start);
      start += 2 ** order;
    }
  }

  /** Entries handed out and not yet released, rounded up to their runs. */
  get taken(): number {
    return this.takenEntries;
  }

  /** A run of at least `entries`. @returns its first entry, or -1 if none exists */
  allocate(entries: number): number {
    const wanted = log2Ceil(entries);
    let order = wanted;
    while (order <= this.logCount && this.free[order]!.length === 0) order++;
    if (order > this.logCount) return -1;
    const start = this.free[order]!.shift()!;
    for (; order > wanted; order--) this.insert(order - 1, start + 2 ** (order - 1));
    this.orderOf.set(start, wanted);
    this.takenEntries += 2 ** wanted;
    return start;
  }

  release(start: number): void {
    let order = this.orderOf.get(start);
    if (order === undefined) throw new InvariantError('first entry to release', start, 'of a taken run');
    this.orderOf.delete(start);
    this.takenEntries -= 2 ** order;
    let run = start;
    for (; order < this.logCount; order++) {
      const size = 2 ** order;
      const buddy = Math.floor(run / size) % 2 === 0 ? run + size : run - size;
      const at = this.free[order]!.indexOf(buddy);
      if (at < 0) break;
      this.free[order]!.splice(at, 1);
      run = Math.min(run, buddy);
    }
    this.insert(order, run);
  }

  private insert(order: number, start: number): void {
    const runs = this.free[order]!;
    let at = runs.length;
    while (at > 0 && runs[at - 1]! > start) at--;
    runs.splice(at, 0, start);
  }
}
