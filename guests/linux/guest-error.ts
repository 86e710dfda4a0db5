/** A guest that did not do what it was expected to: it did not start, stopped answering, or is gone. */
export class GuestError extends Error {
  override readonly name: string = 'GuestError';
}
