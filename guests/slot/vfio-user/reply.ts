/** The reply under construction: one buffer, header first, sent whole. */

import { nativeLibrary } from '../native/library.ts';
import { HEADER_BYTES, header, MESSAGE_REPLY } from './protocol.ts';

/** Offset after the header of the reply. */
export const PAYLOAD_OFFSET = HEADER_BYTES;

export class Reply {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly view: DataView;
  /** Address of `bytes` for the kernel. */
  readonly address: number;

  /** @param sizeBytesMax the longest reply, header included */
  constructor(sizeBytesMax: number) {
    this.bytes = new Uint8Array(new ArrayBuffer(sizeBytesMax));
    this.view = new DataView(this.bytes.buffer);
    this.address = nativeLibrary().addressOf(this.bytes.buffer);
  }

  /** Writes the header of a reply with `payloadBytes` after it; returns the total size. */
  succeed(id: number, command: number, payloadBytes: number): number {
    return this.#writeHeader(id, command, HEADER_BYTES + payloadBytes, 0);
  }

  /** Writes the header of an error reply, which has no payload. */
  fail(id: number, command: number, errno: number): number {
    return this.#writeHeader(id, command, HEADER_BYTES, errno);
  }

  #writeHeader(id: number, command: number, sizeBytes: number, errno: number): number {
    const { fields } = header;
    const { view } = this;
    view.setUint32(fields.type.wordOffset, 0, true);
    fields.id.set(view, 0, id);
    fields.command.set(view, 0, command);
    fields.sizeBytes.set(view, 0, sizeBytes);
    fields.type.set(view, 0, MESSAGE_REPLY);
    fields.isError.set(view, 0, errno === 0 ? 0 : 1);
    fields.errno.set(view, 0, errno);
    return sizeBytes;
  }
}
