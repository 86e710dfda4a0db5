import { describe, expect, it } from 'vitest';
import { elfNeeds } from './elf.ts';

/**
 * A minimal ELF: PT_INTERP, PT_LOAD mapping offset 0x200 at address 0x10200, PT_DYNAMIC with the tags given; strings
 * at 0x300. Offsets from the gABI's figures 4-3 and 5-1.
 */
function elfWith(
  tags: readonly (readonly [number, number])[],
  options: { class32?: boolean } = {},
): Uint8Array {
  const bytes = Buffer.alloc(0x400);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, options.class32 ? 1 : 2, 1, 1]);
  bytes.writeBigUInt64LE(0x40n, 0x20);
  bytes.writeUInt16LE(56, 0x36);
  bytes.writeUInt16LE(3, 0x38);
  const segment = (index: number, type: number, offset: number, address: number, length: number): void => {
    const at = 0x40 + 56 * index;
    bytes.writeUInt32LE(type, at);
    bytes.writeBigUInt64LE(BigInt(offset), at + 8);
    bytes.writeBigUInt64LE(BigInt(address), at + 16);
    bytes.writeBigUInt64LE(BigInt(length), at + 32);
  };
  segment(0, 3, 0x1e0, 0, 20);
  segment(1, 1, 0x200, 0x10200, 0x200);
  segment(2, 2, 0x200, 0x10200, 16 * tags.length);
  bytes.write('/lib64/ld.so\0', 0x1e0, 'latin1');
  bytes.write('\0libc.so.6\0libibverbs.so.1\0', 0x300, 'latin1');
  tags.forEach(([tag, value], index) => {
    bytes.writeBigUInt64LE(BigInt(tag), 0x200 + 16 * index);
    bytes.writeBigUInt64LE(BigInt(value), 0x208 + 16 * index);
  });
  return bytes;
}

describe('the requirements of a program', () => {
  it('are its loader and its libraries, in any order of the table', () => {
    const needs = elfNeeds(
      elfWith([
        [1, 11],
        [5, 0x10300],
        [1, 1],
        [0, 0],
      ]),
    );
    expect(needs).toEqual({ libraries: ['libibverbs.so.1', 'libc.so.6'], loader: '/lib64/ld.so' });
  });

  it('are unknown for a script, a 32-bit program and an empty file', () => {
    expect(elfNeeds(Buffer.from(`#!/bin/sh\n${' '.repeat(80)}`))).toBeUndefined();
    expect(elfNeeds(elfWith([], { class32: true }))).toBeUndefined();
    expect(elfNeeds(new Uint8Array(0))).toBeUndefined();
  });
});
