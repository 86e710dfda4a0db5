/** A layout for people: `name=value` lines of an instance, and the rows of the table for the documentation. */
import { toHex } from './bytes.ts';
import { leavesOf } from './layout-check.ts';
import type { BitRange, Field, FieldTable, NumberField } from './layout-field.ts';

/** One row of a format's documentation. */
export interface DocRow {
  readonly name: string;
  /** Byte offset in hexadecimal, two for a field in two pieces. */
  readonly offset: string;
  /** Bits of the unit, such as `[23:0]`, or a length in bytes. */
  readonly bits: string;
  readonly meaning: string;
  readonly isModelled: boolean;
}

/** Lines `name=value` of a decoded object; nested fields are dotted, values have the names of their tables. */
export function formatValues(
  table: FieldTable,
  values: Readonly<Record<string, unknown>>,
  prefix = '',
): string[] {
  return Object.entries(table).flatMap(([name, field]) =>
    field.kind === 'reserved' ? [] : formatField(prefix + name, field, values[name]),
  );
}

function formatField(name: string, field: Field, value: unknown): string[] {
  if (field.kind === 'nested') {
    return formatValues(field.layout.table, value as Record<string, unknown>, `${name}.`);
  }
  if (field.kind === 'array') {
    return (value as unknown[]).flatMap((element, index) =>
      formatField(`${name}[${index}]`, field.element, element),
    );
  }
  const mark = field.isModelled ? '' : ' (not modelled)';
  return [`${name}=${formatScalar(field, value)}${mark}`];
}

function formatScalar(field: Field, value: unknown): string {
  if (value instanceof Uint8Array) return toHex(value);
  if (typeof value === 'bigint') return `0x${value.toString(16)}`;
  if (field.kind === 'float') return `${value}`;
  const number = value as number;
  const valueName = field.kind === 'number' ? nameOfValue(field, number) : undefined;
  const digits = number < 10 ? `${number}` : `0x${number.toString(16)}`;
  return valueName === undefined ? digits : `${valueName} (${digits})`;
}

function nameOfValue(field: NumberField, value: number): string | undefined {
  if (field.valueNames === undefined) return undefined;
  return Object.entries(field.valueNames).find(([, code]) => code === value)?.[0];
}

/** The rows of the table in its own order, nested layouts unrolled, arrays as one row. */
export function docRowsOf(table: FieldTable, shiftBytes = 0, prefix = ''): DocRow[] {
  return Object.entries(table).flatMap(([name, field]) => {
    if (field.kind === 'nested') {
      return docRowsOf(field.layout.table, shiftBytes + field.offset, `${prefix}${name}.`);
    }
    if (field.kind !== 'array') return [docRow(prefix + name, field, shiftBytes, '')];
    const suffix = ` × ${field.count}, every ${field.strideBytes} bytes`;
    return field.element.kind === 'nested'
      ? docRowsOf(
          field.element.layout.table,
          shiftBytes + field.element.offset,
          `${prefix}${name}[${field.count}].`,
        )
      : [docRow(prefix + name, field.element, shiftBytes, suffix)];
  });
}

function docRow(name: string, field: Field, shiftBytes: number, suffix: string): DocRow {
  const { meaning, isModelled } = field;
  const hex = (offset: number): string => `0x${(offset + shiftBytes).toString(16).padStart(2, '0')}`;
  if (field.kind === 'bytes') {
    return {
      name,
      offset: hex(field.offset),
      bits: `${field.lengthBytes} bytes${suffix}`,
      meaning,
      isModelled,
    };
  }
  const [leaf] = leavesOf({ [name]: field }, 0, '');
  const ranges = leaf?.ranges ?? [];
  return {
    name,
    offset: ranges.map((range) => hex(range.offset)).join(', '),
    bits: (field.kind === 'float' ? 'f64' : ranges.map(rangeText).join(', ')) + suffix,
    meaning,
    isModelled,
  };
}

const rangeText = (range: BitRange): string =>
  range.high - range.low + 1 === range.unitBytes * 8
    ? `u${range.unitBytes * 8}`
    : `[${range.high}:${range.low}]`;
