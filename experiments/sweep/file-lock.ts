/**
 * Ensures one writer of a file at a time: `FILE.lock` next to it names process and host. The lock of a
 * killed process remains; the next process on the same host detects that the owner no longer exists and takes the lock over.
 */
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { ConfigurationError, codeOf } from '../../base/index.ts';

/** Locks of this process: its number alone does not identify it, because another process may have the number after a restart. */
const held = new Set<string>();

export class FileLock implements Disposable {
  readonly #file: string;

  /** @throws ConfigurationError while another process holds it */
  constructor(file: string) {
    this.#file = `${file}.lock`;
    if (held.has(this.#file))
      throw new ConfigurationError('results', file, 'a file that no other sweep writes');
    this.#take(file);
    held.add(this.#file);
  }

  [Symbol.dispose](): void {
    rmSync(this.#file, { force: true });
    held.delete(this.#file);
  }

  #take(file: string): void {
    if (this.#isMade()) return;
    const found = textOf(this.#file);
    const owner = ownerIn(found ?? '');
    if (owner !== undefined && !isGone(owner))
      throw new ConfigurationError(
        'results',
        file,
        `a file that no other sweep writes: process ${owner.pid} on ${owner.host} does (if it is over, remove ${this.#file})`,
      );
    const isBegun = owner === undefined && isYoung(this.#file);
    if (isBegun || !this.#isTaken(found) || !this.#isMade())
      throw new ConfigurationError('results', file, 'a file that no other sweep has just begun to write');
  }

  /**
   * Removes a lock whose process no longer exists, by renaming it, because another process may have replaced the file
   * after it was read. If the renamed lock is not the one that was read, it is put back.
   */
  #isTaken(found: string | undefined): boolean {
    const old = `${this.#file}.${process.pid}`;
    try {
      renameSync(this.#file, old);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return true;
      throw new ConfigurationError('results', this.#file, `a file that can be renamed (${codeOf(error)})`);
    }
    const isSame = textOf(old) === found;
    if (!isSame && !existsSync(this.#file)) renameSync(old, this.#file);
    rmSync(old, { force: true });
    return isSame;
  }

  /** Creates the file unless it exists. */
  #isMade(): boolean {
    try {
      const handle = openSync(this.#file, 'wx');
      writeSync(handle, `${process.pid} ${hostname()}\n`);
      closeSync(handle);
      return true;
    } catch (error) {
      if (codeOf(error) === 'EEXIST') return false;
      throw new ConfigurationError('results', this.#file, `a file that can be written (${codeOf(error)})`);
    }
  }
}

interface Owner {
  readonly pid: number;
  readonly host: string;
}

/**
 * Undefined if the lock was removed meanwhile.
 * @throws ConfigurationError for one that cannot be read
 */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new ConfigurationError('results', file, `a file that can be read (${codeOf(error)})`);
  }
}

/** Undefined for a file that its process has not filled yet, or died before filling. */
function ownerIn(text: string): Owner | undefined {
  const [, pid, host] = /^(\d+) (\S+)\n$/.exec(text) ?? [];
  return pid === undefined || host === undefined ? undefined : { pid: Number(pid), host };
}

/** A process fills its lock immediately; one that did not within this time has died. */
const fillMs = 5000;

/** Whether a lock is so new that its process may be about to fill it. A file server may have another clock. */
function isYoung(file: string): boolean {
  const madeMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  return madeMs !== undefined && Math.abs(Date.now() - madeMs) < fillMs;
}

function isGone({ pid, host }: Owner): boolean {
  if (host !== hostname()) return false;
  if (pid === process.pid) return true;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return codeOf(error) === 'ESRCH';
  }
}
