import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { activeAnonymous, inactiveAnonymous } from './lru.ts';
import { hugePageBytes, pageBytes } from './page.ts';
import { newFile, newTestMemory } from './testing.ts';

/** 256 frames to hand out, of which users may take all but 16, and swap of the given size. */
function small(swapMib: number, minFreeKib = 64) {
  const all = newTestMemory(
    {
      paging: { minFreeKib },
      swap: { sizeMib: swapMib, readLatencyNs: 10_000, writeLatencyNs: 5000, megabytesPerSecond: 4096 },
      fileDevice: { readLatencyNs: 10_000, writeLatencyNs: 5000, megabytesPerSecond: 4096 },
    },
    1024,
  );
  return { ...all, space: all.mm.newSpace() };
}

/** Bytes that count up from a random one of 256. */
const contents = Array.from({ length: 256 }, (_first, first) =>
  Uint8Array.from({ length: pageBytes }, (_, at) => (first + at) & 0xff),
);
const contentOf = (page: number): Uint8Array => contents[(page * 31) & 0xff]!;

describe('reclaim', () => {
  it('keeps every byte of four times as much data as memory, for any order of accesses', () => {
    const property = fc.property(fc.infiniteStream(fc.nat()), (order) => {
      const { mm, platform, space } = small(8);
      const pageCount = 4 * 256;
      const address = space.map(pageCount * pageBytes);
      const version = new Int32Array(pageCount);
      const back = new Uint8Array(pageBytes);
      const next = (): number => order.next().value as number;
      for (let page = 0; page < pageCount; page++) space.write(address + page * pageBytes, contentOf(page));
      for (let step = 0; step < 1500; step++) {
        const page = next() % pageCount;
        expect(space.read(address + page * pageBytes, back)).toBe(true);
        if (Buffer.compare(back, contentOf(page + version[page]!)) !== 0)
          throw new Error(`page ${page} differs`);
        if (step % 3 > 0) continue;
        version[page] = version[page]! + 1;
        space.write(address + page * pageBytes, contentOf(page + version[page]!));
      }
      expect(mm.counts.swappedOutPages).toBeGreaterThan(pageCount - 256);
      expect(mm.counts.majorFaults).toBeGreaterThan(500);
      // Time has passed: every major fault waits at least the device's latency.
      expect(platform.nowPs).toBeGreaterThanOrEqual(mm.counts.majorFaults * 10_000_000);
      space.release();
      mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
      expect([mm.frames.usedCount, mm.swap.usedCount]).toEqual([0, 0]);
    });
    fc.assert(property, { numRuns: 5, seed: 4 });
  });

  it('Linux mm/vmscan.c: gives a reused page a second chance, and reclaims others', () => {
    const { mm, space } = small(8);
    const address = space.map(200 * pageBytes);
    for (let page = 0; page < 200; page++) space.write(address + page * pageBytes, contentOf(page));
    const touchHot = (): void => {
      for (let page = 0; page < 20; page++) space.read(address + page * pageBytes, new Uint8Array(1));
    };
    // One scan of every page: all were just used, and lose the mark. After a second scan, only the first twenty have it again.
    mm.reclaim.shrink(1, 0);
    expect(mm.counts.scannedPages).toBe(200);
    touchHot();
    mm.reclaim.shrink(180, 0);
    expect(space.swappedPages).toBe(180);
    for (let page = 0; page < 20; page++)
      expect(space.table.translate(address + page * pageBytes)).toBeGreaterThan(0);
    expect(mm.counts.activatedPages).toBe(20);
    // Activated pages are scanned again when the inactive list is empty.
    expect(mm.lru.lengthOf(activeAnonymous) + mm.lru.lengthOf(inactiveAnonymous)).toBe(20);
  });

  it('does not write a page again that was read back and not changed', () => {
    const { mm, space } = small(8);
    const address = space.map(10 * pageBytes);
    for (let page = 0; page < 10; page++) space.write(address + page * pageBytes, contentOf(page));
    const squeeze = (): void => {
      for (let round = 0; round < 3; round++) mm.reclaim.shrink(10, 0);
      mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    };
    squeeze();
    expect([mm.counts.swappedOutPages, space.swappedPages]).toEqual([10, 10]);
    for (let page = 0; page < 10; page++) space.read(address + page * pageBytes, new Uint8Array(1));
    space.write(address, Uint8Array.of(1));
    squeeze();
    expect([mm.counts.swappedOutPages, mm.counts.droppedPages, space.swappedPages]).toEqual([11, 9, 10]);
  });

  it('returns a page that is touched while it is being written', () => {
    const { mm, space } = small(8);
    const address = space.map(pageBytes);
    space.write(address, contentOf(3));
    mm.reclaim.shrink(1, 0);
    mm.reclaim.shrink(1, 0);
    expect([space.swappedPages, mm.reclaim.writebackCount]).toEqual([1, 1]);
    space.write(address, Uint8Array.of(0xee));
    expect(mm.counts).toMatchObject({ majorFaults: 0, swappedInPages: 0 });
    mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    const back = new Uint8Array(2);
    space.read(address, back);
    expect([...back]).toEqual([0xee, contentOf(3)[1]]);
  });

  it('writes dirty file pages back, drops clean ones, and reads both again', () => {
    const { mm, space } = small(0);
    const file = newFile('data', new Uint8Array(8 * pageBytes).fill(7));
    const address = space.mapWith(8 * pageBytes, { file, isShared: true });
    for (let page = 0; page < 8; page++) space.read(address + page * pageBytes, new Uint8Array(1));
    space.write(address + pageBytes, Uint8Array.of(1, 2, 3));
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(10, 0);
    mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    expect([mm.frames.usedCount, mm.counts.filePagesWritten, mm.counts.droppedPages]).toEqual([0, 1, 7]);
    expect([...file.stored!.subarray(pageBytes, pageBytes + 4)]).toEqual([1, 2, 3, 7]);
    const back = new Uint8Array(4);
    space.read(address + pageBytes, back);
    expect([...back]).toEqual([1, 2, 3, 7]);
  });

  it('swaps shared memory, and all mappings find it again', () => {
    const { mm, space } = small(8);
    const address = space.mapWith(4 * pageBytes, { isShared: true });
    const child = mm.newSpace();
    space.fork(child);
    for (let page = 0; page < 4; page++) space.write(address + page * pageBytes, contentOf(page));
    child.read(address, new Uint8Array(1));
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(10, 0);
    mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    expect(mm.frames.usedCount).toBe(0);
    const back = new Uint8Array(pageBytes);
    child.read(address + 2 * pageBytes, back);
    expect(back).toEqual(contentOf(2));
    for (const each of [space, child]) each.release();
    expect([mm.frames.usedCount, mm.swap.usedCount]).toEqual([0, 0]);
  });

  it('moves pages to make room for a run of frames, but no pinned ones', () => {
    const all = newTestMemory({}, 4 * 2048);
    const space = all.mm.newSpace();
    const address = space.map(1000 * pageBytes);
    for (let page = 0; page < 1000; page++) space.write(address + page * pageBytes, contentOf(page));
    const pin = space.pin(address, pageBytes);
    if (typeof pin === 'string') throw new Error(pin);
    // 2048 frames in four aligned runs of 512, a thousand in use at random: no run of 512 is free.
    expect(all.frames.allocateHuge()).toBe(-1);
    const charged = vi.spyOn(all.platform, 'charge');
    const huge = all.mm.allocateRun(512, 512);
    expect(huge % 512).toBe(0);
    const { migratedPages } = all.mm.counts;
    expect(migratedPages).toBeGreaterThan(100);
    // The processor copies each of them.
    const { copyPageCycles } = all.mm.config.paging;
    const copies = charged.mock.calls.filter((call: unknown[]) => call[1] === copyPageCycles);
    expect(copies).toHaveLength(migratedPages);
    expect(space.translate(address)).toBe(pin.pages[0]);
    const back = new Uint8Array(pageBytes);
    for (let page = 0; page < 1000; page++) {
      space.read(address + page * pageBytes, back);
      expect(Buffer.compare(back, contentOf(page))).toBe(0);
    }
    expect(hugePageBytes / pageBytes).toBe(512);
  });
});

describe('when nothing is left to reclaim', () => {
  it('the process with the most memory is killed and its memory reclaimed; the others are unaffected', () => {
    const { mm, platform, space } = small(0);
    const large = mm.newSpace();
    const there = large.map(150 * pageBytes);
    for (let page = 0; page < 150; page++) large.write(there + page * pageBytes, contentOf(page));
    const address = space.map(200 * pageBytes);
    for (let page = 0; page < 100; page++)
      expect(space.write(address + page * pageBytes, contentOf(page))).toBe(true);
    // 240 frames for users: at the 91st page the other process had more.
    expect(platform.killed).toEqual([large]);
    expect([large.isKilled, large.residentBytes, space.isKilled, mm.counts.oomKills]).toEqual([
      true,
      0,
      false,
      1,
    ]);
    const back = new Uint8Array(pageBytes);
    for (let page = 0; page < 100; page++) {
      space.read(address + page * pageBytes, back);
      expect(Buffer.compare(back, contentOf(page))).toBe(0);
    }
    expect(large.write(there, Uint8Array.of(1))).toBe(false);
  });

  it('the faulting process is killed when it is the largest itself', () => {
    const { platform, space } = small(0);
    const address = space.map(250 * pageBytes);
    let written = 0;
    while (space.write(address + written * pageBytes, Uint8Array.of(1))) written++;
    expect([written, space.isKilled, platform.killed]).toEqual([240, true, [space]]);
  });

  it('a full swap device is not the end while frames are free, and counts its refusals', () => {
    const { mm, platform, space } = small(1);
    // 256 slots and 240 frames for users: 496 pages fit, the next does not.
    const address = space.map(400 * pageBytes);
    const more = space.map(200 * pageBytes);
    for (let page = 0; page < 400; page++) space.write(address + page * pageBytes, contentOf(page));
    expect(platform.killed).toEqual([]);
    const back = new Uint8Array(pageBytes);
    for (let page = 0; page < 400; page++) {
      space.read(address + page * pageBytes, back);
      if (Buffer.compare(back, contentOf(page)) !== 0) throw new Error(`page ${page} differs`);
    }
    let written = 0;
    while (space.write(more + written * pageBytes, Uint8Array.of(1))) written++;
    expect(written).toBeLessThanOrEqual(96);
    expect([mm.counts.swapFullRefusals > 0, space.isKilled]).toEqual([true, true]);
  });

  it('the kernel gets ENOMEM', () => {
    const { mm, space } = small(0);
    const address = space.map(200 * pageBytes);
    for (let page = 0; page < 200; page++) space.write(address + page * pageBytes, Uint8Array.of(1));
    expect(mm.allocateRun(100)).toBe(-1);
    expect([space.isKilled, mm.counts.allocationFailures]).toEqual([false, 1]);
  });
});
