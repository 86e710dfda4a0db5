/**
 * Errors of the kernel: a typed error that carries the errno a system call would return.
 *
 * Commands that the device refuses become the errno Linux derives from their status (interface sheet 3.2). The driver itself
 * detects the rest: a number that is not an object of the caller, a size over a limit, exhausted memory.
 */
import { commandStatusName, errnoOfStatus } from '../abi/index.ts';
import { type ErrnoName, errnoNumbers } from './uapi.ts';

/** A system call that failed, before it changed anything. */
export class KernelError extends Error {
  override readonly name: string = 'KernelError';
  readonly code: ErrnoName;
  readonly errno: number;

  constructor(code: ErrnoName, reason: string) {
    super(`${code}: ${reason}`);
    this.code = code;
    this.errno = errnoNumbers[code];
  }
}

/** A command that the device answered with a status other than OK. */
export class CommandFailure extends KernelError {
  override readonly name = 'CommandFailure';
  readonly command: string;
  readonly status: number;

  constructor(command: string, status: number) {
    super(nameOfErrno(errnoOfStatus(status)), `${command} ended with status ${commandStatusName(status)}`);
    this.command = command;
    this.status = status;
  }
}

function nameOfErrno(errno: number): ErrnoName {
  const found = Object.entries(errnoNumbers).find(([, number]) => number === errno);
  return (found?.[0] ?? 'EIO') as ErrnoName;
}

/** Throws EINVAL with this reason unless the condition holds: for arguments that come from a program. */
export function require(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new KernelError('EINVAL', reason);
}

/** Throws EINVAL that names field, value and range unless the value is a whole number from `min` to `max`. */
export function requireWithin(field: string, value: number, min: number, max: number): void {
  require(Number.isInteger(value) &&
    value >= min &&
    value <= max, `${field} is ${value}, expected ${min} to ${max}`);
}
