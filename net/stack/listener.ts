/** A listening port: half-open connections, and those that wait to be accepted. The backlog bounds both together. */

import { sendReset } from '../../protocol/tcp/index.ts';
import type { Cpu } from '../platform.ts';
import { type IpAddress, isSameAddress } from './address.ts';
import type { Connection } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import type { NetInterface, Route } from './interface.ts';
import { WaitQueue } from './wait-queue.ts';

/** Address to which a socket is bound, without the port. */
export interface LocalEnd {
  /** Any address of IPv4, or of both versions (IPV6_V6ONLY off, as in Linux), or a single address. */
  readonly address: 'ipv4' | 'both' | IpAddress;
  /** The interface of the address; left out: any. */
  readonly via?: NetInterface | undefined;
}

export class Listener {
  readonly port: number;
  readonly #local: LocalEnd;
  readonly acceptable: WaitQueue;
  /** Buffer sizes of accepted connections; undefined: the stack's. */
  receiveLimitBytes: number | undefined;
  sendLimitBytes: number | undefined;
  backlog: number;
  isClosed = false;
  readonly #halfOpen = new Set<Connection>();
  readonly #waiting: Connection[] = [];

  constructor(environment: StackEnvironment, port: number, local: LocalEnd, backlog: number) {
    const { platform, counts, costs } = environment;
    this.port = port;
    this.#local = local;
    this.backlog = backlog;
    this.acceptable = new WaitQueue(platform, counts, costs.wakeUp);
  }

  /** Whether it accepts a connection to this local end. */
  isFor({ via, source }: Route): boolean {
    const { address, via: own } = this.#local;
    if (own !== undefined && own !== via) return false;
    if (address === 'both') return true;
    if (address === 'ipv4') return typeof source === 'number';
    return isSameAddress(address, source);
  }

  get hasRoom(): boolean {
    return this.#halfOpen.size + this.#waiting.length < this.backlog;
  }

  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  opens(connection: Connection): void {
    this.#halfOpen.add(connection);
  }

  established(cpu: Cpu, connection: Connection): void {
    this.#halfOpen.delete(connection);
    this.#waiting.push(connection);
    this.acceptable.wake(cpu);
  }

  /** Removes a connection that ended before it was accepted; one that was established is still handed out. */
  forget(connection: Connection): void {
    this.#halfOpen.delete(connection);
  }

  take(): Connection | undefined {
    return this.#waiting.shift();
  }

  /** Resets all connections that were not accepted. */
  close(cpu: Cpu): void {
    this.isClosed = true;
    for (const connection of [...this.#halfOpen, ...this.#waiting.splice(0)]) {
      connection.isOrphan = true;
      if (connection.state === 'CLOSED') connection.received.clear();
      else {
        sendReset(cpu, connection);
        connection.end(cpu);
      }
    }
    this.#halfOpen.clear();
    this.acceptable.wake(cpu);
  }
}
