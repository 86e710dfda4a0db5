/**
 * Failures of verbs. Control verbs reject with a {@link VerbsError}; data verbs return 0 or one of these numbers, as
 * libibverbs does, because they must not allocate.
 */
import { errnoNumbers } from '../driver/index.ts';

export type ErrnoName = keyof typeof errnoNumbers;

export const { EPERM, ENOENT, EINTR, EIO, ENXIO, EBADF, EAGAIN, ENOMEM, EACCES, EFAULT, EBUSY, ENODEV } =
  errnoNumbers;
export const { EINVAL, ENFILE, EOPNOTSUPP, ETIMEDOUT } = errnoNumbers;

/** A control verb that failed and changed nothing. */
export class VerbsError extends Error {
  override readonly name = 'VerbsError';
  /** The verb, as libibverbs names it. */
  readonly verb: string;
  readonly errno: number;
  readonly code: ErrnoName;

  constructor(verb: string, code: ErrnoName, reason: string) {
    super(`${verb}: ${reason} (${code})`);
    this.verb = verb;
    this.code = code;
    this.errno = errnoNumbers[code];
  }
}

/** Runs the body of a control verb; a kernel error becomes the verb's own error. */
export async function verb<T>(name: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (error) {
    if (error instanceof VerbsError || !isKernelError(error)) throw error;
    throw new VerbsError(name, error.code, error.message);
  }
}

/** The kernel's errors, recognised by their shape: the library imports none of its code. */
function isKernelError(error: unknown): error is Error & { readonly code: ErrnoName } {
  return error instanceof Error && 'code' in error && String(error.code) in errnoNumbers;
}
