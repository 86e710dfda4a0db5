/**
 * Reads files out of an archive in the format of cpio.ts, which names its source: of each entry, 110 characters of header, the
 * name and the content, both padded.
 */
const headerBytes = 110;
const alignmentBytes = 4;
const fileType = 0o100000;
const typeMask = 0o170000;
const trailerName = 'TRAILER!!!';

/** Contents of the regular files of a plain archive whose path is wanted, by path; they share its memory. */
export function cpioFiles(
  archive: Uint8Array,
  isWanted: (path: string) => boolean,
): ReadonlyMap<string, Uint8Array> {
  const files = new Map<string, Uint8Array>();
  const text = new TextDecoder('latin1');
  for (let at = 0; at + headerBytes <= archive.length; ) {
    const header = text.decode(archive.subarray(at, at + headerBytes));
    const field = (index: number): number => Number.parseInt(header.slice(6 + 8 * index, 14 + 8 * index), 16);
    const [mode, sizeBytes, nameBytes] = [field(1), field(6), field(11)];
    const nameAt = at + headerBytes;
    const path = text.decode(archive.subarray(nameAt, nameAt + nameBytes - 1));
    const contentAt = aligned(nameAt + nameBytes);
    if (path === trailerName || Number.isNaN(sizeBytes)) break;
    if ((mode & typeMask) === fileType && isWanted(path))
      files.set(path, archive.subarray(contentAt, contentAt + sizeBytes));
    at = aligned(contentAt + sizeBytes);
  }
  return files;
}

const aligned = (offset: number): number => Math.ceil(offset / alignmentBytes) * alignmentBytes;
