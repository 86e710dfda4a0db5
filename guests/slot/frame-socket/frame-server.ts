/**
 * The end of an Ethernet cable on a UNIX socket, for one client at a time: QEMU's `-netdev stream`, or any client of the same
 * protocol (frame-stream.ts). A second client is disconnected at once.
 *
 *     client ──recv──► frames ──► onFrame, while hasRoom            descriptor: the client, or without one the listening socket
 *     client ◄──send── waiting bytes ◄── send                       nextDescriptor: the client while bytes wait, else the listening socket
 *
 * Like a cable, it never makes the sender wait: frames that the client does not read, and that find no room here, are dropped
 * and counted. A sender that can wait does so by itself while {@link FrameServer.waitingBytes} is large. A client whose frames
 * find no room is not read. Driven by a Reactor; `send` may be called at any time.
 */

import { CONNECTION_BROKEN, Connection, END_OF_STREAM, NOTHING_YET } from '../native/connection.ts';
import { nativeLibrary } from '../native/library.ts';
import { CANNOT_ACCEPT, Listener } from '../native/listener.ts';
import { closeDescriptor } from '../native/poll.ts';
import { POLLIN, POLLOUT } from '../native/structures.ts';
import type { PolledServer } from '../reactor.ts';
import {
  FRAME_BYTES_MAX,
  FRAME_IMPOSSIBLE,
  FRAME_WHOLE,
  FrameStream,
  PREFIX_BYTES,
  writePrefix,
} from './frame-stream.ts';

const backlog = 4;
/** Bytes for the client that wait for room in the socket, frames and prefixes. */
const WAITING_BYTES_MAX = 2 ** 20;
/** Turns after the last frame in which the client is polled again without poll(2). */
const BUSY_TURNS = 64;
/** After an accept failed for lack of descriptors or memory. */
const acceptPauseMs = 100;

export interface FrameServerOptions {
  /** Path of the socket file: at most 107 bytes. A stale one is replaced. */
  readonly path: string;
  /** Receives a frame of the client, which is in `bytes` during the call. */
  readonly onFrame: (bytes: Uint8Array, at: number, lengthBytes: number) => void;
  /** Whether a frame can be taken now. */
  readonly hasRoom: () => boolean;
  readonly onConnect: () => void;
  /** Called with the reason, in words, when the client has disconnected. */
  readonly onDisconnect: (reason: string) => void;
}

/** Frames of all clients that have passed the socket. */
export interface FrameSocketCounters {
  clients: number;
  /** Clients that came while another was connected. */
  refused: number;
  framesFromClient: number;
  framesToClient: number;
  /** Frames that no client read: none was connected, or it did not read. */
  unreadFrames: number;
}

export class FrameServer implements PolledServer {
  readonly counters: FrameSocketCounters = {
    clients: 0,
    refused: 0,
    framesFromClient: 0,
    framesToClient: 0,
    unreadFrames: 0,
  };
  readonly path: string;
  readonly #options: FrameServerOptions;
  readonly #listener: Listener;
  readonly #stream = new FrameStream();
  readonly #streamAddress = nativeLibrary().addressOf(this.#stream.bytes.buffer);
  readonly #waiting = new Uint8Array(new ArrayBuffer(WAITING_BYTES_MAX));
  readonly #waitingAddress = nativeLibrary().addressOf(this.#waiting.buffer);
  #waitingStart = 0;
  #waitingEnd = 0;
  #client: Connection | undefined;
  /** The client has disconnected, as a send has shown: it is removed at the next turn, not within the call. */
  #isBroken = false;
  #busyTurns = 0;
  /** 0: not paused. */
  #acceptPausedUntilMs = 0;

  /** Starts listening. @throws ConfigurationError if the path is unavailable, NativeUnavailableError */
  constructor(options: FrameServerOptions) {
    this.path = options.path;
    this.#options = options;
    this.#listener = new Listener(options.path, backlog);
  }

  get hasClient(): boolean {
    return this.#client !== undefined;
  }

  get descriptor(): number {
    if (this.#client === undefined) return this.#acceptPausedUntilMs === 0 ? this.#listener.descriptor : -1;
    return this.#stream.next === FRAME_WHOLE && !this.#options.hasRoom() ? -1 : this.#client.descriptor;
  }

  get nextDescriptor(): number {
    if (this.#client === undefined) return -1;
    if (this.#hasWaiting) return this.#client.descriptor;
    return this.#acceptPausedUntilMs === 0 ? this.#listener.descriptor : -1;
  }

  get nextEvents(): number {
    return this.#hasWaiting ? POLLOUT : POLLIN;
  }

  get attentionMs(): number {
    if (this.#client === undefined) return this.#pauseLeftMs();
    const isDue = this.#isBroken || (this.#stream.next === FRAME_WHOLE && this.#options.hasRoom());
    return isDue ? 0 : Number.POSITIVE_INFINITY;
  }

  get nextAttentionMs(): number {
    return this.#client === undefined ? Number.POSITIVE_INFINITY : this.#pauseLeftMs();
  }

  /** Bytes that the client's socket has not accepted, after an attempt to send them. */
  waitingBytes(): number {
    if (this.#client !== undefined && this.#hasWaiting) this.#flush(this.#client);
    return this.#waitingEnd - this.#waitingStart;
  }

  /** Accepts a client, or reads its bytes. Returns whether it may have more soon. */
  pump(): boolean {
    if (this.#client === undefined) return this.#acceptClient();
    if (this.#isBroken) {
      this.#drop('the connection broke');
      return true;
    }
    if (this.#read(this.#client)) this.#busyTurns = BUSY_TURNS;
    if (this.#busyTurns === 0) return false;
    this.#busyTurns--;
    return true;
  }

  /** Sends waiting bytes, or refuses a second client. */
  answerNext(): boolean {
    if (this.#client === undefined) return false;
    if (this.#hasWaiting) return this.#flush(this.#client);
    const descriptor = this.#acceptOne();
    if (descriptor < 0) return false;
    closeDescriptor(descriptor);
    this.counters.refused++;
    return true;
  }

  /** Sends a frame of at most {@link FRAME_BYTES_MAX} bytes to the client. */
  send(bytes: Uint8Array, at: number, lengthBytes: number): void {
    const client = this.#client;
    const neededBytes = PREFIX_BYTES + lengthBytes;
    const isTaken = client !== undefined && !this.#isBroken && lengthBytes <= FRAME_BYTES_MAX;
    if (!isTaken || !this.#hasRoomFor(neededBytes)) {
      this.counters.unreadFrames++;
      return;
    }
    writePrefix(lengthBytes, this.#waiting, this.#waitingEnd);
    this.#waiting.set(bytes.subarray(at, at + lengthBytes), this.#waitingEnd + PREFIX_BYTES);
    const wasWaiting = this.#hasWaiting;
    this.#waitingEnd += neededBytes;
    this.counters.framesToClient++;
    if (!wasWaiting) this.#flush(client);
  }

  /** Disconnects the client, stops listening, removes the socket file. */
  close(): void {
    this.#drop('closed');
    this.#listener.close();
  }

  get #hasWaiting(): boolean {
    return this.#waitingEnd > this.#waitingStart;
  }

  #hasRoomFor(bytes: number): boolean {
    if (this.#waitingEnd + bytes <= WAITING_BYTES_MAX) return true;
    this.#waiting.copyWithin(0, this.#waitingStart, this.#waitingEnd);
    this.#waitingEnd -= this.#waitingStart;
    this.#waitingStart = 0;
    return this.#waitingEnd + bytes <= WAITING_BYTES_MAX;
  }

  #pauseLeftMs(): number {
    return this.#acceptPausedUntilMs === 0
      ? Number.POSITIVE_INFINITY
      : Math.max(0, this.#acceptPausedUntilMs - performance.now());
  }

  /** A client's socket, or below zero. */
  #acceptOne(): number {
    if (performance.now() < this.#acceptPausedUntilMs) return -1;
    this.#acceptPausedUntilMs = 0;
    const descriptor = this.#listener.accept();
    if (descriptor === CANNOT_ACCEPT) this.#acceptPausedUntilMs = performance.now() + acceptPauseMs;
    return descriptor;
  }

  #acceptClient(): boolean {
    const descriptor = this.#acceptOne();
    if (descriptor < 0) return false;
    this.#client = new Connection(descriptor, 0);
    this.counters.clients++;
    this.#options.onConnect();
    return true;
  }

  /** Reads once, and passes on complete frames. Returns whether anything arrived, or the client disconnected. */
  #read(client: Connection): boolean {
    if (!this.#handOn()) return false;
    const at = this.#stream.roomAt;
    const count = client.receive(this.#streamAddress + at, this.#stream.roomBytes);
    for (const descriptor of client.descriptors.subarray(0, client.descriptorCount))
      closeDescriptor(descriptor);
    if (count === NOTHING_YET) return false;
    if (count === END_OF_STREAM || count === CONNECTION_BROKEN) {
      this.#drop(count === END_OF_STREAM ? 'it hung up' : 'the connection broke');
      return true;
    }
    this.#stream.filled(count);
    this.#handOn();
    if (this.#stream.next === FRAME_IMPOSSIBLE)
      this.#drop(`it sent a frame of ${this.#stream.frameBytes} bytes`);
    return true;
  }

  /** Returns false if a frame without room is left. */
  #handOn(): boolean {
    const { onFrame, hasRoom } = this.#options;
    while (this.#stream.next === FRAME_WHOLE) {
      if (!hasRoom()) return false;
      const { bytes, frameAt, frameBytes } = this.#stream;
      this.counters.framesFromClient++;
      onFrame(bytes, frameAt, frameBytes);
      this.#stream.pop();
    }
    return true;
  }

  /** Returns whether anything was sent, or the client has disconnected. */
  #flush(client: Connection): boolean {
    const waitingBytes = this.#waitingEnd - this.#waitingStart;
    const count = client.send(this.#waitingAddress + this.#waitingStart, waitingBytes);
    if (count === NOTHING_YET) return false;
    if (count === CONNECTION_BROKEN) {
      this.#isBroken = true;
      this.#forgetWaiting();
      return true;
    }
    this.#waitingStart += count;
    if (!this.#hasWaiting) this.#forgetWaiting();
    return true;
  }

  #forgetWaiting(): void {
    this.#waitingStart = 0;
    this.#waitingEnd = 0;
  }

  #drop(reason: string): void {
    if (this.#client === undefined) return;
    this.#client.close();
    this.#client = undefined;
    this.#stream.clear();
    this.#forgetWaiting();
    this.#isBroken = false;
    this.#busyTurns = 0;
    this.#options.onDisconnect(reason);
  }
}
