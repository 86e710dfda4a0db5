/**
 * On-chip copies of key entries (MPT) and of lines of translations (MTT, eight entries of 8 bytes), read from context memory by DMA. The
 * loaded fields are held in typed arrays by cache line.
 */
import { ADDRESS_TOP_MAX, ADDRESS_TOP_UNIT } from '../../../base/index.ts';
import type { KeyFormat, TranslationFormat } from '../host-interface/index.ts';
import { type ReplacementPolicy, SetAssociativeDirectory } from '../objects/index.ts';
import { TRANSLATION_ENTRY_BYTES } from './context-memory.ts';
import { KeyRecord } from './key-record.ts';

export const MTT_LINE_BYTES = 64;
export const MTT_ENTRIES_PER_LINE = MTT_LINE_BYTES / TRANSLATION_ENTRY_BYTES;

/**
 * Rights of a key, the bits of {@link KeyRecord.rights}.
 */
export const RIGHT_LOCAL_READ = 1;
export const RIGHT_LOCAL_WRITE = 2;
export const RIGHT_REMOTE_READ = 4;
export const RIGHT_REMOTE_WRITE = 8;
export const RIGHT_REMOTE_ATOMIC = 16;

/** Value instead of the QP to which a window is bound. */
export const NO_QPN = -1;

export class MptCache {
  readonly directory: SetAssociativeDirectory;
  /** 0: valid, hardware owned. Anything else refuses every access. */
  readonly status: Uint8Array;
  readonly key: Float64Array;
  readonly pd: Int32Array;
  readonly rights: Uint8Array;
  readonly isPhysical: Uint8Array;
  readonly isRegion: Uint8Array;
  /** 1 if an absent page is requested rather than refused. */
  readonly isOnDemand: Uint8Array;
  /** Virtual address of the first byte, and its top. */
  readonly start: Float64Array;
  readonly startTop: Uint16Array;
  /** Length of the region or window. With pages it is at most 2^52, so that every byte has an exact offset. */
  readonly length: Float64Array;
  readonly mttOffset: Float64Array;
  readonly pageBytes: Float64Array;
  /** Offset of the region's or window's start in its first page. */
  readonly startInPage: Float64Array;
  /** The QP to which a window of type 2 is bound; -1 for others. */
  readonly boundQpn: Int32Array;
  /** The entries in the card's form, {@link entryBytes} each. */
  readonly bytes: Uint8Array;
  readonly entryBytes: number;
  readonly #format: KeyFormat;
  readonly #record = new KeyRecord();

  constructor(lineCount: number, ways: number, policy: ReplacementPolicy, format: KeyFormat) {
    this.#format = format;
    this.entryBytes = format.entryBytes;
    this.directory = new SetAssociativeDirectory(lineCount, ways, policy);
    this.status = new Uint8Array(lineCount);
    this.key = new Float64Array(lineCount);
    this.pd = new Int32Array(lineCount);
    this.rights = new Uint8Array(lineCount);
    this.isPhysical = new Uint8Array(lineCount);
    this.isRegion = new Uint8Array(lineCount);
    this.isOnDemand = new Uint8Array(lineCount);
    this.start = new Float64Array(lineCount);
    this.startTop = new Uint16Array(lineCount);
    this.length = new Float64Array(lineCount);
    this.mttOffset = new Float64Array(lineCount);
    this.pageBytes = new Float64Array(lineCount);
    this.startInPage = new Float64Array(lineCount);
    this.boundQpn = new Int32Array(lineCount);
    this.bytes = new Uint8Array(lineCount * format.entryBytes);
  }

  /** Loads the entry at `offset` of `view` into `line`. */
  load(line: number, view: DataView, offset: number): void {
    const record = this.#record;
    this.#format.load(view, offset, record);
    this.status[line] = record.state;
    this.key[line] = record.key;
    this.pd[line] = record.pd;
    this.rights[line] = record.rights;
    this.isPhysical[line] = record.isPhysical ? 1 : 0;
    this.isRegion[line] = record.isRegion ? 1 : 0;
    this.isOnDemand[line] = record.isOnDemand ? 1 : 0;
    this.start[line] = record.start;
    this.startTop[line] = record.startTop;
    this.length[line] = lengthWithin(record);
    this.mttOffset[line] = record.translationOffset;
    this.pageBytes[line] = 2 ** record.logPageBytes;
    this.startInPage[line] = record.startInPage;
    this.boundQpn[line] = !record.isRegion && record.isOfQp ? record.boundQpn : NO_QPN;
    const { entryBytes } = this;
    const entry = new Uint8Array(view.buffer, view.byteOffset + offset, entryBytes);
    this.bytes.set(entry, line * entryBytes);
  }
}

/** Bytes up to where the entry's range ends, or addresses do at 2^64, or places among its pages are exact. */
function lengthWithin({ lengthBytes, isPhysical, start, startTop }: KeyRecord): number {
  if (isPhysical) return lengthBytes;
  const within = startTop === ADDRESS_TOP_MAX ? ADDRESS_TOP_UNIT - start : ADDRESS_TOP_UNIT;
  return lengthBytes < within ? lengthBytes : within;
}

export class MttCache {
  readonly directory: SetAssociativeDirectory;
  /** Page addresses by line and entry; -1 where the entry is not present. */
  readonly pages: Float64Array;

  readonly #format: TranslationFormat;

  constructor(lineCount: number, ways: number, policy: ReplacementPolicy, format: TranslationFormat) {
    this.#format = format;
    this.directory = new SetAssociativeDirectory(lineCount, ways, policy);
    this.pages = new Float64Array(lineCount * MTT_ENTRIES_PER_LINE);
  }

  /** Loads a line of entries at `offset` of `view` into `line`. */
  load(line: number, view: DataView, offset: number): void {
    const first = line * MTT_ENTRIES_PER_LINE;
    for (let entry = 0; entry < MTT_ENTRIES_PER_LINE; entry++)
      this.pages[first + entry] = this.#format.pageAt(view, offset + entry * TRANSLATION_ENTRY_BYTES);
  }
}
