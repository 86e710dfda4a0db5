import { describe, expect, test } from 'vitest';
import { DeclarationError } from './assert.ts';
import {
  fieldInDword,
  fieldOf,
  foreignRegister,
  type RegisterFields,
  register,
  registerBank,
  registerBits,
  wholeRegister,
  withField,
} from './registers.ts';

const window = { sizeBytes: 0x100, source: 'test' } as const;
const go = registerBits(23, 23, 'rw', '', 1);

const bank = registerBank('window', window, {
  status: wholeRegister(0x00, 4, 'ro', 'first'),
  command: register(0x10, 4, 'second', { go, opcode: registerBits(11, 0, 'rw') }),
  narrow: wholeRegister(0x16, 1, 'rw', 'third'),
});

describe('a register bank', () => {
  test('finds the register that holds a byte', () => {
    expect(bank.nameAt(0x13)).toBe('command');
    expect(bank.nameAt(0x14)).toBeUndefined();
  });

  test('reads and replaces fields', () => {
    expect(fieldOf(0x00ff_ffff, go)).toBe(1);
    expect(withField(0xffff_ffff, go, 0)).toBe(0xff7f_ffff);
    expect(withField(0, registerBits(31, 0, 'rw'), 0xdead_beef)).toBe(0xdead_beef);
    expect(fieldOf(0xdead_beef, registerBits(31, 0, 'rw'))).toBe(0xdead_beef);
  });

  test('sees a narrow register through the dword around it', () => {
    const { narrow } = bank.registers;
    expect(fieldOf(0x12ab_3456, fieldInDword(narrow, narrow.fields.value))).toBe(0xab);
  });
});

describe('loading a bank rejects', () => {
  const field = registerBits(3, 0, 'rw');
  const one = (sizeBytes: number, fields: RegisterFields) => ({ a: register(0, sizeBytes, '', fields) });
  test.each([
    ['overlap', { a: foreignRegister(0, 4, ''), b: foreignRegister(3, 1, '') }],
    ['an offset that is not aligned', { a: foreignRegister(1, 2, '') }],
    ['descending offsets', { a: foreignRegister(8, 4, ''), b: foreignRegister(0, 4, '') }],
    ['a register over the end', { a: foreignRegister(0xfc, 8, '') }],
    ['three bytes', { a: foreignRegister(0, 3, '') }],
    ['six bytes', { a: foreignRegister(0, 6, '') }],
    ['a reset value too wide for its field', one(4, { f: registerBits(1, 0, 'rw', '', 4) })],
    ['a field beyond the register', one(2, { f: registerBits(16, 0, 'rw') })],
    ['bits upside down', one(4, { f: registerBits(0, 1, 'rw') })],
    ['two fields on one bit', one(4, { field, g: registerBits(3, 3, 'rw') })],
  ])('%s', (_, registers) => {
    expect(() => registerBank('broken', window, registers)).toThrow(DeclarationError);
  });
});
