/**
 * The deadlines of all connections: one timer of the platform runs, for the nearest of them.
 *
 *     timersChanged ─ nearer than the timer ─► startTimer ─► due ─┬─ none is: the next deadline
 *                                                                 └─ softirq thread: act on each that is
 *
 * A deadline that moves later costs nothing: the timer notices it when it expires.
 */
import { NEVER, psPerUs } from '../../base/index.ts';
import { deadlinesDue } from '../../protocol/tcp/index.ts';
import type { Cpu } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { StackEnvironment } from './environment.ts';

export class ConnectionTimers {
  readonly #environment: StackEnvironment;
  readonly #connections: ReadonlySet<Connection>;
  #armedPs = NEVER;
  #isServing = false;
  #isStopped = false;

  constructor(environment: StackEnvironment, connections: ReadonlySet<Connection>) {
    this.#environment = environment;
    this.#connections = connections;
  }

  /** A deadline of this connection has changed. */
  changed(connection: Connection): void {
    this.#arm(connection.deadlinePs);
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#armedPs -= ps;
    for (const connection of this.#connections) connection.rebase(ps);
  }

  #arm(deadlinePs: number): void {
    if (this.#isStopped || this.#isServing || deadlinePs >= this.#armedPs) return;
    const { platform } = this.#environment;
    this.#armedPs = deadlinePs;
    const epochUs = platform.epochUs();
    platform.startTimer(Math.max(0, deadlinePs - platform.nowPs()), () =>
      this.#due(deadlinePs - (platform.epochUs() - epochUs) * psPerUs),
    );
  }

  #due(deadlinePs: number): void {
    // A timer replaced by a nearer one does nothing.
    if (this.#isStopped || deadlinePs !== this.#armedPs) return;
    this.#armedPs = NEVER;
    const nowPs = this.#environment.platform.nowPs();
    if (this.#nearest() > nowPs) {
      this.#arm(this.#nearest());
      return;
    }
    this.#isServing = true;
    this.#environment.platform.spawn('net timers', (cpu) => this.#serve(cpu));
  }

  #nearest(): number {
    let nearest = NEVER;
    for (const { deadlinePs } of this.#connections) nearest = Math.min(nearest, deadlinePs);
    return nearest;
  }

  async #serve(cpu: Cpu): Promise<void> {
    const { costs, platform } = this.#environment;
    cpu.charge('softirq', costs.softirqEntry);
    await cpu.settle();
    for (const connection of [...this.#connections]) {
      if (connection.deadlinePs > platform.nowPs()) continue;
      cpu.charge('protocol', costs.protocolTimer);
      await cpu.settle();
      deadlinesDue(cpu, connection);
      await this.#environment.device.flush(cpu);
    }
    this.#isServing = false;
    this.#arm(this.#nearest());
  }
}
