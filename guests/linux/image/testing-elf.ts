/** Minimal ELF files for tests. */

export type ElfClass = 32 | 64;

/** Offsets and sizes from the gABI's figures 4-3 (header), 5-1 (segments) and 5-9 (dynamic section), of both classes. */
const layouts = {
  32: {
    class: 1,
    table: 0x1c,
    entryBytes: 0x2a,
    count: 0x2c,
    header: 52,
    segment: 32,
    fields: [4, 8, 16],
    word: 4,
  },
  64: {
    class: 2,
    table: 0x20,
    entryBytes: 0x36,
    count: 0x38,
    header: 64,
    segment: 56,
    fields: [8, 16, 32],
    word: 8,
  },
} as const;

/**
 * PT_INTERP, PT_LOAD mapping offset 0x200 at address 0x10200, PT_DYNAMIC with the tags given; the strings, of which the first
 * is empty, at offset 0x300.
 */
export function elfWith(
  tags: readonly (readonly [number, number])[],
  bits: ElfClass = 64,
  strings = '\0libc.so.6\0libibverbs.so.1\0',
): Uint8Array {
  const layout = layouts[bits];
  const bytes = Buffer.alloc(0x400);
  const word = (value: number, at: number): void => {
    if (bits === 32) bytes.writeUInt32LE(value, at);
    else bytes.writeBigUInt64LE(BigInt(value), at);
  };
  bytes.set([0x7f, 0x45, 0x4c, 0x46, layout.class, 1, 1]);
  word(layout.header, layout.table);
  bytes.writeUInt16LE(layout.segment, layout.entryBytes);
  bytes.writeUInt16LE(3, layout.count);
  const segment = (index: number, type: number, fields: readonly [number, number, number]): void => {
    const at = layout.header + layout.segment * index;
    bytes.writeUInt32LE(type, at);
    fields.forEach((value, which) => {
      word(value, at + layout.fields[which]!);
    });
  };
  segment(0, 3, [0x1e0, 0, 20]);
  segment(1, 1, [0x200, 0x10200, 0x200]);
  segment(2, 2, [0x200, 0x10200, 2 * layout.word * tags.length]);
  bytes.write('/lib64/ld.so\0', 0x1e0, 'latin1');
  bytes.write(strings, 0x300, 'latin1');
  tags.forEach(([tag, value], index) => {
    word(tag, 0x200 + 2 * layout.word * index);
    word(value, 0x200 + 2 * layout.word * index + layout.word);
  });
  return bytes;
}

/** A library or program of `bits` that needs the libraries given. */
export function elfNeeding(names: readonly string[], bits: ElfClass): Uint8Array {
  const offsets = names.map((_, index) => 1 + names.slice(0, index).join('\0').length + (index > 0 ? 1 : 0));
  return elfWith(
    [[5, 0x10300], ...offsets.map((offset) => [1, offset] as const), [0, 0]],
    bits,
    `\0${names.join('\0')}\0`,
  );
}
