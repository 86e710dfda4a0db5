/**
 * The cold path: a typed-binary schema made from a wire-format table.
 *
 * typed-binary has no bit fields, no 64-bit integer, and a byte order that defaults to the machine's. So the table is
 * cut into *cells*: bytes that share a unit belong to one cell, bytes of no field are gaps.
 *
 *   table    byteCount: u32(0x14)   owner: bits8(0x1f,7,7)  opcode: bits8(0x1f,4,0)
 *   cells    at 0x14: u32   gap 7   at 0x1f: u8, from which owner and opcode are taken
 *
 * The cells are a typed-binary object in ascending order, read and written with an explicit byte order; this file extracts
 * fields from cells and inserts them. It shares no arithmetic with the accessors, so a test can compare the two.
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
import { type Cell, type CellValues, cellSchema, cutIntoCells, emptyCell } from './layout-cells.ts';
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
  /** All created at the first use: a run accesses most layouts only through their accessors. */
  private madeCells: readonly Cell[] | undefined;
  private madeCellOfByte: readonly Cell[] | undefined;
  private madeWire: Schema<CellValues> | undefined;
  private madeEmpty: CellValues | undefined;

  constructor(layoutName: string, sizeBytes: number, byteOrder: ByteOrder, table: F) {
    super();
    this.layoutName = layoutName;
    this.sizeBytes = sizeBytes;
    this.byteOrder = byteOrder;
    this.table = table;
  }

  private get cells(): readonly Cell[] {
    this.madeCells ??= cutIntoCells(this.sizeBytes, this.table);
    return this.madeCells;
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

  /** All cells zero. Values stored in a cell replace it: none is modified. */
  private get empty(): CellValues {
    this.madeEmpty ??= Object.fromEntries(this.cells.map((cell) => [cell.key, emptyCell(cell)]));
    return this.madeEmpty;
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
    const cellValues: CellValues = { ...this.empty };
    this.putTable(this.table, cellValues, values, 0, this.layoutName);
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
        return this.takeNumber(field.pieces, cells, shift) * 2 ** field.alignmentBits;
      case 'bigint':
        return this.takeBits(field.range, cells, shift) << BigInt(field.alignmentBits);
      case 'float':
        return floatOfBits(this.takeBits(field.range, cells, shift));
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

  /** The first piece has the highest bits. */
  private takeNumber(pieces: readonly BitRange[], cells: CellValues, shift: number): number {
    let value = 0;
    for (const piece of pieces) {
      const cell = this.cellOfByte[piece.offset + shift]!;
      const content = cells[cell.key] as number | bigint;
      const size = 2 ** (piece.high - piece.low + 1);
      const bits =
        typeof content === 'number'
          ? Math.floor(content / 2 ** this.placeOf(piece, cell, shift)) % size
          : Number(this.takeBits(piece, cells, shift));
      value = value * size + bits;
    }
    return value;
  }

  private takeBits(range: BitRange, cells: CellValues, shift: number): bigint {
    const cell = this.cellOfByte[range.offset + shift]!;
    const content = BigInt(cells[cell.key] as number | bigint);
    return BigInt.asUintN(range.high - range.low + 1, content >> BigInt(this.placeOf(range, cell, shift)));
  }

  private putTable(table: FieldTable, cells: CellValues, values: object, shift: number, path: string): void {
    const given = values as Readonly<Record<string, unknown>>;
    for (const name of Object.keys(given)) {
      const value = given[name];
      const field = table[name];
      if (field === undefined || field.kind === 'reserved') {
        throw new FieldValueError(`${path}.${name}`, value, 'the name of a field that is not reserved');
      }
      if (value !== undefined) this.putField(field, cells, value, shift, path, name);
    }
  }

  /** @param name of a field, or the number of an element: {@link pathOf} joins it to the path if that is needed */
  private putField(
    field: Field,
    cells: CellValues,
    value: unknown,
    shift: number,
    path: string,
    name: string | number,
  ): void {
    switch (field.kind) {
      case 'number':
        this.putNumber(field.pieces, cells, checkedNumber(path, name, field, value), shift);
        return;
      case 'bigint':
        this.putBits(field.range, cells, checkedBigint(path, name, field, value), shift);
        return;
      case 'float':
        this.putBits(field.range, cells, bitsOfFloat(checkedFloat(path, name, value)), shift);
        return;
      case 'bytes':
        cells[this.cellOfByte[field.offset + shift]!.key] = checkedBytes(path, name, field, value);
        return;
      case 'nested':
        this.putTable(field.layout.table, cells, value as object, shift + field.offset, pathOf(path, name));
        return;
      case 'array': {
        const array = pathOf(path, name);
        checkedArray(array, field.count, value).forEach((element, index) => {
          this.putField(field.element, cells, element, shift + index * field.strideBytes, array, index);
        });
        return;
      }
      case 'reserved':
        throw new FieldValueError(pathOf(path, name), value, 'nothing: the field is reserved');
    }
  }

  /** The last piece has the lowest bits. */
  private putNumber(pieces: readonly BitRange[], cells: CellValues, stored: number, shift: number): void {
    let rest = stored;
    for (let at = pieces.length - 1; at >= 0; at--) {
      const piece = pieces[at]!;
      const size = 2 ** (piece.high - piece.low + 1);
      const bits = rest % size;
      rest = Math.floor(rest / size);
      const cell = this.cellOfByte[piece.offset + shift]!;
      const before = cells[cell.key] as number | bigint;
      const place = this.placeOf(piece, cell, shift);
      cells[cell.key] =
        typeof before === 'number'
          ? (before | (bits * 2 ** place)) >>> 0
          : before | (BigInt(bits) << BigInt(place));
    }
  }

  private putBits(range: BitRange, cells: CellValues, bits: bigint, shift: number): void {
    const cell = this.cellOfByte[range.offset + shift]!;
    const placed = bits << BigInt(this.placeOf(range, cell, shift));
    const before = cells[cell.key] as number | bigint;
    cells[cell.key] = typeof before === 'number' ? (before | Number(placed)) >>> 0 : before | placed;
  }

  /** Distance in bits of the range's lowest bit above the cell's lowest bit. */
  private placeOf(range: BitRange, cell: Cell, shift: number): number {
    const start = range.offset + shift - cell.offset;
    const bytesBelow = this.byteOrder === 'big' ? cell.sizeBytes - start - range.unitBytes : start;
    return bytesBelow * 8 + range.low;
  }
}

/** typed-binary's readers or writers, one for each memory and byte order: creating one takes longer than reading. */
class Streams<Stream extends { seekTo(offset: number): void }> {
  readonly #known: Readonly<Record<ByteOrder, WeakMap<ArrayBufferLike, Stream>>> = {
    big: new WeakMap(),
    little: new WeakMap(),
  };
  readonly #make: (buffer: ArrayBufferLike, endianness: ByteOrder) => Stream;

  constructor(make: (buffer: ArrayBufferLike, endianness: ByteOrder) => Stream) {
    this.#make = make;
  }

  /** The stream of this memory, at `offset` of `bytes`. */
  at({ buffer, byteOffset }: Uint8Array, offset: number, byteOrder: ByteOrder): Stream {
    let stream = this.#known[byteOrder].get(buffer);
    if (stream === undefined) {
      stream = this.#make(buffer, byteOrder);
      this.#known[byteOrder].set(buffer, stream);
    }
    stream.seekTo(byteOffset + offset);
    return stream;
  }
}

const readers = new Streams((buffer, endianness) => new BufferReader(buffer, { endianness }));
const writers = new Streams((buffer, endianness) => new BufferWriter(buffer, { endianness }));

/** Reads one object from `bytes` at `offset`. */
export function decodeWith<F extends FieldTable>(
  schema: LayoutSchema<F>,
  byteOrder: ByteOrder,
  bytes: Uint8Array,
  offset: number,
): ValuesOf<F> {
  requireRoom(schema, bytes, offset);
  return schema.read(readers.at(bytes, offset, byteOrder)) as ValuesOf<F>;
}

/** Writes one object over `bytes` at `offset`; every field not in `values` becomes zero. */
export function encodeWith<F extends FieldTable>(
  schema: LayoutSchema<F>,
  byteOrder: ByteOrder,
  values: InitialOf<F>,
  bytes: Uint8Array,
  offset: number,
): void {
  requireRoom(schema, bytes, offset);
  schema.writeInitial(writers.at(bytes, offset, byteOrder), values);
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

/** Path of a value: `layout.field`, `layout.array[2]`. Joined on demand, since most values are valid. */
const pathOf = (path: string, name: string | number): string =>
  typeof name === 'number' ? `${path}[${name}]` : `${path}.${name}`;

/** The number to store: checked for type, range and alignment, without the alignment bits. */
function checkedNumber(path: string, name: string | number, field: NumberField, value: unknown): number {
  const limit = 2 ** valueBits(field);
  const step = 2 ** field.alignmentBits;
  if (
    !Number.isSafeInteger(value) ||
    (value as number) < 0 ||
    (value as number) >= limit ||
    (value as number) % step !== 0
  )
    throw new FieldValueError(pathOf(path, name), value, `an integer ${rangeText(field)}`);
  return (value as number) / step;
}

/** Like {@link checkedNumber}, for a 64-bit unit. */
function checkedBigint(path: string, name: string | number, field: BigField, value: unknown): bigint {
  const limit = 1n << BigInt(valueBits(field));
  const step = 1n << BigInt(field.alignmentBits);
  if (typeof value !== 'bigint' || value < 0n || value >= limit || value % step !== 0n)
    throw new FieldValueError(pathOf(path, name), value, `a bigint ${rangeText(field)}`);
  return value / step;
}

function rangeText(field: NumberField | BigField): string {
  const step = 1n << BigInt(field.alignmentBits);
  return `from 0 to 0x${((1n << BigInt(valueBits(field))) - step).toString(16)} in steps of ${step}`;
}

function checkedFloat(path: string, name: string | number, value: unknown): number {
  if (typeof value !== 'number') throw new FieldValueError(pathOf(path, name), value, 'a number');
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

function checkedBytes(path: string, name: string | number, field: BytesField, value: unknown): Uint8Array {
  if (!(value instanceof Uint8Array) || value.length !== field.lengthBytes) {
    throw new FieldValueError(pathOf(path, name), value, `${field.lengthBytes} bytes`);
  }
  return value;
}

function checkedArray(path: string, count: number, value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || value.length > count) {
    throw new FieldValueError(path, value, `an array of at most ${count} elements`);
  }
  return value;
}
