/**
 * The cold path: a typed-binary schema made from a wire-format table.
 *
 * typed-binary has no bit fields, no 64-bit integer, and a byte order that defaults to the machine's. So the table is
 * cut into *cells*: bytes that share a unit belong to one cell, bytes of no field are gaps.
 *
 *   table    byteCount: u32(0x14)   owner: bits8(0x1f,7,7)  opcode: bits8(0x1f,4,0)
 *   cells    at 0x14: u32   gap 7   at 0x1f: u8, from which owner and opcode are taken
 *
 * The cells are a typed-binary object in ascending order, read and written with an explicit byte order; fields are
 * taken out of and put into cells here. This shares no arithmetic with the accessors, so a test can hold the two equal.
 */
import {
  BufferReader,
  BufferWriter,
  type IMeasurer,
  type ISerialInput,
  type ISerialOutput,
  Measurer,
  object,
  type Parsed,
  Schema,
} from 'typed-binary';
import { FieldValueError } from './assert.ts';
import {
  type Cell,
  type CellValues,
  cellSchema,
  cutIntoCells,
  emptyCell,
  isNumberCell,
} from './layout-cells.ts';
import {
  type BigField,
  type BitRange,
  type BytesField,
  type Field,
  type FieldTable,
  type InitialOf,
  type NumberField,
  type ValuesOf,
  valueBits,
} from './layout-field.ts';

export type ByteOrder = 'big' | 'little';

/** The typed-binary schema of a layout: reads and writes whole objects at the stream's position. */
export class LayoutSchema<F extends FieldTable> extends Schema<ValuesOf<F>> {
  readonly layoutName: string;
  readonly sizeBytes: number;
  private readonly byteOrder: ByteOrder;
  private readonly table: F;
  private readonly cells: readonly Cell[];
  /** Made at the first use: most layouts of a run are only reached through their accessors. */
  private madeCellOfByte: readonly Cell[] | undefined;
  private madeWire: Schema<CellValues> | undefined;

  constructor(layoutName: string, sizeBytes: number, byteOrder: ByteOrder, table: F) {
    super();
    this.layoutName = layoutName;
    this.sizeBytes = sizeBytes;
    this.byteOrder = byteOrder;
    this.table = table;
    this.cells = cutIntoCells(layoutName, sizeBytes, table);
  }

  private get cellOfByte(): readonly Cell[] {
    this.madeCellOfByte ??= this.cells.flatMap((cell) => new Array<Cell>(cell.sizeBytes).fill(cell));
    return this.madeCellOfByte;
  }

  private get wire(): Schema<CellValues> {
    if (this.madeWire === undefined) {
      const properties = Object.fromEntries(this.cells.map((cell) => [cell.key, cellSchema(cell)]));
      this.madeWire = object(properties) as unknown as Schema<CellValues>;
    }
    return this.madeWire;
  }

  override read(input: ISerialInput): Parsed<ValuesOf<F>> {
    this.requireByteOrder(input.endianness);
    const cellValues = this.wire.read(input) as CellValues;
    return this.takeTable(this.table, cellValues, 0) as Parsed<ValuesOf<F>>;
  }

  override write(output: ISerialOutput, value: Parsed<ValuesOf<F>>): void {
    this.writeInitial(output, value as unknown as InitialOf<F>);
  }

  /** Like `write`, but fields left out are zero. */
  writeInitial(output: ISerialOutput, values: InitialOf<F>): void {
    this.requireByteOrder(output.endianness);
    const cellValues: CellValues = {};
    for (const cell of this.cells) cellValues[cell.key] = emptyCell(cell);
    this.putTable(this.table, cellValues, values, 0, this.layoutName);
    for (const cell of this.cells) {
      const value = cellValues[cell.key];
      if (typeof value === 'bigint' && isNumberCell(cell)) cellValues[cell.key] = Number(value);
    }
    this.wire.write(output, cellValues as Parsed<CellValues>);
  }

  override measure(_value: unknown, measurer: IMeasurer = new Measurer()): IMeasurer {
    return measurer.add(this.sizeBytes);
  }

  private requireByteOrder(order: ByteOrder): void {
    if (order !== this.byteOrder) {
      throw new FieldValueError(`${this.layoutName} byte order of the stream`, order, this.byteOrder);
    }
  }

  private takeTable(table: FieldTable, cells: CellValues, shift: number): Record<string, unknown> {
    const values: Record<string, unknown> = {};
    for (const [name, field] of Object.entries(table)) {
      if (field.kind !== 'reserved') values[name] = this.takeField(field, cells, shift);
    }
    return values;
  }

  private takeField(field: Field, cells: CellValues, shift: number): unknown {
    switch (field.kind) {
      case 'number':
        return Number(this.takeInteger(field.alignmentBits, field.pieces, cells, shift));
      case 'bigint':
        return this.takeInteger(field.alignmentBits, [field.range], cells, shift);
      case 'float':
        return floatOfBits(this.takeInteger(0, [field.range], cells, shift));
      case 'bytes':
        return cells[this.cellOfByte[field.offset + shift]!.key] as Uint8Array;
      case 'nested':
        return this.takeTable(field.layout.table, cells, shift + field.offset);
      case 'array':
        return Array.from({ length: field.count }, (_, index) =>
          this.takeField(field.element, cells, shift + index * field.strideBytes),
        );
      case 'reserved':
        return undefined;
    }
  }

  private takeInteger(
    alignmentBits: number,
    ranges: readonly BitRange[],
    cells: CellValues,
    shift: number,
  ): bigint {
    let value = 0n;
    for (const range of ranges) {
      const cell = this.cellOfByte[range.offset + shift]!;
      const width = BigInt(range.high - range.low + 1);
      const bits = BigInt.asUintN(
        Number(width),
        BigInt(cells[cell.key] as number | bigint) >> this.placeOf(range, cell, shift),
      );
      value = (value << width) | bits;
    }
    return value << BigInt(alignmentBits);
  }

  private putTable(table: FieldTable, cells: CellValues, values: object, shift: number, path: string): void {
    for (const [name, value] of Object.entries(values)) {
      const field = table[name];
      if (field === undefined || field.kind === 'reserved') {
        throw new FieldValueError(`${path}.${name}`, value, 'the name of a field that is not reserved');
      }
      if (value !== undefined) this.putField(field, cells, value, shift, `${path}.${name}`);
    }
  }

  private putField(field: Field, cells: CellValues, value: unknown, shift: number, path: string): void {
    switch (field.kind) {
      case 'number':
        this.putInteger(field.pieces, cells, checkedInteger(path, field, value), shift);
        return;
      case 'bigint':
        this.putInteger([field.range], cells, checkedInteger(path, field, value), shift);
        return;
      case 'float':
        this.putInteger([field.range], cells, bitsOfFloat(checkedFloat(path, value)), shift);
        return;
      case 'bytes':
        cells[this.cellOfByte[field.offset + shift]!.key] = checkedBytes(path, field, value);
        return;
      case 'nested':
        this.putTable(field.layout.table, cells, value as object, shift + field.offset, path);
        return;
      case 'array': {
        const elements = checkedArray(path, field.count, value);
        elements.forEach((element, index) => {
          this.putField(
            field.element,
            cells,
            element,
            shift + index * field.strideBytes,
            `${path}[${index}]`,
          );
        });
        return;
      }
      case 'reserved':
        throw new FieldValueError(path, value, 'nothing: the field is reserved');
    }
  }

  private putInteger(ranges: readonly BitRange[], cells: CellValues, stored: bigint, shift: number): void {
    let rest = stored;
    for (const range of [...ranges].reverse()) {
      const cell = this.cellOfByte[range.offset + shift]!;
      const width = range.high - range.low + 1;
      const bits = BigInt.asUintN(width, rest) << this.placeOf(range, cell, shift);
      cells[cell.key] = (cells[cell.key] as bigint) | bits;
      rest >>= BigInt(width);
    }
  }

  /** How far the range's lowest bit lies above the cell's lowest bit. */
  private placeOf(range: BitRange, cell: Cell, shift: number): bigint {
    const start = range.offset + shift - cell.offset;
    const bytesBelow = this.byteOrder === 'big' ? cell.sizeBytes - start - range.unitBytes : start;
    return BigInt(bytesBelow * 8 + range.low);
  }
}

/** Reads one object from `bytes` at `offset`. */
export function decodeWith<F extends FieldTable>(
  schema: LayoutSchema<F>,
  byteOrder: ByteOrder,
  bytes: Uint8Array,
  offset: number,
): ValuesOf<F> {
  requireRoom(schema, bytes, offset);
  const reader = new BufferReader(bytes.buffer, {
    byteOffset: bytes.byteOffset + offset,
    endianness: byteOrder,
  });
  return schema.read(reader) as ValuesOf<F>;
}

/** Writes one object over `bytes` at `offset`; everything not in `values` becomes zero. */
export function encodeWith<F extends FieldTable>(
  schema: LayoutSchema<F>,
  byteOrder: ByteOrder,
  values: InitialOf<F>,
  bytes: Uint8Array,
  offset: number,
): void {
  requireRoom(schema, bytes, offset);
  const writer = new BufferWriter(bytes.buffer, {
    byteOffset: bytes.byteOffset + offset,
    endianness: byteOrder,
  });
  schema.writeInitial(writer, values);
}

function requireRoom<F extends FieldTable>(schema: LayoutSchema<F>, bytes: Uint8Array, offset: number): void {
  if (offset < 0 || offset + schema.sizeBytes > bytes.length) {
    throw new FieldValueError(
      `${schema.layoutName} offset in ${bytes.length} bytes`,
      offset,
      `room for ${schema.sizeBytes} bytes`,
    );
  }
}

/** The integer to store: checked for type, range and alignment, with the alignment bits removed. */
function checkedInteger(path: string, field: NumberField | BigField, value: unknown): bigint {
  const limit = 1n << BigInt(valueBits(field));
  const step = 1n << BigInt(field.alignmentBits);
  const range = `${field.kind === 'number' ? 'an integer' : 'a bigint'} from 0 to 0x${(limit - step).toString(16)} in steps of ${step}`;
  const isRightType = field.kind === 'number' ? Number.isSafeInteger(value) : typeof value === 'bigint';
  if (!isRightType) throw new FieldValueError(path, value, range);
  const integer = BigInt(value as number | bigint);
  if (integer < 0n || integer >= limit || integer % step !== 0n)
    throw new FieldValueError(path, value, range);
  return integer / step;
}

function checkedFloat(path: string, value: unknown): number {
  if (typeof value !== 'number') throw new FieldValueError(path, value, 'a number');
  return value;
}

const floatCell = new DataView(new ArrayBuffer(8));

function floatOfBits(bits: bigint): number {
  floatCell.setBigUint64(0, bits);
  return floatCell.getFloat64(0);
}

function bitsOfFloat(value: number): bigint {
  floatCell.setFloat64(0, value);
  return floatCell.getBigUint64(0);
}

function checkedBytes(path: string, field: BytesField, value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length !== field.lengthBytes) {
    throw new FieldValueError(path, value, `${field.lengthBytes} bytes`);
  }
  return value;
}

function checkedArray(path: string, count: number, value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length > count) {
    throw new FieldValueError(path, value, `an array of at most ${count} elements`);
  }
  return value;
}
