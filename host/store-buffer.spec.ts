import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mib } from '../base/units.ts';
import { LogicalProcess } from '../sim/logical-process.ts';
import { PhysicalMemory } from './physical-memory.ts';
import {
  StoreBuffer,
  StoreSpaceError,
  storeToMemory,
  storeUncached,
  storeWriteCombining,
} from './store-buffer.ts';
import { RecordingPort } from './testing.ts';
import { WriteCombiningBuffers } from './write-combining-buffers.ts';

const device = 0x8000_0000;

function newStoreBuffer(spaceBytes: number) {
  const memory = new PhysicalMemory(mib(64));
  const port = new RecordingPort(new LogicalProcess('host'), 0);
  const busMap = { trafficClassAt: () => 0 };
  const writeCombining = new WriteCombiningBuffers(port, busMap, { bufferCount: 4, chunkBytes: 8 });
  const store = new StoreBuffer({ memory, port, busMap, writeCombining }, spaceBytes);
  const push = (kind: number, address: number, length: number, value: number) => {
    const offset = store.push(kind, address, length);
    store.bytes.fill(value, offset, offset + length);
    return offset;
  };
  return { memory, port, store, push };
}

describe('a store buffer', () => {
  it('keeps bytes and order of any mix of pushes, commits and drains, in a space that wraps', () => {
    const step = fc.record({
      length: fc.integer({ min: 1, max: 100 }),
      isCommit: fc.boolean(),
      drainTo: fc.option(fc.integer({ min: 0, max: 100 })),
    });
    const property = fc.property(fc.array(step, { minLength: 1, maxLength: 300 }), (steps) => {
      const { memory, store, push } = newStoreBuffer(1024);
      const expected: { cycle: number; address: number; length: number; value: number }[] = [];
      let open: typeof expected = [];
      let cycle = 0;
      const drain = (upTo: number) => {
        expect(store.drain(upTo)).toBe(true);
        while (expected.length > 0 && expected[0]!.cycle <= upTo) {
          const { address, length, value } = expected.shift()!;
          const written = memory.bytes.subarray(address, address + length);
          expect(written.every((byte) => byte === value)).toBe(true);
          expect(memory.bytes[address + length]).toBe(0);
        }
      };
      steps.forEach(({ length, isCommit, drainTo }, index) => {
        const address = 0x10_0000 + index * 128;
        const value = (index % 255) + 1;
        try {
          push(storeToMemory, address, length, value);
          open.push({ cycle: 0, address, length, value });
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(StoreSpaceError);
        }
        if (isCommit) {
          cycle++;
          store.commit(cycle, 0);
          expected.push(...open.map((entry) => ({ ...entry, cycle })));
          open = [];
        }
        if (drainTo !== null) drain(Math.floor((cycle * drainTo) / 100));
      });
      store.commit(++cycle, 0);
      expected.push(...open.map((entry) => ({ ...entry, cycle })));
      drain(cycle);
      expect([expected.length, store.isDrained, store.hasUncommitted]).toEqual([0, true, false]);
    });
    fc.assert(property, { numRuns: 100, seed: 1 });
  });

  it('holds more stores and commits than its initial size', () => {
    const { memory, store, push } = newStoreBuffer(65_536);
    for (let index = 0; index < 1000; index++) {
      push(storeToMemory, 0x10_0000 + index * 8, 8, (index % 255) + 1);
      store.commit(index, 0);
    }
    store.drain(999);
    for (let index = 0; index < 1000; index++) {
      expect(memory.bytes[0x10_0000 + index * 8 + 7]).toBe((index % 255) + 1);
    }
  });

  it('flushes the write-combining buffers before an uncached store and at the end of a commit', () => {
    const { port, store, push } = newStoreBuffer(4096);
    push(storeWriteCombining, device + 64, 8, 1);
    push(storeUncached, device, 4, 2);
    push(storeWriteCombining, device + 128, 8, 3);
    store.commit(1, 0);
    store.drain(1);
    expect(port.stores.map(({ address, bytes }) => [address - device, bytes.length])).toEqual([
      [64, 8],
      [0, 4],
      [128, 8],
    ]);
  });

  it('stops at the byte that the bus does not accept, and continues there', () => {
    const { memory, port, store, push } = newStoreBuffer(4096);
    push(storeWriteCombining, device, 256, 1);
    push(storeToMemory, 0x10_0000, 4, 2);
    store.commit(1, 0);
    port.room = 3;
    expect(store.drain(1)).toBe(false);
    // 192 of 256 bytes have left: 8 of 32 entries, and one of the memory store, wait.
    expect([store.overflowCycle(8), store.overflowCycle(9)]).toEqual([1, Number.POSITIVE_INFINITY]);
    expect(memory.bytes[0x10_0000]).toBe(0);
    port.room = 1;
    expect(store.drain(1)).toBe(true);
    expect(port.stores.map(({ address }) => address - device)).toEqual([0, 64, 128, 192]);
    expect(memory.bytes[0x10_0000]).toBe(2);
  });

  it('delays the commits after a cycle, and only those', () => {
    const { store, push } = newStoreBuffer(4096);
    for (const cycle of [10, 20, 30]) {
      push(storeToMemory, 0x10_0000 + cycle * 8, 4, cycle);
      store.commit(cycle, 0);
    }
    store.shiftAfter(10, 100);
    store.drain(119);
    expect(store.headCycle).toBe(120);
    store.drain(120);
    expect(store.headCycle).toBe(130);
  });

  it('loses stores to addresses without memory, and counts them', () => {
    const { store, push } = newStoreBuffer(4096);
    push(storeToMemory, mib(64), 8, 1);
    store.commit(1, 0);
    expect(store.drain(1)).toBe(true);
    expect(store.unmappedStoreCount).toBe(1);
  });
});
