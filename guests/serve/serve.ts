/**
 * Serves HCAs to real guests, as a library:
 *
 *     await using served = await serve({ socket: '/tmp/hca.sock' });
 *     … QEMU with served.qemuOptions …
 *     const report = await served.close();
 *
 * A separate thread does the work; this one stays free for signals and for the code that drives the guests.
 */
import { Worker } from 'node:worker_threads';
import type { Evidence } from '../../machine/evidence/index.ts';
import { checkValue, errorOf, type JsonValue } from '../../machine/index.ts';
import { type DroppedRecords, mergedTimeline, type Timeline } from '../../machine/timeline/index.ts';
import type { ProcessObservations } from '../../sim/index.ts';
import { nativeLibrary, wake } from '../slot/index.ts';
import type { PeerState } from './peer-host.ts';
import { isOfRelay, PeerRelay } from './peer-relay.ts';
import { peerNetworkLine, qemuOptionLines } from './qemu-options.ts';
import type { ServeMessage, ServeRequest, ServeStart } from './serve-messages.ts';
import { type ServeOptions, serveOrderOf } from './serve-options.ts';
import type { ServeReport } from './serve-report.ts';
import { servedTopology } from './served-plan.ts';

/** Extension of this module: workers are `.ts` in the repository and compiled in the package. */
const workerUrl = new URL(
  import.meta.url.endsWith('.ts') ? './serve-worker.ts' : './serve-worker.js',
  import.meta.url,
);

/** The serving thread stops at the end of a turn, which takes a second at most, and writes the capture; a loaded computer is slow. */
const stopLimitMs = 30_000;

export interface ServeListeners {
  /** Called, in words, for disconnected guests and for defects. */
  readonly onNotice?: (text: string) => void;
}

/**
 * Begins to serve; resolves when guests can connect.
 * @throws ConfigurationError for options, paths, or a platform on which guests cannot be served
 */
export async function serve(options: ServeOptions, listeners: ServeListeners = {}): Promise<ServedMachine> {
  const order = serveOrderOf(options);
  nativeLibrary();
  const machine = new ServedMachine(
    order.sockets,
    { order, requestCount: new SharedArrayBuffer(4) },
    listeners,
  );
  await machine.ready;
  const { peer } = options;
  // Its kernel has its own TCP if it has a NIC.
  if (peer !== undefined && order.config.machine.adapter === 'hca') {
    const ports = Object.entries(peer.guestPorts ?? {}).map(([own, port]) => [Number(own), port] as const);
    await machine.relay(new Map(ports));
  }
  return machine;
}

interface Mailbox {
  readonly values: JsonValue[];
  /** Callers that wait for a value. */
  readonly receivers: PromiseWithResolvers<JsonValue>[];
}

export class ServedMachine implements AsyncDisposable {
  /** Sockets, one for each HCA. */
  readonly sockets: readonly string[];
  /** The last report, when serving has ended: by {@link close}, or because the last guest has disconnected. */
  readonly ended: Promise<ServeReport>;
  readonly ready: Promise<void>;
  /** Outcome of a simulated host's program, after it has ended; never settles without a program. */
  readonly peerEnded: Promise<PeerState>;
  readonly #hasPeerEnded = Promise.withResolvers<PeerState>();
  /** Values that the program of a simulated host has put into its exchange, by mailbox. */
  readonly #mailboxes = new Map<string, Mailbox>();
  #relay: PeerRelay | undefined;
  #guestPorts: ReadonlyMap<number, number> = new Map();
  readonly #worker: Worker;
  readonly #requests: Int32Array;
  readonly #listeners: ServeListeners;
  readonly #isReady = Promise.withResolvers<void>();
  readonly #hasEnded = Promise.withResolvers<ServeReport>();
  #observations: readonly ProcessObservations[] = [];
  #captureDrops: readonly DroppedRecords[] = [];
  #evidence: Evidence;
  readonly #reports = new Map<number, PromiseWithResolvers<ServeReport>>();
  #ticketCount = 0;
  #wakeDescriptor = -1;
  #isOver = false;

  constructor(sockets: readonly string[], start: ServeStart, listeners: ServeListeners) {
    this.sockets = sockets;
    this.#listeners = listeners;
    const topology = servedTopology(start.order.cabling, start.order.sockets.length);
    this.#evidence = { topology, devices: [], hosts: [] };
    this.#requests = new Int32Array(start.requestCount);
    this.ready = this.#isReady.promise;
    this.ended = this.#hasEnded.promise;
    this.peerEnded = this.#hasPeerEnded.promise;
    // A caller that does not await the end need not handle its error.
    this.ended.catch(() => {});
    this.ready.catch(() => {});
    this.#worker = new Worker(workerUrl, { workerData: start, trackUnmanagedFds: false });
    this.#worker
      .on('message', (message: ServeMessage) => this.#take(message))
      .on('error', (error: Error) => this.#fail(error))
      .on('exit', () => this.#fail(new Error('the serving thread ended by itself')));
  }

  /** Options for QEMU, line by line. */
  get qemuOptions(): string[] {
    const lines = qemuOptionLines(this.sockets);
    return this.#relay === undefined ? lines : [...lines, peerNetworkLine(this.#guestPorts)];
  }

  /** Port of this computer's loopback that accepts the guest's TCP connections to its peer; undefined without a peer, and if it has a NIC. */
  get peerPort(): number | undefined {
    return this.#relay?.port;
  }

  /** Puts a value into a mailbox of the simulated host's program. @throws ConfigurationError if it is too long */
  put(name: string, value: JsonValue): void {
    checkValue(name, value);
    if (!this.#isOver) this.#send({ kind: 'value', name, value });
  }

  /** Waits for the next value that the simulated host's program puts into the exchange by this name; the relay receives those of TCP. */
  take(name: string): Promise<JsonValue> {
    const { values, receivers } = this.#mailbox(name);
    const [value] = values.splice(0, 1);
    if (value !== undefined) return Promise.resolve(value);
    const receiver = Promise.withResolvers<JsonValue>();
    receivers.push(receiver);
    return receiver.promise;
  }

  #mailbox(name: string): Mailbox {
    const mailbox = this.#mailboxes.get(name) ?? { values: [], receivers: [] };
    this.#mailboxes.set(name, mailbox);
    return mailbox;
  }

  #valueCame(name: string, value: JsonValue): void {
    if (isOfRelay(name)) {
      this.#relay?.take(name, value);
      return;
    }
    const { values, receivers } = this.#mailbox(name);
    const receiver = receivers.shift();
    if (receiver === undefined) values.push(value);
    else receiver.resolve(value);
  }

  /** Joins the exchange of the simulated host's program to TCP. */
  async relay(guestPorts: ReadonlyMap<number, number>): Promise<void> {
    this.#guestPorts = guestPorts;
    this.#relay = await PeerRelay.listen((name, value) => this.put(name, value), guestPorts);
  }

  /** The report as of now; the last one after serving has ended. */
  report(): Promise<ServeReport> {
    if (this.#isOver) return this.ended;
    const ticket = ++this.#ticketCount;
    const settled = Promise.withResolvers<ServeReport>();
    this.#reports.set(ticket, settled);
    this.#send({ kind: 'report', ticket });
    return settled.promise;
  }

  /** Disconnects the guests, removes the sockets; returns the last report. */
  async close(): Promise<ServeReport> {
    if (!this.#isOver) this.#send({ kind: 'stop' });
    const limit = setTimeout(() => {
      this.#fail(new Error(`the serving thread did not stop within ${stopLimitMs} ms`));
      void this.#worker.terminate();
    }, stopLimitMs);
    try {
      return await this.ended;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Timeline records of all parts, after serving has ended; empty unless the analysis requests a timeline. */
  async timeline(): Promise<Timeline> {
    await this.ended;
    return mergedTimeline(this.#observations, this.#evidence.topology);
  }

  /** Evidence of why requests failed, after serving has ended; empty unless the analysis requests it. */
  async evidence(): Promise<Evidence> {
    await this.ended;
    return this.#evidence;
  }

  /** Number of packets in the capture at each end, after serving has ended, and number that arrived when it was full. */
  async captureDrops(): Promise<readonly DroppedRecords[]> {
    await this.ended;
    return this.#captureDrops;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #send(request: ServeRequest): void {
    this.#worker.postMessage(request);
    Atomics.add(this.#requests, 0, 1);
    wake(this.#wakeDescriptor);
  }

  #take(message: ServeMessage): void {
    switch (message.kind) {
      case 'ready':
        this.#wakeDescriptor = message.wakeDescriptor;
        this.#isReady.resolve();
        return;
      case 'notice':
        this.#listeners.onNotice?.(message.text);
        return;
      case 'report':
        this.#reports.get(message.ticket)?.resolve(message.report);
        this.#reports.delete(message.ticket);
        return;
      case 'value':
        this.#valueCame(message.name, message.value);
        return;
      case 'peer':
        this.#relay?.programEnded();
        this.#hasPeerEnded.resolve(message.state);
        return;
      case 'ended':
        this.#isOver = true;
        this.#relay?.close();
        this.#observations = message.observations;
        this.#captureDrops = message.captureDrops;
        this.#evidence = message.evidence;
        for (const { resolve } of this.#reports.values()) resolve(message.report);
        this.#reports.clear();
        this.#hasEnded.resolve(message.report);
        return;
      case 'failed':
        this.#fail(errorOf(message.error));
        return;
    }
  }

  /** Has no effect if it has already ended. */
  #fail(error: Error): void {
    this.#isOver = true;
    this.#relay?.close();
    this.#isReady.reject(error);
    this.#hasEnded.reject(error);
    for (const { reject } of this.#reports.values()) reject(error);
    this.#reports.clear();
  }
}
