/**
 * Temporary folders that do not outlive the processes that created them: removed on request, at the end of the process, or,
 * after a killed process, by the next process that creates a folder of the same kind.
 *
 * Each holds a file that says which process owns it: the namespace of its process id, the id, and the time at which the process
 * started, so that another process with the same number is not mistaken for it. A folder whose owner cannot be looked up from
 * here (e.g. in another container) is not touched.
 */
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ownerFile = 'owner';

export interface TemporaryFolder {
  readonly path: string;
  /** Removes the folder; may be called again. */
  remove(): void;
}

/** Creates a folder whose name begins with `prefix`, after removing those of that kind whose owners are dead. */
export function makeTemporaryFolder(prefix: string): TemporaryFolder {
  removeAbandoned(prefix);
  const path = mkdtempSync(join(tmpdir(), prefix));
  const remove = (): void => {
    process.removeListener('exit', remove);
    rmSync(path, { recursive: true, force: true });
  };
  process.once('exit', remove);
  writeFileSync(join(path, ownerFile), JSON.stringify(ownerOf(process.pid)));
  return { path, remove };
}

interface Owner {
  readonly namespace: string;
  readonly pid: number;
  /** Clock ticks since the computer started. */
  readonly started: string;
}

function removeAbandoned(prefix: string): void {
  for (const name of readdirSync(tmpdir())) {
    if (name.startsWith(prefix) && isAbandoned(join(tmpdir(), name)))
      rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isAbandoned(path: string): boolean {
  try {
    const { namespace, pid, started } = JSON.parse(readFileSync(join(path, ownerFile), 'utf8')) as Owner;
    if (!Number.isInteger(pid) || namespace !== ownerOf(process.pid).namespace) return false;
    return !existsSync(`/proc/${pid}`) || ownerOf(pid).started !== started;
  } catch {
    return false;
  }
}

/** @throws if the process does not exist */
function ownerOf(pid: number): Owner {
  // proc(5): the start time is the 22nd field; the second is in parentheses and may hold anything.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return { namespace: readlinkSync('/proc/self/ns/pid'), pid, started: fields[19]! };
}
