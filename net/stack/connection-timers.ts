/**
 * The deadlines of all connections: one timer of the platform is under way, for the nearest of them.
 *
 *     timersChanged ─ nearer than the timer ─► startTimer ─► due ─┬─ nothing is: the next deadline
 *                                                                 └─ softirq thread: act on each that is
 *
 * A deadline that moves later costs nothing: the timer finds out when it is due.
 */
import { psPerUs, usToPs } from '../../base/index.ts';
import type { Cpu } from '../platform.ts';
import type { Connection } from './connection.ts';
import type { StackEnvironment } from './environment.ts';
import { acknowledge, output, sendSyn } from './output.ts';
import { isBefore } from './sequence.ts';

const never = Number.POSITIVE_INFINITY;

export class ConnectionTimers {
  readonly #environment: StackEnvironment;
  readonly #connections: ReadonlySet<Connection>;
  #armedPs = never;
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

  /** A new epoch: see TimeKeeper. */
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
    // A timer that a nearer one has replaced does nothing.
    if (this.#isStopped || deadlinePs !== this.#armedPs) return;
    this.#armedPs = never;
    const nowPs = this.#environment.platform.nowPs();
    if (this.#nearest() > nowPs) {
      this.#arm(this.#nearest());
      return;
    }
    this.#isServing = true;
    this.#environment.platform.spawn('net timers', (cpu) => this.#serve(cpu));
  }

  #nearest(): number {
    let nearest = never;
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

/** Acts on the deadlines of a connection that have passed. */
function deadlinesDue(cpu: Cpu, connection: Connection): void {
  const nowPs = connection.environment.platform.nowPs();
  if (connection.closePs <= nowPs) {
    connection.end(cpu);
    return;
  }
  if (connection.delayedAckPs <= nowPs) {
    connection.delayedAckPs = never;
    connection.isAckDue = true;
    output(cpu, connection);
  }
  if (connection.retransmitPs <= nowPs) retransmitDue(cpu, connection);
}

function retransmitDue(cpu: Cpu, connection: Connection): void {
  const { config } = connection.environment;
  connection.retransmitPs = never;
  const isOpening = connection.state === 'SYN_SENT' || connection.state === 'SYN_RECEIVED';
  const isHeld = (connection.sendQueue[0]?.inRing ?? 0) > 0;
  if (isHeld && !connection.isProbing) {
    // The device still holds it: its lateness says nothing of the network.
    connection.retransmitPs = connection.environment.platform.nowPs() + usToPs(config.retransmitMinUs);
    connection.environment.timersChanged(connection);
    return;
  }
  if (++connection.tries > (isOpening ? config.synRetries : config.dataRetries)) {
    if (connection.state === 'SYN_RECEIVED') connection.end(cpu);
    else connection.fail(cpu, 'ETIMEDOUT');
    return;
  }
  connection.roundTrip.backoff++;
  connection.timedEnd = -1;
  if (isOpening) sendSyn(cpu, connection);
  else if (connection.isProbing) probe(cpu, connection);
  else sendAgain(cpu, connection);
  if (!connection.isOver) connection.armRetransmit();
}

function probe(cpu: Cpu, connection: Connection): void {
  if (connection.environment.device.room > 0) acknowledge(cpu, connection, 'probe');
}

/** Everything that is not acknowledged is sent again, as the congestion window opens. */
function sendAgain(cpu: Cpu, connection: Connection): void {
  connection.environment.counts.retransmissionTimeouts++;
  connection.congestion.timedOut(connection.flightBytes);
  connection.duplicateAcks = 0;
  if (isBefore(connection.sendUnacknowledged, connection.sendMax)) {
    connection.sendNext = connection.sendUnacknowledged;
    connection.sendIndex = 0;
  }
  output(cpu, connection);
}
