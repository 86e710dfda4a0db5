/** How the answer to a device's read is split into completions, and when it may be out of turn. */
import type { DeviceRead } from './device-read.ts';

/** How a read's data are split into completions: as many bytes as fit, ending at a boundary unless the read ends before. */
export class CompletionSplit {
  readonly #bytesMax: number;
  readonly #boundaryMask: number;

  /** @param boundaryBytes a power of two */
  constructor(bytesMax: number, boundaryBytes: number) {
    this.#bytesMax = bytesMax;
    this.#boundaryMask = boundaryBytes - 1;
  }

  /** Bytes of the next completion. */
  bytesOf(address: number, remainingBytes: number): number {
    const bytes = this.#bytesMax - ((address + this.#bytesMax) & this.#boundaryMask);
    return bytes < remainingBytes ? bytes : remainingBytes;
  }
}

/** A seeded delay below `limitCycles`; it depends on the read and its progress, not on what else happens. */
export function jitterOf(read: DeviceRead, seed: number, limitCycles: number): number {
  return scrambled(seed, read.number, read.lengthBytes - read.remainingBytes) % limitCycles;
}

/** A number that depends on nothing but the seed and what it is for: murmur3's finaliser. */
function scrambled(seed: number, readNumber: number, sentBytes: number): number {
  let value = Math.imul(seed, 0x9e37_79b1) ^ Math.imul(readNumber, 0x85eb_ca6b) ^ sentBytes;
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
