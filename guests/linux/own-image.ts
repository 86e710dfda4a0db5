/** The initial file system with files of the user's own behind it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noOwnFiles, type OwnFiles, ownFilesArchive } from './image/own-files.ts';
import type { GuestFiles } from './kernel-choice.ts';

/** Linux takes archives that follow each other when each begins at such a place. */
const archiveAlignment = 4;

/**
 * The same files when there are none of the user's own; else with an image made in `folder`.
 * @throws ConfigurationError for files that cannot be had
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
