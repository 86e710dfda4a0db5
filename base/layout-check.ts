/**
 * Checks of a wire-format table when its module loads: every field inside the declared size, no bit claimed twice, ranges and
 * alignments possible. A table that fails throws a DeclarationError naming layout and field.
 */
import { DeclarationError } from './assert.ts';
import { type BitRange, type Field, type FieldTable, valueBits } from './layout-field.ts';

/** The bit ranges of one field and the path of names that leads to it. */
export interface Leaf {
  readonly path: string;
  readonly field: Field;
  readonly ranges: readonly BitRange[];
}

/** Owner of a byte of a layout, and its bits that have a field. */
interface Claims {
  readonly bitsOfByte: Uint8Array;
  readonly kindOfByte: Uint8Array;
}
const OF_NUMBERS = 1;
const OF_BYTES = 2;

/** Throws unless the table fits `sizeBytes`, claims each bit at most once and no byte field shares a unit with others. */
export function checkTable(name: string, sizeBytes: number, table: FieldTable, littleEndian: boolean): void {
  const claims: Claims = { bitsOfByte: new Uint8Array(sizeBytes), kindOfByte: new Uint8Array(sizeBytes) };
  const leaves = leavesOf(table, 0, '');
  for (const leaf of leaves) {
    for (const range of leaf.ranges) {
      checkRange(name, leaf.path, range, sizeBytes);
      const bit = claim(claims.bitsOfByte, range, littleEndian);
      if (bit >= 0) refuseBit(bit, leaves, leaf, littleEndian, name);
      checkUnit(claims.kindOfByte, range, leaf, name);
    }
    checkValue(name, leaf);
  }
}

/** All fields that hold bits of their own, arrays and nested layouts unrolled, in declaration order. */
export function leavesOf(table: FieldTable, shiftBytes: number, prefix: string): Leaf[] {
  const leaves: Leaf[] = [];
  addTable(leaves, table, shiftBytes, prefix);
  return leaves;
}

function addTable(leaves: Leaf[], table: FieldTable, shiftBytes: number, prefix: string): void {
  for (const name in table) addField(leaves, prefix + name, table[name]!, shiftBytes);
}

function addField(leaves: Leaf[], path: string, field: Field, shiftBytes: number): void {
  switch (field.kind) {
    case 'number':
      leaves.push({ path, field, ranges: moved(field.pieces, shiftBytes) });
      return;
    case 'bigint':
    case 'float':
      leaves.push({ path, field, ranges: moved([field.range], shiftBytes) });
      return;
    case 'reserved':
      leaves.push({ path, field, ranges: moved(field.ranges, shiftBytes) });
      return;
    case 'bytes':
      leaves.push({ path, field, ranges: byteRanges(field.offset + shiftBytes, field.lengthBytes) });
      return;
    case 'nested':
      addTable(leaves, field.layout.table, field.offset + shiftBytes, `${path}.`);
      return;
    case 'array':
      for (let index = 0; index < field.count; index++)
        addField(leaves, `${path}[${index}]`, field.element, shiftBytes + index * field.strideBytes);
  }
}

const moved = (ranges: readonly BitRange[], shiftBytes: number): readonly BitRange[] =>
  shiftBytes === 0
    ? ranges
    : ranges.map(({ offset, unitBytes, high, low }) => ({
        offset: offset + shiftBytes,
        unitBytes,
        high,
        low,
      }));

const byteRanges = (offset: number, lengthBytes: number): BitRange[] =>
  Array.from({ length: lengthBytes }, (_, at) => ({ offset: offset + at, unitBytes: 1, high: 7, low: 0 }));

function checkRange(name: string, leafPath: string, range: BitRange, sizeBytes: number): void {
  const path = `${name}.${leafPath}`;
  if (range.offset < 0 || range.offset + range.unitBytes > sizeBytes) {
    throw new DeclarationError(path, range.offset, `an offset within ${sizeBytes} bytes`);
  }
  if (range.low < 0 || range.high < range.low || range.high >= range.unitBytes * 8) {
    throw new DeclarationError(
      path,
      `[${range.high}:${range.low}]`,
      `bits of a ${range.unitBytes * 8}-bit unit`,
    );
  }
  if (range.unitBytes === 8 && (range.high < 32 || range.low > 31)) {
    throw new DeclarationError(path, `[${range.high}:${range.low}]`, 'a 64-bit range that crosses bit 32');
  }
}

/** Marks the bytes of a range's unit. A unit may be shared by several numbers, but not by a byte field. */
function checkUnit(kindOfByte: Uint8Array, { offset, unitBytes }: BitRange, leaf: Leaf, name: string): void {
  const kind = leaf.field.kind === 'bytes' ? OF_BYTES : OF_NUMBERS;
  for (let at = offset; at < offset + unitBytes; at++) {
    const before = kindOfByte[at]!;
    if (before !== 0 && (kind === OF_BYTES || before === OF_BYTES))
      throw new DeclarationError(`${name}.${leaf.path}`, at, 'a byte field that shares no unit with others');
    kindOfByte[at] = kind;
  }
}

function checkValue(name: string, { path: leafPath, field }: Leaf): void {
  if (field.kind !== 'number') return;
  const path = `${name}.${leafPath}`;
  if (field.pieces.some((piece) => piece.unitBytes > 4)) {
    throw new DeclarationError(path, 'a 64-bit unit', 'units of at most 32 bits in a number field');
  }
  const bits = valueBits(field);
  if (bits > 53) throw new DeclarationError(path, `${bits} bits`, 'at most 53 bits in a number field');
}

/**
 * Claims the bits of a range, each by its number in memory: byte offset × 8 + bit of that byte, whatever the byte order.
 * @returns the first bit that is already claimed, else -1
 */
function claim(bitsOfByte: Uint8Array, range: BitRange, littleEndian: boolean): number {
  const { offset, unitBytes, high, low } = range;
  for (let byteOfUnit = low >> 3; byteOfUnit <= high >> 3; byteOfUnit++) {
    const at = offset + (littleEndian ? byteOfUnit : unitBytes - 1 - byteOfUnit);
    const first = Math.max(low - byteOfUnit * 8, 0);
    const last = Math.min(high - byteOfUnit * 8, 7);
    const bits = ((2 << last) - 1) & ~((1 << first) - 1);
    const twice = bitsOfByte[at]! & bits;
    if (twice !== 0) return at * 8 + 31 - Math.clz32(twice & -twice);
    bitsOfByte[at]! |= bits;
  }
  return -1;
}

/** Names the field that claimed a bit before `leaf`. */
function refuseBit(
  bit: number,
  leaves: readonly Leaf[],
  leaf: Leaf,
  littleEndian: boolean,
  name: string,
): never {
  const at = bit >> 3;
  const owner = leaves.find(({ ranges }) =>
    ranges.some((range) => {
      const bitsOfByte = new Uint8Array(at + 1).fill(0xff, 0, at);
      bitsOfByte[at] = 1 << (bit & 7);
      return claim(bitsOfByte, range, littleEndian) === bit;
    }),
  );
  const place = `bit ${bit & 7} of byte 0x${at.toString(16)}`;
  throw new DeclarationError(`${name}.${leaf.path}`, place, `a bit not already claimed by ${owner?.path}`);
}
