import { describe, expect, it } from 'vitest';
import { GuestSymbols } from './guest-symbols.ts';

const kernel = [
  { address: 0xc100_0000, name: '_stext' },
  { address: 0xc100_0000, name: 'startup_32' },
  { address: 0xc100_0100, name: 'schedule' },
  { address: 0xc100_0200, name: '_etext' },
  { address: 0xc180_0000, name: '_sinittext' },
  { address: 0xc180_0080, name: '_einittext' },
];
/** As a Debian guest printed them. */
const modulesText = [
  'mlx4_ib 172032 0 - Live 0xcc9fa000 (E)',
  'mlx4_core 8192 2 mlx4_en,mlx4_ib, Live 0xcc8ab000 (E)',
  '/sys/module/mlx4_core/sections/.init.text:0xcc8ed000',
  '/sys/module/mlx4_core/sections/.text:0xcc8ab010',
].join('\r\n');
const nameAt = (symbols: GuestSymbols, address: number): string => {
  const { module, name } = symbols.at(address);
  return `${module} ${name}`;
};

describe('the names of a running kernel', () => {
  const symbols = new GuestSymbols(kernel, modulesText, () => undefined);

  it('are those of the last function that begins at or before an address, by its first name', () => {
    expect(nameAt(symbols, 0xc100_0000)).toBe('kernel _stext');
    expect(nameAt(symbols, 0xc100_00ff)).toBe('kernel _stext');
    expect(nameAt(symbols, 0xc100_0100)).toBe('kernel schedule');
    expect(nameAt(symbols, 0xc180_007f)).toBe('kernel _sinittext');
  });

  it('end with the text', () => {
    for (const address of [0xc0ff_ffff, 0xc100_0200, 0xc17f_ffff, 0xc180_0080, 0xffff_ffff, 0])
      expect(nameAt(symbols, address)).toBe('undefined undefined');
  });

  it('contain only the sections of modules whose file is absent', () => {
    expect(nameAt(symbols, 0xcc8a_b000)).toBe('mlx4_core undefined');
    expect(nameAt(symbols, 0xcc8a_cfff)).toBe('mlx4_core undefined');
    expect(nameAt(symbols, 0xcc8a_d000)).toBe('undefined undefined');
    expect(nameAt(symbols, 0xcc9f_a000)).toBe('mlx4_ib undefined');
  });

  it('are none of modules if the guest was not asked', () => {
    const alone = new GuestSymbols(kernel, undefined, () => undefined);
    expect(nameAt(alone, 0xcc8a_b000)).toBe('undefined undefined');
    expect(nameAt(alone, 0xc100_0100)).toBe('kernel schedule');
  });
});
