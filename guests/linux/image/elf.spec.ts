import { describe, expect, it } from 'vitest';
import { elfBits, elfNeeds, hasElfNote } from './elf.ts';
import { elfWith } from './testing-elf.ts';

const classes = [32, 64] as const;

describe('the requirements of a program', () => {
  it.each(classes)('of %i bits are its loader and its libraries, in any order of the table', (bits) => {
    const tags = [
      [1, 11],
      [5, 0x10300],
      [1, 1],
      [0, 0],
    ] as const;
    const needs = elfNeeds(elfWith(tags, bits));
    expect(needs).toEqual({ libraries: ['libibverbs.so.1', 'libc.so.6'], loader: '/lib64/ld.so' });
  });

  it('are unknown for a script, a program of another class or order of bytes, a part of one and an empty file', () => {
    expect(elfNeeds(Buffer.from(`#!/bin/sh\n${' '.repeat(80)}`))).toBeUndefined();
    for (const [at, value] of [
      [4, 0],
      [4, 3],
      [5, 2],
    ] as const) {
      const file = elfWith([]);
      file[at] = value;
      expect(elfNeeds(file)).toBeUndefined();
    }
    for (const [bits, headerBytes] of [
      [32, 52],
      [64, 64],
    ] as const)
      expect(elfNeeds(elfWith([], bits).subarray(0, headerBytes - 1))).toBeUndefined();
    expect(elfNeeds(new Uint8Array(0))).toBeUndefined();
  });

  it('come with the width of its addresses', () => {
    for (const bits of classes) expect(elfBits(elfWith([], bits))).toBe(bits);
    expect(elfBits(new Uint8Array(0))).toBeUndefined();
  });
});

describe('a note', () => {
  it('is found by its owner and type in a file of 32 bits', () => {
    const file = Buffer.from(elfWith([], 32));
    // The third segment becomes a PT_NOTE at offset 0x240.
    file.writeUInt32LE(4, 52 + 2 * 32);
    file.writeUInt32LE(0x240, 52 + 2 * 32 + 4);
    file.writeUInt32LE(20, 52 + 2 * 32 + 16);
    for (const [index, value] of [4, 4, 18].entries()) file.writeUInt32LE(value, 0x240 + 4 * index);
    file.write('Xen\0', 0x24c, 'latin1');
    expect(hasElfNote(file, { owner: 'Xen', type: 18 })).toBe(true);
    expect(hasElfNote(file, { owner: 'Xen', type: 17 })).toBe(false);
  });
});
