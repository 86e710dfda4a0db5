import { describe, expect, it } from 'vitest';
import { FrameTable } from './frame-table.ts';

describe('a table of frames', () => {
  it('has the number of each frame that was written, and the initial one of every other', () => {
    const table = new FrameTable(-1);
    const frames = [0, 4095, 4096, 5000, 2 ** 20 - 1];
    for (const frame of frames) table.set(frame, frame + 7);
    expect(frames.map((frame) => table.of(frame))).toEqual(frames.map((frame) => frame + 7));
    expect([1, 4097, 4999, 5001, 2 ** 20].map((frame) => table.of(frame))).toEqual([-1, -1, -1, -1, -1]);
    table.set(5000, 0);
    expect(table.of(5000)).toBe(0);
  });

  it('keeps numbers of more than 32 bits if created for them', () => {
    const table = new FrameTable(0, Float64Array);
    table.set(3, 2 ** 47 - 4096);
    table.set(70_000, 2 ** 46);
    expect([3, 4, 70_000].map((frame) => table.of(frame))).toEqual([2 ** 47 - 4096, 0, 2 ** 46]);
  });
});
