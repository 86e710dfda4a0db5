/**
 * Waits for the clients of several servers at once, and for a wake-up from another thread or a signal handler.
 *
 *   poll(timeoutMs) ─► a server that was just busy is polled directly, with poll(2) only every 256th time
 *                   └► none: ppoll(2) on all clients, listening sockets and the wake-up eventfd
 *                                └► the ready ones are pumped: a bounded number of messages each
 *
 * A wait ends early, with nothing done, when a signal arrives: the caller must return to Node's event loop to run its handler.
 */
import { InvariantError } from '../../base/index.ts';
import { closeDescriptor, createEventfd, drainEventfd, PollSet, signalEventfd } from './native/poll.ts';

/** Consecutive polls that may skip ppoll(2): a client to be refused, or a wake-up, waits for at most this many. */
const BUSY_POLLS_MAX = 256;

/** Descriptors of each server. */
const PLACES = 3;

/** Items to wait for: sockets, each with one client at a time. */
export interface PolledServer {
  /** Descriptors to poll for {@link pump}, and for {@link answerNext}; -1: nothing. */
  readonly descriptor: number;
  readonly nextDescriptor: number;
  /** POLLIN or POLLOUT, for the latter; left out: POLLIN. */
  readonly nextEvents?: number;
  /** An eventfd that is written for {@link answerSignal}; -1 or left out: none. */
  readonly signalDescriptor?: number;
  /** Milliseconds of wall clock until one of the two must be called even if poll(2) reports nothing. */
  readonly attentionMs: number;
  readonly nextAttentionMs: number;
  /** Processes received input, a bounded part of it. Returns whether there may be more soon. */
  pump(): boolean;
  answerNext(): boolean;
  answerSignal?(): boolean;
  close(): void;
}

export class Reactor {
  /** An eventfd: `wake(descriptor)` in any thread of this process ends a `poll`. */
  readonly wakeDescriptor: number;
  readonly #servers: readonly PolledServer[];
  readonly #wasBusy: boolean[];
  readonly #polled: PollSet;
  #isPolling = false;
  #busyPolls = 0;

  constructor(servers: readonly PolledServer[]) {
    this.#servers = servers;
    this.#wasBusy = servers.map(() => false);
    this.#polled = new PollSet(PLACES * servers.length + 1);
    this.wakeDescriptor = createEventfd();
  }

  /**
   * Processes clients' messages, waiting at most `timeoutMs` (fractions count, 0 does not wait, Infinity waits indefinitely)
   * for work. Returns whether anything happened: bytes, a client that connected or disconnected, a wake-up.
   */
  poll(timeoutMs: number): boolean {
    if (this.#isPolling) throw new InvariantError('Reactor.poll is not called by a device', false, 'true');
    this.#isPolling = true;
    try {
      const hasDone = this.#pumpBusy();
      if (hasDone && ++this.#busyPolls < BUSY_POLLS_MAX) return true;
      this.#busyPolls = 0;
      return this.#wait(hasDone ? 0 : timeoutMs) || hasDone;
    } finally {
      this.#isPolling = false;
    }
  }

  /** Ends a `poll` that is waiting, or the next one. */
  wake(): void {
    signalEventfd(this.wakeDescriptor);
  }

  /** Closes all servers and the eventfd. */
  close(): void {
    for (const server of this.#servers) server.close();
    closeDescriptor(this.wakeDescriptor);
  }

  #pumpBusy(): boolean {
    let hasDone = false;
    for (let at = 0; at < this.#servers.length; at++) {
      if (this.#wasBusy[at]) hasDone = this.#pump(at) || hasDone;
    }
    return hasDone;
  }

  #wait(timeoutMs: number): boolean {
    this.#polled.clear();
    this.#polled.add(this.wakeDescriptor);
    let limitMs = timeoutMs;
    for (const server of this.#servers) {
      this.#polled.add(server.descriptor);
      this.#polled.add(server.nextDescriptor, server.nextEvents);
      this.#polled.add(server.signalDescriptor ?? -1);
      limitMs = Math.min(limitMs, server.attentionMs, server.nextAttentionMs);
    }
    this.#polled.wait(limitMs);
    let hasDone = false;
    if (this.#polled.isReady(0)) hasDone = drainEventfd(this.wakeDescriptor) > 0;
    for (let at = 0; at < this.#servers.length; at++) {
      const server = this.#servers[at]!;
      const place = PLACES * at + 1;
      const isDue = this.#polled.isReady(place) || server.attentionMs === 0;
      const isNextDue = this.#polled.isReady(place + 1) || server.nextAttentionMs === 0;
      if (this.#polled.isReady(place + 2)) hasDone = server.answerSignal?.() === true || hasDone;
      if (isDue) hasDone = this.#pump(at) || hasDone;
      if (isNextDue) hasDone = server.answerNext() || hasDone;
    }
    return hasDone;
  }

  /** A device that throws leaves its server marked busy: messages may be left. */
  #pump(at: number): boolean {
    this.#wasBusy[at] = true;
    this.#wasBusy[at] = this.#servers[at]!.pump();
    return this.#wasBusy[at]!;
  }
}
