/**
 * The built form of a checkout, made on demand if no existing build has the present sources.
 *
 *     dist/checkout/3f2a…/cli/main.js      the folder's name: path, size and time of change of every source
 *
 * So no outdated build is ever run, two processes may build at once, and a running process keeps its files: a build's folder
 * gets its name when it is complete, and is not removed while a process noted in its `users` runs.
 */
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const builds = join(root, 'dist', 'checkout');
/** Inputs of the built form: sources and build tools. */
export const rooms = [
  ...[
    'abi',
    'analyser',
    'base',
    'bench',
    'build',
    'cli',
    'driver',
    'experiments',
    'explain',
    'guests',
    'host',
    'hw',
    'lab',
    'net',
  ],
  ...['machine', 'protocol', 'runtime', 'sim', 'torture', 'userlib', 'wire'],
];
const files = ['index.ts', 'browser.ts', 'knip.json', 'package-lock.json'];
/** The latest builds are kept, and every build in use by a process: it loads more modules later, for a new thread. */
const keptCount = 4;
const usersFolder = 'users';

/**
 * The folder of the built form of the present sources. If it is missing, a separate process builds it, so that the builder
 * leaves no trace in this process. Undefined if the sources cannot be built: the reason was written and the exit code set.
 */
export function builtCheckout(): string | undefined {
  const folder = folderOfSources();
  if (use(folder)) return folder;
  const { status } = spawnSync(process.execPath, [join(root, 'build/main.ts')], { stdio: ['ignore', 2, 2] });
  if (status !== 0) {
    process.stderr.write('The sources cannot be built.\n');
    process.exitCode = 2;
    return undefined;
  }
  // If the sources were edited meanwhile, it is another folder.
  const built = folderOfSources();
  use(built);
  return built;
}

let noted: string | undefined;

/** Records that this process runs a build, until it exits. @returns false if the build does not exist */
function use(folder: string): boolean {
  if (noted === folder) return true;
  const users = join(folder, usersFolder);
  const note = join(users, String(process.pid));
  try {
    if (!existsSync(users)) mkdirSync(users);
    writeFileSync(note, '');
  } catch {
    // If the folder is not writable, it cannot be cleaned up either.
    return existsSync(folder);
  }
  process.once('exit', () => rmSync(note, { force: true }));
  noted = folder;
  return true;
}

/** Whether a recorded user of a build still runs. A killed process leaves its record. */
function isUsed(folder: string): boolean {
  const users = join(folder, usersFolder);
  return existsSync(users) && readdirSync(users).some((pid) => isRunning(Number(pid)));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Makes the build that {@link builtCheckout} looks for. */
export async function buildCheckout(): Promise<void> {
  const folder = folderOfSources();
  if (existsSync(folder)) return;
  mkdirSync(builds, { recursive: true });
  const { bundleInto } = await import('./bundle.ts');
  const unfinished = `${folder}.${process.pid}`;
  try {
    await bundleInto(unfinished);
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(folder)) throw error;
  }
  removeOldBuilds();
  removeCompiled();
}

/** Builds the lab in `dist/lab`, unless it is already built from the present sources. */
export async function buildLab(): Promise<void> {
  const folder = join(root, 'dist', 'lab');
  const mark = join(folder, '.sources');
  const key = keyOfSources();
  if (existsSync(mark) && readFileSync(mark, 'utf8') === key) return;
  const { labInto } = await import('./lab.ts');
  rmSync(folder, { recursive: true, force: true });
  await labInto(folder);
  writeFileSync(mark, key);
}

const folderOfSources = (): string => join(builds, keyOfSources());

/** Name of the present sources. */
function keyOfSources(): string {
  const lines = files.map(lineOf);
  for (const room of rooms) addLinesOf(room, lines);
  return hash('sha1', lines.join('\n')).slice(0, 16);
}

function addLinesOf(folder: string, lines: string[]): void {
  for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) addLinesOf(path, lines);
    else if (/(?<!\.spec)\.(ts|json|html|css)$/.test(path)) lines.push(lineOf(path));
  }
}

function lineOf(path: string): string {
  const { mtimeMs, size } = statSync(join(root, path));
  return `${path} ${mtimeMs} ${size}`;
}

function removeOldBuilds(): void {
  const folders = readdirSync(builds).map((name) => join(builds, name));
  const byAge = folders
    .map((folder) => ({ folder, builtMs: statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.builtMs - a.builtMs);
  for (const { folder } of byAge.slice(keptCount))
    if (!isUsed(folder)) rmSync(folder, { recursive: true, force: true });
}

/** Removes compile caches of earlier builds. The folders stay, so that processes that use them can still write there. */
function removeCompiled(): void {
  const folder = join(root, 'dist', 'compiled');
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) rmSync(join(entry.parentPath, entry.name), { force: true });
}
