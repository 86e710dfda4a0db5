/** Finds the connection of a segment by its addresses and ports, and the listener of a SYN by its port. */
import type { CardConnection } from './card-connection.ts';
import type { Listener } from './listener.ts';
import type { FrameReader, SegmentAddresses } from './tcp-frames.ts';

const keyOf = (localPort: number, remotePort: number): number => localPort * 0x1_0000 + remotePort;

export class ConnectionIndex {
  /** The first connection of each pair of ports; it leads to the others. */
  readonly #byPorts = new Map<number, CardConnection>();
  readonly #listeners = new Map<number, Listener>();

  /** The connection of the segment that was read last. */
  find(frame: FrameReader): CardConnection | undefined {
    let connection = this.#byPorts.get(keyOf(frame.localPort, frame.remotePort));
    while (connection !== undefined && !frame.isBetween(connection)) connection = connection.nextOfPorts;
    return connection;
  }

  /** Whether a connection has these addresses and ports. */
  has(addresses: SegmentAddresses): boolean {
    let connection = this.#byPorts.get(keyOf(addresses.localPort, addresses.remotePort));
    while (connection !== undefined && !isSame(connection, addresses)) connection = connection.nextOfPorts;
    return connection !== undefined;
  }

  add(connection: CardConnection): void {
    const key = keyOf(connection.localPort, connection.remotePort);
    connection.nextOfPorts = this.#byPorts.get(key);
    this.#byPorts.set(key, connection);
  }

  remove(connection: CardConnection): void {
    const key = keyOf(connection.localPort, connection.remotePort);
    const first = this.#byPorts.get(key);
    if (first === connection) {
      if (connection.nextOfPorts === undefined) this.#byPorts.delete(key);
      else this.#byPorts.set(key, connection.nextOfPorts);
      return;
    }
    for (let before = first; before !== undefined; before = before.nextOfPorts)
      if (before.nextOfPorts === connection) before.nextOfPorts = connection.nextOfPorts;
  }

  /** The listener of a port, whichever address it has. */
  listenerAt(port: number): Listener | undefined {
    return this.#listeners.get(port);
  }

  listen(listener: Listener): void {
    this.#listeners.set(listener.port, listener);
  }

  unlisten(listener: Listener): void {
    this.#listeners.delete(listener.port);
  }

  clear(): void {
    this.#byPorts.clear();
    this.#listeners.clear();
  }
}

const isSame = (left: SegmentAddresses, right: SegmentAddresses): boolean =>
  left.isIpv6 === right.isIpv6 &&
  isSameAddress(left.remoteAddress, right.remoteAddress) &&
  isSameAddress(left.localAddress, right.localAddress);

const isSameAddress = (left: Uint8Array, right: Uint8Array): boolean =>
  left.every((byte, index) => byte === right[index]);
