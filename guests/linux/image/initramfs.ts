/**
 * Builds the guest's initial file system from unpacked Debian packages: busybox, the tools, their libraries, the kernel modules
 * and the scripts of init-scripts.ts. It is not compressed: unpacking in an emulated processor would cost more time than
 * reading saves.
 *
 * The tree is a merged /usr, as in Debian: /bin, /sbin, /lib and, with 64 bits, /lib64 are links.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { layoutOf } from '../packages/architecture.ts';
import { makeTemporaryFolder } from '../temporary-folder.ts';
import type { ImageContents } from './contents.ts';
import { cpioArchive, type TreeEntry } from './cpio.ts';
import { agentScript, initScript, testScripts } from './init-scripts.ts';
import { libraryClosure } from './libraries.ts';
import { kernelVersionIn, stageModules } from './modules.ts';

/** Unpacked packages of which an image is built. */
export interface ImageRoots {
  /** Tools of the guest's architecture, copied into the image. */
  readonly toolsRoot: string;
  /** The same tools for this machine, which run here. Equal to `toolsRoot` if the guest's architecture is this machine's. */
  readonly machineToolsRoot: string;
  readonly kernelRoot: string;
}

/**
 * The archive for the kernel and tools unpacked at `roots`.
 * @throws ConfigurationError if a module, program or library is missing there
 */
export function buildInitramfs(roots: ImageRoots, contents: ImageContents): Uint8Array {
  const tree = new Map<string, TreeEntry>();
  addFrame(tree);
  addPrograms(tree, roots, contents);
  addModules(tree, roots, contents);
  return cpioArchive(tree);
}

const executable = (content: Uint8Array): TreeEntry => ({ kind: 'file', mode: 0o755, content });
const plain = (content: Uint8Array): TreeEntry => ({ kind: 'file', mode: 0o644, content });
const link = (target: string): TreeEntry => ({ kind: 'link', target });

/** Scripts, accounts, links of the merged /usr, and the console that the kernel opens before anything is mounted. */
function addFrame(tree: Map<string, TreeEntry>): void {
  for (const name of ['bin', 'sbin', 'lib']) tree.set(name, link(`usr/${name}`));
  for (const name of ['proc', 'sys', 'dev', 'run', 'root'])
    tree.set(name, { kind: 'directory', mode: 0o755 });
  tree.set('tmp', { kind: 'directory', mode: 0o1777 });
  tree.set('dev/console', { kind: 'character-device', mode: 0o600, major: 5, minor: 1 });
  tree.set('init', executable(Buffer.from(initScript)));
  tree.set('usr/bin/agent', executable(Buffer.from(agentScript)));
  for (const [name, script] of Object.entries(testScripts))
    tree.set(`usr/bin/${name}`, executable(Buffer.from(script)));
  tree.set('etc/passwd', plain(Buffer.from('root:x:0:0:root:/root:/bin/sh\n')));
  tree.set('etc/group', plain(Buffer.from('root:x:0:\n')));
  tree.set('etc/hosts', plain(Buffer.from('127.0.0.1 localhost\n')));
}

function addPrograms(
  tree: Map<string, TreeEntry>,
  { toolsRoot, machineToolsRoot }: ImageRoots,
  { architecture, programs, plugIns, lateLibraries, dataFiles, kmodNames }: ImageContents,
): void {
  const { libraryFolder, loaderName, loaderFolder } = layoutOf[architecture];
  const from = (path: string): Uint8Array => readFileSync(join(toolsRoot, path));
  for (const program of programs) tree.set(merged(program), executable(from(program)));
  for (const path of plugIns) tree.set(path, plain(from(path)));
  for (const path of dataFiles) tree.set(path, plain(from(path)));
  const files = [...programs, ...plugIns];
  for (const [name, path] of libraryClosure(toolsRoot, architecture, files, lateLibraries)) {
    tree.set(`usr/lib/${libraryFolder}/${name}`, executable(from(path)));
  }
  if (loaderFolder !== 'lib') tree.set(loaderFolder, link(`usr/${loaderFolder}`));
  tree.set(`usr/${loaderFolder}/${loaderName}`, link(`../lib/${libraryFolder}/${loaderName}`));
  for (const name of kmodNames) tree.set(`usr/sbin/${name}`, link('../bin/kmod'));
  for (const name of appletsOf(join(machineToolsRoot, 'bin/busybox'))) {
    if (!tree.has(`usr/bin/${name}`) && !tree.has(`usr/sbin/${name}`))
      tree.set(`usr/bin/${name}`, link('busybox'));
  }
}

/** Debian 12 still ships some programs outside /usr. */
const merged = (path: string): string => (path.startsWith('usr/') ? path : `usr/${path}`);

/** Names of the commands that a statically linked busybox has. */
const appletsOf = (busybox: string): string[] =>
  execFileSync(busybox, ['--list'], { encoding: 'utf8' }).split('\n').filter(Boolean);

function addModules(
  tree: Map<string, TreeEntry>,
  { machineToolsRoot, kernelRoot }: ImageRoots,
  contents: ImageContents,
): void {
  const { path: staging, remove } = makeTemporaryFolder('hca-modules-');
  try {
    stageModules(machineToolsRoot, kernelRoot, staging, contents);
    const folder = join('lib/modules', kernelVersionIn(kernelRoot));
    for (const file of readdirSync(join(staging, folder), { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const path = join(file.parentPath, file.name);
      tree.set(`usr/${relative(staging, path)}`, plain(readFileSync(path)));
    }
  } finally {
    remove();
  }
}
