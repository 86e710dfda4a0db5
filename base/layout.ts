/**
 * A wire format, declared once: a table in the standard's order. From it are derived the TypeScript type, the encoder and
 * decoder (cold path, through typed-binary), the hot-path accessors, the pretty printer, the size and the doc rows.
 *
 *     export const cqe = layout('CQE', { sizeBytes: 32, byteOrder: 'big', source: 'sheet 6.6' }, {
 *       qpNumber: bits32(0x00, 23, 0), byteCount: u32(0x14), opcode: bits8(0x1f, 4, 0),
 *     });
 *     cqe.fields.qpNumber.get(view, offset);        // hot: one load, one mask
 *     cqe.encode({ qpNumber: 0x209, opcode: 0x1e }); // cold: checked, everything else zero
 *
 * Loading the table checks it; a mistake throws a DeclarationError at import.
 */
import { DeclarationError } from './assert.ts';
import { type AccessorsOf, accessorsOf } from './layout-accessor.ts';
import { checkTable } from './layout-check.ts';
import type { FieldTable, InitialOf, ValuesOf } from './layout-field.ts';
import { type ByteOrder, decodeWith, encodeWith, LayoutSchema } from './layout-schema.ts';
import { type DocRow, docRowsOf, formatValues } from './layout-text.ts';

/** Properties of a layout besides its fields. */
export interface LayoutHeader {
  readonly sizeBytes: number;
  readonly byteOrder: ByteOrder;
  /** Source of the table: a section of the interface sheet, a header, a clause. */
  readonly source: string;
}

export interface Layout<F extends FieldTable> extends LayoutHeader {
  readonly name: string;
  readonly table: F;
  /** Hot-path accessors, one per field. */
  readonly fields: AccessorsOf<F>;
  /** The typed-binary schema; its stream must have the layout's byte order. */
  readonly schema: LayoutSchema<F>;
  /** Reads one instance; byte fields are copies. */
  decode(bytes: Uint8Array, offset?: number): ValuesOf<F>;
  /** A new buffer with the given fields, all else zero. Throws FieldValueError for a value that does not fit. */
  encode(values: InitialOf<F>): Uint8Array<ArrayBuffer>;
  /** Like `encode`, over the layout's whole size in an existing buffer. */
  encodeInto(values: InitialOf<F>, bytes: Uint8Array, offset?: number): void;
  /** Lines `name=value`. */
  format(bytes: Uint8Array, offset?: number): string[];
  docRows(): DocRow[];
}

/** The decoded object of a layout: `Decoded<typeof cqe>`. */
export type Decoded<L> = L extends Layout<infer F> ? ValuesOf<F> : never;
/** Argument of a layout's `encode`: any subset of the decoded object. */
export type Initial<L> = L extends Layout<infer F> ? InitialOf<F> : never;

export function layout<const F extends FieldTable>(name: string, header: LayoutHeader, table: F): Layout<F> {
  const { sizeBytes, byteOrder, source } = header;
  checkByteOrder(name, byteOrder, table);
  checkTable(name, sizeBytes, table, byteOrder === 'little');
  const schema = new LayoutSchema(name, sizeBytes, byteOrder, table);
  const decode = (bytes: Uint8Array, offset = 0): ValuesOf<F> => decodeWith(schema, byteOrder, bytes, offset);
  return Object.freeze({
    name,
    sizeBytes,
    byteOrder,
    source,
    table,
    schema,
    fields: accessorsOf(table, byteOrder === 'little', 0),
    decode,
    encode(values: InitialOf<F>) {
      const bytes = new Uint8Array(sizeBytes);
      encodeWith(schema, byteOrder, values, bytes, 0);
      return bytes;
    },
    encodeInto(values: InitialOf<F>, bytes: Uint8Array, offset = 0) {
      encodeWith(schema, byteOrder, values, bytes, offset);
    },
    format: (bytes: Uint8Array, offset = 0) => formatValues(table, decode(bytes, offset)),
    docRows: () => docRowsOf(table),
  });
}

/** A nested layout has the byte order of the outer one: no format of the interface mixes them. */
function checkByteOrder(name: string, byteOrder: ByteOrder, table: FieldTable): void {
  for (const [fieldName, field] of Object.entries(table)) {
    const inner = field.kind === 'array' ? field.element : field;
    if (inner.kind === 'nested' && inner.layout.byteOrder !== byteOrder) {
      throw new DeclarationError(`${name}.${fieldName} byte order`, inner.layout.byteOrder, byteOrder);
    }
  }
}
