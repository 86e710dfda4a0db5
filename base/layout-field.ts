/**
 * The vocabulary of wire-format tables: one constructor per kind of field, and a few modifiers.
 *
 * Offsets are byte offsets in the layout. `bits32(0x10, 23, 0)` means: take the four bytes at 0x10, read them as one 32-bit
 * number in the layout's byte order, bits 23 down to 0. Every constructor takes an optional last argument, the field's meaning
 * in a few words, for the documentation row. These functions only record; `layout-check.ts` checks a finished table.
 */
import type { Layout } from './layout.ts';

/** Bits [high:low] of the unit of `unitBytes` bytes at `offset`. */
export interface BitRange {
  readonly offset: number;
  readonly unitBytes: 1 | 2 | 4 | 8;
  readonly high: number;
  readonly low: number;
}

interface FieldNotes {
  /** Meaning of the field, for the documentation row; may be empty. */
  readonly meaning: string;
  /** Names of the values, for the pretty printer; spelled as in the `as const` table. */
  readonly valueNames: Readonly<Record<string, number>> | undefined;
  /** False: decoded and encoded, but without effect in the model. */
  readonly isModelled: boolean;
}

/** A number of at most 53 bits in one or two pieces, high piece first. */
export interface NumberField extends FieldNotes {
  readonly kind: 'number';
  readonly pieces: readonly [BitRange] | readonly [BitRange, BitRange];
  /** Low bits of the value that are zero by alignment and not stored. */
  readonly alignmentBits: number;
}

/** A bigint out of a 64-bit unit. */
export interface BigField extends FieldNotes {
  readonly kind: 'bigint';
  readonly range: BitRange;
  /** Low bits of the value that are zero by alignment and not stored. */
  readonly alignmentBits: number;
}

/** A float64: an instant or an address in a record that travels between blocks, never in a format of the interface. */
export interface FloatField extends FieldNotes {
  readonly kind: 'float';
  readonly range: BitRange;
}

/** Raw bytes: a GID, a description, an inline payload. */
export interface BytesField extends FieldNotes {
  readonly kind: 'bytes';
  readonly offset: number;
  readonly lengthBytes: number;
}

/** `count` equal elements, `strideBytes` apart; the declared element is the first one. */
export interface ArrayField<E extends ElementField = ElementField> extends FieldNotes {
  readonly kind: 'array';
  readonly element: E;
  readonly count: number;
  readonly strideBytes: number;
}

/** Another layout inside this one. */
export interface NestedField<F extends FieldTable = FieldTable> extends FieldNotes {
  readonly kind: 'nested';
  readonly offset: number;
  readonly layout: Layout<F>;
}

/** Written as zero, ignored on read, absent from the decoded object. */
export interface ReservedField extends FieldNotes {
  readonly kind: 'reserved';
  readonly ranges: readonly BitRange[];
}

export type ElementField = NumberField | BigField | FloatField | BytesField | NestedField;
export type Field = ElementField | ArrayField | ReservedField;
export type FieldTable = { readonly [name: string]: Field };

/** The TypeScript value of one field. */
type ValueOfField<S> = S extends NumberField | FloatField
  ? number
  : S extends BigField
    ? bigint
    : S extends BytesField
      ? Uint8Array
      : S extends NestedField<infer F>
        ? ValuesOf<F>
        : S extends ArrayField<infer E>
          ? ValueOfField<E>[]
          : never;

/** The decoded object of a table: every field except the reserved ones. */
export type ValuesOf<F extends FieldTable> = {
  -readonly [K in keyof F as F[K] extends ReservedField ? never : K]: ValueOfField<F[K]>;
};

type InitialOfField<S> =
  S extends NestedField<infer F>
    ? InitialOf<F>
    : S extends ArrayField<infer E>
      ? readonly InitialOfField<E>[]
      : Readonly<ValueOfField<S>>;

/** Argument of `encode`: any subset of the fields; those left out are zero. */
export type InitialOf<F extends FieldTable> = {
  readonly [K in keyof F as F[K] extends ReservedField ? never : K]?: InitialOfField<F[K]>;
};

const noted = (meaning: string): FieldNotes => ({ meaning, valueNames: undefined, isModelled: true });

const inOnePiece = (
  offset: number,
  unitBytes: 1 | 2 | 4,
  high: number,
  low: number,
  meaning: string,
): NumberField => ({
  kind: 'number',
  pieces: [{ offset, unitBytes, high, low }],
  alignmentBits: 0,
  ...noted(meaning),
});

export const u8 = (offset: number, meaning = ''): NumberField => inOnePiece(offset, 1, 7, 0, meaning);
export const u16 = (offset: number, meaning = ''): NumberField => inOnePiece(offset, 2, 15, 0, meaning);
export const u32 = (offset: number, meaning = ''): NumberField => inOnePiece(offset, 4, 31, 0, meaning);
export const u64 = (offset: number, meaning = ''): BigField => bits64(offset, 63, 0, meaning);

export const bits8 = (offset: number, high: number, low: number, meaning = ''): NumberField =>
  inOnePiece(offset, 1, high, low, meaning);
export const bits16 = (offset: number, high: number, low: number, meaning = ''): NumberField =>
  inOnePiece(offset, 2, high, low, meaning);
export const bits32 = (offset: number, high: number, low: number, meaning = ''): NumberField =>
  inOnePiece(offset, 4, high, low, meaning);
/** Bits of a 64-bit unit that cross its middle (high at least 32, low at most 31); anything else is a `bits32`. */
export const bits64 = (offset: number, high: number, low: number, meaning = ''): BigField => ({
  kind: 'bigint',
  range: { offset, unitBytes: 8, high, low },
  alignmentBits: 0,
  ...noted(meaning),
});

export const f64 = (offset: number, meaning = ''): FloatField => ({
  kind: 'float',
  range: { offset, unitBytes: 8, high: 63, low: 0 },
  ...noted(meaning),
});

export const bytes = (offset: number, lengthBytes: number, meaning = ''): BytesField => ({
  kind: 'bytes',
  offset,
  lengthBytes,
  ...noted(meaning),
});

/** The value keeps its position in the unit instead of being shifted down: an address whose low bits are zero by alignment. */
export function aligned<S extends NumberField | BigField>(field: S): S {
  const range = field.kind === 'number' ? field.pieces[field.pieces.length - 1]! : field.range;
  return { ...field, alignmentBits: range.low };
}

/** One number stored in two places, such as an MTT address with its high byte apart; `low` may be `aligned`. */
export const joined = (high: NumberField, low: NumberField, meaning = ''): NumberField => ({
  kind: 'number',
  pieces: [high.pieces[0], low.pieces[0]],
  alignmentBits: low.alignmentBits,
  ...noted(meaning),
});

/** `count` elements, declared by the first one. Without a stride they are dense. */
export const array = <E extends ElementField>(
  element: E,
  count: number,
  meaning = '',
  strideBytes = elementBytes(element),
): ArrayField<E> => ({ kind: 'array', element, count, strideBytes, ...noted(meaning) });

export const nested = <F extends FieldTable>(
  offset: number,
  layout: Layout<F>,
  meaning = '',
): NestedField<F> => ({ kind: 'nested', offset, layout, ...noted(meaning) });

/** Reserved: written as zero, ignored on read. */
export const reserved = (field: NumberField | BigField): ReservedField => ({
  kind: 'reserved',
  ranges: field.kind === 'number' ? field.pieces : [field.range],
  ...noted('reserved'),
});

/** Known but not modelled: stored, without effect. */
export const notModelled = <S extends ElementField | ArrayField>(field: S): S => ({
  ...field,
  isModelled: false,
});

/** Gives the field's values the names of an `as const` table, for the pretty printer. */
export const named = <S extends NumberField>(field: S, valueNames: Readonly<Record<string, number>>): S => ({
  ...field,
  valueNames,
});

/** Bits of a field's value, alignment included. */
export function valueBits(field: NumberField | BigField): number {
  const ranges: readonly BitRange[] = field.kind === 'number' ? field.pieces : [field.range];
  return ranges.reduce((sum, range) => sum + range.high - range.low + 1, field.alignmentBits);
}

/** Bytes one element occupies, for the default stride of an array. */
function elementBytes(element: ElementField): number {
  switch (element.kind) {
    case 'number':
      return sumOf(element.pieces.map((piece) => piece.unitBytes));
    case 'bigint':
    case 'float':
      return element.range.unitBytes;
    case 'bytes':
      return element.lengthBytes;
    case 'nested':
      return element.layout.sizeBytes;
  }
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);
