/**
 * The memory of a watched guest: a memfd of which the server maps the parts that the guest announces, and nothing else
 * may change.
 *
 *     file   | page | page | page | page | …      a page that no writable mapping covers is kept as it was:
 *                   └─ mapped ──┘                   whatever changes there was written by the server
 *
 * The guest has its own mapping of the file, as a guest's machine has.
 */
import { closeSync } from 'node:fs';
import { createMemfd, MappedWindow, NativeCallError } from '../../guests/slot/index.ts';

export const pageBytes = 4096;

/** Copies of closed memories, to be reused: a copy is as long as the memory. */
const spareCopies: Uint8Array[] = [];
const found = new Uint8Array(pageBytes);

export class GuestRam {
  readonly descriptor: number;
  readonly sizeBytes: number;
  readonly #window: MappedWindow;
  /** Number of writable mappings that cover each page. */
  readonly #mappedCount: Uint16Array;
  /** Contents of unmapped pages, which must not change. */
  readonly #kept: Uint8Array;
  #isClosed = false;

  /** Filled with a pattern, so that zeros written are seen, too. */
  constructor(sizeBytes: number, fill: number) {
    this.sizeBytes = sizeBytes;
    this.descriptor = createMemfd(sizeBytes);
    const window = MappedWindow.map(this.descriptor, 0, sizeBytes, true);
    if (typeof window === 'number') throw new NativeCallError('mmap', -window);
    this.#window = window;
    const spare = spareCopies.findIndex(({ length }) => length === sizeBytes);
    this.#kept = spare < 0 ? new Uint8Array(sizeBytes) : spareCopies.splice(spare, 1)[0]!;
    this.#kept.fill(fill);
    this.#window.write(0, sizeBytes, this.#kept, 0);
    this.#mappedCount = new Uint16Array(sizeBytes / pageBytes);
  }

  read(offset: number, lengthBytes: number): Uint8Array {
    const into = new Uint8Array(lengthBytes);
    this.#window.readInto(offset, lengthBytes, into, 0);
    return into;
  }

  /** The guest's own store, which also updates the kept contents of unmapped pages. */
  write(offset: number, bytes: Uint8Array): void {
    this.#window.write(offset, bytes.length, bytes, 0);
    const last = Math.floor((offset + bytes.length - 1) / pageBytes);
    for (let page = Math.floor(offset / pageBytes); page <= last; page++)
      if (this.#mappedCount[page] === 0) this.#keep(page, page + 1);
  }

  /** The server was allowed to write here, from before this call on; offset and size are whole pages. */
  mapped(offset: number, sizeBytes: number): string[] {
    const damages: string[] = [];
    this.#eachPage(offset, sizeBytes, (page) => {
      if (this.#mappedCount[page] === 0) damages.push(...this.#damageOf(page));
      this.#mappedCount[page] = this.#mappedCount[page]! + 1;
    });
    return damages;
  }

  /** The server has answered that it no longer uses this. */
  unmapped(offset: number, sizeBytes: number): void {
    let begin = -1;
    this.#eachPage(offset, sizeBytes, (page) => {
      const count = this.#mappedCount[page]! - 1;
      this.#mappedCount[page] = count;
      if (count === 0 && begin < 0) begin = page;
      if (count === 0 || begin < 0) return;
      this.#keep(begin, page);
      begin = -1;
    });
    if (begin >= 0) this.#keep(begin, (offset + sizeBytes) / pageBytes);
  }

  /** The guest has left: nothing may change any more. */
  forsaken(): void {
    for (let page = 0; page < this.#mappedCount.length; page++)
      if (this.#mappedCount[page]! > 0) this.#keep(page, page + 1);
    this.#mappedCount.fill(0);
  }

  /** Words for writes to pages that were not mapped. */
  damages(): string[] {
    const damages: string[] = [];
    for (let page = 0; page < this.#mappedCount.length; page++)
      if (this.#mappedCount[page] === 0) damages.push(...this.#damageOf(page));
    return damages;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#window.unmap();
    closeSync(this.descriptor);
    spareCopies.push(this.#kept);
  }

  #damageOf(page: number): string[] {
    const from = page * pageBytes;
    this.#window.readInto(from, pageBytes, found, 0);
    const kept = this.#kept.subarray(from, from + pageBytes);
    if (Buffer.compare(kept, found) === 0) return [];
    const at = found.findIndex((byte, index) => byte !== kept[index]);
    return [
      `byte ${at} of page ${page} of the guest's memory, which was not mapped: ${kept[at]} became ${found[at]}`,
    ];
  }

  /** Pages from one up to another. */
  #keep(page: number, end: number): void {
    const from = page * pageBytes;
    this.#window.readInto(from, end * pageBytes - from, this.#kept, from);
  }

  #eachPage(offset: number, sizeBytes: number, visit: (page: number) => void): void {
    for (let page = offset / pageBytes; page < (offset + sizeBytes) / pageBytes; page++) visit(page);
  }
}
