/**
 * A client that is refused because the device already has one: its first message is answered with an error at once, so that the
 * client can report the reason, and the connection is closed.
 *
 * Promises: nothing of it is kept, and it ends within `refusalWaitMs` in any case.
 */
import { constants } from 'node:os';
import { Connection, NOTHING_YET } from '../native/connection.ts';
import { nativeLibrary } from '../native/library.ts';
import { closeDescriptor } from '../native/poll.ts';
import type { VfioUserConfig } from './parameters.ts';
import { HEADER_BYTES, header } from './protocol.ts';
import type { Reply } from './reply.ts';

const { EBUSY } = constants.errno;
/** A version proposal has a few hundred bytes. */
const readBytesMax = 16_384;

export class Refusal {
  readonly #connection: Connection;
  readonly #reply: Reply;
  readonly #bytes = new Uint8Array(new ArrayBuffer(readBytesMax));
  readonly #address = nativeLibrary().addressOf(this.#bytes.buffer as ArrayBuffer);
  readonly #endMs: number;
  readonly #sendWaitMs: number;
  #receivedBytes = 0;
  /** Whether it has sent a message and received the reply that the device is in use. */
  isAnswered = false;

  /** Takes the socket over. `reply` is used while it is answered. */
  constructor(descriptor: number, config: VfioUserConfig, reply: Reply) {
    this.#connection = new Connection(descriptor, config.maxMessageDescriptors);
    this.#reply = reply;
    this.#endMs = performance.now() + config.refusalWaitMs;
    this.#sendWaitMs = config.sendWaitMs;
  }

  /** Descriptor for poll. */
  get descriptor(): number {
    return this.#connection.descriptor;
  }

  /** Milliseconds of wall clock until it must be pumped even if nothing has arrived. */
  get attentionMs(): number {
    return Math.max(0, this.#endMs - performance.now());
  }

  /** Reads received bytes; returns whether it is over, answered or not, and can be closed. */
  pump(): boolean {
    const connection = this.#connection;
    const count = connection.receive(this.#address + this.#receivedBytes, readBytesMax - this.#receivedBytes);
    for (let at = 0; at < connection.descriptorCount; at++) closeDescriptor(connection.descriptors[at]!);
    if (count === NOTHING_YET) return this.attentionMs === 0;
    if (count <= 0) return true;
    this.#receivedBytes += count;
    if (this.#receivedBytes < HEADER_BYTES) return false;
    const { id, command } = header.decode(this.#bytes);
    const replyBytes = this.#reply.fail(id, command, EBUSY);
    this.isAnswered = connection.sendAll(this.#reply.address, replyBytes, this.#sendWaitMs);
    return true;
  }

  close(): void {
    this.#connection.close();
  }
}
