/**
 * The words in which a configuration structure (header or capability) is declared: registers of 1, 2 or 4 bytes, made
 * of fields, each with the access mode of the standard and its value after reset.
 *
 * A table is data and is checked while the module loads: registers ascend without overlap, fields fit their register
 * and do not overlap, reset values fit. Bits that no field claims are reserved: they read zero and ignore writes.
 * Source: PCI Express Base Specification 3.1, 7.4 (register types).
 */
import { DeclarationError } from '../../base/assert.ts';

/**
 * Access modes in the standard's words: `RO` read only · `RW` read-write · `RW1C` writing one clears · `HwInit` read
 * only, set while the machine is built, kept by every reset. A trailing `S` (`ROS`, `RWS`, `RW1CS`) is sticky: only a
 * fundamental reset initialises it.
 */
export type ConfigAccessMode = 'RO' | 'RW' | 'RW1C' | 'ROS' | 'RWS' | 'RW1CS' | 'HwInit';

/** Bits [high:low] of a configuration register. */
export interface ConfigField {
  readonly high: number;
  readonly low: number;
  readonly mode: ConfigAccessMode;
  readonly resetValue: number;
  readonly meaning: string;
  /** True for the fields that the standard exempts from function-level reset (6.6.2). */
  readonly isKeptByFunctionLevelReset: boolean;
}

export interface ConfigRegister<F extends Readonly<Record<string, ConfigField>>> {
  /** Byte offset in the structure. */
  readonly offset: number;
  readonly sizeBytes: 1 | 2 | 4;
  readonly fields: F;
}

export type ConfigRegisterTable = Readonly<
  Record<string, ConfigRegister<Readonly<Record<string, ConfigField>>>>
>;

/** A header or a capability: its registers, and how many bytes of configuration space it claims. */
export interface ConfigStructure<R extends ConfigRegisterTable> {
  readonly name: string;
  readonly sizeBytes: number;
  readonly source: string;
  readonly registers: R;
}

/** Bits [high:low] with the standard's access mode. */
export const configBits = (
  high: number,
  low: number,
  mode: ConfigAccessMode,
  meaning: string,
  resetValue = 0,
): ConfigField => ({ high, low, mode, resetValue, meaning, isKeptByFunctionLevelReset: false });

/** The same field, exempt from function-level reset. */
export const keptByFunctionLevelReset = (field: ConfigField): ConfigField => ({
  ...field,
  isKeptByFunctionLevelReset: true,
});

/** A register of `sizeBytes` at `offset` in its structure. */
export const configRegister = <const F extends Readonly<Record<string, ConfigField>>>(
  offset: number,
  sizeBytes: 1 | 2 | 4,
  fields: F,
): ConfigRegister<F> => ({ offset, sizeBytes, fields });

/** Declares a structure; throws a DeclarationError when its table contradicts itself. */
export function configStructure<const R extends ConfigRegisterTable>(
  name: string,
  shape: { readonly sizeBytes: number; readonly source: string },
  registers: R,
): ConfigStructure<R> {
  let end = 0;
  for (const [registerName, entry] of Object.entries(registers)) {
    const path = `${name}.${registerName}`;
    if (entry.offset < end || entry.offset % entry.sizeBytes !== 0) {
      throw new DeclarationError(`${path} offset`, entry.offset, `an aligned offset of at least ${end}`);
    }
    end = entry.offset + entry.sizeBytes;
    if (end > shape.sizeBytes)
      throw new DeclarationError(path, end, `an end within ${shape.sizeBytes} bytes`);
    checkFields(path, entry.sizeBytes * 8, entry.fields);
  }
  return { name, ...shape, registers };
}

/** The field's bits in its register. */
export function configMask(field: ConfigField): number {
  const width = field.high - field.low + 1;
  return ((width >= 32 ? 0xffff_ffff : (1 << width) - 1) << field.low) >>> 0;
}

function checkFields(
  path: string,
  registerBits: number,
  fields: Readonly<Record<string, ConfigField>>,
): void {
  let claimed = 0;
  for (const [name, field] of Object.entries(fields)) {
    const place = `[${field.high}:${field.low}]`;
    if (field.low < 0 || field.high < field.low || field.high >= registerBits) {
      throw new DeclarationError(`${path}.${name}`, place, `bits of ${registerBits}`);
    }
    if ((claimed & configMask(field)) !== 0)
      throw new DeclarationError(`${path}.${name}`, place, 'unclaimed bits');
    claimed |= configMask(field);
    if (field.resetValue < 0 || field.resetValue >= 2 ** (field.high - field.low + 1)) {
      throw new DeclarationError(`${path}.${name} reset value`, field.resetValue, `a value of bits ${place}`);
    }
  }
}
