/**
 * Requirements for loading a program or library of x86-64 Linux: the names of its shared libraries and of its loader; notes.
 *
 * Reads the program headers of a 64-bit little-endian ELF file: PT_INTERP names the loader, PT_DYNAMIC lists DT_NEEDED as
 * offsets into the string table at the address DT_STRTAB, which PT_LOAD maps to a file offset. Source: System V ABI, gABI 4.1,
 * chapters 4 and 5.
 */

export interface ElfNeeds {
  /** Names like `libc.so.6`, in file order. */
  readonly libraries: readonly string[];
  /** Path of the dynamic loader; absent in libraries and static programs. */
  readonly loader: string | undefined;
}

const elfMagic = 0x7f454c46;
const classAndOrderOf64LittleEndian = 0x0201;
const segmentLoad = 1;
const segmentDynamic = 2;
const segmentInterpreter = 3;
const segmentNote = 4;
const noteHeaderBytes = 12;
const noteAlignment = 4;
const tagNeeded = 1;
const tagStringTable = 5;
const dynamicEntryBytes = 16;

interface Segment {
  readonly type: number;
  readonly offset: number;
  readonly address: number;
  readonly fileBytes: number;
}

/** Requirements of `file`; undefined if it is not a 64-bit ELF file (e.g. a script). */
export function elfNeeds(file: Uint8Array): ElfNeeds | undefined {
  const view = viewOfElf(file);
  if (view === undefined) return undefined;
  const segments = segmentsOf(view);
  const interpreter = segments.find(({ type }) => type === segmentInterpreter);
  return {
    libraries: neededLibraries(view, segments),
    loader: interpreter === undefined ? undefined : textAt(view, interpreter.offset),
  };
}

/** Whether `file` is a 64-bit ELF file with a note of that owner and type in a PT_NOTE. */
export function hasElfNote(
  file: Uint8Array,
  note: { readonly owner: string; readonly type: number },
): boolean {
  const view = viewOfElf(file);
  if (view === undefined) return false;
  return segmentsOf(view)
    .filter(({ type }) => type === segmentNote)
    .some((segment) => holdsNote(view, segment, note));
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

function viewOfElf(file: Uint8Array): DataView | undefined {
  if (file.length < 64) return undefined;
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const isElf = view.getUint32(0) === elfMagic && view.getUint16(4) === classAndOrderOf64LittleEndian;
  return isElf ? view : undefined;
}

function segmentsOf(view: DataView): Segment[] {
  const tableOffset = Number(view.getBigUint64(0x20, true));
  const entryBytes = view.getUint16(0x36, true);
  const count = view.getUint16(0x38, true);
  return Array.from({ length: count }, (_, index) => {
    const at = tableOffset + index * entryBytes;
    return {
      type: view.getUint32(at, true),
      offset: Number(view.getBigUint64(at + 0x08, true)),
      address: Number(view.getBigUint64(at + 0x10, true)),
      fileBytes: Number(view.getBigUint64(at + 0x20, true)),
    };
  });
}

function neededLibraries(view: DataView, segments: readonly Segment[]): string[] {
  const dynamic = segments.find(({ type }) => type === segmentDynamic);
  if (dynamic === undefined) return [];
  const nameOffsets: number[] = [];
  let stringTable = 0;
  for (let at = dynamic.offset; at < dynamic.offset + dynamic.fileBytes; at += dynamicEntryBytes) {
    const tag = Number(view.getBigInt64(at, true));
    const value = Number(view.getBigUint64(at + 8, true));
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
