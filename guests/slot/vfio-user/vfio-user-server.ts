/**
 * A device offered on a UNIX socket to one vfio-user client at a time. A second client is answered "busy" at once; a client
 * that comes after the first has disconnected waits until everything of the first was released. The device keeps its state in
 * between.
 *
 *     descriptor        the client served, or without one the listening socket ──► pump
 *     nextDescriptor    with a client: the one being refused, or the listening socket ──► answerNext
 *     signalDescriptor  the eventfd by which the client unmasks its pin ──► answerSignal
 *
 * Driven by a Reactor; nothing happens outside its `poll`.
 */
import { assertRange, defaultsOf } from '../../../base/index.ts';
import { PCI_INTERRUPT_COUNT, PCI_REGION_COUNT, type VfioUserDevice } from '../device.ts';
import { CANNOT_ACCEPT, Listener } from '../native/listener.ts';
import { type ServerCounters, zeroCounters } from './counters.ts';
import { type VfioUserConfig, vfioUserParameters } from './parameters.ts';
import { Refusal } from './refusal.ts';
import { Session, SessionBuffers } from './session.ts';

/** After an accept failed for lack of descriptors or memory. */
const acceptPauseMs = 100;

export interface VfioUserServerOptions {
  /** Path of the socket file: at most 107 bytes. A stale one is replaced. */
  readonly path: string;
  readonly device: VfioUserDevice;
  /** Defaults for fields left out. */
  readonly config?: Partial<VfioUserConfig>;
  /** Called with the reason, in words, when a client has disconnected. */
  readonly onClientEnd?: (reason: string, isClean: boolean) => void;
  /** A client was refused because another is being served. */
  readonly onRefuse?: () => void;
}

export class VfioUserServer {
  readonly path: string;
  readonly counters: Readonly<ServerCounters>;
  readonly #counters = zeroCounters();
  readonly #device: VfioUserDevice;
  readonly #config: VfioUserConfig;
  readonly #onClientEnd: (reason: string, isClean: boolean) => void;
  readonly #onRefuse: () => void;
  readonly #listener: Listener;
  readonly #buffers: SessionBuffers;
  #session: Session | undefined;
  #refusal: Refusal | undefined;
  /** 0: not paused. */
  #acceptPausedUntilMs = 0;

  /**
   * Starts listening. Throws NativeUnavailableError without native calls, ConfigurationError if the path is unavailable or the
   * device's tables are invalid.
   */
  constructor({ path, device, config, onClientEnd, onRefuse }: VfioUserServerOptions) {
    this.path = path;
    this.counters = this.#counters;
    this.#device = device;
    this.#config = { ...defaultsOf(vfioUserParameters), ...config };
    this.#onClientEnd = onClientEnd ?? (() => {});
    this.#onRefuse = onRefuse ?? (() => {});
    checkDevice(device);
    this.#buffers = new SessionBuffers(this.#config);
    this.#listener = new Listener(path, this.#config.listenBacklog);
  }

  /** Whether a client is connected. */
  get hasClient(): boolean {
    return this.#session !== undefined;
  }

  /** Descriptor to poll: the client, or without a client the listening socket; -1: nothing now. */
  get descriptor(): number {
    if (this.#session !== undefined) return this.#session.descriptor;
    return this.#acceptPausedUntilMs === 0 ? this.#listener.descriptor : -1;
  }

  /** Descriptor to poll in addition to {@link descriptor}, for {@link answerNext}; -1: nothing. */
  get nextDescriptor(): number {
    if (this.#refusal !== undefined) return this.#refusal.descriptor;
    return this.#session !== undefined && this.#acceptPausedUntilMs === 0 ? this.#listener.descriptor : -1;
  }

  /** An eventfd of the client's to poll, for {@link answerSignal}; -1: none. */
  get signalDescriptor(): number {
    return this.#session?.unmaskDescriptor ?? -1;
  }

  /** The client unmasks its pin. Whether it did. */
  answerSignal(): boolean {
    return this.#session?.answerUnmask() ?? false;
  }

  /** Milliseconds of wall clock until `answerNext` must be called even if poll(2) reports nothing; Infinity: never. */
  get nextAttentionMs(): number {
    if (this.#refusal !== undefined) return this.#refusal.attentionMs;
    return this.#session === undefined || this.#acceptPausedUntilMs === 0
      ? Infinity
      : Math.max(0, this.#acceptPausedUntilMs - performance.now());
  }

  /** Milliseconds of wall clock until `pump` must be called even if poll(2) reports nothing; Infinity: never. */
  get attentionMs(): number {
    if (this.#session !== undefined) return this.#session.attentionMs;
    return this.#acceptPausedUntilMs === 0
      ? Infinity
      : Math.max(0, this.#acceptPausedUntilMs - performance.now());
  }

  /** Reads, accepts, processes a bounded number of messages. Returns whether anything happened. For the reactor. */
  pump(): boolean {
    if (this.#session === undefined) return this.#accept();
    const session = this.#session;
    const hasCome = session.pump(this.#config.dispatchCountMax);
    if (session.endReason === undefined) return hasCome;
    if (this.#session === session) this.#endSession();
    return true;
  }

  /** Refuses a client that comes while another is served. Returns whether anything happened. For the reactor. */
  answerNext(): boolean {
    if (this.#refusal !== undefined) {
      if (this.#refusal.pump()) this.#endRefusal();
      return true;
    }
    // Unread messages of the first client are processed before the next is served: pump does so by itself.
    if (this.#session === undefined || this.#session.hasHungUp) return false;
    const descriptor = this.#acceptOne();
    if (descriptor < 0) return false;
    this.#refusal = new Refusal(descriptor, this.#config, this.#buffers.reply);
    return true;
  }

  /** Disconnects the client, if any; the next is served. A device must not call this. */
  dropClient(reason: string): void {
    if (this.#session === undefined) return;
    this.#session.endReason ??= reason;
    this.#endSession();
  }

  /** Disconnects the client, stops listening, removes the socket file. */
  close(): void {
    if (this.#session !== undefined) this.#endSession();
    this.#endRefusal();
    this.#listener.close();
  }

  #endRefusal(): void {
    const refusal = this.#refusal;
    this.#refusal = undefined;
    refusal?.close();
    if (refusal?.isAnswered !== true) return;
    this.#counters.refusedCount++;
    this.#onRefuse();
  }

  /** A client's socket, or below zero. */
  #acceptOne(): number {
    const isPaused = performance.now() < this.#acceptPausedUntilMs;
    if (this.#listener.descriptor < 0 || isPaused) return -1;
    this.#acceptPausedUntilMs = 0;
    const descriptor = this.#listener.accept();
    if (descriptor === CANNOT_ACCEPT) this.#acceptPausedUntilMs = performance.now() + acceptPauseMs;
    return descriptor;
  }

  #accept(): boolean {
    const descriptor = this.#acceptOne();
    if (descriptor < 0) return false;
    this.#session = new Session(descriptor, this.#device, this.#config, this.#buffers, this.#counters);
    return true;
  }

  #endSession(): void {
    const session = this.#session!;
    this.#session = undefined;
    session.close();
    const reason = session.endReason ?? '';
    this.#counters.lastEnd = reason;
    if (!session.isCleanEnd) this.#counters.droppedCount++;
    this.#onClientEnd(reason, session.isCleanEnd);
  }
}

const interruptCountMax = 2048;

function checkDevice(device: VfioUserDevice): void {
  for (const { index, sizeBytes } of device.regions) {
    assertRange('region index', index, 0, PCI_REGION_COUNT - 1);
    assertRange(`size of region ${index}`, sizeBytes, 1, 2 ** 52);
  }
  for (const { index, count } of device.interrupts) {
    assertRange('interrupt index', index, 0, PCI_INTERRUPT_COUNT - 1);
    assertRange(`vectors of interrupt ${index}`, count, 0, interruptCountMax);
  }
}
