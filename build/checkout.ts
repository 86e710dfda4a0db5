/**
 * The built form of a checkout, made when it is asked for and the sources are not those of any build at hand.
 *
 *     dist/checkout/3f2a…/cli/main.js      the folder's name: path, size and time of change of every source
 *
 * So nothing stale is ever run, two processes may build at once, and one that runs keeps the files it began with: a
 * build's folder gets its name when it is whole, and is not removed while a process runs that is noted in its `users`.
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
/** What the built form is made from and by. */
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
/** The latest builds are kept, and each that a process runs: it loads more of it later, for a thread that it starts. */
const keptCount = 4;
const usersFolder = 'users';

/**
 * The folder of the built form of the sources as they are now. When there is none it is built, in a process of its own, so that
 * nothing of the builder stays in this one. Undefined when the sources cannot be built: the reason has been written, and the exit
 * code says so.
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
  // Of sources that have been edited meanwhile it is another one.
  const built = folderOfSources();
  use(built);
  return built;
}

let noted: string | undefined;

/** Notes that this process runs a build, until it exits. @returns false when the build is not there */
function use(folder: string): boolean {
  if (noted === folder) return true;
  const users = join(folder, usersFolder);
  const note = join(users, String(process.pid));
  try {
    if (!existsSync(users)) mkdirSync(users);
    writeFileSync(note, '');
  } catch {
    // Where nothing can be written nothing is removed either.
    return existsSync(folder);
  }
  process.once('exit', () => rmSync(note, { force: true }));
  noted = folder;
  return true;
}

/** Whether a process runs that is noted as the user of a build. One that was killed has left its note. */
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

/** Builds what {@link builtCheckout} finds. */
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

/** The lab in `dist/lab`, unless what is there was built of the sources as they are now. */
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

/** A name for the sources as they are now. */
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

/** What Node has compiled of earlier builds. The folders stay, so that processes which have found them go on writing there. */
function removeCompiled(): void {
  const folder = join(root, 'dist', 'compiled');
  if (!existsSync(folder)) return;
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) rmSync(join(entry.parentPath, entry.name), { force: true });
}
