import { describe, expect, it } from 'vitest';
import { PageTables } from './page-tables.ts';

const userEnd = 0xc000_0000;
const searchBytes = 8 * 2 ** 20;
const present = 1;

/** 64 KiB of memory with these 32-bit words, and the first byte of each page its number. */
function memoryWith(words: Readonly<Record<number, number>>): Uint8Array {
  const memory = new Uint8Array(0x1_0000);
  for (let page = 0; page < 16; page++) memory[page * 4096] = page;
  const view = new DataView(memory.buffer);
  for (const [address, value] of Object.entries(words)) view.setUint32(Number(address), value, true);
  return memory;
}

const pageAt = (tables: PageTables, limit = userEnd): number | undefined =>
  tables.highestPageBelow(limit, searchBytes)?.[0];

describe('the highest page below an address', () => {
  it('is found in tables of two levels (SDM 3A, 5.3)', () => {
    // 0xbfc00000 … is entry 767 of the directory; 0xbffde000 is entry 0x3de of its table.
    const memory = memoryWith({
      [0x1000 + 4 * 767]: 0x2000 | present,
      [0x2000 + 4 * 0x3de]: 0x7000 | present,
      [0x2000 + 4 * 0x3dd]: 0x6000 | present,
    });
    expect(pageAt(new PageTables(memory, 0x1018, false))).toBe(7);
    expect(pageAt(new PageTables(memory, 0x1018, false), 0xbffd_e000)).toBe(6);
  });

  it('is found in tables of three levels (SDM 3A, 5.4), whose address is a multiple of 32', () => {
    // 0xbfa00000 … is entry 509 of directory 2; 0xbfbff000 is entry 511 of its table.
    const memory = memoryWith({
      [0x1020 + 8 * 2]: 0x2000 | present,
      [0x2000 + 8 * 509]: 0x3000 | present,
      [0x3000 + 8 * 511]: 0x5000 | present,
    });
    expect(pageAt(new PageTables(memory, 0x1020, true))).toBe(5);
  });

  it('may be within a large page', () => {
    // Entry 767 maps 4 MiB from 0: its last page is beyond memory, the 16th from its beginning is not.
    const memory = memoryWith({ [0x1000 + 4 * 767]: 0x80 | present });
    expect(pageAt(new PageTables(memory, 0x1000, false), 0xbfc0_d000)).toBe(12);
  });

  it('is not searched for further below, and is none of a directory outside of memory', () => {
    const memory = memoryWith({ [0x1000 + 4 * 764]: 0x2000 | present, [0x2000]: 0x7000 | present });
    expect(pageAt(new PageTables(memory, 0x1000, false))).toBeUndefined();
    expect(pageAt(new PageTables(memory, 0xff_f000, false))).toBeUndefined();
  });
});

describe('bytes at a linear address', () => {
  it('are read across pages, and not where one is absent', () => {
    const memory = memoryWith({
      [0x1000]: 0x2000 | present,
      [0x2000 + 4 * 5]: 0x7000 | present,
      [0x2000 + 4 * 6]: 0x3000 | present,
      [0x7ffc]: 0x0403_0201,
    });
    const tables = new PageTables(memory, 0x1000, false);
    expect([...tables.bytesAt(0x5ffe, 3)!]).toEqual([3, 4, 3]);
    expect(tables.bytesAt(0x6ffe, 3)).toBeUndefined();
  });
});
