/**
 * Keeps the snapshot of a booted PC in the cache: the state of a Linux whose agent waits for its first command, before any driver
 * of ours is loaded. It is named by everything that decides its contents, so the guest boots again after a change of any of them.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { type BootedPc, bootedOfBytes, bytesOfBooted } from '../booted/index.ts';
import { isWhole, writeDigested } from '../digested-file.ts';

/** Raised when the same inputs lead to another state: the PC's hardware, its boot, the format of the file. */
const formatVersion = 3;
/** Snapshots with a user's own files are kept in a folder of their own: the latest of them. */
const ownFolder = 'own';
const ownKept = 6;

/**
 * Path of the snapshot for these inputs, which may not be there.
 * @param isOwn whether files of the user's own are in it
 */
export function snapshotPath(cacheFolder: string, inputs: readonly unknown[], isOwn: boolean): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([formatVersion, ...inputs]))
    .digest('hex');
  return join(cacheFolder, 'snapshots', isOwn ? ownFolder : '', `${digest.slice(0, 16)}.pc`);
}

/**
 * Reads a snapshot; undefined if it is missing or incomplete.
 * @internal
 */
export function readSnapshot(path: string): BootedPc | undefined {
  if (!existsSync(path) || !isWhole(path)) return undefined;
  return bootedOfBytes(zstdDecompressSync(readFileSync(path)));
}

/** Writes a snapshot; of those with files of a user's own, the oldest are removed. */
export function writeSnapshot(path: string, booted: BootedPc): void {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true });
  writeDigested(path, zstdCompressSync(bytesOfBooted(booted)));
  if (folder.endsWith(ownFolder)) removeOldest(folder);
}

function removeOldest(folder: string): void {
  const snapshots = readdirSync(folder)
    .filter((name) => name.endsWith('.pc'))
    .map((name) => join(folder, name))
    .map((path) => ({ path, writtenMs: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.writtenMs - a.writtenMs);
  for (const { path } of snapshots.slice(ownKept))
    for (const file of [path, `${path}.sha256`]) rmSync(file, { force: true });
}
