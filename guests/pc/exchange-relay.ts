/**
 * TCP connections between a PC and the program of the simulated host beside it, carried over the machine's exchange, in simulated time.
 * The mailboxes are those of ../serve/peer-relay.ts, which does the same with sockets of this computer.
 */
import type { JsonValue } from '../../machine/index.ts';
import type { StationConnection } from './station-connection.ts';
import { type StationSetup, TcpStation } from './tcp-station.ts';

/** A character may need six bytes in JSON, and a value of the exchange has at most 8192. */
const pieceBytes = 1024;
/** Limit of received bytes: stock programs exchange a few hundred; a connection with more than this is cut. */
const streamBytesMax = 2 ** 20;

export interface RelaySetup extends StationSetup {
  /** The PC's own address on its Ethernet. */
  readonly pcAddress: number;
  /** Longest time of a value in the exchange. */
  readonly lingerPs: number;
  /** Puts a value into the exchange. */
  readonly put: (name: string, value: JsonValue) => void;
}

interface Stream {
  readonly number: number;
  receivedBytes: number;
  hasEnded: boolean;
}

export class ExchangeRelay {
  readonly station: TcpStation;
  readonly #setup: RelaySetup;
  readonly #streams = new Map<StationConnection, Stream>();
  readonly #byNumber = new Map<number, StationConnection>();
  /** Values of the program, and when they arrived. */
  readonly #waiting: { readonly name: string; readonly value: JsonValue; readonly atPs: number }[] = [];
  #count = 0;
  /** Instant at which the connections of a program that has ended end. */
  #endsPs: number | undefined;

  constructor(setup: RelaySetup) {
    this.#setup = setup;
    this.station = new TcpStation(setup, {
      established: (connection) => this.#established(connection),
      arrived: (connection, bytes) => this.#arrived(connection, bytes),
      ended: (connection) => this.#ended(connection),
      forgotten: (connection) => this.#forgotten(connection),
    });
  }

  /** The program has put a value into the exchange: {@link work} handles it. */
  arrived(name: string, value: JsonValue, atPs: number): void {
    this.#waiting.push({ name, value, atPs });
  }

  /** Handles values that have arrived; must be called between two runs of the devices. */
  work(): void {
    for (const { name, value, atPs } of this.#waiting.splice(0)) this.#take(name, value, atPs);
  }

  #take(name: string, value: JsonValue, atPs: number): void {
    if (name === 'tcp.connect') this.#connect(value, atPs);
    const [, number] = /^tcp\.(\d+)$/.exec(name) ?? [];
    const connection = this.#byNumber.get(Number(number));
    if (connection === undefined) return;
    this.station.run(atPs);
    if (value === null) connection.finish();
    else if (typeof value === 'string') this.#send(connection, value);
  }

  /** The program has ended: its connections end after its last values have arrived. */
  programEnded(nowPs: number): void {
    this.#endsPs ??= nowPs + this.#setup.lingerPs;
    if (nowPs < this.#endsPs || !this.station.isOpen) return;
    this.station.isOpen = false;
    for (const connection of this.#streams.keys()) connection.finish();
  }

  #send(connection: StationConnection, latin1: string): void {
    const bytes = Uint8Array.from(latin1, (character) => character.charCodeAt(0));
    if (!connection.send(bytes)) this.station.abort(connection);
  }

  #connect(value: JsonValue, nowPs: number): void {
    const port = typeof value === 'object' && value !== null && 'port' in value ? value['port'] : undefined;
    const isOpening =
      typeof port === 'number' && this.station.connect(this.#setup.pcAddress, port, nowPs) !== undefined;
    if (!isOpening) this.#setup.put('tcp.connected', { error: `no connection to port ${String(port)}` });
  }

  #established(connection: StationConnection): void {
    const number = ++this.#count;
    this.#streams.set(connection, { number, receivedBytes: 0, hasEnded: false });
    this.#byNumber.set(number, connection);
    this.#setup.put(connection.isPassive ? 'tcp.accept' : 'tcp.connected', { connection: number });
  }

  #arrived(connection: StationConnection, bytes: Uint8Array): void {
    const stream = this.#streams.get(connection);
    if (stream === undefined) return;
    stream.receivedBytes += bytes.length;
    if (stream.receivedBytes > streamBytesMax) {
      this.station.abort(connection);
      return;
    }
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      const piece = bytes.subarray(at, at + pieceBytes);
      this.#setup.put(`tcp.${stream.number}`, String.fromCharCode(...piece));
    }
  }

  #ended(connection: StationConnection): void {
    // A refused connection is one that ends at once: programs that try again know only this, from the sockets of a computer.
    if (!this.#streams.has(connection) && !connection.isPassive) this.#established(connection);
    const stream = this.#streams.get(connection);
    if (stream === undefined) return;
    stream.hasEnded = true;
    this.#setup.put(`tcp.${stream.number}`, null);
    if (connection.isOver) this.#remove(connection, stream);
  }

  /** The connection no longer exists; if its user has not been told of its end, that follows. */
  #forgotten(connection: StationConnection): void {
    const stream = this.#streams.get(connection);
    if (stream?.hasEnded === true) this.#remove(connection, stream);
  }

  #remove(connection: StationConnection, { number }: Stream): void {
    this.#streams.delete(connection);
    this.#byNumber.delete(number);
  }
}
