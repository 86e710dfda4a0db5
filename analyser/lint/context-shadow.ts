/**
 * Copy of the bytes that the device last wrote into the ICM pages. If the device reads an entry back and it differs,
 * software has changed a context without the command for it. Entries that the device never wrote are not judged.
 * Source: sheet 3.15, 4.2.
 */
import { icmPageBytes } from '../../abi/index.ts';

interface ShadowPage {
  readonly bytes: Uint8Array;
  /** 1 for each byte that the device has written. */
  readonly isKnown: Uint8Array;
}

export class ContextShadow {
  readonly #pages = new Map<number, ShadowPage>();

  /** Records a write of the device to ICM. */
  written(icmAddress: number, bytes: Uint8Array): void {
    const number = Math.floor(icmAddress / icmPageBytes);
    let page = this.#pages.get(number);
    if (page === undefined) {
      page = { bytes: new Uint8Array(icmPageBytes), isKnown: new Uint8Array(icmPageBytes) };
      this.#pages.set(number, page);
    }
    const at = icmAddress % icmPageBytes;
    page.bytes.set(bytes.subarray(0, icmPageBytes - at), at);
    page.isKnown.fill(1, at, at + bytes.length);
  }

  /** Offset of the first byte that differs from the device's write, or -1. */
  firstDifference(icmAddress: number, bytes: Uint8Array): number {
    const page = this.#pages.get(Math.floor(icmAddress / icmPageBytes));
    if (page === undefined) return -1;
    const at = icmAddress % icmPageBytes;
    for (let index = 0; index < bytes.length; index++)
      if (page.isKnown[at + index] === 1 && page.bytes[at + index] !== bytes[index]) return index;
    return -1;
  }

  /** Forgets the bytes of an entry, which software may write from now on. */
  forget(icmAddress: number, lengthBytes: number): void {
    const page = this.#pages.get(Math.floor(icmAddress / icmPageBytes));
    const at = icmAddress % icmPageBytes;
    page?.isKnown.fill(0, at, at + lengthBytes);
  }

  forgetPages(icmAddress: number, pageCount: number): void {
    const first = Math.floor(icmAddress / icmPageBytes);
    for (const page of [...this.#pages.keys()])
      if (page >= first && page < first + pageCount) this.#pages.delete(page);
  }

  clear(): void {
    this.#pages.clear();
  }
}
