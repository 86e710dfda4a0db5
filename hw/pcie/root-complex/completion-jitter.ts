/** By how much completions of different reads change their order, where a root complex is to shuffle them. */
import type { DeviceRead } from './device-read.ts';

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
