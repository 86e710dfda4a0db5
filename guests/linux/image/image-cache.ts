/**
 * Keeps initial file systems in the cache, one per set of inputs: kits (whose folders are named by their contents), lists of
 * contents, and scripts. A change of any input selects another file.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ConfigurationError } from '../../../base/index.ts';
import { isWhole, writeDigested } from '../digested-file.ts';
import type { ImageContents } from './contents.ts';
import { agentScript, initScript, testScripts } from './init-scripts.ts';
import { buildInitramfs, type ImageRoots } from './initramfs.ts';
import { kernelVersionIn } from './modules.ts';

/** Raised when the image is built differently from the same inputs. */
const formatVersion = 1;

/** Path of the initial file system for unpacked kits; builds it if it is missing or incomplete. @throws ConfigurationError */
export function ensureImage(cacheFolder: string, roots: ImageRoots, contents: ImageContents): string {
  const { toolsRoot, kernelRoot } = roots;
  const inputs = [
    formatVersion,
    ...[toolsRoot, kernelRoot].map(identityOf),
    ...[contents, initScript, agentScript, testScripts],
  ];
  const digest = createHash('sha256').update(JSON.stringify(inputs)).digest('hex').slice(0, 12);
  const folder = join(cacheFolder, 'images');
  const path = join(folder, `${basename(kernelRoot)}-${digest}.cpio`);
  if (!isWhole(path)) {
    mkdirSync(folder, { recursive: true });
    writeDigested(path, buildInitramfs(roots, contents));
  }
  return path;
}

/** Identity of a tree: its packages, or for a user's own kernel the time at which its modules were installed. */
function identityOf(root: string): unknown[] {
  const packages = join(root, 'packages.json');
  if (existsSync(packages)) return [basename(root), readFileSync(packages, 'utf8')];
  const table = join(root, 'lib/modules', kernelVersionIn(root), 'modules.dep');
  if (!existsSync(table)) throw new ConfigurationError('kernel', root, 'module tables; run depmod on it');
  return [root, statSync(table).mtimeMs];
}
