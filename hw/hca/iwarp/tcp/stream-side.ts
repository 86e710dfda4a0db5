/** The TCP engine as the RDMA side sees it: see {@link TcpStreams}. */
import type { TcpEvent } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import type { RdmaStream, SendSegment, TcpStreams } from '../streams.ts';
import type { CardConnection } from './card-connection.ts';
import { CardSegment, type SegmentMemory } from './segment-memory.ts';
import type { TcpEngine } from './tcp-engine.ts';
import type { TcpEvents } from './tcp-events.ts';
import type { TcpTable } from './tcp-table.ts';

/** Parts of the device that {@link StreamSide} uses. */
export interface StreamSideSetup {
  readonly table: TcpTable;
  readonly sendMemory: SegmentMemory;
}

export interface StreamSidePorts {
  readonly engine: TcpEngine;
  readonly events: TcpEvents;
}

export class StreamSide implements TcpStreams {
  readonly sendMemory: Uint8Array;
  readonly #table: TcpTable;
  #engine!: TcpEngine;
  #events!: TcpEvents;

  constructor({ table, sendMemory }: StreamSideSetup) {
    this.#table = table;
    this.sendMemory = sendMemory.bytes;
  }

  connect({ engine, events }: StreamSidePorts): void {
    this.#engine = engine;
    this.#events = events;
  }

  attach(number: number, qpn: number, stream: RdmaStream, cycle: Cycles): boolean {
    const connection = this.#table.connectionOf(number);
    const isFree = connection !== undefined && connection.qpn === 0;
    if (!isFree || (connection.state !== 'ESTABLISHED' && connection.state !== 'CLOSE_WAIT')) return false;
    connection.qpn = qpn;
    connection.stream = stream;
    connection.received.attach(stream.reader);
    connection.receiveLimitBytes = Math.max(connection.receiveLimitBytes, connection.receiveWindowBytes);
    // The peer learns of the larger window.
    connection.isAckDue = true;
    this.#engine.attend(connection);
    if (connection.hasFin) stream.peerClosed(cycle);
    return true;
  }

  detach(number: number): void {
    const connection = this.#table.connectionOf(number);
    if (connection?.stream === undefined) return;
    connection.stream.reader.isStopped = true;
    connection.stream = undefined;
    connection.wantsRoom = false;
  }

  isLooped(number: number): boolean {
    return this.#of(number)?.isLooped ?? false;
  }

  maxSegmentBytes(number: number): number {
    return this.#of(number)?.segmentBytes ?? 0;
  }

  hasRoom(number: number, lengthBytes: number): boolean {
    const connection = this.#of(number);
    return connection !== undefined && this.#engine.hasRoom(connection, lengthBytes);
  }

  open(number: number, lengthBytes: number): SendSegment {
    const segment = this.#engine.takeSegment(this.#of(number)!, lengthBytes);
    segment.fpduCount = 1;
    return segment;
  }

  send(number: number, segment: SendSegment, lengthBytes: number): void {
    const connection = this.#of(number);
    if (connection?.canQueue === true && segment instanceof CardSegment)
      this.#engine.appendFpdus(connection, segment, lengthBytes);
    else this.discard(number, segment);
  }

  discard(_number: number, segment: SendSegment): void {
    if (segment instanceof CardSegment) this.#engine.releaseSent(segment);
  }

  close(number: number): void {
    const connection = this.#of(number);
    if (connection !== undefined) this.#engine.finish(connection);
  }

  abort(number: number): void {
    const connection = this.#of(number);
    if (connection === undefined || connection.isOver) return;
    this.detach(number);
    this.#engine.abort(connection);
  }

  terminated(
    number: number,
    event: typeof TcpEvent.TERMINATE_SENT | typeof TcpEvent.TERMINATE_RECEIVED,
    error: number,
  ): void {
    const connection = this.#of(number);
    if (connection === undefined || connection.hasEnded) return;
    connection.terminateError = error;
    this.#events.post(connection, event);
  }

  hold(bytes: Uint8Array, at: number): number {
    return this.#engine.buffers.hold(bytes, at);
  }

  release(name: number): void {
    this.#engine.buffers.release(name);
  }

  placed(cycle: Cycles): void {
    this.#engine.wake(cycle + 1);
  }

  #of(number: number): CardConnection | undefined {
    return this.#table.connectionOf(number);
  }
}
