/** A system call failed for a reason that no guest can cause: the machine lacks a resource, or the emulator is wrong. */

import { getSystemErrorMap } from 'node:util';

export class NativeCallError extends Error {
  override readonly name = 'NativeCallError';
  readonly call: string;
  readonly errno: number;

  constructor(call: string, errno: number) {
    super(`${call}: ${describeErrno(errno)}`);
    this.call = call;
    this.errno = errno;
  }
}

/** `ENOENT: no such file or directory`. */
export function describeErrno(errno: number): string {
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`error ${errno}`, 'unknown'];
  return `${code}: ${text}`;
}
