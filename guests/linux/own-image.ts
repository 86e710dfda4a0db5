/** The initial file system with files of the user's own after it, and modules that were built. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { noOwnFiles, type OwnFiles, ownFilesArchive } from './image/own-files.ts';
import type { GuestFiles } from './kernel-choice.ts';

/** The files that an image is made of, whichever machine boots it. */
type ImageFiles = Pick<GuestFiles, 'initramfs' | 'kernelVersion' | 'builtModules'>;

/** Linux accepts consecutive archives if each begins at such an alignment. */
const archiveAlignment = 4;

/**
 * The unchanged files if nothing is added to the image; otherwise with an image created in `folder`.
 * @throws ConfigurationError for unavailable files
 */
export function withOwnFiles<Files extends ImageFiles>(
  files: Files,
  ownFiles: OwnFiles = noOwnFiles,
  memoryMib: number,
  folder: string,
): Files {
  const { copies } = ownFiles;
  const archive = ownFilesArchive(
    { copies, modules: addedModules(files, ownFiles) },
    files.kernelVersion,
    memoryMib,
  );
  if (archive.length === 0) return files;
  const initramfs = join(folder, 'image.cpio');
  writeFileSync(initramfs, withArchive(readFileSync(files.initramfs), archive));
  return { ...files, initramfs };
}

/** A stock image, and a further archive after it. */
export function withArchive(stock: Uint8Array, archive: Uint8Array): Uint8Array {
  if (archive.length === 0) return stock;
  const padding = new Uint8Array(-stock.length & (archiveAlignment - 1));
  return Buffer.concat([stock, padding, archive]);
}

/** Files of modules that load after the drivers: those that were built, then the user's own. */
export const addedModules = (
  { builtModules }: Pick<GuestFiles, 'builtModules'>,
  { modules }: OwnFiles = noOwnFiles,
): readonly string[] => [...builtModules, ...modules];
