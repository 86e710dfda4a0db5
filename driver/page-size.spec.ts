import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { blockAddress, blockCountOf, type Frames, largestLogPageBytes } from './page-size.ts';

const listed = (pages: readonly number[]): Frames => ({ pages, pageCount: pages.length });
const frames = (...numbers: number[]): Frames => listed(numbers.map((frame) => frame * 4096));
const blockAddresses = (buffer: Frames, virtual: number, log: number): number[] =>
  Array.from({ length: blockCountOf(buffer, virtual, log) }, (_, at) =>
    blockAddress(buffer, virtual, log, at),
  );

describe('the page size of a translation', () => {
  it('is 4 KiB when frames are scattered', () => {
    expect(largestLogPageBytes(frames(0x10, 0x35, 0x22), 0)).toBe(12);
  });

  it('grows with contiguous frames that are arranged like their virtual pages', () => {
    // Four frames from 64 KiB on, for a buffer at virtual 16 KiB: both are aligned to 16 KiB, not to 32 KiB.
    expect(largestLogPageBytes(frames(16, 17, 18, 19), 4 * 4096)).toBe(14);
  });

  it('golden captures, observation 5: may begin before the buffer', () => {
    // i-srq-pingpong: 4 KiB at 0x55e865fa3000 with an 8 KiB page whose entry is 0x3f08000: the frame was 0x3f09000, its second
    // half.
    const virtual = 0x55e8_65fa_3000;
    expect(largestLogPageBytes(frames(0x3f09), virtual)).toBe(13);
    expect(blockAddresses(frames(0x3f09), virtual, 13)).toEqual([0x3f0_8000]);
  });

  it('mlx4_ib, MLX4_MAX_MTT_SHIFT: never exceeds 2 GiB', () => {
    expect(largestLogPageBytes(frames(0), 0)).toBe(31);
  });

  it('for memory that repeats equals that of the pages written out, and so do the blocks', () => {
    const stretch = fc.array(fc.nat(5000), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(stretch, fc.integer({ min: 1, max: 40 }), fc.nat(100), (numbers, pageCount, firstPage) => {
        const pages = numbers.map((frame) => frame * 4096);
        const whole = listed(Array.from({ length: pageCount }, (_, at) => pages[at % pages.length]!));
        const [virtual, repeated] = [firstPage * 4096, { pages, pageCount }];
        const log = largestLogPageBytes(whole, virtual);
        expect(largestLogPageBytes(repeated, virtual)).toBe(log);
        expect(blockAddresses(repeated, virtual, log)).toEqual(blockAddresses(whole, virtual, log));
      }),
    );
  });

  it('translates every byte to its own frame, for any frames and any address', () => {
    const run = fc.record({ start: fc.nat(5000), length: fc.integer({ min: 1, max: 20 }) });
    fc.assert(
      fc.property(fc.array(run, { minLength: 1, maxLength: 6 }), fc.nat(10_000), (runs, firstPage) => {
        const list = runs.flatMap(({ start, length }) =>
          Array.from({ length }, (_, at) => (start + at) * 4096),
        );
        const virtual = firstPage * 4096;
        const log = largestLogPageBytes(listed(list), virtual);
        const blocks = blockAddresses(listed(list), virtual, log);
        const size = 2 ** log;
        const firstBlock = Math.floor(virtual / size);
        for (const [at, frame] of list.entries()) {
          const address = virtual + at * 4096;
          const block = blocks[Math.floor(address / size) - firstBlock]!;
          expect(block + (address % size)).toBe(frame);
        }
        expect(blocks.length).toBe(Math.floor((virtual + (list.length - 1) * 4096) / size) - firstBlock + 1);
      }),
      { numRuns: 300 },
    );
  });
});
