import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LogicalProcess } from '../sim/logical-process.ts';
import { RecordingPort } from './testing.ts';
import { WriteCombiningBuffers } from './write-combining-buffers.ts';

const base = 0x8000_0000;

function newBuffers(bufferCount = 4, chunkBytes = 8) {
  const port = new RecordingPort(new LogicalProcess('host'), 0);
  const buffers = new WriteCombiningBuffers(port, { trafficClassAt: () => 1 }, { bufferCount, chunkBytes });
  const store = (offset: number, ...bytes: number[]) =>
    buffers.store(base + offset, Uint8Array.from(bytes), 0, bytes.length);
  const sent = () => port.stores.splice(0).map(({ address, bytes }) => [address - base, bytes.length]);
  return { port, buffers, store, sent };
}
const eight = (value: number) => Array<number>(8).fill(value);

describe('write-combining buffers', () => {
  it('leave as one TLP of 64 bytes as soon as they are full, for any order of stores', () => {
    const { port, buffers, store } = newBuffers();
    for (const part of [3, 0, 1, 7, 6, 2, 5]) store(part * 8, ...eight(part));
    expect(port.stores).toEqual([]);
    store(4 * 8, ...eight(4));
    expect(port.stores.map(({ address, bytes }) => [address, bytes])).toEqual([
      [base, [0, 1, 2, 3, 4, 5, 6, 7].flatMap(eight)],
    ]);
    expect([buffers.isEmpty, buffers.fullFlushCount, buffers.partialFlushCount]).toEqual([true, 1, 0]);
  });

  it('pass a store of 256 bytes on as four TLPs in ascending order', () => {
    const { buffers, sent } = newBuffers();
    expect(buffers.store(base, new Uint8Array(256), 0, 256)).toBe(256);
    expect(sent()).toEqual([0, 64, 128, 192].map((offset) => [offset, 64]));
    expect(buffers.isEmpty).toBe(true);
  });

  it('keep the last of two stores to one byte', () => {
    const { port, buffers, store } = newBuffers();
    store(8, 1, 2);
    store(9, 3);
    buffers.flush();
    expect(port.stores.map(({ bytes }) => bytes)).toEqual([[1, 3]]);
  });

  it('Intel SDM vol. 3A 11.3.1: leave in byte-enabled pieces of at most 8 bytes when a fence finds them partly filled, the oldest first', () => {
    const { buffers, store, sent } = newBuffers();
    store(64 + 20, 1);
    store(4, ...eight(0), 9, 9);
    store(64 + 16, 1, 1);
    expect(buffers.occupiedCount).toBe(2);
    expect(buffers.flush()).toBe(true);
    // Line 64 is older: bytes 16..17 and 20 of one chunk; then line 0: 4..7, 8..13.
    expect(sent()).toEqual([
      [64 + 16, 2],
      [64 + 20, 1],
      [4, 4],
      [8, 6],
    ]);
    expect(buffers.partialFlushCount).toBe(4);
  });

  it('leave in longer pieces when the chunk is larger', () => {
    const { buffers, store, sent } = newBuffers(4, 64);
    store(4, ...eight(0), ...eight(0));
    buffers.flush();
    expect(sent()).toEqual([[4, 16]]);
  });

  it('release the oldest buffer for another line', () => {
    const { buffers, store, sent } = newBuffers(2);
    store(0, 1);
    store(64, 1);
    store(1, 1);
    expect(sent()).toEqual([]);
    store(128, 1);
    expect(sent()).toEqual([[0, 2]]);
    expect([buffers.occupiedCount, buffers.evictionCount]).toEqual([2, 1]);
  });

  it('continue where the bus stopped them', () => {
    const { port, buffers, store, sent } = newBuffers(1);
    port.room = 1;
    store(0, 1);
    store(9, 1);
    store(30, 1);
    expect(buffers.flush()).toBe(false);
    expect(store(64, 1)).toBe(0);
    port.room = 1;
    expect(buffers.flush()).toBe(false);
    port.room = 2;
    expect(store(64, 7)).toBe(1);
    expect(buffers.flush()).toBe(true);
    expect(sent()).toEqual([
      [0, 1],
      [9, 1],
      [30, 1],
      [64, 1],
    ]);
  });

  it('write every byte once, for any stores and any stops of the bus', () => {
    const storeOf = fc.record({
      offset: fc.integer({ min: 0, max: 500 }),
      length: fc.integer({ min: 1, max: 256 }),
      room: fc.integer({ min: 0, max: 5 }),
    });
    const property = fc.property(
      fc.array(storeOf, { minLength: 1, maxLength: 20 }),
      fc.integer({ min: 1, max: 4 }),
      fc.constantFrom(4, 8, 16, 64),
      (stores, bufferCount, chunkBytes) => {
        const { port, buffers } = newBuffers(bufferCount, chunkBytes);
        const model = new Uint8Array(1024);
        stores.forEach(({ offset, length, room }, index) => {
          const bytes = Uint8Array.from({ length }, (_, at) => (index * 31 + at) | 1);
          model.set(bytes, offset);
          port.room = room;
          let done = 0;
          while (done < length) {
            done += buffers.store(base + offset + done, bytes, done, length - done);
            port.room++;
          }
        });
        port.room = 10_000;
        expect(buffers.flush()).toBe(true);
        const device = new Uint8Array(1024);
        for (const { address, bytes } of port.stores) {
          const offset = address - base;
          expect(Math.floor(offset / 64)).toBe(Math.floor((offset + bytes.length - 1) / 64));
          device.set(bytes, offset);
        }
        expect(device).toEqual(model);
      },
    );
    fc.assert(property, { numRuns: 200, seed: 1 });
  });
});
