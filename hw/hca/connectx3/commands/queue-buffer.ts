/**
 * The buffer of an EQ or CQ: finds its entries in host memory through MTT entries, and clears their ownership before
 * the queue begins to run. Sources: interface sheet 3.16, 4.4, 6.6, 6.7.
 */

import {
  CommandStatus,
  eqeBytes,
  icmPageBytes,
  logPageBytesMax,
  mttEntry,
  mttEntryBytes,
} from '../../../../abi/index.ts';
import { pageBytes, viewOf } from '../../../../base/index.ts';
import { demand, fill, read, type Steps } from '../../commands/index.ts';
import type { DeviceState } from './device-state.ts';

/** Size of an EQE, and of a CQE. */
const entryBytes = eqeBytes;
/** Offset of the owner byte in an entry, and its value for an owner bit of 1. */
const ownerByte = entryBytes - 1;
const ownerBitSet = 0x80;
/** Patterns of empty entries by their owner bit: all else is zero. */
export const emptyEntries: readonly Uint8Array[] = [0, ownerBitSet].map((owner) =>
  new Uint8Array(entryBytes).fill(owner, ownerByte),
);

export interface QueueBuffer {
  readonly logEntries: number;
  /** log2 of a page of the buffer in bytes. */
  readonly logPageBytes: number;
  /** Byte offset of entry 0 in the first page. */
  readonly pageOffset: number;
  readonly mttAddress: number;
}

/** Rejects a buffer with more entries than the device supports, or with impossible pages. */
export function checkBuffer(buffer: QueueBuffer, logEntriesMax: number): void {
  demand(buffer.logEntries <= logEntriesMax, CommandStatus.EXCEED_LIM);
  demand(buffer.logPageBytes <= logPageBytesMax, CommandStatus.BAD_PARAM);
}

/** DMA addresses of the buffer's pages. Rejects where the MTT is not mapped or an entry is not present. */
export function* readPages(device: DeviceState, buffer: QueueBuffer): Steps<number[]> {
  const pageCount = Math.ceil(
    (buffer.pageOffset + 2 ** buffer.logEntries * entryBytes) / 2 ** buffer.logPageBytes,
  );
  const pages: number[] = [];
  while (pages.length < pageCount) {
    const mttOffset = buffer.mttAddress + pages.length * mttEntryBytes;
    const address = device.parts.icm.translationAddress(mttOffset);
    demand(address >= 0, CommandStatus.ICM_ERROR);
    // The next page of ICM may be elsewhere in host memory.
    const toPageEnd = icmPageBytes - (address % icmPageBytes);
    const lengthBytes = Math.min((pageCount - pages.length) * mttEntryBytes, toPageEnd);
    const view = viewOf(yield* read(address, lengthBytes));
    for (let at = 0; at < lengthBytes; at += mttEntryBytes) {
      const pageAddress = mttEntry.fields.pageAddress.getNumber(view, at);
      demand(mttEntry.fields.present.get(view, at) === 1, CommandStatus.BAD_PARAM);
      demand(pageAddress % pageBytes === 0, CommandStatus.BAD_PARAM);
      pages.push(pageAddress);
    }
  }
  return pages;
}

/** Sets the owner bit of entries [first, first + count) so that software considers them invalid. */
export function* markEntries(
  pages: readonly number[],
  buffer: QueueBuffer,
  first: number,
  count: number,
  ownerBit: number,
): Steps<void> {
  const pageBytes = 2 ** buffer.logPageBytes;
  let offset = buffer.pageOffset + first * entryBytes;
  const end = offset + count * entryBytes;
  while (offset < end) {
    const inPage = offset % pageBytes;
    const lengthBytes = Math.min(end - offset, pageBytes - inPage);
    yield* fill(pages[Math.floor(offset / pageBytes)]! + inPage, lengthBytes, ownerBit);
    offset += lengthBytes;
  }
}
