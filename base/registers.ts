/**
 * A register map, declared once: an ordered list of (name, offset, size, access, reset value, fields).
 *
 * A map is data. It says what a register is, never what it does: its effect is a method named after it in the owning
 * block. Loading a map checks that the registers ascend without overlap, fit the window, and that each reset value fits
 * its register and its fields.
 */
import { DeclarationError } from './assert.ts';

/**
 * What software may do with a register:
 * `ro` read only · `wo` write only, reads as zero · `rw` both · `w1c` reads, and writing ones clears ·
 * `rc` a read clears · `ra` the read that returns zero acquires (semaphores) · `reserved` reads zero, writes ignored.
 */
export type RegisterAccess = 'ro' | 'wo' | 'rw' | 'w1c' | 'rc' | 'ra' | 'reserved';

/** Bits [high:low] of a register of at most 32 bits. */
export interface RegisterField {
  readonly high: number;
  readonly low: number;
  readonly meaning: string;
}

export interface Register {
  /** Byte offset in the window. */
  readonly offset: number;
  readonly sizeBytes: number;
  readonly access: RegisterAccess;
  /** Value after reset of a register of at most 4 bytes, of every dword of a larger one. */
  readonly resetValue: number;
  readonly meaning: string;
  readonly fields: Readonly<Record<string, RegisterField>>;
}

export type RegisterTable = Readonly<Record<string, Register>>;

export interface RegisterMap<R extends RegisterTable> {
  readonly name: string;
  readonly sizeBytes: number;
  readonly source: string;
  readonly registers: R;
  /** The name of the register that holds the byte at `offset`, or undefined between registers. */
  nameAt(offset: number): (keyof R & string) | undefined;
}

/** A register; access and meaning in the table's own line, reset value and fields where there are any. */
export const register = (
  offset: number,
  sizeBytes: number,
  access: RegisterAccess,
  meaning: string,
  resetValue = 0,
  fields: Readonly<Record<string, RegisterField>> = {},
): Register => ({ offset, sizeBytes, access, meaning, resetValue, fields });

/** Bits [high:low] of a register. */
export const registerBits = (high: number, low: number, meaning = ''): RegisterField => ({
  high,
  low,
  meaning,
});

/** The field's value in a register value. */
export function fieldOf(registerValue: number, field: RegisterField): number {
  return ((registerValue & fieldMask(field)) >>> field.low) >>> 0;
}

/** The register value with the field replaced. */
export function withField(registerValue: number, field: RegisterField, value: number): number {
  const mask = fieldMask(field);
  return ((registerValue & ~mask) | ((value << field.low) & mask)) >>> 0;
}

export function registerMap<const R extends RegisterTable>(
  name: string,
  window: { readonly sizeBytes: number; readonly source: string },
  registers: R,
): RegisterMap<R> {
  const ordered = Object.entries(registers);
  let end = 0;
  for (const [registerName, entry] of ordered) {
    const path = `${name}.${registerName}`;
    if (entry.offset < end) throw new DeclarationError(path, entry.offset, `an offset of at least ${end}`);
    end = entry.offset + entry.sizeBytes;
    if (end > window.sizeBytes)
      throw new DeclarationError(path, end, `an end within ${window.sizeBytes} bytes`);
    checkRegister(path, entry);
  }
  return {
    name,
    ...window,
    registers,
    nameAt: (offset) => ordered.find(([, r]) => offset >= r.offset && offset < r.offset + r.sizeBytes)?.[0],
  };
}

function checkRegister(path: string, entry: Register): void {
  const bits = Math.min(entry.sizeBytes, 4) * 8;
  if (!Number.isSafeInteger(entry.resetValue) || entry.resetValue < 0 || entry.resetValue >= 2 ** bits) {
    throw new DeclarationError(`${path} reset value`, entry.resetValue, `a value of ${bits} bits`);
  }
  let claimed = 0;
  for (const [fieldName, field] of Object.entries(entry.fields)) {
    if (field.low < 0 || field.high < field.low || field.high >= bits) {
      throw new DeclarationError(`${path}.${fieldName}`, `[${field.high}:${field.low}]`, `bits of ${bits}`);
    }
    if ((claimed & fieldMask(field)) !== 0) {
      throw new DeclarationError(
        `${path}.${fieldName}`,
        `[${field.high}:${field.low}]`,
        'bits not yet claimed',
      );
    }
    claimed |= fieldMask(field);
  }
}

function fieldMask(field: RegisterField): number {
  const width = field.high - field.low + 1;
  return ((width >= 32 ? 0xffff_ffff : (1 << width) - 1) << field.low) >>> 0;
}
