import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DmaDataPath } from './dma-data-path.ts';

describe('the data path', () => {
  it('is occupied for as many cycles as bytes fill its width, at least one, for any earlier lengths', () => {
    const lengths = fc.array(fc.nat(4096), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 128 }), lengths, (width, asked) => {
        const path = new DmaDataPath(width);
        for (const bytes of asked) {
          const cycles = Number((BigInt(bytes) + BigInt(width) - 1n) / BigInt(width));
          expect(path.cyclesOf(bytes)).toBe(Math.max(1, cycles));
          expect(path.cyclesOf(bytes)).toBe(Math.max(1, cycles));
        }
      }),
    );
  });
});
