/**
 * TCP connections between a guest and the program of the simulated host next to it, carried over the machine's out-of-band exchange.
 * Programs of two real hosts exchange addresses and keys in this way over their Ethernet.
 *
 *     guest ── TCP ── QEMU ── TCP, loopback ── PeerRelay ── exchange ── program
 *
 * The program sees these mailboxes of its exchange (experiments/workloads/guest-stream.ts wraps them):
 *
 *     tcp.accept     ──► { connection }                    the guest has connected to the port of its peer
 *     tcp.connect    ◄── { port }                          connect to a port of the guest
 *     tcp.connected  ──► { connection } or { error }
 *     tcp.N          ◄─► text, each character a byte, in pieces of any length; null: nothing more comes from this side
 *
 * The sockets' pace is this computer's; a value arrives at the program at the simulated instant at which it was put, and the
 * exchange's latency later.
 */
import { connect, createServer, type Server, type Socket } from 'node:net';
import { ConfigurationError } from '../../base/index.ts';
import type { JsonValue } from '../../machine/index.ts';

/** A character may need six bytes in JSON, and a value of the exchange has at most 8192. */
const pieceBytes = 1024;
/** Limit of bytes: stock programs exchange a few hundred; a connection with more than this is cut. */
const streamBytesMax = 2 ** 20;
/** Limit of simultaneous connections. */
const connectionCountMax = 64;

/** Time for the last values of a program: the exchange's latency, plus a turn of the serving thread. */
const lingerMs = 1000;

const loopback = '127.0.0.1';

/** Whether a mailbox is one of the relay's. */
export const isOfRelay = (name: string): boolean => name.startsWith('tcp.');

/** Puts a value into the exchange. */
export type PutValue = (name: string, value: JsonValue) => void;

export class PeerRelay {
  readonly #server: Server;
  readonly #put: PutValue;
  readonly #guestPorts: ReadonlyMap<number, number>;
  readonly #sockets = new Map<number, Socket>();
  #connectionCount = 0;
  #hasProgramEnded = false;

  private constructor(put: PutValue, guestPorts: ReadonlyMap<number, number>) {
    this.#put = put;
    this.#guestPorts = guestPorts;
    // The relay alone does not keep a process running.
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket)).unref();
  }

  /**
   * Listens on a port of this computer's loopback.
   * @param guestPorts ports of this computer that are forwarded to the guest, by the guest's own
   */
  static async listen(put: PutValue, guestPorts: ReadonlyMap<number, number>): Promise<PeerRelay> {
    const relay = new PeerRelay(put, guestPorts);
    await new Promise<void>((resolve, reject) => {
      relay.#server.once('error', reject).listen(0, loopback, resolve);
    });
    return relay;
  }

  /** Port of the loopback at which the guest's connections to its peer arrive. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  /** Handles a value from the program; drops it if it is not for the relay. */
  take(name: string, value: JsonValue): void {
    if (name === 'tcp.connect' && typeof value === 'object' && value !== null) this.#connect(value);
    const [, number] = /^tcp\.(\d+)$/.exec(name) ?? [];
    const socket = this.#sockets.get(Number(number));
    if (socket === undefined) return;
    if (value === null) socket.end();
    else if (typeof value === 'string') socket.write(Buffer.from(value, 'latin1'));
  }

  /** Ends all connections. */
  close(): void {
    this.#server.close();
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  /** The program has ended: accepts no more connections, and ends the present ones after its sent bytes have passed. */
  programEnded(): void {
    this.#hasProgramEnded = true;
    setTimeout(() => {
      for (const socket of this.#sockets.values()) socket.destroySoon();
    }, lingerMs).unref();
  }

  #accept(socket: Socket): void {
    if (this.#hasProgramEnded || this.#sockets.size >= connectionCountMax) {
      socket.destroy();
      return;
    }
    this.#put('tcp.accept', { connection: this.#follow(socket) });
  }

  #connect(value: JsonValue): void {
    const { port = Number.NaN } = value as { readonly port?: number };
    const forwarded = this.#guestPorts.get(port);
    if (forwarded === undefined) {
      const ports = [...this.#guestPorts.keys()].join(', ') || 'none';
      this.#put('tcp.connected', {
        error: new ConfigurationError('port', port, `a port of the guest that is forwarded: ${ports}`)
          .message,
      });
      return;
    }
    const socket = connect({ host: loopback, port: forwarded, allowHalfOpen: true });
    const failed = ({ message }: Error): void => this.#put('tcp.connected', { error: message });
    socket.once('error', failed).once('connect', () => {
      socket.removeListener('error', failed);
      this.#put('tcp.connected', { connection: this.#follow(socket) });
    });
  }

  /** Forwards received bytes. @returns the connection's number */
  #follow(socket: Socket): number {
    const number = ++this.#connectionCount;
    const name = `tcp.${number}`;
    this.#sockets.set(number, socket);
    let receivedBytes = 0;
    socket
      .unref()
      .setNoDelay()
      .on('data', (bytes: Buffer) => {
        receivedBytes += bytes.length;
        if (receivedBytes > streamBytesMax) {
          socket.destroy();
          return;
        }
        for (let at = 0; at < bytes.length; at += pieceBytes)
          this.#put(name, bytes.subarray(at, at + pieceBytes).toString('latin1'));
      })
      .on('end', () => this.#put(name, null))
      .on('error', () => {})
      .on('close', () => {
        this.#sockets.delete(number);
        if (!socket.readableEnded) this.#put(name, null);
      });
    return number;
  }
}
