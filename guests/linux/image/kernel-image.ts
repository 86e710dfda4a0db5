/**
 * The kernel that QEMU starts: what a package's image holds, already decompressed, entered by PVH.
 *
 *     bzImage = boot sector and setup code · protected-mode code [ … payload: ELF, compressed; its size … ]
 *
 * An emulated processor takes seconds to decompress and to relocate its own kernel, which this computer does once. A kernel without the
 * entry, or of a compression that is not known here, is started as the package has it.
 * Sources: Linux, Documentation/arch/x86/boot.rst (real-mode kernel header); Xen, docs/misc/pvh.pandoc (entry by ELF note).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { digestOfFile, isWhole, writeDigested } from '../digested-file.ts';
import { treeProgram } from '../tree-program.ts';
import { hasElfNote } from './elf.ts';

const sectorBytes = 512;
/** Offsets in the header, and the first version of it that says where the payload is. */
const setupSectorsAt = 0x1f1;
const magicAt = 0x202;
const versionAt = 0x206;
const payloadOffsetAt = 0x248;
const payloadBytesAt = 0x24c;
const headerBytes = 0x250;
const headerMagic = 'HdrS';
const versionWithPayload = 0x0208;
/** Behind the compressed bytes: how many they will be. */
const sizeBytes = 4;
/** Of a decompressed kernel; execFileSync wants a limit. */
const kernelBytesMax = 512 * 1024 * 1024;

/** XEN_ELFNOTE_PHYS32_ENTRY: where PVH enters. */
const pvhNote = { owner: 'Xen', type: 18 } as const;

/**
 * Path of what is to be started instead of `kernel`, made in the cache when it is not there whole; of `kernel` itself where nothing can
 * be taken out of it. `toolsRoot` has xz.
 */
export function ensureKernelImage(cacheFolder: string, toolsRoot: string, kernel: string): string {
  const folder = join(cacheFolder, 'images');
  const path = join(folder, `${basename(kernel)}-${digestOfFile(kernel).slice(0, 12)}.elf`);
  if (isWhole(path)) return path;
  const image = pvhKernelIn(readFileSync(kernel), (bytes) => decompressXz(toolsRoot, bytes));
  if (image === undefined) return kernel;
  mkdirSync(folder, { recursive: true });
  writeDigested(path, image);
  return path;
}

/** The kernel within a bzImage, if QEMU can enter it by PVH. @param unxz decompresses what `xz` has compressed */
export function pvhKernelIn(
  bzImage: Uint8Array,
  unxz: (bytes: Uint8Array) => Uint8Array,
): Uint8Array | undefined {
  const payload = payloadOf(bzImage);
  const kernel = payload && decompress(payload, unxz);
  return kernel !== undefined && hasElfNote(kernel, pvhNote) ? kernel : undefined;
}

function payloadOf(bzImage: Uint8Array): Uint8Array | undefined {
  if (bzImage.length < headerBytes) return undefined;
  const view = Buffer.from(bzImage.buffer, bzImage.byteOffset, bzImage.byteLength);
  if (view.toString('latin1', magicAt, magicAt + headerMagic.length) !== headerMagic) return undefined;
  if (view.readUInt16LE(versionAt) < versionWithPayload) return undefined;
  const at = (view[setupSectorsAt]! + 1) * sectorBytes + view.readUInt32LE(payloadOffsetAt);
  const end = at + view.readUInt32LE(payloadBytesAt);
  return end > bzImage.length || end - at <= sizeBytes ? undefined : view.subarray(at, end - sizeBytes);
}

/** @returns undefined for other compressions, and for what is damaged: the guest's own console says so then */
function decompress(payload: Uint8Array, unxz: (bytes: Uint8Array) => Uint8Array): Uint8Array | undefined {
  const starts = (...magic: number[]): boolean => magic.every((byte, index) => payload[index] === byte);
  try {
    if (starts(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0)) return unxz(payload);
    if (starts(0x28, 0xb5, 0x2f, 0xfd)) return zstdDecompressSync(payload);
    if (starts(0x1f, 0x8b)) return gunzipSync(payload);
  } catch {
    return undefined;
  }
  return undefined;
}

function decompressXz(toolsRoot: string, bytes: Uint8Array): Uint8Array {
  const { file, arguments: parameters } = treeProgram(toolsRoot, 'usr/bin/xz');
  return execFileSync(file, [...parameters, '-dc'], {
    input: bytes,
    maxBuffer: kernelBytesMax,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
}
