/**
 * Reports of connections on their way to the event writer. Each connection has a bit for each event, and waits once in a fifo while any bit
 * is set: no event is lost, however long software leaves its queues full.
 */
import { TcpEvent } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  stallReasons,
} from '../../../../sim/index.ts';
import { CardConnection, eventBit } from './card-connection.ts';
import type { TcpTable } from './tcp-table.ts';

/** The fields of a TCP event. */
export interface TcpReport {
  event: TcpEvent;
  connection: number;
  /** Number of the listener, for ACCEPTED. */
  listener: number;
  cookie: number;
  /** Layer, type and code of a Terminate. */
  terminate: number;
  qpn: number;
}

export interface TcpEventSink {
  canPost(): boolean;
  postTcpEvent(report: TcpReport, cycle: Cycles): void;
}

export interface TcpEventsPorts {
  readonly eventQueues: TcpEventSink;
  readonly engine: {
    /** Software learns of a connection that a listener has accepted. */
    acceptReported(connection: CardConnection): void;
    /** Software learns of the end of a connection. */
    endReported(connection: CardConnection): void;
  };
}

/** The events in the order in which those that wait together are reported: an end is the last. */
const order: readonly TcpEvent[] = [
  TcpEvent.ESTABLISHED,
  TcpEvent.ACCEPTED,
  TcpEvent.READABLE,
  TcpEvent.PEER_CLOSED,
  TcpEvent.TERMINATE_RECEIVED,
  TcpEvent.TERMINATE_SENT,
  TcpEvent.CLOSED,
  TcpEvent.RESET,
  TcpEvent.TIMED_OUT,
];
const ends = eventBit(TcpEvent.CLOSED) | eventBit(TcpEvent.RESET) | eventBit(TcpEvent.TIMED_OUT);

const stalls = stallReasons('events');
const { events: STALL_EVENTS } = stalls;

export class TcpEvents {
  readonly account = new BlockAccount('tcpEvents', stalls);
  readonly #domain: ClockDomain;
  readonly #table: TcpTable;
  readonly #waiting: Fifo;
  readonly #stage: number;
  /** Reused for every event. */
  readonly #report: TcpReport = { event: 1, connection: 0, listener: 0, cookie: 0, terminate: 0, qpn: 0 };
  #ports!: TcpEventsPorts;

  constructor({ domain, table }: { readonly domain: ClockDomain; readonly table: TcpTable }) {
    this.#domain = domain;
    this.#table = table;
    this.#waiting = new Fifo({
      name: 'connections with an event',
      capacity: table.capacity,
      whenFull: 'never: each connection waits once',
    });
    this.#stage = domain.addStage(this.#run, this);
  }

  connect(ports: TcpEventsPorts): void {
    this.#ports = ports;
  }

  /** See EventPoster. */
  eventSpace(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Reports an event of a connection. */
  post(connection: CardConnection, event: TcpEvent): void {
    connection.pendingEvents |= eventBit(event);
    if (connection.isReporting) return;
    const { cycle } = this.#domain;
    connection.isReporting = true;
    this.#waiting.push(connection.slot, cycle + 1);
    this.#domain.wake(this.#stage, cycle + 1);
  }

  /** Connections with an event. */
  get heldCount(): number {
    return this.#waiting.count;
  }

  get fifos(): readonly Fifo[] {
    return [this.#waiting];
  }

  inspect(): BlockState {
    return { waiting: this.#waiting.values };
  }

  reset(): void {
    this.#waiting.clear();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#waiting.rebase(cycles);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.#domain.wake(this.#stage, this.account.freeCycle);
    if (this.#waiting.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#waiting.isEmpty) this.#domain.wake(this.#stage, this.#waiting.headCycle);
      return;
    }
    const { eventQueues } = this.#ports;
    if (!eventQueues.canPost()) return this.account.stall(cycle, STALL_EVENTS);
    const connection = this.#table.rows[this.#waiting.head];
    if (connection instanceof CardConnection) this.#reportNext(connection, cycle);
    else this.#waiting.pop();
    this.account.serve(cycle, 1);
    if (!this.#waiting.isEmpty) this.#domain.wake(this.#stage, cycle + 1);
  }

  #reportNext(connection: CardConnection, cycle: Cycles): void {
    const event = order.find((candidate) => (connection.pendingEvents & eventBit(candidate)) !== 0)!;
    const bit = eventBit(event);
    connection.pendingEvents &= ~bit;
    if (connection.pendingEvents === 0) {
      connection.isReporting = false;
      this.#waiting.pop();
    }
    const isTerminate = event === TcpEvent.TERMINATE_RECEIVED || event === TcpEvent.TERMINATE_SENT;
    const report = this.#report;
    report.event = event;
    report.connection = connection.number;
    report.listener = event === TcpEvent.ACCEPTED ? (connection.listener?.number ?? 0) : 0;
    report.cookie = connection.cookie;
    report.terminate = isTerminate ? connection.terminateError : 0;
    report.qpn = isTerminate ? connection.qpn : 0;
    this.#ports.eventQueues.postTcpEvent(report, cycle);
    if (event === TcpEvent.ACCEPTED) this.#ports.engine.acceptReported(connection);
    if ((bit & ends) !== 0) this.#ports.engine.endReported(connection);
  }
}
