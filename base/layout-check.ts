/**
 * The checks a wire-format table passes when its module loads: every field inside the declared size, no bit claimed
 * twice, ranges and alignments possible. A table that fails throws a DeclarationError naming layout and field.
 */
import { DeclarationError } from './assert.ts';
import { type BitRange, type Field, type FieldTable, valueBits } from './layout-field.ts';

/** The bit ranges of one field and the path of names that leads to it. */
export interface Leaf {
  readonly path: string;
  readonly field: Field;
  readonly ranges: readonly BitRange[];
}

/** Throws unless the table fits `sizeBytes` and claims each bit at most once. */
export function checkTable(name: string, sizeBytes: number, table: FieldTable, littleEndian: boolean): void {
  const owners = new Array<string | undefined>(sizeBytes * 8);
  for (const leaf of leavesOf(table, 0, '')) {
    for (const range of leaf.ranges) {
      checkRange(`${name}.${leaf.path}`, range, sizeBytes);
      claim(owners, range, littleEndian, name, leaf.path);
    }
    checkValue(`${name}.${leaf.path}`, leaf.field);
  }
}

/** All fields that hold bits of their own, arrays and nested layouts unrolled, in declaration order. */
export function* leavesOf(table: FieldTable, shiftBytes: number, prefix: string): Generator<Leaf> {
  for (const [name, field] of Object.entries(table)) yield* leavesOfField(prefix + name, field, shiftBytes);
}

function* leavesOfField(path: string, field: Field, shiftBytes: number): Generator<Leaf> {
  switch (field.kind) {
    case 'number':
      yield { path, field, ranges: field.pieces.map((piece) => moved(piece, shiftBytes)) };
      return;
    case 'bigint':
    case 'float':
      yield { path, field, ranges: [moved(field.range, shiftBytes)] };
      return;
    case 'reserved':
      yield { path, field, ranges: field.ranges.map((range) => moved(range, shiftBytes)) };
      return;
    case 'bytes':
      yield { path, field, ranges: byteRanges(field.offset + shiftBytes, field.lengthBytes) };
      return;
    case 'nested':
      yield* leavesOf(field.layout.table, field.offset + shiftBytes, `${path}.`);
      return;
    case 'array':
      for (let index = 0; index < field.count; index++) {
        yield* leavesOfField(`${path}[${index}]`, field.element, shiftBytes + index * field.strideBytes);
      }
  }
}

const moved = (range: BitRange, shiftBytes: number): BitRange => ({
  ...range,
  offset: range.offset + shiftBytes,
});

const byteRanges = (offset: number, lengthBytes: number): BitRange[] =>
  Array.from({ length: lengthBytes }, (_, at) => ({ offset: offset + at, unitBytes: 1, high: 7, low: 0 }));

function checkRange(path: string, range: BitRange, sizeBytes: number): void {
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

function checkValue(path: string, field: Field): void {
  if (field.kind !== 'number') return;
  if (field.pieces.some((piece) => piece.unitBytes > 4)) {
    throw new DeclarationError(path, 'a 64-bit unit', 'units of at most 32 bits in a number field');
  }
  const bits = valueBits(field);
  if (bits > 53) throw new DeclarationError(path, `${bits} bits`, 'at most 53 bits in a number field');
}

/** Notes the owner of each bit of a range, by its number in memory: byte offset × 8 + bit of that byte, whatever the byte order. */
function claim(
  owners: (string | undefined)[],
  range: BitRange,
  littleEndian: boolean,
  name: string,
  path: string,
): void {
  for (let bitOfUnit = range.low; bitOfUnit <= range.high; bitOfUnit++) {
    const byteOfUnit = littleEndian ? bitOfUnit >> 3 : range.unitBytes - 1 - (bitOfUnit >> 3);
    const bit = (range.offset + byteOfUnit) * 8 + (bitOfUnit & 7);
    const owner = owners[bit];
    if (owner !== undefined) {
      const place = `bit ${bit & 7} of byte 0x${(bit >> 3).toString(16)}`;
      throw new DeclarationError(`${name}.${path}`, place, `a bit not already claimed by ${owner}`);
    }
    owners[bit] = path;
  }
}
