/**
 * The memory of a guest that is watched: a memfd of which the server maps what the guest says, and nothing else may change.
 *
 *     file   | page | page | page | page | …      a page that no writable mapping covers is kept as it was:
 *                   └─ mapped ──┘                   whatever changes there was written by the server
 *
 * The guest's own accesses go by read and write of the file, so that the two see the same bytes and nothing is mapped here.
 */
import { closeSync, ftruncateSync, readSync, writeSync } from 'node:fs';
import { createMemfd } from '../../../guest/client/client.ts';

export const pageBytes = 4096;

export class GuestRam {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** How many writable mappings cover each page. */
  readonly #mappedCount: Uint16Array;
  /** Pages that are not mapped, as they are to stay. */
  readonly #kept = new Map<number, Uint8Array>();

  /** Filled with a pattern, so that zeros written are seen, too. */
  constructor(sizeBytes: number, fill: number) {
    this.sizeBytes = sizeBytes;
    this.descriptor = createMemfd(sizeBytes);
    ftruncateSync(this.descriptor, sizeBytes);
    writeSync(this.descriptor, new Uint8Array(sizeBytes).fill(fill), 0, sizeBytes, 0);
    this.#mappedCount = new Uint16Array(sizeBytes / pageBytes);
    for (let page = 0; page < this.#mappedCount.length; page++) this.#keep(page);
  }

  read(offset: number, lengthBytes: number): Uint8Array {
    const into = new Uint8Array(lengthBytes);
    readSync(this.descriptor, into, 0, lengthBytes, offset);
    return into;
  }

  /** The guest's own store: what is kept of pages that are not mapped follows. */
  write(offset: number, bytes: Uint8Array): void {
    writeSync(this.descriptor, bytes, 0, bytes.length, offset);
    const last = Math.floor((offset + bytes.length - 1) / pageBytes);
    for (let page = Math.floor(offset / pageBytes); page <= last; page++)
      if (this.#mappedCount[page] === 0) this.#keep(page);
  }

  /** The server was allowed to write here, from before this call on; offset and size are whole pages. */
  mapped(offset: number, sizeBytes: number): string[] {
    const damages: string[] = [];
    this.#eachPage(offset, sizeBytes, (page) => {
      if (this.#mappedCount[page] === 0) damages.push(...this.#damageOf(page));
      this.#mappedCount[page] = this.#mappedCount[page]! + 1;
      this.#kept.delete(page);
    });
    return damages;
  }

  /** The server has answered that it no longer uses this. */
  unmapped(offset: number, sizeBytes: number): void {
    this.#eachPage(offset, sizeBytes, (page) => {
      this.#mappedCount[page] = this.#mappedCount[page]! - 1;
      if (this.#mappedCount[page] === 0) this.#keep(page);
    });
  }

  /** The guest is gone: nothing may change any more. */
  forsaken(): void {
    this.#mappedCount.fill(0);
    for (let page = 0; page < this.#mappedCount.length; page++) if (!this.#kept.has(page)) this.#keep(page);
  }

  /** What was written to pages that were not mapped, in words. */
  damages(): string[] {
    return [...this.#kept.keys()].flatMap((page) => this.#damageOf(page));
  }

  close(): void {
    closeSync(this.descriptor);
  }

  #damageOf(page: number): string[] {
    const [kept, found] = [this.#kept.get(page)!, this.read(page * pageBytes, pageBytes)];
    if (Buffer.compare(kept, found) === 0) return [];
    const at = found.findIndex((byte, index) => byte !== kept[index]);
    return [
      `byte ${at} of page ${page} of the guest's memory, which was not mapped: ${kept[at]} became ${found[at]}`,
    ];
  }

  #keep(page: number): void {
    this.#kept.set(page, this.read(page * pageBytes, pageBytes));
  }

  #eachPage(offset: number, sizeBytes: number, visit: (page: number) => void): void {
    for (let page = offset / pageBytes; page < (offset + sizeBytes) / pageBytes; page++) visit(page);
  }
}
