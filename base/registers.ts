/**
 * Registers, declared once. A register is a small layout: its fields are fields of the layout language (`layout-field.ts`), and
 * each also declares its access by software, its value after reset, and the resets that it survives.
 *
 *     export const systemDmaPorts = registerBank('system DMA controller', { sizeBytes: 0xa0, source: '8237A data sheet' }, {
 *       command: register(0x80, 4, 'COMMAND', { enable: registerBits(0, 0, 'rw', 'the controller works') }),
 *       request: wholeRegister(0x88, 4, 'wo', 'bits 3:0 request channels'),
 *     });
 *
 * A bank is data. It declares what a register is, never its effect: that is a hook of the owning block. `register-file.ts`
 * implements the declared behaviour: which bits are stored, refused, cleared and reset. Bits that no field claims are reserved:
 * they read zero and ignore writes. Loading a bank checks it; a mistake throws a DeclarationError at import.
 */
import { DeclarationError } from './assert.ts';
import { immutable } from './immutable.ts';
import { checkTable } from './layout-check.ts';
import type { BitRange, NumberField } from './layout-field.ts';

/**
 * Access of software to a field:
 *
 * - `ro` read only · `hwInit` the same, its value set while the machine is built · `rw` both
 * - `wo` write only, reads as zero · `w1c` reads, and writing ones clears · `w1s` reads, and writing ones sets
 * - `rc` a read clears · `rcW1c` a read or writing ones clears
 * - `ra` a read of 0 acquires (a semaphore), any write releases · `raZero` the same, only a write of 0 releases
 */
export type RegisterAccess = 'ro' | 'hwInit' | 'rw' | 'wo' | 'w1c' | 'w1s' | 'rc' | 'rcW1c' | 'ra' | 'raZero';

/**
 * The depths of reset: `fundamental` (power-on) initialises everything, `hot` keeps sticky fields, `functionLevel` also keeps
 * the fields that control the link. Source: PCI Express Base Specification 3.1, 6.6.
 */
export type ResetKind = 'fundamental' | 'hot' | 'functionLevel';

/** Bits [high:low] of a register, or of each dword of a longer one. */
export interface RegisterField<A extends RegisterAccess = RegisterAccess> extends NumberField {
  readonly pieces: readonly [BitRange];
  readonly low: number;
  /** The field's bits in its register, unsigned. */
  readonly mask: number;
  readonly access: A;
  readonly resetValue: number;
  /** The deepest reset that does not change the field. */
  readonly survives: 'none' | 'functionLevel' | 'hot';
}

export type RegisterFields = Readonly<Record<string, RegisterField>>;

export interface Register<F extends RegisterFields = RegisterFields> {
  /** Byte offset in the bank. */
  readonly offset: number;
  /** 1, 2, 4, or a multiple of 4: as many dwords of the same fields. */
  readonly sizeBytes: number;
  readonly meaning: string;
  readonly fields: F;
}

export type RegisterTable = Readonly<Record<string, Register>>;

export interface RegisterBank<R extends RegisterTable> {
  readonly name: string;
  readonly sizeBytes: number;
  readonly source: string;
  readonly registers: R;
  /** The name of the register that holds the byte at `offset`, or undefined between registers. */
  nameAt(offset: number): (keyof R & string) | undefined;
}

/** Bits [high:low] of a register, their access by software, and their value after reset. */
export const registerBits = <const A extends RegisterAccess>(
  high: number,
  low: number,
  access: A,
  meaning = '',
  resetValue = 0,
): RegisterField<A> => ({
  kind: 'number',
  pieces: [{ offset: 0, unitBytes: 4, high, low }],
  alignmentBits: 0,
  valueNames: undefined,
  isModelled: true,
  low,
  mask: maskOf(high, low),
  access,
  resetValue,
  meaning,
  survives: 'none',
});

/** The same field, initialised by a fundamental reset only: RWS, RW1CS, ROS of PCI Express. */
export const sticky = <A extends RegisterAccess>(field: RegisterField<A>): RegisterField<A> => ({
  ...field,
  survives: 'hot',
});

/** The same field, exempt from function-level reset. Source: PCI Express Base Specification 3.1, 6.6.2. */
export const keptByFunctionLevelReset = <A extends RegisterAccess>(
  field: RegisterField<A>,
): RegisterField<A> => ({ ...field, survives: 'functionLevel' });

/** A register made of fields. */
export const register = <const F extends RegisterFields>(
  offset: number,
  sizeBytes: number,
  meaning: string,
  fields: F,
): Register<F> => ({ offset, sizeBytes, meaning, fields });

/** A register that is one field, `value`. */
export const wholeRegister = <const A extends RegisterAccess>(
  offset: number,
  sizeBytes: number,
  access: A,
  meaning: string,
  resetValue = 0,
): Register<{ readonly value: RegisterField<A> }> => {
  const field = registerBits(Math.min(sizeBytes, 4) * 8 - 1, 0, access, meaning, resetValue);
  return register(offset, sizeBytes, meaning, { value: field });
};

/** A range of the bank that belongs to another block, which answers for it. */
export const foreignRegister = (offset: number, sizeBytes: number, meaning: string) =>
  register(offset, sizeBytes, meaning, {});

/** Position of a field in the value of a register: a register's own field, or one seen through its dword. */
export type FieldPlace = Pick<RegisterField, 'low' | 'mask'>;

/** The field's value in a register value. */
export const fieldOf = (registerValue: number, { low, mask }: FieldPlace): number =>
  (registerValue & mask) >>> low;

/** The register value with the field replaced. */
export const withField = (registerValue: number, { low, mask }: FieldPlace, value: number): number =>
  ((registerValue & ~mask) | ((value << low) & mask)) >>> 0;

/** A field of a register of 1 or 2 bytes at its position in the aligned dword around it, for buses that read dwords. */
export function fieldInDword({ offset }: Register, { low, mask }: FieldPlace): FieldPlace {
  const shift = 8 * (offset % 4);
  return { low: low + shift, mask: (mask << shift) >>> 0 };
}

export function registerBank<const R extends RegisterTable>(
  name: string,
  window: { readonly sizeBytes: number; readonly source: string },
  registers: R,
): RegisterBank<R> {
  const ordered = Object.entries(registers);
  let end = 0;
  for (const [registerName, entry] of ordered) {
    const path = `${name}.${registerName}`;
    if (entry.offset < end || entry.offset % Math.min(entry.sizeBytes, 4) !== 0) {
      throw new DeclarationError(`${path} offset`, entry.offset, `an aligned offset of at least ${end}`);
    }
    end = entry.offset + entry.sizeBytes;
    if (end > window.sizeBytes)
      throw new DeclarationError(path, end, `an end within ${window.sizeBytes} bytes`);
    checkRegister(path, entry);
  }
  return {
    name,
    ...window,
    registers: immutable(registers),
    nameAt: (offset) => ordered.find(([, r]) => offset >= r.offset && offset < r.offset + r.sizeBytes)?.[0],
  };
}

function checkRegister(path: string, entry: Register): void {
  const unitBytes = Math.min(entry.sizeBytes, 4);
  if (unitBytes !== 1 && unitBytes !== 2 && entry.sizeBytes % 4 !== 0) {
    throw new DeclarationError(`${path} size`, entry.sizeBytes, '1 or 2 bytes or whole dwords');
  }
  const fields = Object.entries(entry.fields);
  const inUnit = fields.map(([name, field]) => [name, atWidth(field, unitBytes)] as const);
  checkTable(path, unitBytes, Object.fromEntries(inUnit), true);
  for (const [name, { low, mask, resetValue }] of fields) {
    if (!Number.isSafeInteger(resetValue) || resetValue < 0 || resetValue > mask >>> low) {
      throw new DeclarationError(
        `${path}.${name} reset value`,
        resetValue,
        `a value from 0 to ${mask >>> low}`,
      );
    }
  }
}

/** The field as part of a unit of the register's width in bytes. */
const atWidth = (field: RegisterField, unitBytes: number): NumberField => ({
  ...field,
  pieces: [{ ...field.pieces[0], unitBytes: unitBytes as BitRange['unitBytes'] }],
});

function maskOf(high: number, low: number): number {
  const width = high - low + 1;
  return ((width >= 32 ? 0xffff_ffff : (1 << width) - 1) << low) >>> 0;
}
