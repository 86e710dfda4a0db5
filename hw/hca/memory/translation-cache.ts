/**
 * On-chip copies of MPT entries and of MTT lines (eight entries of 8 bytes), filled from ICM by DMA.
 * The decoded fields are held in typed arrays by cache line.
 */
import { mpt } from '../../../abi/index.ts';
import {
  ADDRESS_TOP_MAX,
  ADDRESS_TOP_UNIT,
  addressAt,
  addressTopAt,
  placeInPage,
  type VirtualAddress,
} from '../../../base/index.ts';
import { type ReplacementPolicy, SetAssociativeDirectory } from '../objects/index.ts';

export const MPT_ENTRY_BYTES = 64;
export const MTT_LINE_BYTES = 64;
export const MTT_ENTRIES_PER_LINE = 8;

/** Rights as they stand in the MPT entry's flag bits, for {@link MptCache.rights}. */
export const RIGHT_LOCAL_READ = 1;
export const RIGHT_LOCAL_WRITE = 2;
export const RIGHT_REMOTE_READ = 4;
export const RIGHT_REMOTE_WRITE = 8;
export const RIGHT_REMOTE_ATOMIC = 16;

const startPlace = mpt.fields.startAddress.wordOffset;
/** In place of a QP that a window is bound to. */
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
  /** A page that is not present is asked for, not refused. */
  readonly isOnDemand: Uint8Array;
  /** Virtual address of the first byte, and its top. */
  readonly start: Float64Array;
  readonly startTop: Uint16Array;
  /** Of a region or window with pages at most 2^52, of which every byte has an exact place. */
  readonly length: Float64Array;
  readonly mttOffset: Float64Array;
  readonly pageBytes: Float64Array;
  /** Where the region or window begins within its first page. */
  readonly startInPage: Float64Array;
  /** Of a window of type 2, the QP it is bound to; else -1. */
  readonly boundQpn: Int32Array;
  /** The entries as they lie in ICM. */
  readonly bytes: Uint8Array;

  constructor(lineCount: number, ways: number, policy: ReplacementPolicy) {
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
    this.bytes = new Uint8Array(lineCount * MPT_ENTRY_BYTES);
  }

  /** Takes the 64 bytes of an MPT entry at `offset` of `view` into `line`. */
  load(line: number, view: DataView, offset: number): void {
    const fields = mpt.fields;
    this.status[line] = fields.status.get(view, offset);
    this.key[line] = rotatedLeft8(fields.keyIndexForm.get(view, offset));
    this.pd[line] = fields.pd.get(view, offset);
    this.rights[line] =
      fields.localReadEnabled.get(view, offset) * RIGHT_LOCAL_READ +
      fields.localWriteEnabled.get(view, offset) * RIGHT_LOCAL_WRITE +
      fields.remoteReadEnabled.get(view, offset) * RIGHT_REMOTE_READ +
      fields.remoteWriteEnabled.get(view, offset) * RIGHT_REMOTE_WRITE +
      fields.atomicEnabled.get(view, offset) * RIGHT_REMOTE_ATOMIC;
    this.isPhysical[line] = fields.isPhysical.get(view, offset);
    this.isRegion[line] = fields.isRegion.get(view, offset);
    this.isOnDemand[line] = fields.isOnDemand.get(view, offset);
    const start = addressAt(view, offset + startPlace);
    const startTop = addressTopAt(view, offset + startPlace);
    this.start[line] = start;
    this.startTop[line] = startTop;
    this.length[line] = lengthWithin(view, offset, start, startTop);
    this.mttOffset[line] = fields.mttAddress.get(view, offset);
    this.pageBytes[line] = 2 ** fields.logPageSize.get(view, offset);
    this.startInPage[line] =
      fields.firstByteOffsetEnabled.get(view, offset) === 1
        ? fields.firstByteOffset.get(view, offset)
        : placeInPage(start, startTop, this.pageBytes[line]!);
    const isOfQp = fields.isRegion.get(view, offset) === 0 && fields.isBoundToQp.get(view, offset) === 1;
    this.boundQpn[line] = isOfQp ? fields.boundQpn.get(view, offset) : NO_QPN;
    const entry = new Uint8Array(view.buffer, view.byteOffset + offset, MPT_ENTRY_BYTES);
    this.bytes.set(entry, line * MPT_ENTRY_BYTES);
  }
}

/** Bytes up to where the entry's range ends, or addresses do at 2^64, or places among its pages are exact. */
function lengthWithin(view: DataView, offset: number, start: VirtualAddress, startTop: number): number {
  const lengthBytes = mpt.fields.lengthBytes.getNumber(view, offset);
  if (mpt.fields.isPhysical.get(view, offset) === 1) return lengthBytes;
  const within = startTop === ADDRESS_TOP_MAX ? ADDRESS_TOP_UNIT - start : ADDRESS_TOP_UNIT;
  return lengthBytes < within ? lengthBytes : within;
}

/** The key as software uses it, from the index form of the MPT entry. */
function rotatedLeft8(value: number): number {
  return ((value << 8) | (value >>> 24)) >>> 0;
}

export class MttCache {
  readonly directory: SetAssociativeDirectory;
  /** Page addresses by line and entry; -1 where the entry is not present. */
  readonly pages: Float64Array;

  constructor(lineCount: number, ways: number, policy: ReplacementPolicy) {
    this.directory = new SetAssociativeDirectory(lineCount, ways, policy);
    this.pages = new Float64Array(lineCount * MTT_ENTRIES_PER_LINE);
  }

  /** Takes 64 bytes of MTT entries at `offset` of `view` into `line`. */
  load(line: number, view: DataView, offset: number): void {
    for (let entry = 0; entry < MTT_ENTRIES_PER_LINE; entry++) {
      const high = view.getUint32(offset + entry * 8);
      const low = view.getUint32(offset + entry * 8 + 4);
      const isPresent = (low & 1) === 1;
      this.pages[line * MTT_ENTRIES_PER_LINE + entry] = isPresent ? high * 2 ** 32 + ((low & ~7) >>> 0) : -1;
    }
  }
}
