/** A guest that failed: it did not start, stopped answering, or has ended. */
export class GuestError extends Error {
  override readonly name: string = 'GuestError';
}
