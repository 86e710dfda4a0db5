import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BlockCopier, copyShort } from './block-copy.ts';
import { runtime, useRuntime } from './runtime.ts';

const MEMORY_BYTES = 4096;

/** Bytes without equal neighbours, among them the patterns of quiet and signalling NaNs. */
function patterned(seed: number): Uint8Array {
  const bytes = Uint8Array.from({ length: MEMORY_BYTES }, (_, index) => (index * 31 + seed) & 0xff);
  const view = new DataView(bytes.buffer);
  const nans = [
    0x7ff0_0000_0000_0001n,
    0xfff0_0000_dead_beefn,
    0x7ff8_0000_0000_0002n,
    0xffff_ffff_ffff_ffffn,
  ];
  for (let at = 0; at < MEMORY_BYTES; at += 32) view.setBigUint64(at, nans[(at / 32) % nans.length]!, true);
  return bytes;
}

const length = fc.oneof(fc.nat(40), fc.nat(1100), fc.constantFrom(32, 48, 64, 160, 256, 512, 520, 1024));
const offset = fc.oneof(
  fc.nat(2000),
  fc.nat(250).map((long) => long * 8),
);

test('copies exactly the requested bytes, for any number and offset', () => {
  const copier = new BlockCopier();
  const from = patterned(7);
  const to = new Uint8Array(MEMORY_BYTES);
  const wanted = new Uint8Array(MEMORY_BYTES);
  // Enough runs that the copies are compiled meanwhile.
  const property = fc.property(offset, offset, length, (fromOffset, toOffset, lengthBytes) => {
    to.fill(0xa5);
    wanted.fill(0xa5).set(from.subarray(fromOffset, fromOffset + lengthBytes), toOffset);
    copier.copy(to, toOffset, from, fromOffset, lengthBytes);
    expect(Buffer.compare(to, wanted)).toBe(0);
  });
  fc.assert(property, { seed: 1, numRuns: 20_000 });
});

test('leaves long blocks to the runtime that is set when the copier is made, for any loading order of modules', () => {
  const standing = runtime();
  const lengths: number[] = [];
  const copyBytes: typeof standing.copyBytes = (to, toOffset, from, fromOffset, lengthBytes) => {
    lengths.push(lengthBytes);
    standing.copyBytes(to, toOffset, from, fromOffset, lengthBytes);
  };
  useRuntime({ ...standing, copyBytes });
  const copier = new BlockCopier();
  useRuntime(standing);
  const to = new Uint8Array(MEMORY_BYTES);
  for (const lengthBytes of [64, 2048]) copier.copy(to, 8, patterned(5), 8, lengthBytes);
  expect(lengths).toEqual([2048]);
  expect(to.subarray(8, 2056)).toEqual(patterned(5).subarray(8, 2056));
});

test('copies a few bytes from any address to any other', () => {
  const from = patterned(9);
  const fromView = new DataView(from.buffer);
  const property = fc.property(fc.nat(70), fc.nat(70), fc.nat(300), (fromOffset, toOffset, lengthBytes) => {
    const to = new DataView(new ArrayBuffer(400));
    copyShort(to, toOffset, fromView, fromOffset, lengthBytes);
    const wanted = new Uint8Array(400);
    wanted.set(from.subarray(fromOffset, fromOffset + lengthBytes), toOffset);
    expect(new Uint8Array(to.buffer)).toEqual(wanted);
  });
  fc.assert(property, { seed: 2, numRuns: 500 });
});

test('copies between memories that begin anywhere in their buffers, and more of them than it keeps', () => {
  const copier = new BlockCopier();
  for (let round = 0; round < 3; round++) {
    for (let start = 0; start < 16; start++) {
      const from = patterned(start).subarray(start);
      const to = new Uint8Array(MEMORY_BYTES).subarray(16 - start);
      for (const lengthBytes of [4, 8, 64, 300]) copier.copy(to, 8, from, 16, lengthBytes);
      expect(to.subarray(8, 308)).toEqual(from.subarray(16, 316));
    }
  }
});

test('uses the right pair of two that alternate, of three in turn, and back', () => {
  const copier = new BlockCopier();
  const sources = [1, 2, 3].map(patterned);
  const targets = sources.map(() => new Uint8Array(MEMORY_BYTES));
  for (const ways of [
    [0, 4, 0, 4],
    [0, 4, 8, 0, 4, 8],
    [1, 3, 1, 8, 2, 6, 3, 1],
  ]) {
    for (const way of ways) {
      const from = sources[way % 3]!;
      const to = targets[Math.floor(way / 3)]!.fill(0);
      copier.copy(to, 8, from, 16, 56);
      expect(to.subarray(0, 72)).toEqual(
        Uint8Array.of(...new Uint8Array(8), ...from.subarray(16, 72), ...new Uint8Array(8)),
      );
    }
  }
});

test('copies into, within and out of the largest memory that a host may have', () => {
  const copier = new BlockCopier();
  const memory = new Uint8Array(new SharedArrayBuffer(2 ** 32));
  const from = patterned(3);
  const to = new Uint8Array(MEMORY_BYTES);
  for (const offset of [0, 2 ** 31 - 100, 2 ** 31, 2 ** 32 - 400]) {
    for (const [start, lengthBytes] of [
      [0, 4],
      [4, 12],
      [0, 64],
      [1, 30],
      [3, 300],
    ] as const) {
      copier.copy(memory, offset + start, from, start, lengthBytes);
      copier.copy(to, start, memory, offset + start, lengthBytes);
      expect(to.subarray(start, start + lengthBytes)).toEqual(from.subarray(start, start + lengthBytes));
    }
  }
});
