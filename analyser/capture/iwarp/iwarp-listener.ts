/**
 * iWARP connections in a capture: RDMAP over DDP over MPA over TCP. A connection is recognised by its MPA request or
 * reply or, if a capture begins later, by a TCP segment that begins with an FPDU whose CRC is right. Source: RFC 5040,
 * 5041, 5044.
 */
import type { CapturedSegment } from '../captured-packets.ts';
import type { Said } from '../packet-listener.ts';
import { type Conversation, type Line, type LineBudget, TalkLines } from '../talk.ts';
import {
  beginsHandshake,
  type EnhancedConnection,
  fpduLengths,
  type Handshake,
  readFpdu,
  readHandshake,
  segmentStart,
} from './mpa.ts';
import { PendingBytes } from './pending-bytes.ts';
import { isRdmap, rdmapWords } from './rdmap-words.ts';
import { type NextBytes, SegmentStream, WaitingBytes } from './segment-stream.ts';

const FPDU_LENGTH_BYTES = 2;
/** Greatest number of followed connections. */
const CONNECTIONS_MAX = 10_000;

/** A direction of a connection. */
class Direction {
  readonly stream: SegmentStream;
  /** Bytes of an incomplete message. */
  readonly bytes = new PendingBytes();
  /** Share of these bytes that {@link WaitingBytes} has counted. */
  countedBytes = 0;
  /** Bytes missing from the capture before the next message. */
  skipBytes = 0;
  hasHandshake = false;
  /** Whether this direction has markers, as its receiver requested. */
  hasMarkers = false;
  /** Bytes of the stream between the handshake and {@link bytes}. */
  offset = 0;
  /** Whether no FPDU began at an expected place. */
  isLost = false;

  constructor(waiting: WaitingBytes) {
    this.stream = new SegmentStream(waiting);
  }
}

class Connection {
  readonly lines: TalkLines;
  readonly firstName: string;
  readonly secondName: string;
  readonly first: Direction;
  readonly second: Direction;
  readonly waiting: WaitingBytes;
  /** Undefined if the capture has no handshake. */
  usesCrc: boolean | undefined;

  constructor({ from, fromPort, to, toPort }: CapturedSegment, budget: LineBudget, waiting: WaitingBytes) {
    this.first = new Direction(waiting);
    this.second = new Direction(waiting);
    this.waiting = waiting;
    this.firstName = `${from} port ${fromPort}`;
    this.secondName = `${to} port ${toPort}`;
    this.lines = new TalkLines(budget);
  }

  /** Handles the end of the capture. */
  end(): void {
    for (const direction of [this.first, this.second]) {
      direction.stream.clear();
      direction.bytes.clear();
      settle(direction, this.waiting);
    }
  }
}

/** Updates the count of waiting bytes of a direction. */
function settle(direction: Direction, waiting: WaitingBytes): void {
  waiting.bytes += direction.bytes.length - direction.countedBytes;
  direction.countedBytes = direction.bytes.length;
}

const nothingSaid: Said = { remark: () => undefined };

export class IwarpListener {
  readonly #budget: LineBudget;
  readonly #connections = new Map<string, Connection>();
  readonly #all: Connection[] = [];
  readonly #waiting = new WaitingBytes();

  constructor(budget: LineBudget) {
    this.#budget = budget;
  }

  /** @returns undefined if the segment belongs to no iWARP connection */
  take(segment: CapturedSegment): Said | undefined {
    const { from, fromPort, to, toPort, isSyn, payloadBytes, network } = segment;
    const own = `${network} ${from} ${fromPort}>${to} ${toPort}`;
    const opposite = `${network} ${to} ${toPort}>${from} ${fromPort}`;
    if (isSyn) {
      for (const key of [own, opposite]) {
        this.#connections.get(key)?.end();
        this.#connections.delete(key);
      }
      return undefined;
    }
    const answered = this.#connections.get(opposite);
    const connection = answered ?? this.#connections.get(own) ?? this.#begin(own, segment);
    if (connection === undefined) return undefined;
    if (payloadBytes === 0) return nothingSaid;
    return new Hearing(connection, segment, answered === undefined).listen();
  }

  conversations(): Conversation[] {
    return this.#all.map(({ lines, firstName, secondName }) => ({
      service: 'iWARP',
      first: firstName,
      second: secondName,
      beganPs: lines.beganPs ?? 0n,
      utterances: lines.sorted(),
      unkept: lines.unkept,
      counts: lines.counts,
    }));
  }

  #begin(key: string, segment: CapturedSegment): Connection | undefined {
    const { payload } = segment;
    if (!beginsHandshake(payload) && !isFpduAt(payload)) return undefined;
    if (this.#all.length >= CONNECTIONS_MAX) return undefined;
    const connection = new Connection(segment, this.#budget, this.#waiting);
    this.#connections.set(key, connection);
    this.#all.push(connection);
    return connection;
  }
}

/** Whether a TCP segment begins with an FPDU, proven by its CRC. */
function isFpduAt(payload: Uint8Array): boolean {
  if (!isRdmap(payload.subarray(FPDU_LENGTH_BYTES))) return false;
  return readFpdu(payload, undefined)?.isCrcRight === true;
}

/** Processes one TCP segment of a connection. */
class Hearing {
  readonly #connection: Connection;
  readonly #segment: CapturedSegment;
  readonly #isFromFirst: boolean;
  readonly #direction: Direction;
  readonly #peer: Direction;
  #said: Line | undefined;

  constructor(connection: Connection, segment: CapturedSegment, isFromFirst: boolean) {
    this.#connection = connection;
    this.#segment = segment;
    this.#isFromFirst = isFromFirst;
    this.#direction = isFromFirst ? connection.first : connection.second;
    this.#peer = isFromFirst ? connection.second : connection.first;
  }

  listen(): Said {
    const { lines } = this.#connection;
    const { payloadBytes, note } = this.#segment;
    const { place, gapBytes, next } = this.#direction.stream.take(this.#segment);
    const what = `TCP segment of ${payloadBytes} bytes`;
    if (place === 'repeated') {
      lines.count('sent again');
      this.#say(this.#segment, `${what}; sent again`, true);
    } else if (place === 'early') {
      if (gapBytes > 0) lines.count('gaps');
      const gap = gapBytes > 0 ? `; gap: ${gapBytes} bytes of TCP not seen` : '; waits for bytes before it';
      this.#say(this.#segment, `${what}${gap}`, true);
    } else if (place === 'late') {
      lines.count('late');
      this.#say(this.#segment, `${what}; late: later segments were seen before it`, true);
    }
    for (const bytes of next) this.#advance(bytes);
    if (this.#said === undefined && note !== '') this.#say(this.#segment, what, true);
    const said = this.#said;
    return said === undefined ? nothingSaid : { remark: (words) => lines.remark(said, words) };
  }

  #advance(next: NextBytes): void {
    const direction = this.#direction;
    if (next.lostBytes > 0) {
      direction.bytes.clear();
      direction.offset += next.lostBytes;
      direction.isLost = true;
    }
    if (direction.isLost && !this.#resumes(next)) {
      direction.offset += next.bytes.length + next.cutBytes;
      return;
    }
    const skipped = Math.min(direction.skipBytes, next.bytes.length);
    direction.skipBytes -= skipped;
    direction.offset += skipped;
    direction.bytes.append(next.bytes.subarray(skipped));
    for (let isMore = true; isMore; ) isMore = this.#message(next.segment);
    if (next.cutBytes > 0) this.#passCut(next);
    this.#boundWaiting(direction);
  }

  /** Discards an incomplete message if too many bytes wait. */
  #boundWaiting(direction: Direction): void {
    const { waiting } = this.#connection;
    settle(direction, waiting);
    if (!waiting.isFull || direction.bytes.length === 0) return;
    direction.offset += direction.bytes.length;
    direction.bytes.clear();
    direction.isLost = true;
    settle(direction, waiting);
  }

  /** After missing bytes, the next FPDU boundary is found at a TCP segment that begins with an FPDU. */
  #resumes({ bytes, segment }: NextBytes): boolean {
    const direction = this.#direction;
    const isWhole = bytes.length === segment.payload.length;
    if (direction.hasMarkers || !isWhole || !isRdmap(bytes.subarray(FPDU_LENGTH_BYTES))) return false;
    direction.isLost = false;
    direction.skipBytes = 0;
    return true;
  }

  /** The capture cut the rest of this segment; the message that began in it is shown as far as captured. */
  #passCut({ cutBytes, segment }: NextBytes): void {
    const direction = this.#direction;
    const begun = direction.bytes.view();
    const lengths = fpduLengths(begun, this.#markerOffset);
    const start = segmentStart(begun, this.#markerOffset);
    // All bytes here belong to an earlier message and were skipped.
    const rest = begun.length > 0 ? (lengths?.streamBytes ?? 0) - begun.length : direction.skipBytes;
    if (begun.length > 0 && lengths !== undefined && isRdmap(start))
      this.#sayMessage(start, lengths.segmentBytes, segment, '; cut by the capture');
    direction.bytes.clear();
    direction.offset += begun.length + cutBytes;
    direction.skipBytes = Math.max(0, rest - cutBytes);
    direction.isLost = direction.isLost || rest < cutBytes;
  }

  get #markerOffset(): number | undefined {
    return this.#direction.hasMarkers ? this.#direction.offset : undefined;
  }

  /**
   * Removes a message from the bytes.
   * @returns whether it was complete
   */
  #message(segment: CapturedSegment): boolean {
    const direction = this.#direction;
    if (direction.bytes.length === 0) return false;
    if (!direction.hasHandshake && beginsHandshake(direction.bytes.view())) return this.#handshake(segment);
    direction.hasHandshake = true;
    const fpdu = readFpdu(direction.bytes.view(), this.#markerOffset);
    if (fpdu === undefined) return false;
    if (!isRdmap(fpdu.segment)) {
      this.#say(segment, 'no FPDU where one begins', true);
      direction.isLost = true;
      direction.bytes.clear();
      return false;
    }
    const usesCrc = this.#connection.usesCrc ?? fpdu.crc !== 0;
    if (usesCrc && !fpdu.isCrcRight) {
      this.#connection.lines.count('damaged');
      this.#say(segment, 'damaged: wrong CRC32c; a receiver ends the connection', true);
    } else this.#sayMessage(fpdu.segment, fpdu.segment.length, segment, '');
    this.#take(fpdu.streamBytes);
    direction.offset += fpdu.streamBytes;
    return true;
  }

  #handshake(segment: CapturedSegment): boolean {
    const handshake = readHandshake(this.#direction.bytes.view());
    if (handshake === undefined) return false;
    this.#direction.hasHandshake = true;
    this.#direction.offset = 0;
    this.#peer.hasMarkers = handshake.wantsMarkers;
    this.#connection.usesCrc = handshake.usesCrc || this.#connection.usesCrc === true;
    this.#say(segment, handshakeWords(handshake), handshake.isReject);
    this.#take(handshake.lengthBytes);
    return true;
  }

  #take(bytes: number): void {
    this.#direction.bytes.drop(bytes);
  }

  #sayMessage(ddp: Uint8Array, ddpBytes: number, segment: CapturedSegment, after: string): void {
    const { name, words, isTrouble } = rdmapWords(ddp, ddpBytes);
    this.#connection.lines.count(name);
    this.#say(segment, `${words}${after}`, isTrouble);
  }

  #say({ number, timePs, note }: CapturedSegment, words: string, isTrouble: boolean): void {
    const hasNote = note !== '' && number === this.#segment.number && this.#said === undefined;
    const line = this.#connection.lines.say({
      ...{ number, timePs },
      isFromFirst: this.#isFromFirst,
      words: hasNote ? `${words} (${note})` : words,
      isTrouble: isTrouble || hasNote,
    });
    this.#said ??= line;
  }
}

function handshakeWords({
  isReply,
  isReject,
  usesCrc,
  wantsMarkers,
  revision,
  enhanced,
  privateBytes,
}: Handshake): string {
  const parts = [
    `MPA ${isReply ? (isReject ? 'reject' : 'reply') : 'request'}, revision ${revision}`,
    usesCrc ? 'CRC' : 'no CRC',
    ...(wantsMarkers ? ['markers'] : []),
    ...(enhanced === undefined ? [] : enhancedWords(enhanced)),
    ...(privateBytes > 0 ? [`${privateBytes} bytes of private data`] : []),
  ];
  return parts.join(', ');
}

/** READs at once, and the messages by which the initiator may open a connection in peer-to-peer mode. */
function enhancedWords({ inboundReads, outboundReads, readyMessages }: EnhancedConnection): string[] {
  const reads = `serves ${inboundReads} READs at once, has ${outboundReads} outstanding`;
  if (readyMessages === undefined) return [reads];
  return [reads, `peer-to-peer, ready by ${readyMessages.join(' or ') || 'no message'}`];
}
