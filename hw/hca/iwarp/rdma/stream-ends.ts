/**
 * How streams end. Whatever ends one takes effect after the segments that arrived before it: a part of the placement stage, which calls
 * {@link StreamEnds.run}.
 *
 *     error found, or wished by software ─► Terminate, FIN; QP to error, events       (RFC 5040, 4.8)
 *     Terminate of the peer ─► FIN; QP to error, events                               (RFC 5040, 6.2)
 *     FIN of the peer ─► an error if it cuts an FPDU; else software closes
 *     orderly close ─► FIN once everything posted was sent
 *     end of TCP ─► QP to error
 */
import { EventType, TcpEvent } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import { IwarpError, NO_ERROR, QuotedSegment, stateAfter } from '../../../../protocol/iwarp/index.ts';
import type { BlockState, ClockDomain, Wakeable } from '../../../../sim/index.ts';
import { noRecord, type QpSlot, type QueuePair } from '../../objects/index.ts';
import { NOT_PARKED, PARKED_TRANSPORT_WINDOW } from '../../send-queue/index.ts';
import type { TcpStreams } from '../streams.ts';
import type { RdmaConnection } from './rdma-connection.ts';
import type { RdmaConnections } from './rdma-connections.ts';
import { eventTypeOf } from './stream-errors.ts';

/** Intervals at which a stream that must be closed is checked for work. They double: work may wait for the peer for seconds. */
const CLOSE_POLL_CYCLES_MIN = 64;
const CLOSE_POLL_CYCLES_MAX = 16_384;

export interface StreamEndPorts {
  readonly streams: TcpStreams;
  readonly connections: RdmaConnections;
  readonly placement: Wakeable;
  readonly transmitter: { messageDue(connection: RdmaConnection, cycle: Cycles): void };
  readonly responder: { drop(qp: QpSlot): void };
  readonly errors: {
    refused(qp: QpSlot, eventType: number, cycle: Cycles): void;
    fail(qp: QpSlot, cycle: Cycles): void;
  };
}

export class StreamEnds {
  readonly #domain: ClockDomain;
  #ports!: StreamEndPorts;
  /** Streams with something to be done, each once. */
  #due: RdmaConnection[] = [];
  #pollCycles = CLOSE_POLL_CYCLES_MIN;

  constructor({ domain }: { readonly domain: ClockDomain }) {
    this.#domain = domain;
  }

  connect(ports: StreamEndPorts): void {
    this.#ports = ports;
  }

  get heldCount(): number {
    return this.#due.length;
  }

  endDue(connection: RdmaConnection): void {
    if (!this.#due.includes(connection)) this.#due.push(connection);
    this.#pollCycles = CLOSE_POLL_CYCLES_MIN;
    this.#ports.placement.wake(this.#domain.cycle + 1);
  }

  /** Ends streams whose segments are all placed. */
  run(cycle: Cycles): void {
    if (this.#due.length === 0) return;
    const due = this.#due;
    this.#due = [];
    for (const connection of due) {
      const isWaiting = connection.jobCount > 0 || !this.#end(connection, cycle);
      if (isWaiting) this.#due.push(connection);
    }
    if (!this.#due.some(({ jobCount }) => jobCount === 0)) return;
    this.#ports.placement.wake(cycle + this.#pollCycles);
    this.#pollCycles = Math.min(2 * this.#pollCycles, CLOSE_POLL_CYCLES_MAX);
  }

  /** Fails a stream with an error: sends a Terminate that names it, and FIN after it. */
  fail(connection: RdmaConnection, error: number, quoted: QuotedSegment, cycle: Cycles): void {
    connection.failure = error;
    connection.quoted.copyFrom(quoted);
    this.#fail(connection, cycle);
  }

  reset(): void {
    this.#due = [];
    this.#pollCycles = CLOSE_POLL_CYCLES_MIN;
  }

  inspect(): BlockState {
    return { due: this.#due.map(({ number }) => number) };
  }

  /** @returns false if a close has to wait for work */
  #end(connection: RdmaConnection, cycle: Cycles): boolean {
    if (!this.#ports.connections.isLive(connection)) return true;
    if (connection.failure !== NO_ERROR) this.#fail(connection, cycle);
    if (connection.peerFailure !== NO_ERROR) this.#terminated(connection, cycle);
    if (connection.hasPeerClosed && !connection.reader.isBetween && isOpen(connection))
      this.fail(connection, IwarpError.MPA_CONNECTION_LOST, new QuotedSegment(), cycle);
    if (connection.end !== 0) {
      this.#ended(connection, cycle);
      return true;
    }
    return !connection.isCloseRequested || this.#close(connection, cycle);
  }

  #fail(connection: RdmaConnection, cycle: Cycles): void {
    if (!isOpen(connection)) return;
    const { errors, responder, transmitter } = this.#ports;
    const { slot } = connection.pair;
    // After its FIN this side can send nothing.
    const isHalfClosed = connection.state === 'CLOSING';
    connection.receiver.stop();
    connection.maySend = false;
    connection.state = stateAfter(connection.state, 'terminateSent');
    connection.isTerminateDue = !isHalfClosed;
    responder.drop(slot);
    errors.refused(slot, eventTypeOf(connection.failure), cycle);
    if (isHalfClosed) this.#abort(connection, cycle);
    else transmitter.messageDue(connection, cycle);
  }

  #terminated(connection: RdmaConnection, cycle: Cycles): void {
    if (!isOpen(connection)) return;
    const { streams, errors, responder } = this.#ports;
    const { number, peerFailure, pair } = connection;
    const isHalfClosed = connection.state === 'CLOSING';
    connection.maySend = false;
    connection.state = stateAfter(connection.state, 'terminateArrived');
    streams.terminated(number, TcpEvent.TERMINATE_RECEIVED, peerFailure);
    responder.drop(pair.slot);
    errors.refused(pair.slot, EventType.WQ_CATAS_ERROR, cycle);
    if (!isHalfClosed) streams.close(number, cycle);
  }

  #ended(connection: RdmaConnection, cycle: Cycles): void {
    const { connections, errors, responder } = this.#ports;
    connection.state = 'ERROR';
    responder.drop(connection.pair.slot);
    connections.ended(connection);
    errors.fail(connection.pair.slot, cycle);
  }

  #abort(connection: RdmaConnection, cycle: Cycles): void {
    this.#ports.connections.ended(connection);
    this.#ports.streams.abort(connection.number, cycle);
  }

  /** @returns true: FIN was sent, or the stream has ended otherwise */
  #close(connection: RdmaConnection, cycle: Cycles): boolean {
    if (connection.state !== 'RTS') return true;
    if (hasWork(connection.pair, connection)) return false;
    connection.maySend = false;
    connection.state = stateAfter(connection.state, 'closed');
    this.#ports.streams.close(connection.number, cycle);
    return true;
  }
}

const isOpen = ({ state }: RdmaConnection): boolean => state === 'RTS' || state === 'CLOSING';

/**
 * Whether something posted was not sent, or a READ of either side has no response yet. What may not be sent never will be; and a peer that has
 * sent its FIN answers no READ, so that whatever waits for one never ends.
 */
function hasWork(pair: QueuePair, { maySend, reads, isReadyDue, hasPeerClosed }: RdmaConnection): boolean {
  if (reads.count > 0 || isReadyDue) return true;
  if (!maySend) return false;
  const isSending = pair.inPipelineCount > 0 || pair.isScheduled !== 0 || pair.isFetching !== 0;
  const isAnswerable = pair.readsOutstanding === 0 || !hasPeerClosed;
  return isAnswerable
    ? isSending || pair.recordHead !== noRecord || pair.parkedFor !== NOT_PARKED
    : isSending || pair.parkedFor === PARKED_TRANSPORT_WINDOW;
}
