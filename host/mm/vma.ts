/**
 * Virtual memory areas of a process: the meaning of its addresses, in order of address, never overlapping.
 *
 * An area that is only partly unmapped, protected or advised is split first, so that a change always concerns whole areas
 * (Linux: vma_split). Areas are not merged again, which has no observable effect.
 */
import type { MemoryFile } from './memory-file.ts';

export type VmaKind = 'anonymous' | 'file' | 'device';

export interface VmaRights {
  readonly isReadable: boolean;
  readonly isWritable: boolean;
}

export class Vma {
  start: number;
  end: number;
  readonly kind: VmaKind;
  /** Writes are visible to all mappings of the same object; otherwise only to the process. */
  readonly isShared: boolean;
  readonly pageSize: number;
  /** Object under a file mapping or shared anonymous memory, and the offset in it of {@link start}. */
  readonly file: MemoryFile | undefined;
  fileOffset: number;
  isReadable: boolean;
  isWritable: boolean;
  /** MADV_DONTFORK: a child does not inherit it. */
  isDontFork = false;
  /** Whether the area's pages stay in memory (VM_LOCKED). */
  isStable: boolean;
  /** Bytes after which its memory repeats; 0 if every page is distinct. Such an area is changed as a whole or not at all. */
  readonly stretchBytes: number;

  constructor(fields: {
    readonly start: number;
    readonly end: number;
    readonly kind: VmaKind;
    readonly isShared?: boolean;
    readonly pageSize: number;
    readonly file?: MemoryFile | undefined;
    readonly fileOffset?: number;
    readonly rights?: VmaRights;
    readonly isStable?: boolean;
    readonly stretchBytes?: number;
  }) {
    this.start = fields.start;
    this.end = fields.end;
    this.kind = fields.kind;
    this.isShared = fields.isShared ?? false;
    this.pageSize = fields.pageSize;
    this.file = fields.file;
    this.fileOffset = fields.fileOffset ?? 0;
    this.isReadable = fields.rights?.isReadable ?? true;
    this.isWritable = fields.rights?.isWritable ?? true;
    this.isStable = fields.isStable ?? false;
    this.stretchBytes = fields.stretchBytes ?? 0;
    // A child would have to share the repeating tables.
    this.isDontFork = this.stretchBytes > 0;
  }

  get lengthBytes(): number {
    return this.end - this.start;
  }

  /** Private and possibly writable: pages are copied on the first write (is_cow_mapping). */
  get isPrivate(): boolean {
    return !this.isShared && this.kind !== 'device';
  }

  /** Offset in the file of an address. */
  fileOffsetOf(address: number): number {
    return this.fileOffset + (address - this.start);
  }

  /** A copy with other bounds; its file offset moves with them. */
  cut(start: number, end: number): Vma {
    const copy = new Vma({
      start,
      end,
      kind: this.kind,
      isShared: this.isShared,
      pageSize: this.pageSize,
      file: this.file,
      fileOffset: this.fileOffsetOf(start),
      rights: this,
      isStable: this.isStable,
    });
    copy.isDontFork = this.isDontFork;
    return copy;
  }
}

export class VmaList {
  readonly #areas: Vma[] = [];

  /** The area that holds an address. */
  find(address: number): Vma | undefined {
    const area = this.#areas[this.#firstEndingAfter(address)];
    return area !== undefined && area.start <= address ? area : undefined;
  }

  /** Adds an area to a free range. */
  insert(area: Vma): void {
    this.#areas.splice(this.#firstEndingAfter(area.start), 0, area);
  }

  remove(area: Vma): void {
    this.#areas.splice(this.#areas.indexOf(area), 1);
  }

  /** Areas that [start, end) touches, in order. */
  overlapping(start: number, end: number): Vma[] {
    const found: Vma[] = [];
    for (let at = this.#firstEndingAfter(start); at < this.#areas.length; at++) {
      const area = this.#areas[at]!;
      if (area.start >= end) break;
      found.push(area);
    }
    return found;
  }

  /** Areas of [start, end), split so that none reaches beyond it. The bounds are multiples of the page sizes. */
  isolate(start: number, end: number): Vma[] {
    for (const bound of [start, end]) {
      const area = this.find(bound);
      if (area === undefined || area.start === bound) continue;
      this.#insertAfter(area, area.cut(bound, area.end));
      if (area.file !== undefined) area.file.users++;
      area.end = bound;
    }
    return this.overlapping(start, end);
  }

  /** Whether areas cover [start, end) without a hole, and `test` holds for each. */
  covers(start: number, end: number, test: (area: Vma) => boolean): boolean {
    let at = start;
    for (const area of this.overlapping(start, end)) {
      if (area.start > at || !test(area)) return false;
      at = area.end;
    }
    return at >= end;
  }

  get all(): readonly Vma[] {
    return this.#areas;
  }

  #insertAfter(area: Vma, next: Vma): void {
    this.#areas.splice(this.#areas.indexOf(area) + 1, 0, next);
  }

  #firstEndingAfter(address: number): number {
    let low = 0;
    let high = this.#areas.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#areas[middle]!.end > address) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
