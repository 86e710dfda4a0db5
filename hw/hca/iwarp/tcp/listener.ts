/** A listening port of the card. Its backlog bounds the connections that software has not yet learnt of. */
import type { TcpOpening } from './card-connection.ts';

export class Listener {
  readonly slot: number;
  readonly number: number;
  readonly opening: TcpOpening;
  readonly port: number;
  /** Connections from their SYN to the event that tells software of them. */
  unknownCount = 0;
  readonly #isAny: boolean;

  constructor(slot: number, number: number, opening: TcpOpening) {
    this.slot = slot;
    this.number = number;
    this.opening = opening;
    this.port = opening.localPort;
    this.#isAny = opening.localAddress.every((byte) => byte === 0);
  }

  get hasRoom(): boolean {
    return this.unknownCount < this.opening.backlog;
  }

  /**
   * @param address of 16 bytes, to which a SYN was sent
   */
  isFor(address: Uint8Array): boolean {
    return this.#isAny || address.every((byte, index) => byte === this.opening.localAddress[index]);
  }
}
