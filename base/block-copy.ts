/**
 * Copies a few hundred bytes between memories, as a payload crosses a dozen times: by 64-bit elements where both ends are
 * aligned to them, else by words, else by bytes. A call into the engine takes 30 ns, mostly to inspect its arguments; it pays
 * off only for long blocks. Measured on Node 24, ns a copy of 64 / 256 / 512 / 4096 bytes, warm: by 64-bit elements 7 / 17 / 31
 * / 225, by words 12 / 44 / 90 / 740, Buffer's copy 31 / 32 / 34 / 58. (A copy by `set` makes a view of the source first.)
 *
 * The elements are BigInts, since a float may lose a NaN's bits: optimised code moves them without allocating one.
 */

import { runtime } from './runtime.ts';

/** Sizes from which the engine's copy is cheaper: than by 64-bit elements, by words, by bytes. */
const ENGINE_BYTES_BY_LONGS = 520;
const ENGINE_BYTES_BY_WORDS = 160;
const ENGINE_BYTES = 32;
/** Keeps an index small, so that the next one needs no overflow check. */
const INDEX_MASK = 0x3fff_ffff;
/** Memory pairs that a copier keeps. */
const KNOWN_COUNT = 8;

/** A memory and the element views over its bytes. */
class Block {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly longs: BigInt64Array;
  /** 1 if the bytes do not begin at a multiple of 8 of their buffer, and so have no 64-bit view. */
  readonly skew: number;

  constructor(bytes: Uint8Array) {
    const { buffer, byteOffset, byteLength } = bytes;
    const isAligned = (byteOffset & 7) === 0;
    this.bytes = bytes;
    this.skew = isAligned ? 0 : 1;
    this.words = isAligned
      ? new Int32Array(buffer, byteOffset, Math.floor(byteLength / 4))
      : new Int32Array(0);
    this.longs = isAligned
      ? new BigInt64Array(buffer, byteOffset, Math.floor(byteLength / 8))
      : new BigInt64Array(0);
  }
}

const NO_BLOCK = new Block(new Uint8Array(0));

/** Two memories, and the views that a copy from one to the other uses. */
class Way {
  readonly to: Uint8Array;
  readonly from: Uint8Array;
  readonly toBlock: Block;
  readonly fromBlock: Block;
  readonly toLongs: BigInt64Array;
  readonly fromLongs: BigInt64Array;
  readonly skew: number;

  constructor(to: Block, from: Block) {
    this.to = to.bytes;
    this.from = from.bytes;
    this.toBlock = to;
    this.fromBlock = from;
    this.toLongs = to.longs;
    this.fromLongs = from.longs;
    this.skew = to.skew | from.skew;
  }
}

const NO_WAY = new Way(NO_BLOCK, NO_BLOCK);

/**
 * Copies between the few memories of its owner, whose views it keeps. Most owners alternate between two pairs: both are at
 * hand, since a lookup takes longer than copying 64 bytes.
 */
export class BlockCopier {
  /** The runtime's copy, read when the copier is made: reading it each time takes as long as a short copy. */
  readonly #engineCopy = runtime().copyBytes;
  #first = NO_WAY;
  #second = NO_WAY;
  readonly #known: Way[] = [];
  #newest = 0;

  /** Copies `lengthBytes` that lie within both memories and do not overlap. */
  copy(to: Uint8Array, toOffset: number, from: Uint8Array, fromOffset: number, lengthBytes: number): void {
    // A doorbell or a counter: copying it is faster than a lookup.
    if (lengthBytes === 4 && ((toOffset | fromOffset) & ~INDEX_MASK) === 0)
      return copyFour(to, toOffset, from, fromOffset);
    let way = this.#first;
    if (to !== way.to || from !== way.from) {
      way = this.#second;
      if (to !== way.to || from !== way.from) way = this.#turnTo(to, from);
    }
    const alignment = toOffset | fromOffset | lengthBytes | way.skew;
    if ((alignment & 7) === 0 && lengthBytes < ENGINE_BYTES_BY_LONGS) {
      copyLongs(way.toLongs, toOffset >>> 3, way.fromLongs, fromOffset >>> 3, lengthBytes >> 3);
    } else if ((alignment & 3) === 0 && lengthBytes < ENGINE_BYTES_BY_WORDS) {
      copyWords(way.toBlock.words, toOffset >>> 2, way.fromBlock.words, fromOffset >>> 2, lengthBytes >> 2);
    } else {
      this.#copyUnaligned(way.toBlock, toOffset, way.fromBlock, fromOffset, lengthBytes);
    }
  }

  /** Copies by words between unaligned ends if both memories are unaligned alike; else by bytes. */
  #copyUnaligned(to: Block, toOffset: number, from: Block, fromOffset: number, lengthBytes: number): void {
    const isAlike = ((toOffset ^ fromOffset) & 3) === 0 && (to.skew | from.skew) === 0;
    if (lengthBytes >= (isAlike ? ENGINE_BYTES_BY_WORDS : ENGINE_BYTES)) {
      this.#engineCopy(to.bytes, toOffset, from.bytes, fromOffset, lengthBytes);
      return;
    }
    const head = isAlike ? Math.min(-toOffset & 3, lengthBytes) : lengthBytes;
    const words = (lengthBytes - head) >> 2;
    copyBytes(to.bytes, toOffset, from.bytes, fromOffset, head);
    copyWords(to.words, (toOffset + head) >>> 2, from.words, (fromOffset + head) >>> 2, words);
    const done = head + words * 4;
    copyBytes(to.bytes, toOffset + done, from.bytes, fromOffset + done, lengthBytes - done);
  }

  /** Keeps another pair at hand, instead of the older one. */
  #turnTo(to: Uint8Array, from: Uint8Array): Way {
    const way = this.#wayOf(to, from);
    this.#second = this.#first;
    this.#first = way;
    return way;
  }

  #wayOf(to: Uint8Array, from: Uint8Array): Way {
    const known = this.#known;
    for (let index = 0; index < known.length; index++)
      if (known[index]!.to === to && known[index]!.from === from) return known[index]!;
    const way = new Way(new Block(to), new Block(from));
    if (known.length < KNOWN_COUNT) known.push(way);
    else known[this.#newest++ & (KNOWN_COUNT - 1)] = way;
    return way;
  }
}

/** Copies a short block, a WQE or less, at any addresses: by words, and the rest by bytes. */
export function copyShort(
  to: DataView,
  toOffset: number,
  from: DataView,
  fromOffset: number,
  lengthBytes: number,
): void {
  let at = 0;
  for (; at + 4 <= lengthBytes; at += 4)
    to.setUint32(toOffset + at, from.getUint32(fromOffset + at, true), true);
  for (; at < lengthBytes; at++) to.setUint8(toOffset + at, from.getUint8(fromOffset + at));
}

function copyLongs(
  to: BigInt64Array,
  toIndex: number,
  from: BigInt64Array,
  fromIndex: number,
  count: number,
): void {
  let target = toIndex & INDEX_MASK;
  let source = fromIndex & INDEX_MASK;
  let left = count;
  for (; left >= 8; left -= 8) {
    to[target] = from[source]!;
    to[target + 1] = from[source + 1]!;
    to[target + 2] = from[source + 2]!;
    to[target + 3] = from[source + 3]!;
    to[target + 4] = from[source + 4]!;
    to[target + 5] = from[source + 5]!;
    to[target + 6] = from[source + 6]!;
    to[target + 7] = from[source + 7]!;
    target = (target + 8) & INDEX_MASK;
    source = (source + 8) & INDEX_MASK;
  }
  for (; left >= 2; left -= 2) {
    to[target] = from[source]!;
    to[target + 1] = from[source + 1]!;
    target = (target + 2) & INDEX_MASK;
    source = (source + 2) & INDEX_MASK;
  }
  if (left > 0) to[target] = from[source]!;
}

function copyWords(
  to: Int32Array,
  toIndex: number,
  from: Int32Array,
  fromIndex: number,
  count: number,
): void {
  let target = toIndex & INDEX_MASK;
  let source = fromIndex & INDEX_MASK;
  for (let left = count; left > 0; left--) {
    to[target] = from[source]!;
    target = (target + 1) & INDEX_MASK;
    source = (source + 1) & INDEX_MASK;
  }
}

function copyFour(to: Uint8Array, toOffset: number, from: Uint8Array, fromOffset: number): void {
  to[toOffset] = from[fromOffset]!;
  to[toOffset + 1] = from[fromOffset + 1]!;
  to[toOffset + 2] = from[fromOffset + 2]!;
  to[toOffset + 3] = from[fromOffset + 3]!;
}

function copyBytes(
  to: Uint8Array,
  toOffset: number,
  from: Uint8Array,
  fromOffset: number,
  count: number,
): void {
  for (let at = 0; at < count; at++) to[toOffset + at] = from[fromOffset + at]!;
}
