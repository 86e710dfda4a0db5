/** The gateway at 0x58 and 0x5c of configuration space, used as mstflint does (mtcr_ul/mtcr_ul_com.c, mtcr_pciconf_mread4_old). */
import { describe, expect, it } from 'vitest';
import { functionBench } from './function-bench.ts';

const address = 0x58;
const data = 0x5c;
const bench = () => functionBench({}, {}, address);

describe('the gateway from configuration space into BAR0', () => {
  it('mstflint mtcr_ul: reads the dword at the address as a number, with or without memory space enabled', () => {
    const given = bench();
    given.software.setConfig(address, 4, 0xf0014);
    expect(given.software.config(address)).toBe(0xf0014); // so that mstflint does not consider it write-only
    // The bytes there are a4 to a7, in memory order; registers of BAR0 are big-endian.
    expect(given.software.config(data)).toBe(0xa4a5_a6a7);
    expect(given.target.reads).toMatchObject([{ bar: 0, offset: 0xf0014 }]);
  });

  it('reads each byte of the data register by one access of the dword', () => {
    const given = bench();
    given.software.setConfig(address, 4, 0x8000);
    expect([0, 1, 2, 3].map((byte) => given.software.config(data + byte, 1))).toEqual([
      0xa3, 0xa2, 0xa1, 0xa0,
    ]);
    expect(given.software.config(data + 2, 2)).toBe(0xa0a1);
    expect(given.target.reads).toHaveLength(5);
  });

  it('mstflint mtcr_ul: stores a dword, and nothing on an access of fewer bytes', () => {
    const given = bench();
    given.software.setConfig(address, 4, 0xf03fc);
    given.software.setConfig(data, 4, 0x0102_0304);
    given.software.setConfig(data, 1, 0xff);
    expect(given.target.writes).toMatchObject([{ bar: 0, offset: 0xf03fc, bytes: [1, 2, 3, 4] }]);
  });

  it.each([
    ['beyond BAR0', 0x10_0000],
    ['at the MSI-X table', 0x7c000],
    ['at the pending bits', 0x7d000],
  ])('reads zero %s', (_where, place) => {
    const given = bench();
    given.software.setConfig(address, 4, place);
    expect(given.software.config(data)).toBe(0);
    given.software.setConfig(data, 4, 1);
    expect([given.target.reads, given.target.writes]).toEqual([[], []]);
  });

  it('does not exist on a function without one', () => {
    const given = functionBench();
    given.software.setConfig(address, 4, 0xf0014);
    expect([given.software.config(address), given.software.config(data), given.target.reads]).toEqual([
      0,
      0,
      [],
    ]);
  });
});
