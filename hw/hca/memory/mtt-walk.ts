/**
 * Walks the MTT: from an offset into a region or a queue's buffer to the physical address of its page.
 *
 *   byte ─> page of the region ─> entry of the MTT ─hit─> page address + offset in the page
 *                                        └─miss─> line fill
 *
 * Sizes of pages: any power of two of at least 4 KiB (interface sheet 5.4).
 */
import type { Wide } from '../../../base/index.ts';
import type { SetAssociativeDirectory } from '../objects/index.ts';
import { type ContextMemory, TRANSLATION_ENTRY_BYTES } from './context-memory.ts';
import { type EntryReads, FILL_MTT, FILL_PENDING } from './line-fill.ts';
import { BAD_PAGE, type BufferTranslation, PENDING, TRANSLATED } from './translation.ts';
import { MTT_ENTRIES_PER_LINE, MTT_LINE_BYTES, type MttCache } from './translation-cache.ts';
import { forgetLookups, type TranslationPort } from './translation-port.ts';

const NO_LINE = -1;
const NO_TAG = -1;

export interface MttWalkSetup {
  readonly mttCache: MttCache;
  readonly contextMemory: ContextMemory;
  readonly fill: EntryReads;
  /** Forgets the translations that they remember, and counts their misses. */
  readonly ports: readonly Pick<TranslationPort, 'mttMisses' | 'forget'>[];
}

export class MttWalk {
  /** Result of the last walk that answered {@link TRANSLATED}: physical address, and bytes contiguous from it. */
  physicalAddress: Wide = 0;
  contiguousBytes: Wide = 0;
  /** Line in which the last walk found its page, and the offset into the page. */
  line = NO_LINE;
  inPage: Wide = 0;
  readonly #cache: MttCache;
  readonly #directory: SetAssociativeDirectory;
  readonly #memory: ContextMemory;
  readonly #fill: EntryReads;
  readonly #ports: MttWalkSetup['ports'];
  /** Line that the current access missed, by port. An access counts as one miss, however often it is retried. */
  readonly #missed: Float64Array;
  /** Line in which the last walk found its page absent, and whether it had just been read; no line: it could not be read. */
  #absentLine = NO_LINE;
  #isAbsentFresh = false;

  constructor({ mttCache, contextMemory, fill, ports }: MttWalkSetup) {
    this.#cache = mttCache;
    this.#directory = mttCache.directory;
    this.#memory = contextMemory;
    this.#fill = fill;
    this.#ports = ports;
    this.#missed = new Float64Array(ports.length).fill(NO_TAG);
  }

  /**
   * Translates the first part of a piece of a queue's buffer, or of a region's pages.
   * @param mttOffset of the first page's entry; @param pageBytes page size; @param byte offset from the first page's start
   */
  translate(
    port: number,
    mttOffset: number,
    pageBytes: number,
    byte: number,
    lengthBytes: number,
  ): BufferTranslation {
    const page = Math.floor(byte / pageBytes);
    const entryOffset = mttOffset + page * TRANSLATION_ENTRY_BYTES;
    const tag = Math.floor(entryOffset / MTT_LINE_BYTES);
    let line = this.#directory.find(tag);
    let isFresh = false;
    if (line === NO_LINE) {
      if (!this.#fill.holds(port, FILL_MTT, tag)) return this.#miss(port, tag);
      forgetLookups(this.#ports);
      line = this.#fill.take(port, FILL_MTT, tag, this.#cache);
      isFresh = true;
    }
    this.#directory.touch(line);
    this.line = line;
    if (this.#missed[port] === tag) this.#missed[port] = NO_TAG;
    const pageAddress =
      this.#cache.pages[line * MTT_ENTRIES_PER_LINE + ((entryOffset / TRANSLATION_ENTRY_BYTES) & 7)]!;
    if (pageAddress < 0) {
      this.#absentLine = line;
      this.#isAbsentFresh = isFresh;
      return BAD_PAGE;
    }
    const within = byte - page * pageBytes;
    this.inPage = within;
    this.physicalAddress = pageAddress + within;
    this.contiguousBytes = Math.min(lengthBytes, pageBytes - within);
    return TRANSLATED;
  }

  /**
   * True after {@link BAD_PAGE} if the entry was read and its page is absent; false if the entry could not be read.
   */
  get isPageAbsent(): boolean {
    return this.#absentLine !== NO_LINE;
  }

  /**
   * Forgets the line in which the last walk found its page absent.
   * @returns true when the port had just read the line, which settles that the page is absent
   */
  forgetAbsent(): boolean {
    const isFresh = this.#isAbsentFresh;
    forgetLookups(this.#ports);
    this.#directory.clear(this.#absentLine);
    return isFresh;
  }

  /** Forgets cached entries that the device has written, from a byte offset of the table on. */
  forgetRange(mttOffset: number, lengthBytes: number): void {
    const first = Math.floor(mttOffset / MTT_LINE_BYTES);
    const last = Math.floor((mttOffset + lengthBytes - 1) / MTT_LINE_BYTES);
    for (let tag = first; tag <= last; tag++) {
      const line = this.#directory.find(tag);
      if (line !== NO_LINE) this.#directory.clear(line);
    }
    this.#fill.drop(FILL_MTT, (tag) => tag >= first && tag <= last);
  }

  /** Forgets all cached entries. */
  forgetAll(): void {
    this.#directory.clearAll();
  }

  reset(): void {
    this.#missed.fill(NO_TAG);
  }

  /** Tag of the line that the port's access under way missed, or -1. */
  missedTag(port: number): number {
    return this.#missed[port]!;
  }

  #miss(port: number, tag: number): typeof PENDING | typeof BAD_PAGE {
    if (this.#missed[port] !== tag) {
      this.#missed[port] = tag;
      this.#ports[port]!.mttMisses++;
    }
    this.#absentLine = NO_LINE;
    const address = this.#memory.translationAddress(tag * MTT_LINE_BYTES);
    const answer = this.#fill.request(port, FILL_MTT, tag, address, MTT_LINE_BYTES);
    return answer === FILL_PENDING ? PENDING : BAD_PAGE;
  }
}
