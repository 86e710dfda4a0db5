/** The error code of the operating system, like ENOENT; otherwise the thrown value in words. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error ? String(error.code) : error.message;
}
