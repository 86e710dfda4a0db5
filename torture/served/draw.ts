/** Draws of rough guests: bytes, choices, and odd addresses and lengths. */
import { viewOf } from '../../base/index.ts';
import type { Random } from '../../sim/index.ts';
import { ramBytes } from './guest-life.ts';
import { pageBytes } from './guest-ram.ts';

export class Draw {
  readonly random: Random;

  constructor(random: Random) {
    this.random = random;
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(Math.ceil(count / 4) * 4);
    const view = viewOf(bytes);
    for (let at = 0; at < bytes.length; at += 4) view.setUint32(at, this.random.uint32());
    return bytes.subarray(0, count);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.random.below(from.length)]!;
  }

  /** Draws one of the keys, by weight. */
  weighted<Key extends string>(weights: Readonly<Record<Key, number>>): Key {
    const entries = Object.entries(weights) as [Key, number][];
    let left = this.random.unit() * entries.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [key, weight] of entries) {
      left -= weight;
      if (left < 0) return key;
    }
    return entries[0]![0];
  }

  /** Takes one of several ways, each equally likely. */
  any<T>(...ways: readonly (() => T)[]): T {
    return this.pick(ways)();
  }

  /** An address or length: nothing, a page, something large, something odd. */
  oddNumber(): number {
    const { random } = this;
    return this.any(
      () => 0,
      () => random.below(ramBytes / pageBytes) * pageBytes,
      () => random.below(ramBytes),
      () => random.uint32(),
      () => random.uint32() * 2 ** random.below(21),
    );
  }

  /** Inverts this many bits. */
  flip(bytes: Uint8Array, count: number): void {
    for (let at = 0; at < count; at++) {
      const byte = this.random.below(bytes.length);
      bytes[byte] = bytes[byte]! ^ (1 << this.random.below(8));
    }
  }
}
