/**
 * A device offered on a UNIX socket to one vfio-user client at a time. A second client waits in the socket's queue; it is
 * served when the first has gone and everything of it has been given back. The device keeps its state in between.
 *
 * Driven by a Reactor; nothing happens outside of its `poll`.
 */
import { assertRange } from '../../base/assert.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { PCI_INTERRUPT_COUNT, PCI_REGION_COUNT, type VfioUserDevice } from '../device.ts';
import { CANNOT_ACCEPT, Listener } from '../native/listener.ts';
import { type ServerCounters, zeroCounters } from './counters.ts';
import { type VfioUserConfig, vfioUserParameters } from './parameters.ts';
import { Session, SessionBuffers } from './session.ts';

/** After an accept failed for want of descriptors or memory. */
const acceptPauseMs = 100;

export interface VfioUserServerOptions {
  /** Where the socket file is made: at most 107 bytes. A stale one is replaced. */
  readonly path: string;
  readonly device: VfioUserDevice;
  /** Defaults where left out. */
  readonly config?: Partial<VfioUserConfig>;
  /** Told, in words, why a client went. */
  readonly onClientEnd?: (reason: string, isClean: boolean) => void;
}

export class VfioUserServer {
  readonly path: string;
  readonly counters: Readonly<ServerCounters>;
  readonly #counters = zeroCounters();
  readonly #device: VfioUserDevice;
  readonly #config: VfioUserConfig;
  readonly #onClientEnd: (reason: string, isClean: boolean) => void;
  readonly #listener: Listener;
  readonly #buffers: SessionBuffers;
  #session: Session | undefined;
  /** 0: not paused. */
  #acceptPausedUntilMs = 0;

  /**
   * Listens from now on. Throws NativeUnavailableError where there are no native calls, ConfigurationError where the
   * path cannot be had or the device's tables are impossible.
   */
  constructor({ path, device, config, onClientEnd }: VfioUserServerOptions) {
    this.path = path;
    this.counters = this.#counters;
    this.#device = device;
    this.#config = { ...defaultsOf(vfioUserParameters), ...config };
    this.#onClientEnd = onClientEnd ?? (() => {});
    checkDevice(device);
    this.#buffers = new SessionBuffers(this.#config);
    this.#listener = new Listener(path, this.#config.listenBacklog);
  }

  /** Whether a client is connected. */
  get hasClient(): boolean {
    return this.#session !== undefined;
  }

  /** What to poll: the client, or without one the listening socket; -1: nothing now. */
  get descriptor(): number {
    if (this.#session !== undefined) return this.#session.descriptor;
    return this.#acceptPausedUntilMs === 0 ? this.#listener.descriptor : -1;
  }

  /** Milliseconds of wall clock until `pump` is to be called even if poll(2) tells nothing; Infinity: never. */
  get attentionMs(): number {
    if (this.#session !== undefined) return this.#session.attentionMs;
    return this.#acceptPausedUntilMs === 0
      ? Infinity
      : Math.max(0, this.#acceptPausedUntilMs - performance.now());
  }

  /** Reads, accepts, carries out a bounded number of messages. Whether anything happened. For the reactor. */
  pump(): boolean {
    if (this.#session === undefined) return this.#accept();
    const session = this.#session;
    const hasCome = session.pump(this.#config.dispatchCountMax);
    if (session.endReason === undefined) return hasCome;
    if (this.#session === session) this.#endSession();
    return true;
  }

  /** Drops the client, if there is one; the next is served. Not to be called by a device. */
  dropClient(reason: string): void {
    if (this.#session === undefined) return;
    this.#session.endReason ??= reason;
    this.#endSession();
  }

  /** Drops the client, stops listening, removes the socket file. */
  close(): void {
    if (this.#session !== undefined) this.#endSession();
    this.#listener.close();
  }

  #accept(): boolean {
    const isPaused = performance.now() < this.#acceptPausedUntilMs;
    if (this.#listener.descriptor < 0 || isPaused) return false;
    this.#acceptPausedUntilMs = 0;
    const descriptor = this.#listener.accept();
    if (descriptor === CANNOT_ACCEPT) this.#acceptPausedUntilMs = performance.now() + acceptPauseMs;
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
