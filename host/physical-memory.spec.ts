import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mib } from '../base/units.ts';
import { PhysicalMemory } from './physical-memory.ts';

const sizeBytes = mib(64);

/** Bytes that are not 0, with their addresses. */
function written({ buffer }: PhysicalMemory): [address: number, byte: number][] {
  const bytes = new Uint8Array(buffer, 0, buffer.byteLength);
  const found: [number, number][] = [];
  for (let address = 0; address < bytes.length; address++)
    if (bytes[address] !== 0) found.push([address, bytes[address]!]);
  return found;
}

describe('physical memory', () => {
  it('rejects sizes out of its range', () => {
    expect(() => new PhysicalMemory(mib(32))).toThrow(
      /memory.sizeMib is 32, expected an integer from 64 to 4096/,
    );
    expect(() => new PhysicalMemory(mib(8192))).toThrow(/memory.sizeMib/);
  });

  it('returns written bytes, at every alignment and length', () => {
    const memory = new PhysicalMemory(sizeBytes);
    const source = Uint8Array.from({ length: 512 }, (_, index) => (index * 7 + 1) & 0xff);
    const property = fc.property(
      fc.integer({ min: 0, max: sizeBytes - 512 }),
      fc.integer({ min: 0, max: 300 }),
      fc.integer({ min: 0, max: 200 }),
      (address, length, offset) => {
        memory.bytes.fill(0, address, address + length + 1);
        expect(memory.write(address, length, source, offset)).toBe(true);
        const back = new Uint8Array(length + 2);
        expect(memory.readInto(address, length, back, 1)).toBe(true);
        expect(back).toEqual(Uint8Array.from([0, ...source.subarray(offset, offset + length), 0]));
        expect(memory.bytes[address + length]).toBe(0);
      },
    );
    fc.assert(property, { numRuns: 300, seed: 1 });
  });

  it('reaches its last byte at its maximum size', () => {
    const memory = new PhysicalMemory(mib(4096));
    const source = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    const back = new Uint8Array(8);
    expect(memory.write(2 ** 32 - 8, 8, source, 0)).toBe(true);
    expect(memory.readInto(2 ** 32 - 8, 8, back, 0)).toBe(true);
    expect(back).toEqual(source);
    expect(memory.bytes[2 ** 32 - 1]).toBe(8);
    expect(memory.write(2 ** 31 + 1, 5, source, 0)).toBe(true);
    expect(memory.bytes[2 ** 31 + 5]).toBe(5);
  });

  it('is allocated as far as it was accessed, and zero beyond; following views may be kept, others not', () => {
    const memory = new PhysicalMemory(sizeBytes, mib(1));
    const { bytes, followingBytes, followingView } = memory;
    expect([memory.buffer.byteLength, memory.bytes.length, memory.view.byteLength]).toEqual(
      Array.from({ length: 3 }, () => mib(1)),
    );
    const back = Uint8Array.of(9, 9);
    expect(memory.readInto(mib(3), 2, back, 0)).toBe(true);
    expect(back).toEqual(Uint8Array.of(0, 0));
    expect(memory.buffer.byteLength).toBe(mib(3) + 4096);
    expect(memory.write(mib(5), 2, Uint8Array.of(1, 2), 0)).toBe(true);
    expect([followingBytes[mib(5)], followingView.getUint8(mib(5) + 1)]).toEqual([1, 2]);
    expect([memory.bytes[mib(5)], memory.view.getUint8(mib(5) + 1)]).toEqual([1, 2]);
    expect(bytes.length).toBe(mib(1));
    memory.reach(sizeBytes);
    expect(memory.buffer.byteLength).toBe(sizeBytes);
    expect(memory.write(sizeBytes - 1, 2, back, 0)).toBe(false);
  });

  it('does nothing, and reports it, when an access leaves memory', () => {
    const memory = new PhysicalMemory(sizeBytes);
    const bytes = new Uint8Array(8).fill(9);
    expect(memory.write(sizeBytes - 4, 8, bytes, 0)).toBe(false);
    expect(memory.write(2 ** 40, 8, bytes, 0)).toBe(false);
    expect(memory.readInto(sizeBytes - 7, 8, bytes, 0)).toBe(false);
    expect(memory.bytes[sizeBytes - 4]).toBe(0);
    expect(bytes).toEqual(new Uint8Array(8).fill(9));
    expect(memory.write(sizeBytes - 8, 8, bytes, 0)).toBe(true);
  });

  it('an image restores memory: pages handed out, written by a device, or left to one', () => {
    const memory = new PhysicalMemory(64 * 2 ** 20, 2 ** 20);
    const page = 4096;
    const source = new Uint8Array(3 * page).fill(7);
    memory.touch(1, 1);
    memory.bytes[page] = 1;
    memory.touch(2, 2);
    memory.leaveToDevice(2, 2);
    memory.write(3 * page, 1, source, 0);
    const image = memory.imageOfMemory();
    memory.bytes[page] = 2;
    // A write over five pages, of which two ends and a middle have never been handed out.
    memory.write(2 * page + 100, 3 * page, source, 0);
    memory.touch(9, 1);
    memory.bytes[9 * page + 5] = 3;
    memory.write(40 * 2 ** 20, 8, source, 0);
    image.restore();
    expect(written(memory)).toEqual([
      [page, 1],
      [3 * page, 7],
    ]);
  });

  it('an image restores memory from before it grew, and empties the grown part, each time', () => {
    const memory = new PhysicalMemory(sizeBytes, mib(1));
    memory.touch(1, 1);
    memory.bytes[4096] = 1;
    const image = memory.imageOfMemory();
    for (const address of [mib(2), mib(33)]) {
      memory.write(address, 3, Uint8Array.of(1, 2, 3), 0);
      image.restore();
      expect(written(memory)).toEqual([[4096, 1]]);
    }
  });

  it('of an ended machine is zero for the next one, and inaccessible to the former', () => {
    const sizeBytes = 65 * 2 ** 20;
    const former = new PhysicalMemory(sizeBytes, 2 ** 20);
    const source = new Uint8Array(9000).fill(7);
    former.touch(3, 1);
    former.bytes[3 * 4096 + 9] = 1;
    former.imageOfMemory();
    former.write(50 * 2 ** 20 - 100, 9000, source, 0);
    former.touch(7, 2);
    former.bytes[8 * 4096] = 2;
    former.retire();
    const next = new PhysicalMemory(sizeBytes, 2 ** 20);
    expect(next.buffer).toBe(former.buffer);
    expect(written(next)).toEqual([]);
    expect(() => former.write(0, 1, source, 0)).toThrow('retired');
    const other = new PhysicalMemory(sizeBytes, 2 ** 20);
    expect(other.buffer).not.toBe(next.buffer);
    other.seeAll();
    other.retire();
    expect(new PhysicalMemory(sizeBytes, 2 ** 20).buffer).not.toBe(other.buffer);
  });

  it('that outside code has seen is completely restored, and never reused by the next machine', () => {
    const memory = new PhysicalMemory(64 * 2 ** 20, 2 ** 20);
    const image = memory.imageOfMemory();
    memory.seeAll();
    image.restore();
    // Writes from outside are not recorded.
    memory.followingBytes[12_345_678] = 1;
    image.restore();
    expect(written(memory)).toEqual([]);
    memory.retire();
    expect(new PhysicalMemory(64 * 2 ** 20).buffer).not.toBe(memory.buffer);
  });

  it('notifies a watcher of writes to its page only, after the bytes are in memory, until it is removed', () => {
    const memory = new PhysicalMemory(sizeBytes);
    const seen: number[] = [];
    const watcher = { pageWritten: () => seen.push(memory.bytes[0x5010]!) };
    const other = { pageWritten: () => seen.push(-1) };
    const one = Uint8Array.of(1);
    memory.watch(0x5fff, watcher);
    memory.watch(0x7000, other);
    memory.write(0x5010, 1, one, 0);
    memory.write(0x6000, 1, one, 0);
    expect(seen).toEqual([1]);
    // A write across the boundary of pages 4 and 5.
    memory.write(0x4ffe, 4, new Uint8Array(4), 0);
    expect(seen).toEqual([1, 1]);
    memory.unwatch(watcher);
    memory.write(0x5010, 1, one, 0);
    memory.write(0x7000, 1, one, 0);
    expect(seen).toEqual([1, 1, -1]);
    memory.unwatch(other);
    expect(memory.watchCount).toBe(0);
    // Addresses beyond memory are not written: 2^40 does not alias page 0.
    memory.watch(2 ** 40, watcher);
    expect(memory.watchCount).toBe(0);
  });
});
