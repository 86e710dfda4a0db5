/**
 * One writer of a file at a time: `FILE.lock` beside it names process and host. A process that was killed leaves its lock behind;
 * the next one on the same host sees that there is no such process and takes it.
 */
import { closeSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { hostname } from 'node:os';
import { ConfigurationError, codeOf } from '../../base/index.ts';

/** Locks of this process: its number says nothing of them, for after a restart another may have it. */
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
    const owner = ownerOf(this.#file);
    if (owner !== undefined && !isGone(owner))
      throw new ConfigurationError(
        'results',
        file,
        `a file that no other sweep writes: process ${owner.pid} on ${owner.host} does (if it is over, remove ${this.#file})`,
      );
    rmSync(this.#file, { force: true });
    if (!this.#isMade())
      throw new ConfigurationError('results', file, 'a file that no other sweep has just begun to write');
  }

  /** Makes the file unless it is there. */
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

/** Undefined for a lock that has gone meanwhile, or that its process did not live to fill. */
function ownerOf(file: string): Owner | undefined {
  try {
    const [, pid, host] = /^(\d+) (\S+)\n$/.exec(readFileSync(file, 'utf8')) ?? [];
    return pid === undefined || host === undefined ? undefined : { pid: Number(pid), host };
  } catch {
    return undefined;
  }
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
