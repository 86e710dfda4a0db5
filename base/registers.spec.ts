import { describe, expect, test } from 'vitest';
import { DeclarationError } from './assert.ts';
import { fieldOf, register, registerBits, registerMap, withField } from './registers.ts';

const window = { sizeBytes: 0x100, source: 'test' } as const;
const go = registerBits(23, 23);

const map = registerMap('window', window, {
  status: register(0x00, 4, 'ro', 'first'),
  command: register(0x10, 4, 'rw', 'second', 0x0080_0000, { go, opcode: registerBits(11, 0) }),
});

describe('a register map', () => {
  test('finds the register that holds a byte', () => {
    expect(map.nameAt(0x13)).toBe('command');
    expect(map.nameAt(0x14)).toBeUndefined();
  });

  test('reads and replaces fields', () => {
    const { command } = map.registers;
    expect(fieldOf(command.resetValue, go)).toBe(1);
    expect(withField(0xffff_ffff, go, 0)).toBe(0xff7f_ffff);
    expect(withField(0, registerBits(31, 0), 0xdead_beef)).toBe(0xdead_beef);
  });

  test.each([
    ['overlap', { a: register(0, 4, 'rw', ''), b: register(3, 4, 'rw', '') }],
    ['descending offsets', { a: register(8, 4, 'rw', ''), b: register(0, 4, 'rw', '') }],
    ['a register over the end', { a: register(0xfe, 4, 'rw', '') }],
    ['a reset value too wide', { a: register(0, 1, 'rw', '', 0x100) }],
    ['a field beyond the register', { a: register(0, 1, 'rw', '', 0, { f: registerBits(8, 8) }) }],
    [
      'two fields on one bit',
      { a: register(0, 4, 'rw', '', 0, { f: registerBits(3, 0), g: registerBits(3, 3) }) },
    ],
  ])('refuses %s when it is loaded', (_, registers) => {
    expect(() => registerMap('broken', window, registers)).toThrow(DeclarationError);
  });
});
