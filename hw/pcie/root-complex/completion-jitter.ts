/** Amount by which completions of different reads change their order, if a root complex must shuffle them. */
import type { DeviceRead } from './device-read.ts';

/** A seeded delay below `limitCycles`; it depends only on the read and its progress. */
export function jitterOf(read: DeviceRead, seed: number, limitCycles: number): number {
  return scrambled(seed, read.number, read.lengthBytes - read.remainingBytes) % limitCycles;
}

/** A number that depends only on the seed and its purpose: murmur3's finaliser. */
function scrambled(seed: number, readNumber: number, sentBytes: number): number {
  let value = Math.imul(seed, 0x9e37_79b1) ^ Math.imul(readNumber, 0x85eb_ca6b) ^ sentBytes;
  value = Math.imul(value ^ (value >>> 16), 0x85eb_ca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2_ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
