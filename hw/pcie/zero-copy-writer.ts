/**
 * Memory writes without a copy: where device and root complex share a thread, the record of a write says where in the device its
 * payload lies, in place of carrying it. A decorator of a link port, for the block that makes the writes; what cannot be referenced goes the
 * plain way. The root complex reads it through ZeroCopyPayload (write-payload.ts).
 */
import type { PcieLinkPort } from './link-port.ts';
import type { PayloadReferences } from './payload-references.ts';
import { FLAG_REFERENCE } from './tlp.ts';

export class ZeroCopyWriter {
  readonly #port: PcieLinkPort;
  readonly #references: PayloadReferences;

  constructor(port: PcieLinkPort, references: PayloadReferences) {
    this.#port = port;
    this.#references = references;
  }

  canSend(flow: number): boolean {
    return this.#port.canSend(flow);
  }

  /** See {@link PcieLinkPort.sendMemoryWrite}. */
  sendMemoryWrite(
    address: number,
    trafficClass: number,
    source: Uint8Array,
    sourceOffset: number,
    lengthBytes: number,
    flags = 0,
  ): void {
    const port = this.#port;
    const references = this.#references;
    if (references.canReference(source, lengthBytes)) {
      const offset = port.placeMemoryWrite(address, trafficClass, lengthBytes, flags | FLAG_REFERENCE);
      port.transmitter.target.writeReference(offset, sourceOffset, references.issue());
      port.commit();
    } else {
      port.sendMemoryWrite(address, trafficClass, source, sourceOffset, lengthBytes, flags);
    }
  }
}
