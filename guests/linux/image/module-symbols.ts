/**
 * Functions of a kernel module by its own symbol table, at the addresses of the sections in a running kernel
 * (`/sys/module/NAME/sections`). They are those that `/proc/kallsyms` prints for it, which a guest would need half a billion
 * instructions to do. Source: System V ABI, gABI 4.1, chapter 4 (sections, symbol table); Linux, kernel/module/kallsyms.c.
 */
import type { TextSymbol } from './kallsyms.ts';

const elfMagic = 0x7f454c46;
const class32 = 1;
const sectionTableAt = 0x20;
const sectionEntryBytesAt = 0x2e;
const sectionCountAt = 0x30;
const namesIndexAt = 0x32;
const symbolTable = 2;
const executable = 4;
const symbolBytes = 16;
const headerBytes = 52;

interface Section {
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly link: number;
}

/**
 * Functions of an i386 module in its executable sections whose addresses are given, by address; none of a file of another kind.
 * @param addresses by names like `.text`
 */
export function moduleSymbols(file: Uint8Array, addresses: ReadonlyMap<string, number>): TextSymbol[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < headerBytes || view.getUint32(0) !== elfMagic || file[4] !== class32) return [];
  const sections = sectionsOf(file, view);
  const table = sections.find(({ type }) => type === symbolTable);
  if (table === undefined) return [];
  const names = sections[table.link]!;
  const symbols: TextSymbol[] = [];
  for (let at = table.offset; at < table.offset + table.sizeBytes; at += symbolBytes) {
    const section = sections[view.getUint16(at + 14, true)];
    const name = textAt(file, names.offset + view.getUint32(at, true));
    if (section === undefined || name === '' || (section.flags & executable) === 0) continue;
    const base = addresses.get(section.name);
    if (base !== undefined) symbols.push({ address: base + view.getUint32(at + 4, true), name });
  }
  return symbols.sort((a, b) => a.address - b.address);
}

function sectionsOf(file: Uint8Array, view: DataView): Section[] {
  const tableAt = view.getUint32(sectionTableAt, true);
  const entryBytes = view.getUint16(sectionEntryBytesAt, true);
  const count = view.getUint16(sectionCountAt, true);
  const word = (index: number, field: number): number =>
    view.getUint32(tableAt + index * entryBytes + 4 * field, true);
  const namesAt = word(view.getUint16(namesIndexAt, true), 4);
  return Array.from({ length: count }, (_, index) => ({
    name: textAt(file, namesAt + word(index, 0)),
    type: word(index, 1),
    flags: word(index, 2),
    offset: word(index, 4),
    sizeBytes: word(index, 5),
    link: word(index, 6),
  }));
}

const textAt = (file: Uint8Array, at: number): string =>
  new TextDecoder().decode(file.subarray(at, file.indexOf(0, at)));
