/**
 * Finds the entries of a queue in host memory through the translation entries that the driver wrote into ICM; and in
 * the reverse direction, the queue that a bus address belongs to. Source: sheet 4.4.
 */
import { mttEntry, mttEntryBytes } from '../../abi/index.ts';
import { pageBytes, viewOf } from '../../base/index.ts';
import type { MemoryReader } from '../host-memory-reader.ts';
import type { IcmMap } from './icm-map.ts';

/** Buffers of more pages (1 GiB of the smallest) are not followed. */
const entriesMax = 2 ** 18;

export interface BufferPlace {
  readonly mttAddress: number;
  readonly logPageBytes: number;
  /** Byte offset of the first entry within its page. */
  readonly pageOffset: number;
  readonly sizeBytes: number;
}

export interface QueueBuffer extends BufferPlace {
  /** Bus addresses of its pages; NaN for a translation entry that is unmapped or not present. */
  readonly pages: Float64Array;
}

export const mttEntriesOf = ({ pageOffset, sizeBytes, logPageBytes }: BufferPlace): number =>
  Math.max(1, Math.ceil((pageOffset + sizeBytes) / 2 ** logPageBytes));

/** Reads the current translation entries of a buffer. */
export function resolvedBuffer(
  place: BufferPlace,
  icm: IcmMap,
  mttBase: number,
  memory: MemoryReader,
): QueueBuffer {
  const entries = mttEntriesOf(place);
  const pages = new Float64Array(entries > entriesMax ? 0 : entries).fill(Number.NaN);
  for (let entry = 0; entry < pages.length; entry++) {
    const address = icm.hostAddressOf(mttBase + place.mttAddress + entry * mttEntryBytes);
    const bytes = address < 0 ? undefined : memory.read(address, mttEntryBytes);
    if (bytes === undefined) continue;
    const view = viewOf(bytes);
    if (mttEntry.fields.present.get(view, 0) === 1)
      pages[entry] = mttEntry.fields.pageAddress.getNumber(view, 0);
  }
  return { ...place, pages };
}

/** Bus address of a byte of the buffer, or NaN. */
function addressIn({ pages, logPageBytes, pageOffset }: QueueBuffer, offset: number): number {
  const at = pageOffset + offset;
  return pages[Math.floor(at / 2 ** logPageBytes)]! + (at % 2 ** logPageBytes);
}

/** Bytes of the buffer, across its pages; undefined if some cannot be read. */
export function bytesIn(
  buffer: QueueBuffer,
  offset: number,
  lengthBytes: number,
  memory: MemoryReader,
): Uint8Array | undefined {
  const page = 2 ** buffer.logPageBytes;
  const toPageEnd = page - ((buffer.pageOffset + offset) % page);
  const address = addressIn(buffer, offset);
  if (!(address >= 0)) return undefined;
  if (lengthBytes <= toPageEnd) return memory.read(address, lengthBytes);
  const head = memory.read(address, toPageEnd);
  const tail = bytesIn(buffer, offset + toPageEnd, lengthBytes - toPageEnd, memory);
  if (head === undefined || tail === undefined) return undefined;
  const bytes = new Uint8Array(lengthBytes);
  bytes.set(head);
  bytes.set(tail, toPageEnd);
  return bytes;
}

export type QueueKind = 'qp' | 'cq' | 'srq' | 'eq';

/** A queue with bytes in a page; byte 0 of the page has this offset in the buffer (may be negative). */
interface InPage {
  readonly kind: QueueKind;
  readonly number: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

export interface QueuePlace {
  readonly kind: QueueKind;
  readonly number: number;
  /** Byte offset within the queue's buffer. */
  readonly offset: number;
}

/** Finds the queue that a bus address belongs to. Several queues may share a page. */
export class BufferIndex {
  readonly #byPage = new Map<number, InPage[]>();

  add(kind: QueueKind, number: number, buffer: QueueBuffer): void {
    this.#eachPage(buffer, (page, offset) => {
      const entry = { kind, number, offset, sizeBytes: buffer.sizeBytes };
      const there = this.#byPage.get(page);
      if (there === undefined) this.#byPage.set(page, [entry]);
      else there.push(entry);
    });
  }

  remove(kind: QueueKind, number: number, buffer: QueueBuffer): void {
    this.#eachPage(buffer, (page) => {
      const left = this.#byPage.get(page)?.filter((one) => one.kind !== kind || one.number !== number);
      if (left === undefined || left.length === 0) this.#byPage.delete(page);
      else this.#byPage.set(page, left);
    });
  }

  clear(): void {
    this.#byPage.clear();
  }

  find(address: number): QueuePlace | undefined {
    const inPage = this.#byPage.get(Math.floor(address / pageBytes));
    if (inPage === undefined) return undefined;
    for (const { kind, number, offset, sizeBytes } of inPage) {
      const at = offset + (address % pageBytes);
      if (at >= 0 && at < sizeBytes) return { kind, number, offset: at };
    }
    return undefined;
  }

  #eachPage(buffer: QueueBuffer, visit: (page: number, offset: number) => void): void {
    const large = 2 ** buffer.logPageBytes;
    const end = buffer.pageOffset + buffer.sizeBytes;
    for (let entry = 0; entry < buffer.pages.length; entry++) {
      const address = buffer.pages[entry]!;
      if (Number.isNaN(address)) continue;
      const step = Math.min(pageBytes, large);
      for (let at = entry * large; at < Math.min(end, (entry + 1) * large); at += step) {
        if (at + step <= buffer.pageOffset) continue;
        const place = address + (at - entry * large);
        visit(Math.floor(place / pageBytes), at - buffer.pageOffset - (place % pageBytes));
      }
    }
  }
}
