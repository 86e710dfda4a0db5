import { describe, expect, it } from 'vitest';
import { BAR0, enabledBench, functionBench } from './function-bench.ts';

const TABLE = BAR0 + 0x7c000;
const PENDING = BAR0 + 0x7d000;
const CONTROL = 0x9e;
const ENABLE = 0x8000;
const FUNCTION_MASK = 0x4000;

/** A driver that has programmed message `vector` with address fee00000 + 16 × vector, data 0x4000 + vector. */
function driven(vectors: readonly number[], ...options: Parameters<typeof functionBench>) {
  const bench = enabledBench(...options);
  for (const vector of vectors) {
    bench.software.setRegister(TABLE + 16 * vector, 0xfee0_0000 + 16 * vector);
    bench.software.setRegister(TABLE + 16 * vector + 8, 0x4000 + vector);
    bench.software.setRegister(TABLE + 16 * vector + 12, 0);
  }
  bench.software.setConfig(CONTROL, 2, ENABLE);
  const request = (vector: number): boolean => bench.fn.requestInterrupt(vector, bench.cycleNow());
  const sent = (): [number, number][] => bench.sender.messages.map(({ address, data }) => [address, data]);
  const counts = (vector: number) => {
    const { requested, masked, delivered, coalesced, dropped } = bench.fn.msix.counters;
    return {
      requested: requested[vector],
      masked: masked[vector],
      delivered: delivered[vector],
      coalesced: coalesced[vector],
      dropped: dropped[vector],
    };
  };
  return { ...bench, request, sent, counts };
}

describe('the MSI-X table', () => {
  it('PCI Local Bus 6.8.2: is zero with every vector masked after power-on', () => {
    const bench = enabledBench();
    expect(bench.read(TABLE, 16)!.bytes).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    expect(bench.read(TABLE + 127 * 16 + 12, 4)!.bytes).toEqual([1, 0, 0, 0]);
    expect(bench.read(PENDING, 16)!.bytes).toEqual(new Array(16).fill(0));
    expect(bench.target.reads).toEqual([]);
  });

  it('PCI Local Bus 6.8.2: accepts accesses of 4 and of 8 bytes, and keeps reserved bits zero', () => {
    const bench = enabledBench();
    bench.write(TABLE + 32, [0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0]);
    bench.write(TABLE + 40, [0x78, 0x56, 0x34, 0x12, 0xfe, 0xff, 0xff, 0xff]);
    expect(bench.read(TABLE + 32, 8)!.bytes).toEqual([0xfc, 0xff, 0xff, 0xff, 1, 0, 0, 0]);
    expect(bench.read(TABLE + 40, 8)!.bytes).toEqual([0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0]);
    expect(bench.target.writes).toEqual([]);
  });

  it('ignores writes of other sizes and of other alignment, and counts them', () => {
    const bench = enabledBench();
    bench.write(TABLE, [1, 2]);
    bench.write(TABLE + 4, [1, 2, 3, 4, 5, 6, 7, 8]);
    bench.write(TABLE, new Array(16).fill(0xff));
    expect(bench.read(TABLE, 16)!.bytes).toEqual([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    expect(bench.fn.msix.ignoredWriteCount).toBe(3);
  });

  it('ends where the device core begins', () => {
    const bench = enabledBench();
    bench.write(TABLE + 128 * 16, [1, 2, 3, 4]);
    bench.write(PENDING + 16, [1, 2, 3, 4]);
    expect(bench.target.writes.map((write) => write.offset)).toEqual([0x7c800, 0x7d010]);
  });

  it('reads as zero if a read continues after it, unless the pending bits are there', () => {
    const bench = enabledBench();
    expect(bench.read(TABLE + 127 * 16 + 12, 8)!.bytes).toEqual([1, 0, 0, 0, 0, 0, 0, 0]);
    const adjoining = enabledBench({ msixPendingOffset: 0x7c000 + 128 * 16 });
    adjoining.software.setConfig(CONTROL, 2, ENABLE);
    adjoining.fn.requestInterrupt(3, adjoining.cycleNow());
    expect(adjoining.read(TABLE + 127 * 16 + 12, 8)!.bytes).toEqual([1, 0, 0, 0, 8, 0, 0, 0]);
  });

  it('must be in BAR0, separate from the pending bits', () => {
    expect(() => functionBench({ msixPendingOffset: 0x7c008 })).toThrow(/msixPendingOffset/);
    expect(() => functionBench({ msixTableOffset: 0xff_f00 })).toThrow(/msixTableOffset/);
    expect(() => functionBench({ msixPendingOffset: 0x10_0000 })).toThrow(/msixPendingOffset/);
  });
});

describe('an MSI-X interrupt', () => {
  it('sends the programmed message in the cycle it is requested', () => {
    const bench = driven([0, 5, 127]);
    for (const vector of [5, 0, 127]) expect(bench.request(vector)).toBe(true);
    expect(bench.sent()).toEqual([
      [0xfee0_0050, 0x4005],
      [0xfee0_0000, 0x4000],
      [0xfee0_07f0, 0x407f],
    ]);
    expect(bench.counts(5)).toEqual({ requested: 1, masked: 0, delivered: 1, coalesced: 0, dropped: 0 });
  });

  it('PCI Local Bus 6.8.2: can go above 4 GiB', () => {
    const bench = driven([1]);
    bench.software.setRegister(TABLE + 16 + 4, 0x12);
    bench.request(1);
    expect(bench.sent()).toEqual([[0x12_fee0_0010, 0x4001]]);
  });

  it('PCI Local Bus 6.8.3: stays pending while its vector is masked, once, and is sent when it is unmasked', () => {
    const bench = driven([3]);
    bench.software.setRegister(TABLE + 48 + 12, 1);
    bench.request(3);
    bench.request(3);
    expect(bench.sent()).toEqual([]);
    expect(bench.software.register(PENDING)).toBe(1 << 3);
    // Software changes the message while it is pending: the new one is sent.
    bench.software.setRegister(TABLE + 48 + 8, 0x99);
    bench.software.setRegister(TABLE + 48 + 12, 0);
    expect(bench.sent()).toEqual([[0xfee0_0030, 0x99]]);
    expect(bench.software.register(PENDING)).toBe(0);
    expect(bench.counts(3)).toEqual({ requested: 2, masked: 2, delivered: 1, coalesced: 1, dropped: 0 });
  });

  it('PCI Local Bus 6.8.3: stays pending under the function mask, in every word of the pending bits', () => {
    const bench = driven([0, 63, 64, 100]);
    bench.software.setConfig(CONTROL, 2, ENABLE | FUNCTION_MASK);
    for (const vector of [100, 64, 63, 0]) bench.request(vector);
    expect(bench.read(PENDING, 16)!.bytes).toEqual([1, 0, 0, 0, 0, 0, 0, 0x80, 1, 0, 0, 0, 0x10, 0, 0, 0]);
    bench.write(PENDING, [0, 0, 0, 0]);
    expect(bench.fn.msix.pendingCount).toBe(4);
    bench.software.setConfig(CONTROL, 2, ENABLE);
    // Lowest vector first, one per cycle.
    expect(bench.sent().map(([, data]) => data)).toEqual([0x4000, 0x403f, 0x4040, 0x4064]);
    const cycles = bench.sender.messages.map((message) => message.cycle);
    expect(cycles.map((cycle) => cycle - cycles[0]!)).toEqual([0, 1, 2, 3]);
    expect(bench.fn.msix.pendingCount).toBe(0);
  });

  it('PCI Local Bus 6.8.3: is unmasked vector by vector under a lifted function mask', () => {
    const bench = driven([0, 1]);
    bench.software.setConfig(CONTROL, 2, ENABLE | FUNCTION_MASK);
    bench.software.setRegister(TABLE + 12, 1);
    bench.request(0);
    bench.request(1);
    bench.software.setConfig(CONTROL, 2, ENABLE);
    expect(bench.sent().map(([, data]) => data)).toEqual([0x4001]);
    bench.software.setRegister(TABLE + 12, 0);
    expect(bench.sent().map(([, data]) => data)).toEqual([0x4001, 0x4000]);
  });

  it('PCIe 7.5.1: waits for bus mastering and for D0', () => {
    const bench = driven([2]);
    bench.software.setConfig(0x04, 2, 0x0002);
    bench.request(2);
    expect(bench.sent()).toEqual([]);
    expect(bench.counts(2).masked).toBe(0);
    bench.software.setConfig(0x04, 2, 0x0006);
    expect(bench.sent().length).toBe(1);
  });

  it('is refused, without side effects, while the sender has no room', () => {
    const bench = driven([2]);
    bench.sender.hasRoom = false;
    expect(bench.request(2)).toBe(false);
    expect(bench.counts(2).requested).toBe(0);
    expect(bench.fn.msix.pendingCount).toBe(0);
    bench.sender.hasRoom = true;
    expect(bench.request(2)).toBe(true);
  });

  it('that is pending keeps trying while the sender has no room', () => {
    const bench = driven([2]);
    bench.software.setRegister(TABLE + 32 + 12, 1);
    bench.request(2);
    bench.sender.hasRoom = false;
    bench.software.setRegister(TABLE + 32 + 12, 0);
    expect(bench.sent()).toEqual([]);
    // Still pending: another request merges into it, and counts as unmasked.
    bench.request(2);
    bench.sender.hasRoom = true;
    bench.settle();
    expect(bench.sent().length).toBe(1);
    expect(bench.counts(2)).toEqual({ requested: 2, masked: 1, delivered: 1, coalesced: 1, dropped: 0 });
  });

  it('is dropped while MSI-X is disabled', () => {
    const bench = driven([2]);
    bench.software.setConfig(CONTROL, 2, 0);
    expect(bench.request(2)).toBe(true);
    expect(bench.counts(2)).toEqual({ requested: 1, masked: 0, delivered: 0, coalesced: 0, dropped: 1 });
    bench.software.setConfig(CONTROL, 2, ENABLE);
    expect(bench.sent()).toEqual([]);
  });

  it('that a reset drops is counted as dropped, so that the statistics balance', () => {
    const bench = driven([4]);
    bench.software.setRegister(TABLE + 64 + 12, 1);
    for (let at = 0; at < 3; at++) bench.request(4);
    bench.software.setConfig(0x68, 2, 0x8000);
    const { requested, masked, delivered, coalesced, dropped } = bench.counts(4);
    expect({ requested, masked }).toEqual({ requested: 3, masked: 3 });
    expect(requested).toBe(delivered! + coalesced! + dropped! + bench.fn.msix.pendingCount);
  });
});
