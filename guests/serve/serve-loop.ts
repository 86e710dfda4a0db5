/**
 * The serving loop: carries out requests of guests and lets simulated time pass, alternately, in one thread.
 *
 *     ┌─► poll the sockets: at once while the devices are busy, else until the next thing is due ─┐
 *     └── work: time passes, until the devices are idle or for sliceMs of wall time ◄─────────────┘
 *
 * So a guest waits for the devices for at most one slice, and idle devices cost nothing. While a third-party endpoint at the
 * end of the cable has much to read, no work is done: stranger-pace.ts.
 */
import { performance } from 'node:perf_hooks';
import { codeOf, defaultsOf, NEVER } from '../../base/index.ts';
import type { ValueTaken } from '../../machine/index.ts';
import { replaceFile } from '../../runtime/files.ts';
import { FrameServer, Reactor, raiseInterrupt, VfioUserServer } from '../slot/index.ts';
import { Emulation } from './emulation.ts';
import { type ServingConfig, servingParameters } from './parameters.ts';
import type { PeerProgram, PeerState } from './peer-host.ts';
import type { ServeOrder } from './serve-options.ts';
import { buildServeReport, type ServeReport } from './serve-report.ts';
import { ServedTime } from './served-time.ts';
import { StrangerPace } from './stranger-pace.ts';

/** Receives reports of the running loop, in words. */
export type NoticeListener = (text: string) => void;

export interface ServeLoopParts {
  readonly onNotice: NoticeListener;
  /** Receives values that the simulated host's program puts into the exchange. */
  readonly onValue?: ValueTaken;
  /** Called once, when the simulated host's program has ended. */
  readonly onPeerEnd?: (state: PeerState) => void;
  /** The program of a simulated host; left out: none. */
  readonly peer?: PeerProgram | undefined;
  /** Left out: the defaults. */
  readonly serving?: ServingConfig;
}

/** Longest wait for the sockets: a silent client must be checked now and then. */
const WAIT_MAX_MS = 1000;
/** Wait in milliseconds after all guests have disconnected, while the simulated host's program may still end. */
const GRACE_WAIT_MS = 20;

export class ServeLoop {
  readonly emulation: Emulation;
  readonly servers: readonly VfioUserServer[];
  /** The socket that is the other end of the cable, if any. */
  readonly frames: FrameServer | undefined;
  readonly reactor: Reactor;
  readonly #pace: StrangerPace;
  /** Wall time spent on the model, on guests' accesses, and waiting. */
  workMs = 0;
  pollMs = 0;
  waitMs = 0;
  readonly #order: ServeOrder;
  readonly #notice: NoticeListener;
  readonly #sliceMs: number;
  readonly #startedMs = performance.now();
  readonly #peerGraceMs: number;
  readonly #onPeerEnd: (state: PeerState) => void;
  #hasPeerEnded = false;
  #isStopped = false;
  /** Wall time at which serving ends, even if the simulated host's program has not ended. */
  #endMs = NEVER;

  /**
   * Starts listening. With a simulated host, call it only from a callback of the event loop.
   * @throws ConfigurationError, NativeUnavailableError
   */
  constructor(order: ServeOrder, parts: ServeLoopParts) {
    const { onNotice, onValue, onPeerEnd = () => {}, peer, serving = defaultsOf(servingParameters) } = parts;
    this.#order = order;
    this.#notice = onNotice;
    this.#onPeerEnd = onPeerEnd;
    this.#peerGraceMs = serving.peerGraceMs;
    this.#sliceMs = serving.sliceUs / 1000;
    this.#pace = new StrangerPace(serving);
    const { config, cabling, faults, shortcuts, timeScale, analysis } = order;
    const wall = (): number => performance.now();
    this.emulation = new Emulation({
      config,
      cabling,
      faults,
      shortcuts,
      analysis,
      serving,
      hcaCount: order.sockets.length,
      makeTime: (runner) => new ServedTime(runner, serving, timeScale, wall),
      wall,
      raise: raiseInterrupt,
      peer,
      onValue,
      onFrame: (bytes, at, lengthBytes) => this.frames!.send(bytes, at, lengthBytes),
    });
    this.servers = order.sockets.map(
      (path, node) =>
        new VfioUserServer({
          path,
          device: this.emulation.slots[node]!,
          onClientEnd: (reason) => this.#clientEnded(node, reason),
          onRefuse: () =>
            this.#notice(`HCA ${node}: a second guest was refused with "busy": ${path} has a guest already`),
        }),
    );
    this.frames = order.wire === undefined ? undefined : this.#listenForStranger(order.wire);
    this.reactor = new Reactor([...this.servers, ...(this.frames === undefined ? [] : [this.frames])]);
  }

  #listenForStranger(path: string): FrameServer {
    const { emulation } = this;
    return new FrameServer({
      path,
      onFrame: (bytes, at, lengthBytes) => emulation.takeFrame(bytes, at, lengthBytes),
      hasRoom: () => emulation.hasRoomForFrame,
      onConnect: () => {
        emulation.setPlugged(true);
        this.#notice(`the cable is plugged in at ${path}`);
      },
      onDisconnect: (reason) => {
        emulation.setPlugged(false);
        this.#notice(`the cable at ${path} is unplugged: ${reason}`);
      },
    });
  }

  /**
   * Serves until {@link stop}, or with `isOnce` until the last guest has disconnected. Calls `between` after every turn. Even
   * if it throws, the packets of the cable up to then are in their file.
   */
  run(between: () => void): void {
    try {
      this.#serve(between);
    } catch (error) {
      this.#keepCapture();
      throw error;
    }
  }

  #serve(between: () => void): void {
    for (let dueMs = 0; !this.#isStopped; ) {
      const startMs = performance.now();
      this.reactor.poll(Math.min(dueMs, this.#endMs === NEVER ? WAIT_MAX_MS : GRACE_WAIT_MS));
      const polledMs = performance.now();
      if (dueMs === 0) this.pollMs += polledMs - startMs;
      else this.waitMs += polledMs - startMs;
      const holdMs = this.#holdMs(polledMs);
      if (holdMs > 0) this.emulation.standStill();
      dueMs = holdMs > 0 ? holdMs : this.emulation.work(this.#sliceMs);
      this.workMs += performance.now() - polledMs;
      if (this.emulation.hasFailed) this.#recover();
      for (const text of this.emulation.waits()) this.#notice(text);
      this.#watchPeer();
      between();
    }
  }

  /** Milliseconds for which time must stand still, to let the third-party endpoint read. */
  #holdMs(nowMs: number): number {
    const { frames } = this;
    if (frames === undefined) return 0;
    const waitingBytes = frames.waitingBytes();
    const { expiredHolds } = this.#pace.counters;
    const holdMs = this.#pace.holdMs(waitingBytes, nowMs);
    if (this.#pace.counters.expiredHolds > expiredHolds)
      this.#notice(
        `the stranger at ${frames.path} does not read: ${waitingBytes} bytes wait, and what finds no room is dropped`,
      );
    return holdMs;
  }

  /** The statistics of everything, up to now. */
  report(): ServeReport {
    const { emulation } = this;
    const { config, faults, cabling, timeScale } = this.#order;
    return buildServeReport({
      config,
      faults,
      cabling,
      timeScale,
      elapsedPs: emulation.time.runner.instantPs,
      followedPs: emulation.time.followedPs,
      slots: emulation.ledgers(),
      peer: emulation.peer && {
        ...emulation.peerLedgers()!,
        state: emulation.peer.state(),
        log: emulation.peer.log,
      },
      stranger: emulation.wireEnd && {
        port: emulation.wireEnd.ledger,
        faultsFired: emulation.wireEnd.faultLog.counts(),
        isQuiet: emulation.wireEnd.lp.isDrained,
        unfitFrames: emulation.wireEnd.unfitCount,
        forgottenFrames: emulation.wireEnd.forgottenCount,
        waitingFrames: emulation.wireEnd.waitingCount,
        socket: { ...this.frames!.counters },
        pace: { ...this.#pace.counters },
      },
      defects: emulation.defects,
      analyses: emulation.analyses(),
      run: {
        node: process.version,
        wallMs: performance.now() - this.#startedMs,
        workMs: this.workMs,
        pollMs: this.pollMs,
        waitMs: this.waitMs,
        slices: emulation.time.sliceCount,
        cutSlices: emulation.time.cutSliceCount,
      },
    });
  }

  /** Ends {@link run} after this turn. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Disconnects the guests and removes the sockets. */
  close(): void {
    this.reactor.close();
    this.emulation.close();
    this.#writeCapture();
  }

  /** Closes after a failure, which must remain the reported one: the traces that led to it are written if possible. */
  abandon(): void {
    this.reactor.close();
    try {
      this.emulation.close();
    } catch (error) {
      this.#notice(`the traces up to the failure were not written (${codeOf(error)})`);
    }
  }

  /** @returns the file, if one was requested */
  #writeCapture(): string | undefined {
    const file = this.#order.analysis?.capture?.file;
    const bytes = this.emulation.capture();
    if (file === undefined || bytes === undefined) return undefined;
    replaceFile(file, bytes);
    return file;
  }

  /** Writes the capture after a failure, which must remain the reported one. */
  #keepCapture(): void {
    try {
      const file = this.#writeCapture();
      if (file !== undefined) this.#notice(`${file} has the packets up to the failure`);
    } catch (error) {
      this.#notice(`the packets up to the failure were not written (${codeOf(error)})`);
    }
  }

  #clientEnded(node: number, reason: string): void {
    this.#notice(`HCA ${node}: the guest is gone (${reason})`);
    const { slots } = this.emulation;
    const isOver =
      slots.some(({ sessionCount }) => sessionCount > 0) && slots.every((slot) => !slot.isConnected);
    if (!(this.#order.isOnce && isOver)) return;
    const { peer } = this.emulation;
    if (peer === undefined || peer.hasEnded) this.stop();
    else this.#endMs = performance.now() + this.#peerGraceMs;
  }

  /** Reports that the simulated host's program has ended, and ends with it if the guests have disconnected before. */
  #watchPeer(): void {
    const { peer } = this.emulation;
    if (peer === undefined) return;
    if (peer.hasEnded && !this.#hasPeerEnded) {
      this.#hasPeerEnded = true;
      const state = peer.state();
      if (state.error !== undefined)
        this.#notice(`program ${state.program} of the peer failed: ${state.error}`);
      this.#onPeerEnd(state);
    }
    if (this.#endMs !== NEVER && (peer.hasEnded || performance.now() > this.#endMs)) this.stop();
  }

  #recover(): void {
    if (this.emulation.hasPeerFailed) {
      for (const server of this.servers) server.dropClient("the peer's host failed");
      this.stop();
      return;
    }
    const { access, atPs, message, node, causes } = this.emulation.defects.at(-1)!;
    const because = causes.map((cause) => `, caused by: ${cause.message}`).join('');
    this.#notice(
      `HCA ${node}: a defect of the emulator at ${atPs} ps, at this access: ${access}: ${message}${because}. ` +
        'Guests are dropped and the devices built anew; please report it.',
    );
    for (const server of this.servers) server.dropClient('the device failed');
    this.emulation.rebuild();
  }
}
