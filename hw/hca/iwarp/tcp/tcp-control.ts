/** Connections of the card as commands use them. All calls are made at an edge, after the command has been found legal. */
import type { Cycles } from '../../../../base/index.ts';
import { CardConnection, type TcpOpening } from './card-connection.ts';
import type { ConnectionIndex } from './connection-index.ts';
import { Listener } from './listener.ts';
import type { TcpEngine } from './tcp-engine.ts';
import { type SegmentAddresses, segmentHeadersBytes } from './tcp-frames.ts';
import type { TcpTable } from './tcp-table.ts';

/** Why a connection or listener is not opened. */
export type OpenRefusal = 'inUse' | 'noNumber';

/** Parts of the device that {@link TcpControl} uses. */
export interface TcpControlSetup {
  readonly table: TcpTable;
  readonly index: ConnectionIndex;
  /** Longest payload of a frame. */
  readonly mtuBytes: number;
}

export class TcpControl {
  readonly #table: TcpTable;
  readonly #index: ConnectionIndex;
  readonly #mtuBytes: number;
  #engine!: TcpEngine;

  constructor({ table, index, mtuBytes }: TcpControlSetup) {
    this.#table = table;
    this.#index = index;
    this.#mtuBytes = mtuBytes;
  }

  connect({ engine }: { readonly engine: TcpEngine }): void {
    this.#engine = engine;
  }

  /** Connections and listeners that may exist: 0 leaves all TCP of the port to the rings. */
  place(count: number): void {
    this.#table.count = count;
  }

  /** Whether software has given the card the TCP of its port. */
  get hasConnections(): boolean {
    return this.#table.count > 0;
  }

  /** Payload of the largest segment of a frame. */
  segmentBytesMax(isIpv6: boolean): number {
    return this.#mtuBytes - segmentHeadersBytes(isIpv6);
  }

  /** @param bytes context as software wrote it @returns number of the connection, to which a SYN is sent */
  open(opening: TcpOpening, bytes: Uint8Array): number | OpenRefusal {
    const addresses = this.#addressesOf(opening);
    if (this.#index.has(addresses)) return 'inUse';
    return this.#engine.open(opening, bytes, addresses, undefined)?.number ?? 'noNumber';
  }

  /** @returns number of the listener */
  listen(opening: TcpOpening, bytes: Uint8Array): number | OpenRefusal {
    if (this.#index.listenerAt(opening.localPort) !== undefined) return 'inUse';
    const slot = this.#engine.takeSlot(bytes);
    if (slot === -1) return 'noNumber';
    const listener = new Listener(slot, this.#table.numberOf[slot]!, opening);
    this.#table.rows[slot] = listener;
    this.#index.listen(listener);
    return listener.number;
  }

  /** The connection or listener of a number. */
  rowOf(number: number): CardConnection | Listener | undefined {
    return this.#table.rowOf(number);
  }

  /** Whether a QP may have the stream of this number: a connection that is established, and of no other QP. */
  mayBecomeStream(number: number): boolean {
    const row = this.#table.rowOf(number);
    const isFree = row instanceof CardConnection && row.qpn === 0;
    return isFree && (row.state === 'ESTABLISHED' || row.state === 'CLOSE_WAIT');
  }

  /** Appends bytes of software to the stream. @returns false beyond the room of the send buffer: nothing has happened */
  send(connection: CardConnection, bytes: Uint8Array): boolean {
    const { segmentBytes } = connection;
    if (!this.#engine.hasRoomFor(connection, bytes.length)) return false;
    for (let at = 0; at < bytes.length; at += segmentBytes) {
      const part = bytes.subarray(at, at + segmentBytes);
      const segment = this.#engine.takeSegment(connection, part.length);
      segment.bytes.set(part, segment.start);
      this.#engine.append(connection, segment, part.length);
    }
    return true;
  }

  /** Takes bytes that have arrived, at most as many as `into` has. @returns their count */
  receive(connection: CardConnection, into: Uint8Array): number {
    const count = connection.received.read(into);
    if (connection.received.readableBytes === 0) connection.isReadableKnown = false;
    if (count > 0) this.#engine.windowOpened(connection);
    return count;
  }

  /** The context of a number, with its numbers as they are now. */
  contextOf({ slot }: CardConnection | Listener): Uint8Array {
    this.#table.sync(slot);
    const at = this.#table.offsetOf(slot);
    return this.#table.bytes.slice(at, at + this.#table.contextBytes);
  }

  /** FIN after everything sent; of a QP's stream after everything posted. One that is not established ends at once. */
  finish(connection: CardConnection, cycle: Cycles): void {
    const { state, stream } = connection;
    if (state === 'SYN_SENT' || state === 'SYN_RECEIVED') this.#engine.abort(connection);
    else if (stream === undefined) this.#engine.finish(connection);
    else stream.closeRequested(cycle);
  }

  abort(connection: CardConnection): void {
    if (!connection.isOver) this.#engine.abort(connection);
  }

  release(row: CardConnection | Listener): void {
    if (row instanceof CardConnection) this.#engine.forgetEnded(row);
    else this.#engine.releaseListener(row);
  }

  #addressesOf(opening: TcpOpening): SegmentAddresses {
    return {
      localMac: this.#engine.localMac,
      remoteMac: opening.remoteMac,
      vlanTag: opening.hasVlan === 1 ? opening.vlanTag : -1,
      isIpv6: opening.isIpv6 === 1,
      localAddress: opening.localAddress,
      remoteAddress: opening.remoteAddress,
      localPort: opening.localPort,
      remotePort: opening.remotePort,
      hopLimit: opening.hopLimit,
      trafficClass: opening.trafficClass,
    };
  }
}
