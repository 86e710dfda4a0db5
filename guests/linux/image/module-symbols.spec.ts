import { describe, expect, it } from 'vitest';
import { moduleSymbols } from './module-symbols.ts';

const executable = 4;
/** Symbol: offset of its name, value, section. */
const symbols = [
  [0, 0, 0],
  [1, 0x40, 1],
  [7, 0x10, 1],
  [12, 0, 2],
  [18, 8, 3],
  [0, 0, 1],
] as const;
const symbolNames = '\0later\0soon\0cold_\0value\0';
const sectionNames = '\0.text\0.text.unlikely\0.data\0.symtab\0.strtab\0';

/** A relocatable file by the figures 4-3 (header), 4-8 (sections) and 4-15 (symbols) of the gABI, of class 32. */
function moduleFile(): Uint8Array {
  const bytes = Buffer.alloc(0x400);
  bytes.set([0x7f, 0x45, 0x4c, 0x46, 1, 1, 1]);
  bytes.writeUInt32LE(0x200, 0x20);
  bytes.writeUInt16LE(40, 0x2e);
  bytes.writeUInt16LE(6, 0x30);
  bytes.writeUInt16LE(5, 0x32);
  bytes.write(sectionNames, 0x40, 'latin1');
  bytes.write(symbolNames, 0x80, 'latin1');
  for (const [index, [name, value, section]] of symbols.entries()) {
    const at = 0x100 + 16 * index;
    bytes.writeUInt32LE(name, at);
    bytes.writeUInt32LE(value, at + 4);
    bytes.writeUInt16LE(section, at + 14);
  }
  const sections = [
    { name: 0, type: 0, flags: 0, at: 0, size: 0, link: 0 },
    { name: 1, type: 1, flags: executable, at: 0, size: 0, link: 0 },
    { name: 7, type: 1, flags: executable, at: 0, size: 0, link: 0 },
    { name: 22, type: 1, flags: 0, at: 0, size: 0, link: 0 },
    { name: 28, type: 2, flags: 0, at: 0x100, size: 16 * symbols.length, link: 5 },
    { name: 36, type: 3, flags: 0, at: 0x40, size: sectionNames.length, link: 0 },
  ];
  // The symbols' names are in the table of the sections' names here, 0x40 bytes later.
  for (const [index, { name, type, flags, at, size, link }] of sections.entries())
    for (const [field, value] of [name, type, flags, 0, at, size, link].entries())
      bytes.writeUInt32LE(value, 0x200 + 40 * index + 4 * field);
  for (const [index, [name]] of symbols.entries())
    if (name !== 0) bytes.writeUInt32LE(name + 0x40, 0x100 + 16 * index);
  return bytes;
}

describe("a module's functions", () => {
  it('are the named symbols of its executable sections, at the addresses given for these', () => {
    const addresses = new Map([
      ['.text', 0xcc00_1000],
      ['.text.unlikely', 0xcc00_3000],
      ['.data', 0xcc00_5000],
    ]);
    expect(moduleSymbols(moduleFile(), addresses)).toEqual([
      { address: 0xcc00_1010, name: 'soon' },
      { address: 0xcc00_1040, name: 'later' },
      { address: 0xcc00_3000, name: 'cold_' },
    ]);
  });

  it('leave out sections without an address, and are none of another file', () => {
    expect(moduleSymbols(moduleFile(), new Map([['.text.unlikely', 16]]))).toEqual([
      { address: 16, name: 'cold_' },
    ]);
    expect(moduleSymbols(new Uint8Array(100), new Map())).toEqual([]);
  });
});
