import { describe, expect, it } from 'vitest';
import { mib } from '../../base/units.ts';
import { Random } from '../../sim/random.ts';
import { PhysicalMemory } from '../physical-memory.ts';
import { pageBytes } from './page.ts';
import { type FramePlaces, PageFrames } from './page-frames.ts';

const newFrames = (places?: FramePlaces) => {
  const memory = new PhysicalMemory(mib(64));
  return { memory, frames: new PageFrames(memory, mib(1), places) };
};
/** 64 MiB minus 1 MiB, in frames of 4 KiB. */
const frameCount = 63 * 256;

describe('page frames', () => {
  it('are present when they are handed out, even if memory had not grown so far', () => {
    const memory = new PhysicalMemory(mib(64), mib(1));
    const frames = new PageFrames(memory, mib(2));
    expect(memory.bytes.length).toBe(mib(2));
    const last = frames.allocateRun(mib(32) / 4096) + mib(32) / 4096 - 1;
    expect(memory.bytes.length).toBeGreaterThanOrEqual((last + 1) * 4096);
    expect(memory.bytes.length).toBeLessThan(mib(64));
  });

  it('are handed out consecutively, and never from low memory', () => {
    const { frames } = newFrames();
    expect([frames.allocate(), frames.allocate(), frames.allocateRun(3), frames.allocate()]).toEqual([
      256, 257, 258, 261,
    ]);
    expect(frames.usedCount).toBe(6);
    expect(frames.freeCount).toBe(frameCount - 6);
  });

  it('are exhausted with an answer, not an error, and none is lost', () => {
    const { frames } = newFrames();
    const taken = new Set<number>();
    for (let frame = frames.allocate(); frame >= 0; frame = frames.allocate()) taken.add(frame);
    expect(taken.size).toBe(frameCount);
    expect(frames.allocateRun(1)).toBe(-1);
    frames.release(1000);
    frames.release(1002);
    expect(frames.allocateRun(2)).toBe(-1);
    frames.release(1001);
    expect(frames.allocateRun(3)).toBe(1000);
    for (const frame of taken) frames.release(frame);
    expect(frames.usedCount).toBe(0);
  });

  it('include a contiguous run after an obstacle, and an aligned one for a huge page', () => {
    const { frames } = newFrames();
    frames.allocate();
    // The first multiple of 512 past frame 257.
    expect(frames.allocateHuge()).toBe(512);
    expect(frames.allocateRun(100)).toBe(1024);
    expect(frames.allocateRun(frameCount - 1 - 512 - 100)).toBe(-1);
  });

  it('are handed out zeroed', () => {
    const { memory, frames } = newFrames();
    const frame = frames.allocate();
    memory.bytes.fill(0xaa, frame * pageBytes, (frame + 1) * pageBytes);
    frames.release(frame);
    const all = frames.allocateRun(frameCount);
    expect(all).toBe(256);
    expect(
      memory.bytes.subarray(frame * pageBytes, (frame + 1) * pageBytes).every((byte) => byte === 0),
    ).toBe(true);
  });

  it('are scattered by the random numbers, each once', () => {
    const { frames } = newFrames(new Random(7));
    const taken = Array.from({ length: 1000 }, () => frames.allocate());
    expect(new Set(taken).size).toBe(1000);
    const adjacent = taken.filter((frame, index) => index > 0 && frame === taken[index - 1]! + 1).length;
    expect(adjacent).toBeLessThan(20);
  });

  it('stay in use while they are pinned, and reveal an excess unpin', () => {
    const { frames } = newFrames();
    const frame = frames.allocate();
    frames.pin(frame);
    frames.pin(frame);
    frames.release(frame);
    expect([frames.referencesOf(frame), frames.pinsOf(frame), frames.usedCount]).toEqual([2, 2, 1]);
    frames.unpin(frame);
    expect(frames.usedFrames()).toEqual([frame]);
    frames.unpin(frame);
    expect(frames.usedFrames()).toEqual([]);
    expect(() => frames.unpin(frame)).toThrow(/pins of frame 256 is 0, expected at least 1/);
    expect(() => frames.release(frame)).toThrow(/references of frame 256 is 0/);
    expect(() => frames.release(0)).toThrow(/references of frame 0/);
  });

  it('do not let a release take the reference of a pin', () => {
    const { frames } = newFrames();
    const frame = frames.allocate();
    frames.pin(frame);
    frames.release(frame);
    expect(() => frames.release(frame)).toThrow(/keeps a reference for each of its pins/);
  });

  it('are withheld permanently where devices reach no memory', () => {
    const { frames } = newFrames();
    frames.withhold(mib(2), pageBytes * 2);
    expect(frames.usedCount).toBe(0);
    expect(frames.freeCount).toBe(frameCount - 2);
    // Frames 256 to 511 lie below the hole, 512 and 513 are the hole.
    expect(frames.allocateRun(frameCount - 258)).toBe(514);
  });
});
