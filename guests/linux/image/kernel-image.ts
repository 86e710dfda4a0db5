/**
 * The kernel that QEMU and the PC of this process start: the already decompressed contents of a package's image. QEMU enters it
 * by PVH, the PC by the protocol of a kernel's own decompressor.
 *
 *     bzImage = boot sector and setup code · protected-mode code [ … payload: ELF, compressed; its size … ]
 *
 * An emulated processor needs seconds to decompress and relocate its own kernel; this computer does so once. A kernel without
 * the entry, or with an unsupported compression, is started as packaged. Sources: Linux, Documentation/arch/x86/boot.rst
 * (real-mode kernel header); Xen, docs/misc/pvh.pandoc (entry by ELF note).
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { digestOfFile, isWhole, writeDigested } from '../digested-file.ts';
import { treeProgram } from '../tree-program.ts';
import { elfBits, hasElfNote } from './elf.ts';

const sectorBytes = 512;
/** Offsets in the header, and its first version that locates the payload. */
const setupSectorsAt = 0x1f1;
const magicAt = 0x202;
const versionAt = 0x206;
const payloadOffsetAt = 0x248;
const payloadBytesAt = 0x24c;
const headerBytes = 0x250;
const headerMagic = 'HdrS';
const versionWithPayload = 0x0208;
/** After the compressed bytes: their uncompressed size. */
const sizeBytes = 4;
/** Limit of a decompressed kernel; execFileSync requires one. */
const kernelBytesMax = 512 * 1024 * 1024;

/** XEN_ELFNOTE_PHYS32_ENTRY: the entry point of PVH. */
const pvhNote = { owner: 'Xen', type: 18 } as const;

/**
 * Path of the file to start instead of `kernel`, created in the cache if it is missing or incomplete; `kernel` itself if
 * nothing can be extracted. `toolsRoot` has xz.
 */
export function ensureKernelImage(cacheFolder: string, toolsRoot: string, kernel: string): string {
  return ensureExtracted(cacheFolder, toolsRoot, kernel, 'elf', pvhKernelIn) ?? kernel;
}

/**
 * Path of the decompressed `kernel`, whichever its entries; created in the cache if it is missing or incomplete.
 * @returns undefined if nothing can be extracted
 */
export function ensureKernelElf(cacheFolder: string, toolsRoot: string, kernel: string): string | undefined {
  return ensureExtracted(cacheFolder, toolsRoot, kernel, 'vmlinux', kernelIn);
}

function ensureExtracted(
  cacheFolder: string,
  toolsRoot: string,
  kernel: string,
  ending: string,
  extract: typeof kernelIn,
): string | undefined {
  const folder = join(cacheFolder, 'images');
  const path = join(folder, `${basename(kernel)}-${digestOfFile(kernel).slice(0, 12)}.${ending}`);
  if (isWhole(path)) return path;
  const image = extract(readFileSync(kernel), (bytes) => decompressXz(toolsRoot, bytes));
  if (image === undefined) return undefined;
  mkdirSync(folder, { recursive: true });
  writeDigested(path, image);
  return path;
}

/** The kernel within a bzImage, if QEMU can enter it by PVH. @param unxz decompresses the output of `xz` */
export function pvhKernelIn(
  bzImage: Uint8Array,
  unxz: (bytes: Uint8Array) => Uint8Array,
): Uint8Array | undefined {
  const kernel = kernelIn(bzImage, unxz);
  return kernel !== undefined && hasElfNote(kernel, pvhNote) ? kernel : undefined;
}

/** The ELF file within a bzImage. @param unxz decompresses the output of `xz` */
export function kernelIn(
  bzImage: Uint8Array,
  unxz: (bytes: Uint8Array) => Uint8Array,
): Uint8Array | undefined {
  const payload = payloadOf(bzImage);
  const kernel = payload && decompress(payload, unxz);
  return kernel !== undefined && elfBits(kernel) !== undefined ? kernel : undefined;
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

/** @returns undefined for other compressions, and for damaged data: the guest's own console then reports it */
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
