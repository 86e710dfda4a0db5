import { describe, expect, expectTypeOf, test } from 'vitest';
import { ConfigurationError } from './assert.ts';
import { type PlacedBank, RegisterFile, type RegisterHooks } from './register-file.ts';
import {
  foreignRegister,
  keptByFunctionLevelReset,
  register,
  registerBank,
  registerBits,
  sticky,
  wholeRegister,
} from './registers.ts';
import { accessMistakes } from './testing/register-access.ts';

const bank = registerBank(
  'sample',
  { sizeBytes: 0x40, source: 'test' },
  {
    mixed: register(0x00, 4, 'one field of each kind', {
      ro: registerBits(3, 0, 'ro', '', 5),
      rw: registerBits(7, 4, 'rw', '', 0xa),
      wo: registerBits(11, 8, 'wo'),
      w1c: registerBits(15, 12, 'w1c', '', 0xf),
      w1s: registerBits(19, 16, 'w1s'),
      hwInit: registerBits(23, 20, 'hwInit'),
    }),
    low: wholeRegister(0x04, 2, 'rw', 'shares a dword'),
    high: wholeRegister(0x06, 1, 'ro', 'shares a dword', 0x77),
    counter: register(0x08, 4, 'cleared by a read', {
      count: registerBits(15, 0, 'rc', '', 7),
      causes: registerBits(31, 16, 'rcW1c', '', 0xff),
    }),
    semaphore: register(0x0c, 4, 'any write releases', { isHeld: registerBits(0, 0, 'ra') }),
    owner: register(0x10, 4, 'a write of 0 releases', { isOwned: registerBits(0, 0, 'raZero') }),
    kept: register(0x14, 4, 'outlives resets', {
      sticky: sticky(registerBits(3, 0, 'rw')),
      link: keptByFunctionLevelReset(registerBits(7, 4, 'rw')),
      plain: registerBits(11, 8, 'rw', '', 1),
    }),
    list: wholeRegister(0x20, 8, 'rw', 'two dwords'),
    fixed: wholeRegister(0x28, 4, 'ro', 'nothing to write'),
    other: foreignRegister(0x30, 8, 'of another block'),
  },
);

type Registers = typeof bank.registers;

function placed(hooks: RegisterHooks<Registers> = {}): {
  file: RegisterFile;
  registers: PlacedBank<Registers>;
} {
  const file = new RegisterFile(0x80);
  return { file, registers: file.place(bank, 0, hooks) };
}

describe('software', () => {
  test('finds every access as declared, by writing ones and zeros', async () => {
    const { file } = placed();
    const bus = {
      read: (offset: number) => file.read(offset, 4),
      write: (offset: number, value: number) => {
        file.write(offset, 4, value);
      },
    };
    expect(await accessMistakes(bank.registers, bus)).toEqual([]);
  });

  test('changes what it may write, clears and sets by ones, and never reads write-only fields', () => {
    const { file } = placed();
    // ro 5, rw a, wo reads 0, w1c f, w1s 0.
    expect(file.read(0x00, 4)).toBe(0x0000_f0a5);
    // Ones to one bit of each: rw becomes 1, w1c clears bit 12, w1s sets bit 16.
    file.write(0x00, 4, 0x0011_1111);
    expect(file.read(0x00, 4)).toBe(0x0001_e015);
    file.write(0x00, 4, 0);
    expect(file.read(0x00, 4)).toBe(0x0001_e005);
  });

  test('writes only the bytes that it enables', () => {
    const { file } = placed();
    file.write(0x05, 1, 0xff);
    expect(file.read(0x04, 4)).toBe(0x0077_ff00);
    expect(file.read(0x05, 1)).toBe(0xff);
    expect(file.read(0x06, 2)).toBe(0x0077);
  });

  test('clears by reading', () => {
    const { file } = placed();
    expect(file.read(0x08, 4)).toBe(0x00ff_0007);
    expect(file.read(0x08, 4)).toBe(0);
    file.reset();
    file.write(0x08, 4, 0x0001_0001);
    expect(file.read(0x08, 4)).toBe(0x00fe_0007);
  });

  test('acquires by the read that finds 0, and releases by any write, or by one of 0', () => {
    const { file } = placed();
    expect([file.read(0x0c, 4), file.read(0x0c, 4)]).toEqual([0, 1]);
    file.write(0x0c, 4, 5);
    expect([file.read(0x0c, 4), file.read(0x10, 4), file.read(0x10, 4)]).toEqual([0, 0, 1]);
    file.write(0x10, 4, 4);
    expect(file.read(0x10, 4)).toBe(1);
    file.write(0x10, 4, 0);
    expect(file.read(0x10, 4)).toBe(0);
  });

  test('acquires nothing by a read that shows it taken', () => {
    const { file } = placed({ semaphore: { read: () => 1 } });
    expect(file.read(0x0c, 4)).toBe(1);
    expect(file.stored(0x0c, 4)).toBe(0);
  });

  test('reports the result of a write', () => {
    const { file } = placed();
    expect([0x20, 0x28, 0x30, 0x3c].map((offset) => file.write(offset, 4, 1))).toEqual([
      'written',
      'refused',
      'unclaimed',
      'unclaimed',
    ]);
    expect([0x24, 0x30].map((offset) => file.isClaimed(offset))).toEqual([true, false]);
  });
});

describe('hooks', () => {
  test('receive the bits written to writable fields, and return the values of readable ones', () => {
    const heard: number[][] = [];
    const { file } = placed({
      mixed: {
        read: () => 0xffff_ffff,
        write: (written, at, cycle) => heard.push([written, at, cycle]),
      },
      list: { read: (stored, at, cycle) => stored + at + cycle },
    });
    file.write(0x00, 4, 0xffff_ffff, 9);
    // rw, wo, w1c and w1s: bits 19:4.
    expect(heard).toEqual([[0x000f_fff0, 0, 9]]);
    expect(file.read(0x00, 4)).toBe(0x00ff_f0ff);
    file.write(0x24, 4, 100);
    expect(file.read(0x24, 4, 3)).toBe(107);
  });

  test('that the access can never call do not type-check', () => {
    expectTypeOf<{ write(): void }>().not.toMatchTypeOf<NonNullable<RegisterHooks<Registers>['fixed']>>();
    expectTypeOf<{ read(): number }>().toMatchTypeOf<NonNullable<RegisterHooks<Registers>['fixed']>>();
  });
});

describe('hardware', () => {
  test('sets and gets fields regardless of software’s access', () => {
    const { file, registers } = placed();
    registers.set('mixed', 'ro', 2);
    registers.setBits('low', 0x8001);
    expect([registers.get('mixed', 'ro'), registers.value('low'), registers.value('high')]).toEqual([
      2, 0x8001, 0x77,
    ]);
    expect(file.read(0x04, 4)).toBe(0x0077_8001);
  });

  test('initialises for every reset, with values that fit', () => {
    const { file, registers } = placed();
    registers.initialise('mixed', 'hwInit', 3);
    registers.set('mixed', 'hwInit', 1);
    file.reset();
    expect(registers.get('mixed', 'hwInit')).toBe(3);
    expect(() => registers.initialise('mixed', 'hwInit', 16)).toThrow(ConfigurationError);
  });

  test('removes a field from software', () => {
    const { file, registers } = placed();
    registers.forbidWrites('mixed', 'rw');
    file.write(0x00, 4, 0);
    expect(registers.get('mixed', 'rw')).toBe(0xa);
  });
});

test('a reset keeps fields that survive it', () => {
  const { file } = placed();
  const after = (kind: Parameters<RegisterFile['reset']>[0]): number => {
    file.write(0x14, 4, 0x333);
    file.reset(kind);
    return file.read(0x14, 4);
  };
  expect([after('functionLevel'), after('hot'), after('fundamental')]).toEqual([0x133, 0x103, 0x100]);
});

test('banks do not overlap, and fit the file', () => {
  const { file } = placed();
  expect(() => file.place(bank, 0x20)).toThrow(ConfigurationError);
  expect(() => file.place(bank, 0x44)).toThrow(ConfigurationError);
  expect(() => file.place(bank, 0x42)).toThrow(ConfigurationError);
  expect(file.place(bank, 0x40).offsetOf('low')).toBe(0x44);
});
