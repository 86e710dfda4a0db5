/** Memory regions for the data-path bench: MPT and MTT entries as a driver writes them, and bytes with a pattern. */
import { indexFormOfKey } from '../../../abi/keys.ts';
import { MptStatus, mpt } from '../../../abi/mpt.ts';
import type { Initial } from '../../../base/index.ts';
import type { AnyNode } from './data-path-bench.ts';

/** Protection domain of everything that a spec does not give another one. */
export const PD = 5;

/** Rights of a region by the names of verbs. */
export interface Rights {
  readonly localRead?: boolean;
  readonly localWrite?: boolean;
  readonly remoteRead?: boolean;
  readonly remoteWrite?: boolean;
  readonly remoteAtomic?: boolean;
}

export const allRights: Rights = {
  localRead: true,
  localWrite: true,
  remoteRead: true,
  remoteWrite: true,
  remoteAtomic: true,
};

/** A scatter/gather entry, at any address. */
export interface AnySegment {
  readonly address: number | bigint;
  readonly bytes: number;
  readonly key: number;
}

/** One within a {@link Region}. */
export interface Segment extends AnySegment {
  readonly address: number;
}

export interface RegionOptions {
  readonly pd?: number;
  readonly rights?: Rights;
  /** Offset of the first byte in its first page. */
  readonly pageOffset?: number;
  readonly logPageBytes?: number;
  readonly variant?: number;
  /** Pages that are not present. */
  readonly holes?: readonly number[];
  /** Whether absent pages are requested. */
  readonly isOnDemand?: boolean;
  /** Windows may be bound. */
  readonly isBindable?: boolean;
  /** Other fields of the entry. */
  readonly fields?: Initial<typeof mpt>;
}

/** A memory region over pages that lie apart and in descending order, so that no two neighbours are contiguous. */
export class Region {
  readonly key: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly mptIndex: number;
  readonly #node: AnyNode;
  readonly #pages: number[] = [];
  readonly #pageBytes: number;
  readonly #pageOffset: number;
  readonly #mttOffset: number;
  #status: number = MptStatus.VALID;
  readonly #fields: Initial<typeof mpt>;

  constructor(node: AnyNode, lengthBytes: number, options: RegionOptions = {}) {
    this.#node = node;
    this.lengthBytes = lengthBytes;
    this.#pageBytes = 2 ** (options.logPageBytes ?? 12);
    this.#pageOffset = options.pageOffset ?? 0;
    const pageCount = Math.ceil((this.#pageOffset + lengthBytes) / this.#pageBytes);
    const base = node.allocate(2 * pageCount * this.#pageBytes, this.#pageBytes);
    for (let page = 0; page < pageCount; page++)
      this.#pages.push(base + 2 * (pageCount - 1 - page) * this.#pageBytes);
    const holes = options.holes ?? [];
    this.#mttOffset = node.writeMtt(this.#pages.map((page, index) => (holes.includes(index) ? -1 : page)));
    // The virtual address is congruent to the first byte's place in its page, and above 4 GiB.
    this.address = 0x7f00_0000_0000 + base * 16 + this.#pageOffset;
    const rights = options.rights ?? allRights;
    this.#fields = {
      localReadEnabled: rights.localRead ? 1 : 0,
      localWriteEnabled: rights.localWrite ? 1 : 0,
      remoteReadEnabled: rights.remoteRead ? 1 : 0,
      remoteWriteEnabled: rights.remoteWrite ? 1 : 0,
      atomicEnabled: rights.remoteAtomic ? 1 : 0,
      isRegion: 1,
      isOnDemand: options.isOnDemand === true ? 1 : 0,
      pd: options.pd ?? PD,
      startAddress: BigInt(this.address),
      lengthBytes: BigInt(lengthBytes),
      mttAddress: this.#mttOffset,
      logPageSize: options.logPageBytes ?? 12,
      bindEnabled: options.isBindable === true ? 1 : 0,
      localInvalidateEnabled: 1,
      remoteInvalidateEnabled: 1,
      ...options.fields,
    };
    const keyOf = (index: number): number => ((index << 8) | (options.variant ?? 0)) >>> 0;
    this.mptIndex = node.writeMpt((index) =>
      mpt.encode({ status: this.#status, ...this.#fields, keyIndexForm: indexFormOfKey(keyOf(index)) }),
    );
    this.key = keyOf(this.mptIndex);
    node.act(() => node.dataPath.control.mptChanged(this.mptIndex));
  }

  /** Writes the translation entry of a page, or clears it. */
  setPresent(page: number, isPresent: boolean): void {
    const at = this.#node.icm.translationAddress(this.#mttOffset + page * 8);
    this.#node.view.setUint32(at, 0);
    this.#node.view.setUint32(at + 4, isPresent ? this.#pages[page]! + 1 : 0);
  }

  /** Has a page lie beyond the memory of the host, at 2^40: the root complex answers "unsupported request". */
  loseMemory(page: number): void {
    const at = this.#node.icm.translationAddress(this.#mttOffset + page * 8);
    this.#node.view.setUint32(at, 0x100);
    this.#node.view.setUint32(at + 4, 1);
    this.#node.act(() => this.#node.dataPath.control.translationChanged());
  }

  /** A scatter/gather entry within the region. */
  part(offset = 0, bytes = this.lengthBytes - offset): Segment {
    return { address: this.address + offset, bytes, key: this.key };
  }

  write(bytes: Uint8Array, offset = 0): void {
    for (const { at, first, end } of this.#pieces(offset, bytes.length))
      this.#node.memory.bytes.set(bytes.subarray(first, end), at);
  }

  read(offset = 0, lengthBytes = this.lengthBytes - offset): Uint8Array {
    const bytes = new Uint8Array(lengthBytes);
    for (const { at, first, end } of this.#pieces(offset, lengthBytes))
      bytes.set(this.#node.memory.bytes.subarray(at, at + end - first), first);
    return bytes;
  }

  /** Fills the region with bytes that depend on `seed` and place. */
  fill(seed: number): void {
    this.write(pattern(seed, this.lengthBytes));
  }

  physical(offset: number): number {
    const byte = this.#pageOffset + offset;
    return this.#pages[Math.floor(byte / this.#pageBytes)]! + (byte % this.#pageBytes);
  }

  /**
   * Cuts a range at page boundaries. Each piece has its address in memory, and begins and ends at a byte of the range.
   */
  *#pieces(offset: number, lengthBytes: number): Iterable<{ at: number; first: number; end: number }> {
    for (let first = 0; first < lengthBytes; ) {
      const pageRest = this.#pageBytes - ((this.#pageOffset + offset + first) % this.#pageBytes);
      const end = Math.min(lengthBytes, first + pageRest);
      yield { at: this.physical(offset + first), first, end };
      first = end;
    }
  }
}

export function pattern(seed: number, lengthBytes: number): Uint8Array {
  const bytes = new Uint8Array(lengthBytes);
  for (let index = 0; index < lengthBytes; index++) bytes[index] = seed + index * 7 + (index >> 8);
  return bytes;
}
