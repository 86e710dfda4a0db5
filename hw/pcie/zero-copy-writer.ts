/**
 * Memory writes without a copy: where device and root complex share a thread, the record of a write says where in the device its
 * payload lies, in place of carrying it. A decorator of a link port, for whoever makes the writes; what it cannot lend goes the
 * plain way. The root complex reads it through ZeroCopyPayload (write-payload.ts).
 */
import type { PcieLinkPort } from './link-port.ts';
import type { PayloadLoans } from './payload-loans.ts';
import { FLAG_LENT } from './tlp.ts';

export class ZeroCopyWriter {
  readonly #port: PcieLinkPort;
  readonly #loans: PayloadLoans;

  constructor(port: PcieLinkPort, loans: PayloadLoans) {
    this.#port = port;
    this.#loans = loans;
  }

  canSend(flow: number): boolean {
    return this.#port.canSend(flow);
  }

  onSendSpace(flow: number, listener: () => void): void {
    this.#port.onSendSpace(flow, listener);
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
    const loans = this.#loans;
    if (loans.canLend(source, lengthBytes)) {
      const offset = port.placeMemoryWrite(address, trafficClass, lengthBytes, flags | FLAG_LENT);
      port.transmitter.target.refer(offset, sourceOffset, loans.lend());
      port.commit();
    } else {
      port.sendMemoryWrite(address, trafficClass, source, sourceOffset, lengthBytes, flags);
    }
  }
}
