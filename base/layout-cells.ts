/**
 * The cells of a layout: disjoint runs of bytes that typed-binary can read and write, and the schemas for the two
 * kinds it lacks (integers wider than 32 bits, and gaps). Fields are taken out of cells in `layout-schema.ts`.
 */
import {
  type AnySchema,
  type IMeasurer,
  type ISerialInput,
  type ISerialOutput,
  type MaxValue,
  Measurer,
  Schema,
  u8,
  u8Array,
  u16,
  u32,
} from 'typed-binary';
import { leavesOf } from './layout-check.ts';
import type { BitRange, FieldTable } from './layout-field.ts';

/** An unsigned integer of any whole number of bytes, in the byte order of the stream. */
class UnsignedSchema extends Schema<bigint> {
  readonly sizeBytes: number;
  constructor(sizeBytes: number) {
    super();
    this.sizeBytes = sizeBytes;
  }

  override read(input: ISerialInput): bigint {
    let value = 0n;
    for (let at = 0; at < this.sizeBytes; at++) {
      const byte = BigInt(input.readUint8());
      value = input.endianness === 'big' ? (value << 8n) | byte : value | (byte << BigInt(at * 8));
    }
    return value;
  }

  override write(output: ISerialOutput, value: bigint): void {
    for (let at = 0; at < this.sizeBytes; at++) {
      const place = output.endianness === 'big' ? this.sizeBytes - 1 - at : at;
      output.writeUint8(Number((value >> BigInt(place * 8)) & 0xffn));
    }
  }

  override measure(_value: bigint | MaxValue, measurer: IMeasurer = new Measurer()): IMeasurer {
    return measurer.add(this.sizeBytes);
  }
}

/** Bytes that belong to no field: skipped on read, zero on write. */
class GapSchema extends Schema<null> {
  readonly sizeBytes: number;
  constructor(sizeBytes: number) {
    super();
    this.sizeBytes = sizeBytes;
  }

  override read(input: ISerialInput): null {
    input.skipBytes(this.sizeBytes);
    return null;
  }

  override write(output: ISerialOutput): void {
    for (let at = 0; at < this.sizeBytes; at++) output.writeUint8(0);
  }

  override measure(_value: null | MaxValue, measurer: IMeasurer = new Measurer()): IMeasurer {
    return measurer.add(this.sizeBytes);
  }
}

/** Bytes that belong together: one integer, one byte field, or nothing. */
export interface Cell {
  readonly key: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly content: 'unsigned' | 'bytes' | 'gap';
}

export type CellValue = bigint | number | Uint8Array | null;
export type CellValues = Record<string, CellValue>;

/** Cuts a checked table into cells in ascending order: bytes that share a unit are one cell. */
export function cutIntoCells(sizeBytes: number, table: FieldTable): Cell[] {
  const isJoinedToNext = new Array<boolean>(sizeBytes).fill(false);
  const contentOfByte = new Array<Cell['content']>(sizeBytes).fill('gap');
  for (const { field, ranges } of leavesOf(table, 0, '')) {
    const units = field.kind === 'bytes' ? [wholeOf(ranges)] : ranges;
    for (const unit of units) {
      const content = field.kind === 'bytes' ? 'bytes' : 'unsigned';
      for (let at = unit.offset; at < unit.offset + unit.unitBytes; at++) {
        contentOfByte[at] = content;
        if (at > unit.offset) isJoinedToNext[at - 1] = true;
      }
    }
  }
  return collectCells(sizeBytes, contentOfByte, isJoinedToNext);
}

const wholeOf = (ranges: readonly BitRange[]): { offset: number; unitBytes: number } => ({
  offset: ranges[0]!.offset,
  unitBytes: ranges.length,
});

function collectCells(
  sizeBytes: number,
  contentOfByte: readonly Cell['content'][],
  isJoinedToNext: readonly boolean[],
): Cell[] {
  const cells: Cell[] = [];
  for (let offset = 0; offset < sizeBytes; ) {
    const content = contentOfByte[offset]!;
    let end = offset + 1;
    while (
      end < sizeBytes &&
      (isJoinedToNext[end - 1] || (content === 'gap' && contentOfByte[end] === 'gap'))
    )
      end++;
    cells.push({ key: `at0x${offset.toString(16)}`, offset, sizeBytes: end - offset, content });
    offset = end;
  }
  return cells;
}

/** Whether typed-binary itself reads the cell, as a number. */
const isNumberCell = (cell: Cell): boolean =>
  cell.content === 'unsigned' && (cell.sizeBytes === 1 || cell.sizeBytes === 2 || cell.sizeBytes === 4);

export function cellSchema(cell: Cell): AnySchema {
  if (cell.content === 'gap') return new GapSchema(cell.sizeBytes);
  if (cell.content === 'bytes') return u8Array(cell.sizeBytes);
  if (cell.sizeBytes === 1) return u8;
  if (cell.sizeBytes === 2) return u16;
  return cell.sizeBytes === 4 ? u32 : new UnsignedSchema(cell.sizeBytes);
}

export function emptyCell(cell: Cell): CellValue {
  if (cell.content === 'gap') return null;
  if (cell.content === 'bytes') return new Uint8Array(cell.sizeBytes);
  return isNumberCell(cell) ? 0 : 0n;
}
