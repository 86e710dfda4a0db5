/**
 * Hot-path accessors derived from a table: they work directly on a DataView and a base offset, allocate nothing and access only
 * the field's own unit. `set` leaves the neighbouring bits alone and truncates its value to the field's width, as a register
 * would; range checks belong to `encode`, the cold path.
 *
 * A 64-bit field can be read as a bigint (`get`), as a number that is exact below 2^53 (`getNumber`, right for
 * addresses), or as its two 32-bit words (`getHighWord`, `getLowWord`, exact always and cheapest).
 */
import type {
  ArrayField,
  BigField,
  BitRange,
  BytesField,
  ElementField,
  Field,
  FieldTable,
  FloatField,
  NestedField,
  NumberField,
  ReservedField,
} from './layout-field.ts';

interface NumberAccessor {
  readonly field: NumberField;
  /** Byte offset of the unit that holds (the low piece of) the field: hot callers may inline it. */
  readonly wordOffset: number;
  readonly shift: number;
  /** Mask of the field in its unit before shifting: value = (unit & mask) >>> shift. */
  readonly mask: number;
  get(view: DataView, base: number): number;
  set(view: DataView, base: number, value: number): void;
}

interface BigAccessor {
  readonly field: BigField;
  readonly wordOffset: number;
  get(view: DataView, base: number): bigint;
  set(view: DataView, base: number, value: bigint): void;
  /** The value as a number: exact below 2^53, rounded above. */
  getNumber(view: DataView, base: number): number;
  /** Stores an integer from 0 to 2^53 − 1. */
  setNumber(view: DataView, base: number, value: number): void;
  /** The upper 32 bits of the unit, masked to the field but not shifted. */
  getHighWord(view: DataView, base: number): number;
  /** The lower 32 bits of the unit, masked to the field but not shifted. */
  getLowWord(view: DataView, base: number): number;
}

interface FloatAccessor {
  readonly field: FloatField;
  readonly wordOffset: number;
  get(view: DataView, base: number): number;
  set(view: DataView, base: number, value: number): void;
}

interface BytesAccessor {
  readonly field: BytesField;
  readonly wordOffset: number;
  readonly lengthBytes: number;
  /** A view of the bytes in place: no copy. */
  get(view: DataView, base: number): Uint8Array;
  set(view: DataView, base: number, value: Uint8Array): void;
}

interface ArrayAccessor<E extends ElementField> {
  readonly field: ArrayField<E>;
  readonly count: number;
  readonly strideBytes: number;
  /** Accessor of the first element; add index × strideBytes to the base for the others. */
  readonly element: AccessorOf<E>;
}

interface NestedAccessor<F extends FieldTable> {
  readonly field: NestedField<F>;
  readonly wordOffset: number;
  /** The inner layout's accessors, rebased: they take the outer layout's base. */
  readonly fields: AccessorsOf<F>;
}

type AccessorOf<S> = S extends NumberField
  ? NumberAccessor
  : S extends BigField
    ? BigAccessor
    : S extends FloatField
      ? FloatAccessor
      : S extends BytesField
        ? BytesAccessor
        : S extends NestedField<infer F>
          ? NestedAccessor<F>
          : S extends ArrayField<infer E>
            ? ArrayAccessor<E>
            : never;

export type AccessorsOf<F extends FieldTable> = {
  readonly [K in keyof F as F[K] extends ReservedField ? never : K]: AccessorOf<F[K]>;
};

/** 2^bits − 1 for 0 to 32 bits, unsigned. */
const lowMask = (bits: number): number => (bits >= 32 ? 0xffff_ffff : (1 << bits) - 1);
const rangeMask = (range: BitRange): number => (lowMask(range.high - range.low + 1) << range.low) >>> 0;

/** One accessor per field of the table, offset by `shiftBytes`. */
export function accessorsOf<F extends FieldTable>(
  table: F,
  littleEndian: boolean,
  shiftBytes: number,
): AccessorsOf<F> {
  const entries = Object.entries(table).flatMap(([name, field]) =>
    field.kind === 'reserved' ? [] : [[name, accessorOf(field, littleEndian, shiftBytes)] as const],
  );
  // If filled property by property, an object of this many properties becomes a hash table, and each access a search.
  return Object.freeze(Object.fromEntries(entries)) as AccessorsOf<F>;
}

function accessorOf(
  field: Exclude<Field, ReservedField>,
  littleEndian: boolean,
  shiftBytes: number,
): unknown {
  switch (field.kind) {
    case 'number':
      return numberAccessor(field, littleEndian, shiftBytes);
    case 'bigint':
      return bigAccessor(field, littleEndian, shiftBytes);
    case 'float':
      return floatAccessor(field, littleEndian, shiftBytes);
    case 'bytes':
      return bytesAccessor(field, shiftBytes);
    case 'array': {
      const element = accessorOf(field.element, littleEndian, shiftBytes);
      return { field, count: field.count, strideBytes: field.strideBytes, element };
    }
    case 'nested': {
      const wordOffset = field.offset + shiftBytes;
      const innerLittleEndian = field.layout.byteOrder === 'little';
      return { field, wordOffset, fields: accessorsOf(field.layout.table, innerLittleEndian, wordOffset) };
    }
  }
}

function numberAccessor(field: NumberField, littleEndian: boolean, shiftBytes: number): NumberAccessor {
  const pieces = field.pieces.map((piece) => pieceAccess(piece, littleEndian, shiftBytes));
  const low = pieces[pieces.length - 1]!;
  const place = { field, wordOffset: low.wordOffset, shift: low.shift, mask: low.mask };
  if (pieces.length === 1 && field.alignmentBits === 0) return { ...place, get: low.get, set: low.set };
  if (pieces.length === 1) {
    const unit = 2 ** field.alignmentBits;
    return {
      ...place,
      get: (view, base) => low.get(view, base) * unit,
      set: (view, base, value) => low.set(view, base, value / unit),
    };
  }
  const high = pieces[0]!;
  const lowRange = field.pieces[1]!;
  const lowUnit = 2 ** field.alignmentBits;
  const highUnit = 2 ** (field.alignmentBits + lowRange.high - lowRange.low + 1);
  return {
    ...place,
    get: (view, base) => high.get(view, base) * highUnit + low.get(view, base) * lowUnit,
    set(view, base, value) {
      high.set(view, base, Math.floor(value / highUnit));
      low.set(view, base, (value % highUnit) / lowUnit);
    },
  };
}

type Piece = Omit<NumberAccessor, 'field'>;

/** Get and set of one bit range: a closure per unit width, and a shorter one if the field fills its unit. */
function pieceAccess(range: BitRange, littleEndian: boolean, shiftBytes: number): Piece {
  const wordOffset = range.offset + shiftBytes;
  const shift = range.low;
  const mask = rangeMask(range);
  const isWhole = range.high - range.low + 1 === range.unitBytes * 8;
  switch (range.unitBytes) {
    case 1:
      return isWhole ? whole8(wordOffset) : part8(wordOffset, shift, mask);
    case 2:
      return isWhole ? whole16(wordOffset, littleEndian) : part16(wordOffset, shift, mask, littleEndian);
    case 4:
      return isWhole ? whole32(wordOffset, littleEndian) : part32(wordOffset, shift, mask, littleEndian);
    case 8:
      throw new RangeError('a number field has no 64-bit unit'); // layout-check.ts has already rejected it
  }
}

const whole8 = (wordOffset: number): Piece => ({
  wordOffset,
  shift: 0,
  mask: 0xff,
  get: (view, base) => view.getUint8(base + wordOffset),
  set: (view, base, value) => view.setUint8(base + wordOffset, value),
});

const part8 = (wordOffset: number, shift: number, mask: number): Piece => ({
  wordOffset,
  shift,
  mask,
  get: (view, base) => (view.getUint8(base + wordOffset) & mask) >>> shift,
  set(view, base, value) {
    const at = base + wordOffset;
    view.setUint8(at, (view.getUint8(at) & ~mask) | ((value << shift) & mask));
  },
});

const whole16 = (wordOffset: number, littleEndian: boolean): Piece => ({
  wordOffset,
  shift: 0,
  mask: 0xffff,
  get: (view, base) => view.getUint16(base + wordOffset, littleEndian),
  set: (view, base, value) => view.setUint16(base + wordOffset, value, littleEndian),
});

const part16 = (wordOffset: number, shift: number, mask: number, littleEndian: boolean): Piece => ({
  wordOffset,
  shift,
  mask,
  get: (view, base) => (view.getUint16(base + wordOffset, littleEndian) & mask) >>> shift,
  set(view, base, value) {
    const at = base + wordOffset;
    view.setUint16(at, (view.getUint16(at, littleEndian) & ~mask) | ((value << shift) & mask), littleEndian);
  },
});

const whole32 = (wordOffset: number, littleEndian: boolean): Piece => ({
  wordOffset,
  shift: 0,
  mask: 0xffff_ffff,
  get: (view, base) => view.getUint32(base + wordOffset, littleEndian),
  set: (view, base, value) => view.setUint32(base + wordOffset, value, littleEndian),
});

const part32 = (wordOffset: number, shift: number, mask: number, littleEndian: boolean): Piece => ({
  wordOffset,
  shift,
  mask,
  get: (view, base) => (view.getUint32(base + wordOffset, littleEndian) & mask) >>> shift,
  set(view, base, value) {
    const at = base + wordOffset;
    view.setUint32(at, (view.getUint32(at, littleEndian) & ~mask) | ((value << shift) & mask), littleEndian);
  },
});

function bigAccessor(field: BigField, littleEndian: boolean, shiftBytes: number): BigAccessor {
  const { high, low, offset } = field.range;
  const wordOffset = offset + shiftBytes;
  const highOffset = wordOffset + (littleEndian ? 4 : 0);
  const lowOffset = wordOffset + (littleEndian ? 0 : 4);
  const highMask = lowMask(high - 31);
  const lowWordMask = (0xffff_ffff << low) >>> 0;
  const unit = 2 ** (low - field.alignmentBits); // the value is the masked unit divided by this
  const unitBits = BigInt(low - field.alignmentBits);
  const getHighWord = (view: DataView, base: number): number =>
    (view.getUint32(base + highOffset, littleEndian) & highMask) >>> 0;
  const getLowWord = (view: DataView, base: number): number =>
    (view.getUint32(base + lowOffset, littleEndian) & lowWordMask) >>> 0;
  const setWords = (view: DataView, base: number, highWord: number, lowWord: number): void => {
    const atHigh = base + highOffset;
    const atLow = base + lowOffset;
    const keptHigh = view.getUint32(atHigh, littleEndian) & ~highMask;
    const keptLow = view.getUint32(atLow, littleEndian) & ~lowWordMask;
    view.setUint32(atHigh, keptHigh | (highWord & highMask), littleEndian);
    view.setUint32(atLow, keptLow | (lowWord & lowWordMask), littleEndian);
  };
  return {
    field,
    wordOffset,
    getHighWord,
    getLowWord,
    get(view, base) {
      return ((BigInt(getHighWord(view, base)) << 32n) | BigInt(getLowWord(view, base))) >> unitBits;
    },
    set(view, base, value) {
      const word = BigInt.asUintN(64, value << unitBits);
      setWords(view, base, Number(word >> 32n), Number(word & 0xffff_ffffn));
    },
    getNumber: (view, base) =>
      (getHighWord(view, base) * 0x1_0000_0000) / unit + getLowWord(view, base) / unit,
    setNumber(view, base, value) {
      const word = value * unit;
      setWords(view, base, Math.floor(word / 0x1_0000_0000), word >>> 0);
    },
  };
}

function floatAccessor(field: FloatField, littleEndian: boolean, shiftBytes: number): FloatAccessor {
  const wordOffset = field.range.offset + shiftBytes;
  return {
    field,
    wordOffset,
    get: (view, base) => view.getFloat64(base + wordOffset, littleEndian),
    set: (view, base, value) => view.setFloat64(base + wordOffset, value, littleEndian),
  };
}

function bytesAccessor(field: BytesField, shiftBytes: number): BytesAccessor {
  const wordOffset = field.offset + shiftBytes;
  const lengthBytes = field.lengthBytes;
  const get = (view: DataView, base: number): Uint8Array =>
    new Uint8Array(view.buffer, view.byteOffset + base + wordOffset, lengthBytes);
  return { field, wordOffset, lengthBytes, get, set: (view, base, value) => get(view, base).set(value) };
}
