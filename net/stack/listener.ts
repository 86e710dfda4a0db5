/** A listening port: connections half open, and those that wait to be accepted. Both together are bounded by the backlog. */
import type { Cpu } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import { sendReset } from './output.ts';
import { WaitQueue } from './wait-queue.ts';

export class Listener {
  readonly port: number;
  readonly acceptable: WaitQueue;
  /** Buffer sizes that accepted connections get; undefined: the stack's. */
  receiveLimitBytes: number | undefined;
  sendLimitBytes: number | undefined;
  backlog: number;
  isClosed = false;
  readonly #halfOpen = new Set<Connection>();
  readonly #waiting: Connection[] = [];

  constructor(environment: StackEnvironment, port: number, backlog: number) {
    const { platform, counts, costs } = environment;
    this.port = port;
    this.backlog = backlog;
    this.acceptable = new WaitQueue(platform, counts, costs.wakeUp);
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

  /** The connection has ended before it was accepted, perhaps; one that was established is still handed out. */
  forget(connection: Connection): void {
    this.#halfOpen.delete(connection);
  }

  take(): Connection | undefined {
    return this.#waiting.shift();
  }

  /** Resets whatever was not accepted. */
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
