/** Errors of sending and receiving messages. */

/**
 * - EINVAL: an address or a length is not a whole number from 0 to 2^53 − 1; nothing was begun.
 * - EMSGSIZE: the message is longer than the buffer given for it; it is lost, the channel continues.
 * - ENOBUFS: too many receives are waiting already.
 * - ENOMEM: the receive's buffer could not be registered; the message is lost, the channel continues.
 * - ECONNRESET: the connection has failed; nothing more can be sent or received.
 */
export type MessageErrorCode = 'EINVAL' | 'EMSGSIZE' | 'ENOBUFS' | 'ENOMEM' | 'ECONNRESET';

export class MessageError extends Error {
  override readonly name = 'MessageError';
  readonly code: MessageErrorCode;

  constructor(code: MessageErrorCode, detail: string) {
    super(`${code}: ${detail}`);
    this.code = code;
  }
}
