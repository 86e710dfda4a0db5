/**
 * Describes bytes by a layout: the set fields, by name, and the bits that no field claims.
 *
 * A mailbox is mostly zeros. The result has the nonzero fields and the few fields whose zero is a meaningful value
 * (service type RC, event type COMP). All other fields are zero.
 */
import { type BitRange, type Field, type FieldTable, type Layout, leavesOf, toHex } from '../base/index.ts';

/** A layout without its table type. */
export type AnyLayout = Layout<FieldTable>;

/** Drops the table type of a layout; its values become a record. */
export const anyLayout = <F extends FieldTable>(layout: Layout<F>): AnyLayout =>
  layout as unknown as AnyLayout;

/** A field and its value: a number, or hexadecimal text for 64 bits and more, where a number would lose bits. */
export interface ShownField {
  readonly name: string;
  readonly value: number | string;
  /** The name of the value, if its table has one. */
  readonly valueName: string | undefined;
}

/** Fields whose zero is shown. */
const tellingZeros = new Set(['state', 'serviceType', 'opcode', 'type', 'command', 'qpn', 'byteCount']);

/** The set fields, in table order. Missing bytes at the end count as zero. */
export function fieldsSetIn(layout: AnyLayout, bytes: Uint8Array, offset = 0, prefix = ''): ShownField[] {
  let source = bytes;
  let start = offset;
  if (offset + layout.sizeBytes > bytes.length) {
    source = new Uint8Array(layout.sizeBytes);
    source.set(bytes.subarray(offset, offset + layout.sizeBytes));
    start = 0;
  }
  return shownOf(layout.table, layout.decode(source, start), prefix);
}

function shownOf(table: FieldTable, values: Readonly<Record<string, unknown>>, prefix: string): ShownField[] {
  return Object.entries(table).flatMap(([name, field]) =>
    field.kind === 'reserved' ? [] : shownField(prefix, name, field, values[name]),
  );
}

function shownField(prefix: string, name: string, field: Field, value: unknown): ShownField[] {
  if (field.kind === 'nested')
    return shownOf(field.layout.table, value as Record<string, unknown>, `${prefix}${name}.`);
  if (field.kind === 'array')
    return (value as unknown[]).flatMap((element, index) =>
      shownField(prefix, `${name}[${index}]`, field.element, element),
    );
  const path = prefix + name;
  if (value instanceof Uint8Array)
    return value.some((byte) => byte !== 0)
      ? [{ name: path, value: `0x${toHex(value)}`, valueName: undefined }]
      : [];
  const number = value as number | bigint;
  const valueName = field.kind === 'number' ? nameOf(field.valueNames, Number(number)) : undefined;
  if (Number(number) === 0 && (prefix.includes('Path.') || !tellingZeros.has(name))) return [];
  const plain = typeof number === 'bigint' ? `0x${number.toString(16)}` : number;
  return [{ name: path, value: plain, valueName }];
}

const nameOf = (names: Readonly<Record<string, number>> | undefined, value: number): string | undefined =>
  names === undefined ? undefined : Object.entries(names).find(([, code]) => code === value)?.[0];

/** Decimal below 10, else hexadecimal. */
const numberText = (value: number | bigint): string => (value < 10 ? `${value}` : `0x${value.toString(16)}`);

export function fieldText({ name, value, valueName }: ShownField): string {
  const digits = typeof value === 'number' ? numberText(value) : value;
  return `${name}=${valueName === undefined ? digits : `${valueName} (${digits})`}`;
}

/** A byte of a layout with reserved bits set. */
export interface ReservedBits {
  readonly offset: number;
  /** The reserved bits that are set. */
  readonly bits: number;
}

const claimedByLayout = new WeakMap<object, Uint8Array>();

/** A layout and its offset. */
export interface PlacedLayout {
  readonly layout: AnyLayout;
  readonly offset: number;
}

/**
 * The first byte with set bits that no field claims, or undefined.
 * @param beside further layouts of the same bytes, which may overlap this one
 */
export function reservedBitsIn(
  layout: AnyLayout,
  bytes: Uint8Array,
  offset = 0,
  beside: readonly PlacedLayout[] = [],
): ReservedBits | undefined {
  const claimed = claimedBitsOf(layout);
  const end = Math.min(layout.sizeBytes, bytes.length - offset);
  for (let at = 0; at < end; at++) {
    let bits = bytes[offset + at]! & ~claimed[at]!;
    for (const other of beside) bits &= ~(claimedBitsOf(other.layout)[offset + at - other.offset] ?? 0);
    if (bits !== 0) return { offset: at, bits };
  }
  return undefined;
}

/**
 * Returns, for each byte, the bits that a field claims. All layouts of the interface are big-endian except those of
 * PCI.
 */
function claimedBitsOf(layout: AnyLayout): Uint8Array {
  const known = claimedByLayout.get(layout);
  if (known !== undefined) return known;
  const claimed = new Uint8Array(layout.sizeBytes);
  for (const { field, ranges } of leavesOf(layout.table, 0, '')) {
    if (field.kind === 'reserved') continue;
    for (const range of ranges) claim(claimed, range, layout.byteOrder === 'little');
  }
  claimedByLayout.set(layout, claimed);
  return claimed;
}

function claim(claimed: Uint8Array, { offset, unitBytes, high, low }: BitRange, isLittle: boolean): void {
  for (let bit = low; bit <= high; bit++) {
    const byte = isLittle ? bit >> 3 : unitBytes - 1 - (bit >> 3);
    claimed[offset + byte]! |= 1 << (bit & 7);
  }
}
