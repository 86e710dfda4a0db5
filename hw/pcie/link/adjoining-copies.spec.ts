import { describe, expect, it } from 'vitest';
import { AdjoiningCopies } from './adjoining-copies.ts';

describe('adjacent copies', () => {
  it('are one copy, from the first to the last', () => {
    const copies = new AdjoiningCopies();
    copies.add(0x1000, 64, 256);
    expect(copies.adjoin(0x1100, 320)).toBe(true);
    copies.add(0x1100, 320, 128);
    expect(copies).toMatchObject({ count: 2, address: 0x1000, place: 64, lengthBytes: 384 });
  });

  it('are adjacent at both ends, or not at all', () => {
    const copies = new AdjoiningCopies();
    expect(copies.adjoin(0, 0)).toBe(false);
    copies.add(0x1000, 64, 256);
    expect(copies.adjoin(0x1100, 321)).toBe(false);
    expect(copies.adjoin(0x1101, 320)).toBe(false);
    expect(copies.adjoin(0x1000, 64)).toBe(false);
  });

  it('restart once they are done', () => {
    const copies = new AdjoiningCopies();
    copies.add(0x1000, 64, 256);
    copies.clear();
    expect(copies.adjoin(0x1100, 320)).toBe(false);
    copies.add(8, 0, 16);
    expect(copies).toMatchObject({ count: 1, address: 8, place: 0, lengthBytes: 16 });
  });
});
