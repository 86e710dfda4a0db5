/**
 * The file of a descriptor that a client sent as its RAM: checked before it is accessed, then mapped, or accessed by pread and
 * pwrite.
 *
 * Mapped memory whose file becomes shorter raises SIGBUS on the next touch and ends the process, so a client could kill the
 * server by one ftruncate. Countermeasures:
 *
 *   memfd sealed against shrinking (QEMU's memory-backend-memfd)     ──► mapped
 *   memfd that can still be sealed                                   ──► we seal it (F_SEAL_SHRINK), then mapped
 *   memfd that cannot be sealed, file on tmpfs (/dev/shm)            ──► pread and pwrite: slower, and safe
 *   anything else: huge pages (a hole may fault when none is left),
 *   a disk or network file system or FUSE (may block), no file       ──► refused
 *
 * Holes in a sealed memfd are no fault: the kernel fills them with zeros. They cost memory of the client.
 */

import { fstatSync, readSync, writeSync } from 'node:fs';
import { constants } from 'node:os';
import { pageBytes } from '../../../base/index.ts';
import { type NativeLibrary, nativeLibrary } from './library.ts';
import { MappedWindow, WINDOW_BYTES_MAX } from './mapped-window.ts';
import { closeDescriptor } from './poll.ts';
import {
  F_ADD_SEALS,
  F_GET_SEALS,
  F_GETFL,
  F_SEAL_FUTURE_WRITE,
  F_SEAL_SHRINK,
  F_SEAL_WRITE,
  O_ACCMODE,
  O_RDWR,
  O_WRONLY,
  TMPFS_MAGIC,
} from './structures.ts';

const { EACCES, EINVAL, ENOMEM } = constants.errno;

/** A store of bytes by offset; the caller has checked that the range is inside. */
export interface Backing {
  /** False: the bytes are unavailable. */
  readInto(offset: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean;
  write(offset: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean;
}

/** A part of a file that one backing serves. */
export interface FilePart {
  readonly backing: Backing;
  /** Offset of the part in the backing. */
  readonly backingOffset: number;
  readonly lengthBytes: number;
}

export class SharedFile {
  readonly isWritable: boolean;
  /** Whether its bytes are accessed in place. */
  readonly isMapped: boolean;
  readonly #descriptor: number;
  /** Windows by file offset / WINDOW_BYTES_MAX. */
  readonly #windows = new Map<number, MappedWindow>();
  /** Shorter windows replaced by a longer one: regions may still use them. */
  readonly #replaced: MappedWindow[] = [];

  private constructor(descriptor: number, isWritable: boolean, isMapped: boolean) {
    this.#descriptor = descriptor;
    this.isWritable = isWritable;
    this.isMapped = isMapped;
  }

  /** Takes over a descriptor, or returns minus an errno and leaves it to the caller. */
  static open(descriptor: number): SharedFile | number {
    const native = nativeLibrary();
    if (!isShared(native, descriptor)) return -EINVAL;
    const accessMode = native.fcntl(descriptor, F_GETFL, 0) & O_ACCMODE;
    if (accessMode === O_WRONLY) return -EACCES;
    native.fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK);
    const seals = native.fcntl(descriptor, F_GET_SEALS, 0);
    const isMapped = (seals & F_SEAL_SHRINK) !== 0;
    const isReadOnly = accessMode !== O_RDWR || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) !== 0;
    return new SharedFile(descriptor, !isReadOnly, isMapped);
  }

  /** Windows it has mapped. */
  get windowCount(): number {
    return this.#windows.size + this.#replaced.length;
  }

  /**
   * The parts that serve [fileOffset, + lengthBytes), in order, mapped here and now; minus an errno if the file has no such
   * range, or more than `windowCountMax` new windows would be needed.
   */
  partsOf(fileOffset: number, lengthBytes: number, windowCountMax: number): FilePart[] | number {
    const sizeBytes = fstatSync(this.#descriptor).size;
    if (fileOffset + lengthBytes > sizeBytes) return -EINVAL;
    if (!this.isMapped) return [{ backing: this.#unmapped, backingOffset: fileOffset, lengthBytes }];
    const parts: FilePart[] = [];
    const end = fileOffset + lengthBytes;
    const windowCountBefore = this.windowCount;
    for (let offset = fileOffset; offset < end; ) {
      const index = Math.floor(offset / WINDOW_BYTES_MAX);
      const base = index * WINDOW_BYTES_MAX;
      const partEnd = Math.min(end, base + WINDOW_BYTES_MAX);
      if (this.windowCount - windowCountBefore >= windowCountMax) return -ENOMEM;
      const window = this.#windowFor(index, partEnd - base, sizeBytes - base);
      if (typeof window === 'number') return window;
      parts.push({ backing: window, backingOffset: offset - base, lengthBytes: partEnd - offset });
      offset = partEnd;
    }
    return parts;
  }

  /** Unmaps everything and closes the descriptor. */
  close(): void {
    for (const window of [...this.#windows.values(), ...this.#replaced]) window.unmap();
    this.#windows.clear();
    this.#replaced.length = 0;
    closeDescriptor(this.#descriptor);
  }

  /** A window that covers at least `neededBytes` from its base, and as much of the file as exists now. */
  #windowFor(index: number, neededBytes: number, availableBytes: number): MappedWindow | number {
    const present = this.#windows.get(index);
    if (present !== undefined && present.lengthBytes >= neededBytes) return present;
    const lengthBytes = Math.min(WINDOW_BYTES_MAX, Math.ceil(availableBytes / pageBytes) * pageBytes);
    const base = index * WINDOW_BYTES_MAX;
    const window = MappedWindow.map(this.#descriptor, base, lengthBytes, this.isWritable);
    if (typeof window === 'number') return window;
    if (present !== undefined) this.#replaced.push(present);
    this.#windows.set(index, window);
    return window;
  }

  readonly #unmapped: Backing = {
    readInto: (offset, lengthBytes, target, targetOffset) => {
      try {
        return readSync(this.#descriptor, target, targetOffset, lengthBytes, offset) === lengthBytes;
      } catch {
        return false;
      }
    },
    write: (offset, lengthBytes, source, sourceOffset) => {
      try {
        return writeSync(this.#descriptor, source, sourceOffset, lengthBytes, offset) === lengthBytes;
      } catch {
        return false;
      }
    },
  };
}

/** Identity of a file that may be shared memory, and its permitted use: equal ones can share a mapping. */
export function fileKeyOf(descriptor: number): string | undefined {
  if (!isShared(nativeLibrary(), descriptor)) return undefined;
  const { dev, ino } = fstatSync(descriptor, { bigint: true });
  const accessMode = nativeLibrary().fcntl(descriptor, F_GETFL, 0) & O_ACCMODE;
  return `${dev}:${ino}:${accessMode}`;
}

/** A memfd or a file on tmpfs. Queries seals first: statfs on a FUSE file may never return. */
function isShared(native: NativeLibrary, descriptor: number): boolean {
  if (native.fcntl(descriptor, F_GET_SEALS, 0) < 0) return false;
  const buffer = new ArrayBuffer(256);
  if (native.fstatfs(descriptor, native.addressOf(buffer)) < 0) return false;
  return new DataView(buffer).getBigUint64(0, true) === BigInt(TMPFS_MAGIC);
}
