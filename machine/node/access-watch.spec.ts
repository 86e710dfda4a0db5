import { describe, expect, it } from 'vitest';
import { PageFrames } from '../../host/index.ts';
import { PhysicalMemory } from '../../host/physical-memory.ts';
import { AccessWatch } from './access-watch.ts';

const mib = 2 ** 20;
const page = 4096;

/** Memory in which frames marked as movable belong to a process. */
function scene(options: { readonly hasOnDemandRegions?: boolean } = {}) {
  const memory = new PhysicalMemory(64 * mib);
  const frames = new PageFrames(memory, mib);
  const movable = new Set<number>();
  const watch = new AccessWatch(memory, () => 77);
  watch.ownership = {
    frames,
    isMovable: (frame) => movable.has(frame),
    hasOnDemandRegions: () => options.hasOnDemandRegions ?? false,
  };
  const read = (address: number, lengthBytes: number): boolean =>
    watch.readInto(address, lengthBytes, new Uint8Array(lengthBytes), 0);
  return { memory, frames, movable, watch, read };
}

describe('the watch of accesses', () => {
  it('reports a read and a write of a frame without an owner, and lets them happen', () => {
    const { watch, memory, read } = scene();
    const address = 2 * mib + 8;
    expect(watch.write(address, 4, Uint8Array.of(1, 2, 3, 4), 0)).toBe(true);
    expect(read(address, 4)).toBe(true);
    expect([...memory.bytes.subarray(address, address + 4)]).toEqual([1, 2, 3, 4]);
    const found = { atPs: 77, address, lengthBytes: 4, frame: 'free' };
    expect(watch.unowned).toEqual([
      { ...found, access: 'write' },
      { ...found, access: 'read' },
    ]);
    expect(watch.unownedCount).toBe(2);
  });

  it('reports nothing in kernel memory and in pinned pages, and in a process’s other pages only unpinned ones', () => {
    const { watch, frames, movable, read } = scene();
    const [kernel, user] = [frames.allocate(), frames.allocate()];
    movable.add(user);
    read(kernel * page, 64);
    frames.pin(user);
    read(user * page, 64);
    expect(watch.unownedCount).toBe(0);
    frames.unpin(user);
    read(user * page, 64);
    expect(watch.unowned).toMatchObject([{ address: user * page, frame: 'unpinned' }]);
  });

  it('checks every frame of an access, and requires no pins if regions are on demand', () => {
    const crossing = scene();
    const first = crossing.frames.allocate();
    crossing.read(first * page + page - 4, 8);
    expect(crossing.watch.unowned).toMatchObject([{ frame: 'free' }]);
    const onDemand = scene({ hasOnDemandRegions: true });
    const user = onDemand.frames.allocate();
    onDemand.movable.add(user);
    onDemand.read(user * page, 8);
    expect(onDemand.watch.unownedCount).toBe(0);
  });
});
