import { describe, expect, it } from 'vitest';
import { hugePageBytes, pageBytes } from './page.ts';
import type { PinnedPages } from './pins.ts';
import { newTestMemory } from './testing.ts';

function family(parts: Parameters<typeof newTestMemory>[0] = {}) {
  const all = newTestMemory(parts);
  const parent = all.mm.newSpace();
  const byteOf = (space: typeof parent, address: number): number => {
    const bytes = new Uint8Array(1);
    if (!space.read(address, bytes)) throw new Error('not mapped');
    return bytes[0]!;
  };
  const fork = () => {
    const child = all.mm.newSpace();
    expect(parent.fork(child)).toBe(true);
    return child;
  };
  return { ...all, parent, byteOf, fork };
}

function pinned(answer: PinnedPages | string): PinnedPages {
  if (typeof answer === 'string') throw new Error(answer);
  return answer;
}

describe('fork', () => {
  it('Linux do_wp_page: shares pages until one process writes; the last user writes in place', () => {
    const { mm, frames, parent, byteOf, fork } = family();
    const address = parent.map(4 * pageBytes);
    parent.write(address, new Uint8Array(4 * pageBytes).fill(1));
    const child = fork();
    expect([frames.usedCount, child.residentBytes]).toEqual([4, 4 * pageBytes]);
    expect(child.translate(address)).toBe(parent.translate(address));
    parent.write(address, Uint8Array.of(2));
    expect([byteOf(parent, address), byteOf(child, address), frames.usedCount]).toEqual([2, 1, 5]);
    child.write(address, Uint8Array.of(3));
    expect([frames.usedCount, mm.counts.copiedPages, mm.counts.reusedPages]).toEqual([5, 1, 1]);
    expect([byteOf(parent, address), byteOf(child, address)]).toEqual([2, 3]);
  });

  it('makes a page that a child has left exclusive to its parent again', () => {
    const { mm, parent, fork } = family();
    const address = parent.map(pageBytes);
    parent.write(address, Uint8Array.of(1));
    const before = parent.translate(address);
    fork().release();
    parent.write(address, Uint8Array.of(2));
    expect([parent.translate(address), mm.counts.reusedPages, mm.counts.copiedPages]).toEqual([before, 1, 0]);
  });

  it('Linux 5.12: copies pinned pages at once, so that the parent keeps the frame that the device writes', () => {
    const { mm, memory, parent, byteOf, fork } = family();
    const address = parent.map(2 * pageBytes);
    parent.write(address, Uint8Array.of(1));
    const pin = pinned(parent.pin(address, pageBytes));
    const child = fork();
    expect(mm.counts.forkCopiedPages).toBe(1);
    parent.write(address, Uint8Array.of(2));
    expect(parent.translate(address)).toBe(pin.pages[0]);
    memory.bytes[pin.pages[0]! + 5] = 0x77;
    expect([byteOf(parent, address + 5), byteOf(child, address + 5), byteOf(child, address)]).toEqual([
      0x77, 0, 1,
    ]);
    parent.unpin(pin);
  });

  it('copies pinned huge pages, too', () => {
    const { mm, parent, fork } = family();
    const address = parent.map(hugePageBytes, hugePageBytes);
    const pin = pinned(parent.pin(address + 5 * pageBytes, 1));
    const child = fork();
    parent.write(address, Uint8Array.of(2));
    expect(parent.translate(address + 5 * pageBytes)).toBe(pin.pages[0]);
    expect([mm.counts.forkCopiedPages, child.residentBytes]).toEqual([512, hugePageBytes]);
    // No fault has copied a page.
    expect(mm.counts.copiedPages).toBe(0);
  });

  it('madvise(2): gives the child nothing of MADV_DONTFORK ranges, as ibv_fork_init does, until MADV_DOFORK', () => {
    const { parent, fork } = family();
    const address = parent.map(3 * pageBytes);
    parent.advise(address + pageBytes, pageBytes, 'dontFork');
    const child = fork();
    expect([0, 1, 2].map((page) => child.isMapped(address + page * pageBytes, 1))).toEqual([
      true,
      false,
      true,
    ]);
    parent.advise(address, 3 * pageBytes, 'doFork');
    expect(fork().isMapped(address, 3 * pageBytes)).toBe(true);
  });

  it('lets a pin of a shared page break the sharing first, also if the device only reads', () => {
    const { parent, byteOf, memory, fork } = family();
    const address = parent.map(pageBytes);
    parent.write(address, Uint8Array.of(1));
    const child = fork();
    const before = child.translate(address);
    const pin = pinned(parent.pin(address, 1, 'read'));
    expect(pin.pages[0]).not.toBe(before);
    parent.write(address, Uint8Array.of(9));
    expect([memory.bytes[pin.pages[0]!], byteOf(child, address)]).toEqual([9, 1]);
    parent.unpin(pin);
  });

  it('fails with ENOMEM if pinned pages cannot be copied, and leaves no trace of the child', () => {
    const { frames, parent, mm } = family({ paging: { minFreeKib: 1024 } });
    const address = parent.map(40 * 2 ** 20);
    const pin = pinned(parent.pin(address, 40 * 2 ** 20));
    const child = mm.newSpace();
    const used = frames.usedCount;
    expect(parent.fork(child)).toBe(false);
    expect([frames.usedCount, child.mappedBytes, child.residentBytes]).toEqual([used, 0, 0]);
    parent.unpin(pin);
    parent.release();
    expect(frames.usedCount).toBe(0);
  });

  it('shares pages in swap, which each of the two reads back', () => {
    const { mm, parent, byteOf, fork } = family({ swap: { sizeMib: 64 } });
    const address = parent.map(16 * pageBytes);
    for (let page = 0; page < 16; page++) parent.write(address + page * pageBytes, Uint8Array.of(page + 1));
    for (let round = 0; round < 4; round++) mm.reclaim.shrink(100, 0);
    mm.reclaim.completeWriteback(Number.POSITIVE_INFINITY);
    expect([parent.swappedPages, parent.residentBytes]).toEqual([16, 0]);
    const child = fork();
    child.write(address, Uint8Array.of(99));
    for (let page = 0; page < 16; page++) {
      expect(byteOf(parent, address + page * pageBytes)).toBe(page + 1);
      expect(byteOf(child, address + page * pageBytes)).toBe(page === 0 ? 99 : page + 1);
    }
    for (const each of [parent, child]) each.release();
    expect([mm.frames.usedCount, mm.swap.usedCount]).toEqual([0, 0]);
  });
});
