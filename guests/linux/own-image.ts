/** The initial file system, followed by the user's own files. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noOwnFiles, type OwnFiles, ownFilesArchive } from './image/own-files.ts';
import type { GuestFiles } from './kernel-choice.ts';

/** Linux accepts consecutive archives if each begins at such an alignment. */
const archiveAlignment = 4;

/**
 * The unchanged file without user files; otherwise with an image created in `folder`.
 * @throws ConfigurationError for unavailable files
 */
export function withOwnFiles(
  files: GuestFiles,
  ownFiles: OwnFiles = noOwnFiles,
  memoryMib: number,
  folder: string,
): GuestFiles {
  const archive = ownFilesArchive(ownFiles, files.kernelVersion, memoryMib);
  if (archive.length === 0) return files;
  const stock = readFileSync(files.initramfs);
  const initramfs = join(folder, 'image.cpio');
  const padding = new Uint8Array(-stock.length & (archiveAlignment - 1));
  writeFileSync(initramfs, Buffer.concat([stock, padding, archive]));
  return { ...files, initramfs };
}
