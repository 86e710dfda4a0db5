/**
 * A TCP engine for specs of the RDMA side, without TCP: two cards whose connections with the same number are joined, byte stream to byte
 * stream. Nothing is lost; the bytes are cut as the spec wishes, into segments that lie in a memory of few places. {@link joinCards} moves them.
 */

import { TcpEvent } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import type { FpduReader } from '../../../../protocol/iwarp/index.ts';
import type { RdmaStream, SendSegment, StreamEnd, TcpStreams } from '../streams.ts';

/** EMSS: the MSS of an MTU of 1500 without options. */
const MAX_SEGMENT_BYTES = 1460;
const SEND_MEMORY_BYTES = 1 << 20;
const PLACE_BYTES = 16_384;
const RECEIVE_PLACES = 64;

/** A connection of one card. */
class FakeConnection {
  readonly number: number;
  stream: RdmaStream | undefined = undefined;
  reader: FpduReader | undefined = undefined;
  /** Bytes under way to the peer; and bytes that the peer may still send here before it must wait. */
  outbound: Uint8Array[] = [];
  /** Segments that have arrived and were not delivered. */
  inbound: Uint8Array[] = [];
  /** Delivered bytes that the peer has not been notified of. */
  deliveredBytes = 0;
  roomBytes = 128 * 1024;
  isWaiting = false;
  /** FIN follows the bytes; RST overtakes them. */
  isFinDue = false;
  hasFinSent = false;
  hasFinReceived = false;
  isOver = false;

  constructor(number: number) {
    this.number = number;
  }
}

export class FakeStreams implements TcpStreams {
  readonly sendMemory = new Uint8Array(SEND_MEMORY_BYTES);
  readonly connections = new Map<number, FakeConnection>();
  /** `7 terminate sent 0x1100`, `7 closed`, `7 reset`, in order. */
  readonly log: string[] = [];
  /** FPDUs that the RDMA side has sent. */
  readonly sent: Uint8Array[] = [];
  /** Room of the retransmission memory of each connection. */
  roomBytes = 128 * 1024;
  /** Sizes of the segments into which streams are cut, cyclically; empty: as they were sent. */
  cuts: readonly number[] = [];
  maxBytes = MAX_SEGMENT_BYTES;
  /** Segments whose memory is held by the other side; how often streams were busy. */
  readonly held = new Int32Array(RECEIVE_PLACES);
  busyCount = 0;
  openCount = 0;
  readonly #receiveMemory = new Uint8Array(RECEIVE_PLACES * PLACE_BYTES);
  #sendAt = 0;
  #cut = 0;

  connection(number: number): FakeConnection {
    let found = this.connections.get(number);
    if (found === undefined) {
      found = new FakeConnection(number);
      found.roomBytes = this.roomBytes;
      this.connections.set(number, found);
    }
    return found;
  }

  attach(number: number, _qpn: number, stream: RdmaStream): boolean {
    const connection = this.connection(number);
    if (connection.isOver || connection.stream !== undefined) return false;
    connection.stream = stream;
    return true;
  }

  detach(number: number): void {
    this.connection(number).stream = undefined;
  }

  isLooped(): boolean {
    return false;
  }

  maxSegmentBytes(): number {
    return this.maxBytes;
  }

  hasRoom(number: number, lengthBytes: number): boolean {
    const connection = this.connection(number);
    const hasRoom = connection.roomBytes >= lengthBytes;
    if (!hasRoom) connection.isWaiting = true;
    return hasRoom;
  }

  open(number: number, lengthBytes: number): SendSegment {
    if (lengthBytes > this.maxBytes) throw new RangeError(`a segment of ${lengthBytes} bytes exceeds EMSS`);
    this.connection(number).roomBytes -= lengthBytes;
    if (this.connection(number).roomBytes < 0) throw new RangeError('no room was checked');
    this.openCount++;
    if (this.#sendAt + lengthBytes > SEND_MEMORY_BYTES) this.#sendAt = 0;
    const start = this.#sendAt;
    this.#sendAt += lengthBytes;
    return {
      bytes: this.sendMemory,
      start,
      length: lengthBytes,
      sequence: 0,
      isSent: false,
      fpduCount: 1,
      times: undefined,
    };
  }

  send(number: number, segment: SendSegment, lengthBytes: number): void {
    if (lengthBytes > segment.length) throw new RangeError('an FPDU is longer than its segment');
    const connection = this.connection(number);
    connection.roomBytes += segment.length - lengthBytes;
    this.openCount--;
    const bytes = segment.bytes.slice(segment.start, segment.start + lengthBytes);
    // TCP sends nothing after its FIN.
    if (connection.isFinDue) return;
    this.sent.push(bytes);
    connection.outbound.push(bytes);
  }

  discard(number: number, segment: SendSegment): void {
    this.openCount--;
    this.connection(number).roomBytes += segment.length;
  }

  close(number: number): void {
    this.connection(number).isFinDue = true;
  }

  abort(number: number): void {
    this.log.push(`${number} abort`);
    const connection = this.connection(number);
    connection.stream = undefined;
    connection.isOver = true;
  }

  terminated(number: number, event: number, error: number): void {
    const direction = event === TcpEvent.TERMINATE_SENT ? 'sent' : 'received';
    this.log.push(`${number} terminate ${direction} 0x${error.toString(16).padStart(4, '0')}`);
  }

  hold(bytes: Uint8Array, at: number): number {
    if (bytes !== this.#receiveMemory) return -1;
    const place = Math.floor(at / PLACE_BYTES);
    this.held[place]! += 1;
    return place;
  }

  release(name: number): void {
    if (this.held[name] === 0) throw new RangeError('the memory is not held');
    this.held[name]! -= 1;
  }

  placed(): void {}

  /** Sends bytes that no RDMA side has written. */
  inject(number: number, bytes: Uint8Array): void {
    this.connection(number).outbound.push(bytes);
  }

  /** The next bytes of a connection to its peer, at most those of a segment. */
  next(number: number): Uint8Array | undefined {
    const connection = this.connection(number);
    if (connection.outbound.length === 0) return undefined;
    if (this.cuts.length === 0) return connection.outbound.shift();
    const wanted = this.cuts[this.#cut++ % this.cuts.length]!;
    const all = Buffer.concat(connection.outbound);
    connection.outbound = all.length > wanted ? [all.subarray(wanted)] : [];
    return all.subarray(0, wanted);
  }

  /** Delivers a segment. False: the stream is busy, or no place is free. */
  deliver(number: number, bytes: Uint8Array): boolean {
    const { stream } = this.connection(number);
    if (stream === undefined) return true;
    const place = this.held.indexOf(0);
    if (stream.isBusy || place === -1) {
      this.busyCount++;
      return false;
    }
    const at = place * PLACE_BYTES;
    this.#receiveMemory.set(bytes, at);
    stream.reader.take(this.#receiveMemory, at, at + bytes.length);
    // Payload that is not held may be overwritten at once.
    if (this.held[place] === 0) this.#receiveMemory.fill(0xee, at, at + bytes.length);
    return true;
  }

  /** The peer has acknowledged bytes. */
  acknowledge(number: number, lengthBytes: number, cycle: Cycles): void {
    const connection = this.connection(number);
    connection.roomBytes += lengthBytes;
    if (!connection.isWaiting || connection.roomBytes < this.maxBytes) return;
    connection.isWaiting = false;
    connection.stream?.writable(cycle);
  }

  end(number: number, event: StreamEnd, cycle: Cycles): void {
    const connection = this.connection(number);
    const { stream } = connection;
    this.log.push(`${number} ${event === TcpEvent.CLOSED ? 'closed' : 'reset'}`);
    connection.stream = undefined;
    connection.isOver = true;
    stream?.ended(event, cycle);
  }
}

/** A card as {@link joinCards} drives it. */
export interface FakeCard {
  readonly streams: FakeStreams;
  act(action: () => void): void;
  readonly domain: { readonly cycle: Cycles };
}

/** Moves what both cards have sent, up to `segmentsMax` segments of each connection. To be called between steps of the simulation. */
export function joinCards(a: FakeCard, b: FakeCard, segmentsMax = 8): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const)
    for (const number of from.streams.connections.keys()) moveFrom(from, to, number, segmentsMax);
}

function moveFrom(from: FakeCard, to: FakeCard, number: number, segmentsMax: number): void {
  const sender = from.streams.connection(number);
  const receiver = to.streams.connection(number);
  if (sender.isOver && !receiver.isOver && !sender.hasFinSent) {
    receiver.isOver = true;
    to.act(() => to.streams.end(number, TcpEvent.RESET, to.domain.cycle));
    return;
  }
  for (let count = 0; count < segmentsMax; count++) {
    const bytes = from.streams.next(number);
    if (bytes === undefined) break;
    receiver.inbound.push(bytes);
  }
  const waiting = receiver.inbound.length;
  for (let count = 0; count < waiting; count++) to.act(() => deliverNext(to, number));
  const { deliveredBytes } = receiver;
  receiver.deliveredBytes = 0;
  if (deliveredBytes > 0) from.act(() => from.streams.acknowledge(number, deliveredBytes, from.domain.cycle));
  if (sender.outbound.length === 0 && waiting === 0 && sender.isFinDue && !sender.hasFinSent)
    moveFin(from, to, number);
}

function deliverNext(to: FakeCard, number: number): void {
  const receiver = to.streams.connection(number);
  const bytes = receiver.inbound[0];
  if (bytes === undefined || !to.streams.deliver(number, bytes)) return;
  receiver.inbound.shift();
  receiver.deliveredBytes += bytes.length;
}

function moveFin(from: FakeCard, to: FakeCard, number: number): void {
  const sender = from.streams.connection(number);
  const receiver = to.streams.connection(number);
  sender.hasFinSent = true;
  receiver.hasFinReceived = true;
  to.act(() => receiver.stream?.peerClosed(to.domain.cycle));
  if (!sender.hasFinReceived) return;
  for (const card of [from, to]) card.act(() => card.streams.end(number, TcpEvent.CLOSED, card.domain.cycle));
}
