import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { kernelIn, pvhKernelIn } from './kernel-image.ts';
import { elfWith } from './testing-elf.ts';

/** An ELF with one PT_NOTE of two notes, the second of `owner` and `type`: gABI 4.1, chapter 5, "Note Section". */
function kernelWith(owner: string, type: number): Buffer {
  const bytes = Buffer.alloc(0x200);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  bytes.writeBigUInt64LE(0x40n, 0x20);
  bytes.writeUInt16LE(56, 0x36);
  bytes.writeUInt16LE(1, 0x38);
  bytes.writeUInt32LE(4, 0x40);
  bytes.writeBigUInt64LE(0x100n, 0x48);
  bytes.writeBigUInt64LE(44n, 0x60);
  bytes.writeUInt32LE(4, 0x100);
  bytes.writeUInt32LE(6, 0x104);
  bytes.writeUInt32LE(6, 0x108);
  bytes.write('Xen\0linux\0\0\0', 0x10c, 'latin1');
  bytes.writeUInt32LE(4, 0x118);
  bytes.writeUInt32LE(4, 0x11c);
  bytes.writeUInt32LE(type, 0x120);
  bytes.write(`${owner}\0`, 0x124, 'latin1');
  return bytes;
}

/** A bzImage of two sectors of setup, its payload 100 bytes into the protected-mode code: boot.rst, "The Real-Mode Kernel Header". */
function bzImageWith(
  compressed: Uint8Array,
  { version = 0x20f, bytes = compressed.length + 4 } = {},
): Buffer {
  const image = Buffer.alloc(3 * 512 + 100 + compressed.length + 4 + 50);
  image[0x1f1] = 2;
  image.write('HdrS', 0x202, 'latin1');
  image.writeUInt16LE(version, 0x206);
  image.writeUInt32LE(100, 0x248);
  image.writeUInt32LE(bytes, 0x24c);
  image.set(compressed, 3 * 512 + 100);
  return image;
}

const unxz = (): never => {
  throw new Error('not xz');
};

describe('the kernel in a package’s image', () => {
  const kernel = kernelWith('Xen', 18);

  it.each([
    ['zstd', zstdCompressSync(kernel)],
    ['gzip', gzipSync(kernel)],
  ])('is what %s decompresses', (_, compressed) => {
    expect(pvhKernelIn(bzImageWith(compressed), unxz)).toEqual(kernel);
  });

  it('is the output of xz, which receives the payload without the size after it', () => {
    const compressed = Uint8Array.of(0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 9, 8, 7);
    const seen: number[][] = [];
    const found = pvhKernelIn(bzImageWith(compressed), (bytes) => {
      seen.push([...bytes]);
      return kernel;
    });
    expect(found).toBe(kernel);
    expect(seen).toEqual([[...compressed]]);
  });

  it('is not extracted if PVH has no entry, another compression was used, or the file is not an image', () => {
    expect(pvhKernelIn(bzImageWith(gzipSync(kernelWith('Xen', 17))), unxz)).toBeUndefined();
    expect(pvhKernelIn(bzImageWith(gzipSync(kernelWith('GNU', 18))), unxz)).toBeUndefined();
    expect(pvhKernelIn(bzImageWith(Buffer.from('02214c18', 'hex')), unxz)).toBeUndefined();
    expect(pvhKernelIn(bzImageWith(gzipSync(kernel), { version: 0x207 }), unxz)).toBeUndefined();
    expect(pvhKernelIn(bzImageWith(gzipSync(kernel), { bytes: 1e6 }), unxz)).toBeUndefined();
    expect(pvhKernelIn(bzImageWith(gzipSync(kernel).subarray(0, 40)), unxz)).toBeUndefined();
    expect(pvhKernelIn(kernel, unxz)).toBeUndefined();
    expect(pvhKernelIn(new Uint8Array(0), unxz)).toBeUndefined();
  });

  it('needs no entry for PVH where another protocol starts it, and is an ELF file', () => {
    const plain = Buffer.from(elfWith([], 32));
    expect(kernelIn(bzImageWith(gzipSync(plain)), unxz)).toEqual(plain);
    expect(pvhKernelIn(bzImageWith(gzipSync(plain)), unxz)).toBeUndefined();
    expect(kernelIn(bzImageWith(gzipSync(Buffer.alloc(100))), unxz)).toBeUndefined();
  });
});
