/**
 * Requirements for loading a program or library of x86 Linux: the names of its shared libraries and of its loader; notes.
 *
 * Reads the program headers of a little-endian ELF file of 32 or 64 bits: PT_INTERP names the loader, PT_DYNAMIC lists DT_NEEDED as
 * offsets into the string table at the address DT_STRTAB, which PT_LOAD maps to a file offset. Source: System V ABI, gABI 4.1,
 * chapters 4 and 5.
 */

export interface ElfNeeds {
  /** Names like `libc.so.6`, in file order. */
  readonly libraries: readonly string[];
  /** Path of the dynamic loader; absent in libraries and static programs. */
  readonly loader: string | undefined;
}

const segmentLoad = 1;
const segmentDynamic = 2;
const segmentInterpreter = 3;
const segmentNote = 4;
const noteHeaderBytes = 12;
const noteAlignment = 4;
const tagNeeded = 1;
const tagStringTable = 5;

const elfMagic = 0x7f454c46;
/** Bytes of e_ident, which names the class and the order of bytes. */
const identificationBytes = 16;
const littleEndian = 1;

/** Reads an address, offset or size, whose width is that of the file's class. */
type ReadWord = (view: DataView, at: number) => number;

/** Offsets of the fields of Elf32_Ehdr and Elf32_Phdr, or Elf64_Ehdr and Elf64_Phdr; the size of Elf32_Dyn or Elf64_Dyn. */
interface Class {
  readonly headerBytes: number;
  readonly tableOffsetAt: number;
  readonly entryBytesAt: number;
  readonly entryCountAt: number;
  readonly segmentOffsetAt: number;
  readonly segmentAddressAt: number;
  readonly segmentBytesAt: number;
  readonly wordBytes: number;
  readonly word: ReadWord;
}

/** The layouts by e_ident[EI_CLASS]. */
const classes: Readonly<Record<number, Class>> = {
  1: {
    headerBytes: 0x34,
    tableOffsetAt: 0x1c,
    entryBytesAt: 0x2a,
    entryCountAt: 0x2c,
    segmentOffsetAt: 0x04,
    segmentAddressAt: 0x08,
    segmentBytesAt: 0x10,
    wordBytes: 4,
    word: (view, at) => view.getUint32(at, true),
  },
  2: {
    headerBytes: 0x40,
    tableOffsetAt: 0x20,
    entryBytesAt: 0x36,
    entryCountAt: 0x38,
    segmentOffsetAt: 0x08,
    segmentAddressAt: 0x10,
    segmentBytesAt: 0x20,
    wordBytes: 8,
    word: (view, at) => Number(view.getBigUint64(at, true)),
  },
};

interface ElfFile {
  readonly view: DataView;
  readonly class: Class;
}

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
}

/** Requirements of `file`; undefined if it is not an ELF file (e.g. a script). */
export function elfNeeds(file: Uint8Array): ElfNeeds | undefined {
  const elf = elfFile(file);
  if (elf === undefined) return undefined;
  const segments = segmentsOf(elf);
  const interpreter = segments.find(({ type }) => type === segmentInterpreter);
  return {
    libraries: neededLibraries(elf, segments),
    loader: interpreter === undefined ? undefined : textAt(elf.view, interpreter.offset),
  };
}

/** Width of the addresses of `file` in bits; undefined if it is not an ELF file. */
export function elfBits(file: Uint8Array): number | undefined {
  const elf = elfFile(file);
  return elf === undefined ? undefined : elf.class.wordBytes * 8;
}

/** Whether `file` is an ELF file with a note of that owner and type in a PT_NOTE. */
export function hasElfNote(
  file: Uint8Array,
  note: { readonly owner: string; readonly type: number },
): boolean {
  const elf = elfFile(file);
  if (elf === undefined) return false;
  return segmentsOf(elf)
    .filter(({ type }) => type === segmentNote)
    .some((segment) => holdsNote(elf.view, segment, note));
}

function holdsNote(
  view: DataView,
  { offset, fileBytes }: Segment,
  { owner, type }: { readonly owner: string; readonly type: number },
): boolean {
  const aligned = (bytes: number): number => Math.ceil(bytes / noteAlignment) * noteAlignment;
  const end = Math.min(offset + fileBytes, view.byteLength);
  for (let at = offset; at + noteHeaderBytes <= end; ) {
    const [nameBytes, contentBytes] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    const isOwners = textAt(view, at + noteHeaderBytes) === owner;
    if (isOwners && view.getUint32(at + 8, true) === type) return true;
    at += noteHeaderBytes + aligned(nameBytes) + aligned(contentBytes);
  }
  return false;
}

function elfFile(file: Uint8Array): ElfFile | undefined {
  if (file.length < identificationBytes) return undefined;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const found = classes[view.getUint8(4)];
  const isElf = view.getUint32(0) === elfMagic && view.getUint8(5) === littleEndian;
  return isElf && found !== undefined && file.length >= found.headerBytes
    ? { view, class: found }
    : undefined;
}

function segmentsOf({ view, class: layout }: ElfFile): Segment[] {
  const tableOffset = layout.word(view, layout.tableOffsetAt);
  const entryBytes = view.getUint16(layout.entryBytesAt, true);
  const count = view.getUint16(layout.entryCountAt, true);
  return Array.from({ length: count }, (_, index) => {
    const at = tableOffset + index * entryBytes;
    return {
      type: view.getUint32(at, true),
      offset: layout.word(view, at + layout.segmentOffsetAt),
      address: layout.word(view, at + layout.segmentAddressAt),
      fileBytes: layout.word(view, at + layout.segmentBytesAt),
    };
  });
}

/** An entry of the dynamic section is a tag and a value, both of the width of the class. */
function neededLibraries(
  { view, class: { word, wordBytes } }: ElfFile,
  segments: readonly Segment[],
): string[] {
  const dynamic = segments.find(({ type }) => type === segmentDynamic);
  if (dynamic === undefined) return [];
  const nameOffsets: number[] = [];
  let stringTable = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.fileBytes; at += 2 * wordBytes) {
    const [tag, value] = [word(view, at), word(view, at + wordBytes)];
    if (tag === tagNeeded) nameOffsets.push(value);
    else if (tag === tagStringTable) stringTable = fileOffset(segments, value);
  }
  return nameOffsets.map((offset) => textAt(view, stringTable + offset));
}

/** File offset of the byte loaded at `address`. */
function fileOffset(segments: readonly Segment[], address: number): number {
  const holder = segments.find(
    (segment) =>
      segment.type === segmentLoad &&
      address >= segment.address &&
      address < segment.address + segment.fileBytes,
  );
  return holder === undefined ? address : address - holder.address + holder.offset;
}

function textAt(view: DataView, offset: number): string {
  let end = offset;
  while (end < view.byteLength && view.getUint8(end) !== 0) end++;
  return Buffer.from(view.buffer, view.byteOffset + offset, end - offset).toString();
}
