/**
 * A completion about to be sent: begun for a request, filled in by name, and sent by `PcieLinkPort.sendCompletion`.
 *
 *     const completion = port.completion.begin(descriptor);
 *     completion.status = STATUS_ABORT;
 *     port.sendCompletion();
 */
import type { Wide } from '../../../base/index.ts';
import { STATUS_SUCCESS } from './tlp.ts';

const NO_BYTES = new Uint8Array(0);
/** Byte count of a completion without data, unless it answers a read (2.2.9, 2.3.2). */
const NO_DATA_BYTE_COUNT = 4;

export class CompletionFields {
  /** Fields of the request: requester, tag, traffic class. */
  descriptor = 0;
  status: number = STATUS_SUCCESS;
  /** The data, from `source[sourceOffset]` on; without any, it is a completion without data. */
  source: Uint8Array = NO_BYTES;
  sourceOffset = 0;
  lengthBytes = 0;
  /** Outstanding bytes of the request, including these. */
  byteCount = NO_DATA_BYTE_COUNT;
  /** Address of the first byte: the completion carries its low 7 bits. */
  address: Wide = 0;
  flags = 0;

  /** Begins a completion of the request of this descriptor: without data, successful, unless other fields are filled in. */
  begin(descriptor: number): this {
    this.descriptor = descriptor;
    this.status = STATUS_SUCCESS;
    this.source = NO_BYTES;
    this.sourceOffset = 0;
    this.lengthBytes = 0;
    this.byteCount = NO_DATA_BYTE_COUNT;
    this.address = 0;
    this.flags = 0;
    return this;
  }
}
