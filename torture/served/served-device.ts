/**
 * A served HCA, its server and its clients in one thread, with a counted clock: each reading advances it a little, so
 * that the same story runs the same way on any computer, and a device that never becomes idle is still abandoned.
 *
 *     VfioUserClient ══ socket ══► VfioUserServer ─► Slot ─► device        turn(): messages, then the model, in turns
 */
import { join } from 'node:path';
import { defaultsOf } from '../../base/index.ts';
import { makeTemporaryFolder } from '../../guests/linux/index.ts';
import { Emulation, ServedTime, type Slot, servingParameters } from '../../guests/serve/index.ts';
import { Reactor, raiseInterrupt, VfioUserClient, VfioUserServer } from '../../guests/slot/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';

/** Clock time of each reading: an access is abandoned after 20,000 readings, some 300,000 steps of the model. */
const LOOK_MS = 0.05;
/** Time of the model between two polls of the socket. */
const SLICE_MS = 5;
/** Waits of the protocol are of no interest here, and a busy computer must not end them. */
const longMs = 600_000;
const MICROSECONDS_PER_MS = 1000;
/** Wall time after which the CPU time of this thread is read again: reading it takes longer than many a turn. */
const CPU_ASKED_MS = 20;

export class ServedDevice implements Disposable {
  readonly emulation: Emulation;
  readonly #server: VfioUserServer;
  readonly #reactor: Reactor;
  readonly #folder = makeTemporaryFolder('hca-torture-');
  readonly #path = join(this.#folder.path, 'hca');
  #wallMs = 1000;
  /** Longest CPU time of one turn, in milliseconds: at most CPU_ASKED_MS too high. */
  longestTurnMs = 0;
  #cpuAskedMs = Number.NEGATIVE_INFINITY;
  #cpuBefore = process.threadCpuUsage();

  constructor(config: MachineConfig) {
    const serving = defaultsOf(servingParameters);
    const wall = (): number => {
      this.#wallMs += LOOK_MS;
      return this.#wallMs;
    };
    this.emulation = new Emulation({
      config,
      hcaCount: 1,
      cabling: 'loopback',
      faults: [],
      serving,
      makeTime: (runner) => new ServedTime(runner, serving, 1, wall),
      wall,
      raise: raiseInterrupt,
      analysis: undefined,
    });
    this.#server = new VfioUserServer({
      path: this.#path,
      device: this.slot,
      config: { handshakeWaitMs: longMs, messageWaitMs: longMs, refusalWaitMs: longMs },
    });
    this.#reactor = new Reactor([this.#server]);
  }

  get slot(): Slot {
    return this.emulation.slots[0]!;
  }

  get hasClient(): boolean {
    return this.#server.hasClient;
  }

  connect(): VfioUserClient {
    return new VfioUserClient(this.#path, () => this.turn());
  }

  /** Carries out messages of the clients, and runs the model until it rests, for a slice at most. */
  readonly turn = (): void => {
    const beganMs = performance.now();
    if (beganMs - this.#cpuAskedMs > CPU_ASKED_MS) {
      this.#cpuAskedMs = beganMs;
      this.#cpuBefore = process.threadCpuUsage();
    }
    this.#reactor.poll(0);
    this.emulation.work(SLICE_MS);
    const wallMs = performance.now() - beganMs;
    if (wallMs <= this.longestTurnMs) return;
    // A busy computer makes a turn longer, and the thread's own time does not grow by that.
    const { user, system } = process.threadCpuUsage(this.#cpuBefore);
    const cpuMs = Math.min(wallMs, (user + system) / MICROSECONDS_PER_MS);
    this.longestTurnMs = Math.max(this.longestTurnMs, cpuMs);
  };

  /** All that has been sent is carried out. */
  settle(): void {
    while (this.#reactor.poll(0)) this.emulation.work(SLICE_MS);
    this.emulation.work(SLICE_MS);
  }

  /** Time passes on the wall, and in the model as far as it gets with it. */
  pass(durationMs: number): void {
    this.#wallMs += durationMs;
    this.turn();
  }

  /** Drops the guest and rebuilds the device, as the serving loop does after a defect. */
  recover(): void {
    this.#server.dropClient('the device failed');
    this.emulation.rebuild();
  }

  [Symbol.dispose](): void {
    this.#reactor.close();
    this.emulation.close();
    this.#folder.remove();
  }
}
