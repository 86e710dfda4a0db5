/**
 * Host memory that software has given to the device for its contexts, keys and translations, as the card arranges it. Looking up an
 * address allocates nothing. Pages of the host's size are contiguous; their neighbours need not be.
 */
import type { BusAddress } from '../../../base/index.ts';
import type { ContextKind } from './ports.ts';

/** Translation entry: one page of an object's buffer or region. */
export const TRANSLATION_ENTRY_BYTES = 8;

export interface ContextMemory {
  /** Pages that software has donated. */
  readonly mappedPageCount: number;
  /** Places of the key table, a power of two: the index of a key is key >> 8 modulo this. 0 before software has made the table. */
  readonly keyCount: number;
  /** Bus address of an object's context, or -1 if the device has no memory for it. */
  contextAddress(kind: ContextKind, objectNumber: number): BusAddress;
  /** Bus address of the key entry of an index, which is taken modulo {@link keyCount}; or -1. */
  keyAddress(index: number): BusAddress;
  /** Bus address of the translation entry at a byte offset of the table of translations; or -1. */
  translationAddress(offset: number): BusAddress;
}
