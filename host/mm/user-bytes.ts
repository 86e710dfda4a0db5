/** Whole ranges of a process's bytes, page by page through its page table, faulted in on the way. */
import type { AddressSpace } from './address-space.ts';
import { pageBytes, pageOffsetOf } from './page.ts';

/** Reads across pages. @returns false, and reads nothing, if some page is not mapped */
export function readBytes(space: AddressSpace, address: number, target: Uint8Array): boolean {
  if (!space.isMapped(address, target.length)) return false;
  return forEachPiece(space, address, target.length, false, (physical, offset, length) => {
    space.mm.memory.readInto(physical, length, target, offset);
  });
}

/** Writes across pages. @returns false, and writes nothing, if some page is not mapped writable */
export function writeBytes(space: AddressSpace, address: number, source: Uint8Array): boolean {
  if (!space.isWritable(address, source.length)) return false;
  return forEachPiece(space, address, source.length, true, (physical, offset, length) => {
    space.mm.memory.write(physical, length, source, offset);
  });
}

function forEachPiece(
  space: AddressSpace,
  address: number,
  lengthBytes: number,
  isWrite: boolean,
  visit: (physical: number, offset: number, length: number) => void,
): boolean {
  for (let done = 0; done < lengthBytes; ) {
    const length = Math.min(lengthBytes - done, pageBytes - pageOffsetOf(address + done));
    const physical = space.access(address + done, isWrite);
    if (physical < 0) return false;
    visit(physical, done, length);
    done += length;
  }
  return true;
}
