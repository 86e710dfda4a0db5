/**
 * Memory writes without a copy: if device and root complex share a thread, the record of a write gives the position of its
 * payload in the device instead of carrying it. A decorator of a link port, for the block that makes the writes; payload that
 * cannot be referenced is carried as usual. The root complex reads it through ZeroCopyPayload (write-payload.ts).
 */

import { FLAG_REFERENCE, type MemoryWriteFields } from '../tlp/index.ts';
import type { PayloadReferences } from './payload-references.ts';
import type { PcieLinkPort } from './pcie-link-port.ts';

export class ZeroCopyWriter {
  /** See {@link PcieLinkPort.write}. */
  readonly write: MemoryWriteFields;
  readonly #port: PcieLinkPort;
  readonly #references: PayloadReferences;

  constructor(port: PcieLinkPort, references: PayloadReferences) {
    this.#port = port;
    this.write = port.write;
    this.#references = references;
  }

  canSend(flow: number): boolean {
    return this.#port.canSend(flow);
  }

  /** See {@link PcieLinkPort.sendMemoryWrite}. */
  sendMemoryWrite(): void {
    const port = this.#port;
    const references = this.#references;
    const { write } = port;
    if (references.canReference(write.source, write.lengthBytes)) {
      write.flags |= FLAG_REFERENCE;
      const offset = port.placeMemoryWrite();
      port.transmitter.target.writeReference(offset, write.sourceOffset, references.issue());
      port.commit();
    } else {
      port.sendMemoryWrite();
    }
  }
}
