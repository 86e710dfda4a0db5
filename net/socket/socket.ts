/** State of a stream socket's file descriptor: nothing yet, a listener, or a connection. */
import { kib } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import {
  type Connection,
  closeConnection,
  type Listener,
  type LocalEnd,
  limitFinWait,
  type NetworkStack,
} from '../stack/index.ts';
import { type NetErrno, NetError } from './net-error.ts';
import type { AddressFamily } from './socket-address.ts';
import { Turn } from './turn.ts';

export class Socket {
  readonly stack: NetworkStack;
  readonly family: AddressFamily;
  readonly readers: Turn;
  readonly writers: Turn;
  /** Local port that bind() or connect() reserved; -1: none. */
  port = -1;
  /** Address given to bind(). */
  local: LocalEnd;
  receiveLimitBytes: number;
  sendLimitBytes: number;
  isDelayed: boolean;
  listener: Listener | undefined;
  connection: Connection | undefined;
  isConnecting = false;
  /** Threads inside calls: the last one to leave a closed socket releases its connection. */
  #users = 0;
  #isClosed = false;

  constructor(stack: NetworkStack, family: AddressFamily) {
    const { config, platform } = stack;
    this.stack = stack;
    this.family = family;
    this.local = { address: family === 'AF_INET' ? 'ipv4' : 'both' };
    this.readers = new Turn(platform);
    this.writers = new Turn(platform);
    this.receiveLimitBytes = kib(config.receiveBufferKib);
    this.sendLimitBytes = kib(config.sendBufferKib);
    this.isDelayed = config.isDelayed;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Runs a call on the socket, which exists until the call ends. */
  async use<T>(cpu: Cpu, body: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      return await body();
    } finally {
      this.#users--;
      if (this.#isClosed && this.#users === 0) this.#letGo(cpu);
    }
  }

  /** Closes; threads that wait in calls on the socket wake with EBADF. */
  close(cpu: Cpu): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.connection?.wakeAll(cpu);
    if (this.listener !== undefined) {
      this.stack.unlisten(cpu, this.listener);
      this.listener = undefined;
    }
    if (this.#users === 0) this.#letGo(cpu);
  }

  /** The connection, which is or was established. @throws NetError ENOTCONN */
  established(): Connection {
    const { connection } = this;
    if (this.#isClosed) throw new NetError('EBADF', 'the socket was closed meanwhile');
    if (connection === undefined || this.isConnecting)
      throw new NetError('ENOTCONN', 'the socket is not connected');
    return connection;
  }

  /** The connection's error, reported once. */
  takeError(): NetErrno | undefined {
    const error = this.connection?.error;
    if (this.connection !== undefined) this.connection.error = undefined;
    return error;
  }

  #letGo(cpu: Cpu): void {
    const { connection } = this;
    if (connection !== undefined) closeConnection(cpu, connection, limitFinWait);
    this.connection = undefined;
    if (this.port >= 0) this.stack.unbind(this.port);
    this.port = -1;
  }
}
