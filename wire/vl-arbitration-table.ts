/**
 * A table of VL arbitration: up to 64 entries of a lane and a weight (InfiniBand Architecture Specification, volume 1, 7.6.9 and
 * 14.2.5.9). Each port has two, of high and of low priority.
 */
const ENTRY_BYTES = 2;
/** Bytes and entries of a block of the attribute. */
const BLOCK_BYTES = 64;

export class VlArbitrationTable {
  /** Entries as the attribute has them: the lane in [3:0] of the first byte, the weight in the second. */
  readonly bytes: Uint8Array;
  readonly entryCount: number;

  /** @param bytes of the entries, which the table then shares; 2 to 128, an even number */
  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.entryCount = bytes.length / ENTRY_BYTES;
  }

  laneAt(entry: number): number {
    return this.bytes[ENTRY_BYTES * entry]! & 0xf;
  }

  /** Weight of an entry in units of 64 bytes; 0: the entry is skipped. */
  weightAt(entry: number): number {
    return this.bytes[ENTRY_BYTES * entry + 1]!;
  }

  setEntry(entry: number, lane: number, weight: number): void {
    this.bytes[ENTRY_BYTES * entry] = lane;
    this.bytes[ENTRY_BYTES * entry + 1] = weight;
  }

  /** Writes a block of the attribute, 0 or 1, 64 bytes; entries beyond the table read as zero. */
  getBlock(block: number, into: Uint8Array): void {
    into.fill(0);
    into.set(this.bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
  }

  /** Takes a block of the attribute, 0 or 1, 64 bytes; entries beyond the table are not kept. */
  setBlock(block: number, from: Uint8Array): void {
    const own = this.bytes.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
    own.set(from.subarray(0, own.length));
  }
}
