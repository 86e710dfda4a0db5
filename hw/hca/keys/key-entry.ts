/**
 * An MPT entry that an operation on keys works on: its bytes, from the MPT cache if they are on chip, else from ICM; and its way
 * back, into the page of ICM and into the cache at once.
 */
import { keyOfIndexForm, mpt, mptIndexOfKey } from '../../../abi/index.ts';
import {
  addressAt,
  addressTopAt,
  type BusAddress,
  placeInPage,
  putAddress,
  type VirtualAddress,
  viewOf,
} from '../../../base/index.ts';
import type { IcmMap, Translator } from '../memory/index.ts';
import { demand, type KeySteps, read, write } from './key-steps.ts';

/** What operations reach of the device. */
export interface KeyStores {
  readonly icm: IcmMap;
  readonly translator: Pick<Translator, 'cachedMpt' | 'replaceMpt' | 'forgetMttRange'>;
}

const { fields } = mpt;
const startPlace = fields.startAddress.wordOffset;

export class KeyEntry {
  readonly index: number;
  readonly address: BusAddress;
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(index: number, address: BusAddress, bytes: Uint8Array) {
    this.index = index;
    this.address = address;
    this.bytes = bytes;
    this.view = viewOf(bytes);
  }

  get(name: NumberField): number {
    return fields[name].get(this.view, 0);
  }

  set(name: NumberField, value: number): void {
    fields[name].set(this.view, 0, value);
  }

  /** The whole key, with its variant. */
  get key(): number {
    return keyOfIndexForm(this.get('keyIndexForm'));
  }

  /** Virtual address of the first byte with its top, and the length. */
  get start(): VirtualAddress {
    return addressAt(this.view, startPlace);
  }

  get startTop(): number {
    return addressTopAt(this.view, startPlace);
  }

  get lengthBytes(): number {
    return fields.lengthBytes.getNumber(this.view, 0);
  }

  setRange(start: VirtualAddress, startTop: number, lengthBytes: number): void {
    putAddress(this.view, startPlace, start, startTop);
    fields.lengthBytes.setNumber(this.view, 0, lengthBytes);
  }

  /** Where the object begins within its first page. */
  get startInPage(): number {
    if (this.get('firstByteOffsetEnabled') === 1) return this.get('firstByteOffset');
    return placeInPage(this.start, this.startTop, 2 ** this.get('logPageSize'));
  }
}

/** The fields that hold a number. */
type NumberField = Exclude<keyof typeof fields, 'startAddress' | 'lengthBytes'>;

/** The entry of the key's index. Refused: there is no such place, or it cannot be read. */
export function* readEntry(stores: KeyStores, key: number): KeySteps<KeyEntry> {
  const { icm, translator } = stores;
  const place = icm.placeOf('dmpt');
  demand(place !== undefined);
  const index = mptIndexOfKey(key, place.logEntries);
  const address = icm.dmptEntryAddress(index);
  demand(address >= 0);
  const bytes = translator.cachedMpt(key >>> 8) ?? (yield* read(address, mpt.sizeBytes));
  demand(bytes !== undefined);
  return new KeyEntry(index, address, bytes);
}

/** Writes the entry into ICM; what is on chip of it is as new from then on, and translations made by it are forgotten. */
export function* writeEntry(stores: KeyStores, entry: KeyEntry): KeySteps<void> {
  yield* write(entry.address, entry.bytes);
  stores.translator.replaceMpt(entry.index, entry.view);
}
