/**
 * A key entry that an operation works on. Reads its bytes from the MPT cache if they are on chip, otherwise from context memory;
 * writes them back to context memory and to the cache at once.
 */
import { type BusAddress, viewOf } from '../../../base/index.ts';
import type { KeyFormat } from '../host-interface/index.ts';
import { type ContextMemory, KeyRecord, type Translator } from '../memory/index.ts';
import { demand, type KeySteps, read, write } from './key-steps.ts';

/** Parts of the device that operations use. */
export interface KeyStores {
  readonly contextMemory: ContextMemory;
  readonly keyFormat: KeyFormat;
  readonly translator: Pick<Translator, 'cachedMpt' | 'replaceMpt' | 'forgetMttRange'>;
}

export class KeyEntry {
  readonly index: number;
  readonly address: BusAddress;
  /** The entry in the card's form: as it was read, until {@link commit}. */
  readonly bytes: Uint8Array;
  readonly record = new KeyRecord();
  readonly #view: DataView;
  readonly #format: KeyFormat;

  constructor(index: number, address: BusAddress, bytes: Uint8Array, format: KeyFormat) {
    this.index = index;
    this.address = address;
    this.bytes = bytes;
    this.#view = viewOf(bytes);
    this.#format = format;
    format.load(this.#view, 0, this.record);
  }

  /** Brings the bytes up to date with the record. */
  commit(): DataView {
    this.#format.store(this.#view, 0, this.record);
    return this.#view;
  }
}

/** The entry of the key's index. Refused: no such place exists, or it cannot be read. */
export function* readEntry(stores: KeyStores, key: number): KeySteps<KeyEntry> {
  const { contextMemory, keyFormat, translator } = stores;
  const { keyCount } = contextMemory;
  demand(keyCount > 0);
  const index = (key >>> 8) % keyCount;
  const address = contextMemory.keyAddress(index);
  demand(address >= 0);
  const bytes = translator.cachedMpt(key >>> 8) ?? (yield* read(address, keyFormat.entryBytes));
  demand(bytes !== undefined);
  return new KeyEntry(index, address, bytes, keyFormat);
}

/** Writes the entry into context memory; the copy on chip is replaced, and translations made by it are forgotten. */
export function* writeEntry(stores: KeyStores, entry: KeyEntry): KeySteps<void> {
  const view = entry.commit();
  yield* write(entry.address, entry.bytes);
  stores.translator.replaceMpt(entry.index, view);
}
