/**
 * The requester of a connection as an observer of its cable sees it: the requests that left for the first time, and the
 * packets that arrived responses acknowledge. It has at most 2^23 - 1 PSNs outstanding, those of the answers of its
 * READs among them (IBTA vol 1, 9.7.2).
 */
import { packetsOf, psnCount, type TransportPacket } from './transport-packet.ts';

const outstandingMax = 2 ** 23 - 1;

export class AskingEnd {
  readonly #mtuBytes: number;
  #firstPsn: number | undefined;
  /** Place of the next new request, and of the last one that is acknowledged, from the first packet on. */
  #next = 0;
  #acknowledged = -1;

  constructor(mtuBytes: number) {
    this.#mtuBytes = mtuBytes;
  }

  /**
   * Judges a request that has left. @returns the violations
   */
  requested(packet: TransportPacket): string[] {
    this.#firstPsn ??= packet.psn;
    // Any other PSN is that of a repeated request.
    if (packet.psn !== (this.#firstPsn + this.#next) % psnCount) return [];
    this.#next += packetsOf(packet, this.#mtuBytes);
    const outstanding = this.#next - 1 - this.#acknowledged;
    return outstanding <= outstandingMax
      ? []
      : [
          `has ${outstanding} PSNs outstanding with its request of PSN ${packet.psn}, at most ${outstandingMax} may be`,
        ];
  }

  /** Notes a response that has arrived: it acknowledges its own PSN; a NAK acknowledges those before it. */
  answered({ psn, syndrome }: TransportPacket): void {
    if (this.#firstPsn === undefined) return;
    const isNak = syndrome >= 0 && syndrome >> 5 !== 0;
    const place = (psn - this.#firstPsn - (isNak ? 1 : 0) + 2 * psnCount) % psnCount;
    const ahead = (place - (this.#acknowledged % psnCount) + psnCount) % psnCount;
    if (ahead <= outstandingMax && this.#acknowledged + ahead < this.#next) this.#acknowledged += ahead;
  }
}
