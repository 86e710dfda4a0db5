/**
 * The serving loop: carries out what guests ask and lets simulated time pass, in turns, in one thread.
 *
 *     ┌─► poll the sockets: at once while the devices are busy, else until the next thing is due ─┐
 *     └── work: time passes, until the devices are idle or for sliceMs of wall time ◄─────────────┘
 *
 * So a guest waits for the devices a slice at most, and idle devices cost nothing.
 */
import { performance } from 'node:perf_hooks';
import { defaultsOf } from '../../base/index.ts';
import { Reactor, raiseInterrupt, VfioUserServer } from '../../guest/index.ts';
import { replaceFile } from '../../runtime/files.ts';
import { Emulation } from './emulation.ts';
import { servingParameters } from './parameters.ts';
import type { ServeOrder } from './serve-options.ts';
import { buildServeReport, type ServeReport } from './serve-report.ts';

/** Receives what the loop reports while it runs, in words. */
export type NoticeListener = (text: string) => void;

/** Longest wait for the sockets: a client that sends nothing must be checked now and then. */
const WAIT_MAX_MS = 1000;

export class ServeLoop {
  readonly emulation: Emulation;
  readonly servers: readonly VfioUserServer[];
  readonly reactor: Reactor;
  /** Wall time spent on the model, on guests' accesses, and waiting. */
  workMs = 0;
  pollMs = 0;
  waitMs = 0;
  readonly #order: ServeOrder;
  readonly #notice: NoticeListener;
  readonly #sliceMs: number;
  readonly #startedMs = performance.now();
  #isStopped = false;

  /**
   * Listens from now on.
   * @throws ConfigurationError, NativeUnavailableError
   */
  constructor(order: ServeOrder, notice: NoticeListener) {
    const serving = defaultsOf(servingParameters);
    this.#order = order;
    this.#notice = notice;
    this.#sliceMs = serving.sliceUs / 1000;
    const { config, cabling, faults, shortcuts, timeScale, analysis } = order;
    this.emulation = new Emulation({
      config,
      cabling,
      faults,
      shortcuts,
      timeScale,
      analysis,
      serving,
      hcaCount: order.sockets.length,
      wall: () => performance.now(),
      raise: raiseInterrupt,
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
    this.reactor = new Reactor(this.servers);
  }

  /** Serves until {@link stop}, or with `isOnce` until the last guest has gone. Calls `between` after every turn. */
  run(between: () => void): void {
    for (let dueMs = 0; !this.#isStopped; ) {
      const startMs = performance.now();
      this.reactor.poll(Math.min(dueMs, WAIT_MAX_MS));
      const polledMs = performance.now();
      if (dueMs === 0) this.pollMs += polledMs - startMs;
      else this.waitMs += polledMs - startMs;
      dueMs = this.emulation.work(this.#sliceMs);
      this.workMs += performance.now() - polledMs;
      if (this.emulation.hasFailed) this.#recover();
      for (const text of this.emulation.waits()) this.#notice(text);
      between();
    }
  }

  /** The statistics of everything, brought up to now. */
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

  /** Drops the guests and removes the sockets. */
  close(): void {
    this.reactor.close();
    this.emulation.close();
    const file = this.#order.analysis?.capture?.file;
    const bytes = this.emulation.capture();
    if (file !== undefined && bytes !== undefined) replaceFile(file, bytes);
  }

  #clientEnded(node: number, reason: string): void {
    this.#notice(`HCA ${node}: the guest is gone (${reason})`);
    const { slots } = this.emulation;
    const isOver =
      slots.some(({ sessionCount }) => sessionCount > 0) && slots.every((slot) => !slot.isConnected);
    if (this.#order.isOnce && isOver) this.stop();
  }

  #recover(): void {
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
