/** Entries of the key table (MPT) and of the table of translations (MTT) as key protection, translation and commands use them. */
import type { KeyRecord } from '../memory/index.ts';

export interface KeyFormat {
  /** Bytes of a key entry: at most 64. */
  readonly entryBytes: number;
  /** Fills `record` from the entry at `at`. */
  load(view: DataView, at: number, record: KeyRecord): void;
  /** Writes the fields that operations on keys change into the entry at `at`: state, key, rights, range, pages, binding. */
  store(view: DataView, at: number, record: KeyRecord): void;
}

export interface TranslationFormat {
  /** Bus address of the page of the entry at `at`, or -1 when the page is absent. */
  pageAt(view: DataView, at: number): number;
}
