/**
 * A QP's side of a stream for specs: sends numbered FPDUs whose payload follows from their number, as fast as the engine has room, and notes the
 * segments that arrive. FPDUs are written here by RFC 5044, 4.2: length, segment, pad, a CRC that is not used.
 */
import { FpduReader } from '../../../../protocol/iwarp/index.ts';
import type { RdmaStream, StreamEnd, TcpStreams } from '../streams.ts';

const lengthBytes = 2;
const crcBytes = 4;

/** Bytes of the FPDU of a segment. */
export const fpduBytes = (segmentBytes: number): number =>
  Math.ceil((lengthBytes + segmentBytes) / 4) * 4 + crcBytes;

/** The segment of a number: bytes that no other one has. */
export const segmentOf = (number: number, bytes: number, sender = 0): Uint8Array =>
  Uint8Array.from(
    { length: bytes },
    (_, index) => (number * 131 + sender * 89 + index * 17 + (index >> 7) * 3) & 0xff,
  );

export class TestStream implements RdmaStream {
  readonly reader: FpduReader;
  isBusy = false;
  readonly arrived: Uint8Array[] = [];
  readonly log: string[] = [];
  /** Names of buffers that the stream keeps. */
  readonly held: number[] = [];
  holds = false;
  sentCount = 0;
  /** Times that the engine had no room. */
  refusedCount = 0;
  readonly #streams: TcpStreams;
  readonly #connection: number;
  readonly #sender: number;
  #lengths: readonly number[] = [];

  constructor(streams: TcpStreams, connection: number, sender = 0) {
    this.#streams = streams;
    this.#connection = connection;
    this.#sender = sender;
    this.reader = new FpduReader(
      {
        segmentArrived: (bytes, at, segmentBytes) => {
          if (this.holds) this.held.push(this.#streams.hold(bytes, at));
          this.arrived.push(bytes.slice(at, at + segmentBytes));
        },
        mayPlaceEarly: () => false,
        placeEarly: () => undefined,
        segmentReached: () => undefined,
        framingFailed: (error) => void this.log.push(`framing ${error.toString(16)}`),
      },
      { hasMarkers: false, usesCrc: false, earlySegmentsMax: 0 },
    );
  }

  /** Sends segments of these lengths, as there is room. Called at an edge. */
  start(lengths: readonly number[], cycle: number): void {
    this.#lengths = lengths;
    this.#sendSome(cycle);
  }

  writable(cycle: number): void {
    this.#sendSome(cycle);
  }

  peerClosed(): void {
    this.log.push('peerClosed');
  }

  closeRequested(cycle: number): void {
    this.log.push('closeRequested');
    this.#streams.close(this.#connection, cycle);
  }

  terminateRequested(error: number): void {
    this.log.push(`terminate ${error.toString(16)}`);
  }

  ended(event: StreamEnd): void {
    this.log.push(`ended ${event}`);
  }

  #sendSome(cycle: number): void {
    const streams = this.#streams;
    while (this.sentCount < this.#lengths.length) {
      const bytes = this.#lengths[this.sentCount]!;
      if (!streams.hasRoom(this.#connection, fpduBytes(bytes))) {
        this.refusedCount++;
        return;
      }
      const segment = streams.open(this.#connection, fpduBytes(bytes));
      const { start } = segment;
      segment.bytes.fill(0, start, start + fpduBytes(bytes));
      segment.bytes[start] = bytes >>> 8;
      segment.bytes[start + 1] = bytes & 0xff;
      segment.bytes.set(segmentOf(this.sentCount, bytes, this.#sender), start + lengthBytes);
      streams.send(this.#connection, segment, fpduBytes(bytes), cycle);
      this.sentCount++;
    }
  }
}
