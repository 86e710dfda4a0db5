/**
 * Layouts of records that stay inside the model and are reached by index, through an Int32Array and a Float64Array over the
 * same memory: a ring of a channel, the slots of a fifo. The indices are computed from the declaration, once, while the module
 * loads:
 *
 *     const { fields } = layout('TLP record', { sizeBytes: 64, byteOrder: 'little', … }, { lengthBytes: u32(0x28), … });
 *     const WORD_LENGTH = wordIndexOf(fields.lengthBytes);      // words[(offset >> 2) + WORD_LENGTH]: one load
 *
 * A field that is part of a word also has a `mask` and a `shift`. The byte order is that of the arrays: little-endian on every
 * machine that Node supports.
 */
import { DeclarationError } from './assert.ts';

interface Placed {
  readonly wordOffset: number;
}

function indexOf({ wordOffset }: Placed, sizeBytes: number): number {
  if (wordOffset % sizeBytes !== 0) {
    throw new DeclarationError('offset in a record', wordOffset, `a multiple of ${sizeBytes}`);
  }
  return wordOffset / sizeBytes;
}

/** Index of the field's word, counted in words of 32 bits from the record's start. */
export const wordIndexOf = (field: Placed): number => indexOf(field, 4);

/** Index of a float64 field, counted in float64s from the record's start. */
export const floatIndexOf = (field: Placed): number => indexOf(field, 8);
