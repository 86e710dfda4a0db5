/**
 * Runs all parts of a machine together: as one run, with one outcome and one error.
 *
 *     run ─► stretch ─► stretch ─► … ─► all have ended, or the limit
 *                    └─ between them: do the programs only poll, in vain?
 *
 * A run until the end is cut into stretches, which change nothing of what happens. Where programs did nothing but poll for a
 * whole stretch, and nothing but their polls is due anywhere, what they poll for never comes: a deadlock, told as such.
 * (Where programs spin, sleep or wait for events, nothing at all is due then, and the runners find it themselves.)
 */
import { DeadlockError, type RunOutcome } from '../sim/index.ts';
import { checkLimit } from '../sim/single-runner.ts';
import type { PartOutlook } from './partition/part-outlook.ts';
import type { PartPort } from './partition/part-port.ts';
import type { WorkerParts } from './partition/workers.ts';

/** The longest stretch, in units of the shortest: while nobody polls in vain, so that long idleness costs little. */
const stretchMax = 10;

export class PartRuns {
  readonly #ports: readonly PartPort[];
  readonly #workers: WorkerParts | undefined;
  readonly #stretchPs: number;
  /** Simulated time in picoseconds at which all parts stand. */
  nowPs = 0;
  /** Wall time that runs have taken, in milliseconds. */
  wallMs = 0;
  isRunning = false;

  /** @param stretchPs the shortest stretch: so long may programs poll in vain */
  constructor(ports: readonly PartPort[], workers: WorkerParts | undefined, stretchPs: number) {
    this.#ports = ports;
    this.#workers = workers;
    this.#stretchPs = stretchPs;
  }

  /** Runs everything due before `limitPs`. @throws RunError */
  runTo(limitPs: number): Promise<RunOutcome> {
    return this.#timed(() => this.#run((port) => port.runTo(limitPs)));
  }

  /**
   * Runs until all programs have ended and `drainPs` more, or to `limitPs`.
   * @throws RunError that of the part that failed first; DeadlockError when programs wait for what never comes
   */
  runUntilEnded(drainPs: number, limitPs: number): Promise<RunOutcome> {
    return this.#timed(() => this.#runStretches(drainPs, limitPs));
  }

  async #runStretches(drainPs: number, limitPs: number): Promise<RunOutcome> {
    const startPs = this.nowPs;
    if (limitPs !== Number.POSITIVE_INFINITY) checkLimit(limitPs, startPs);
    for (let stretchPs = this.#stretchPs; ; ) {
      const endPs = Math.min(limitPs, this.nowPs + stretchPs);
      const outcome = await this.#run((port) => port.runUntilEnded(drainPs, endPs));
      if (outcome.stoppedPs < endPs || endPs === limitPs) return outcome;
      const outlooks = await Promise.all(this.#ports.map((port) => port.outlook()));
      if (outcome.reason === 'ended')
        return this.#drain(Math.min(limitPs, Math.max(startPs, lastEndOf(outlooks)) + drainPs));
      const isPolling = outlooks.some((outlook) => outlook.isPolling);
      if (isPolling && outlooks.every(({ isQuiet }) => isQuiet)) throw deadlockOf(outlooks);
      stretchPs = isPolling ? this.#stretchPs : Math.min(stretchPs * 2, stretchMax * this.#stretchPs);
    }
  }

  /** All programs have ended, and a stretch did before what is under way had time to arrive. */
  async #drain(endPs: number): Promise<RunOutcome> {
    const { stoppedPs } = await this.#run((port) => port.runTo(endPs));
    return { reason: 'ended', stoppedPs };
  }

  async #timed(run: () => Promise<RunOutcome>): Promise<RunOutcome> {
    this.isRunning = true;
    const startedMs = performance.now();
    try {
      return await run();
    } finally {
      this.wallMs += performance.now() - startedMs;
      this.isRunning = false;
    }
  }

  async #run(run: (port: PartPort) => Promise<RunOutcome>): Promise<RunOutcome> {
    const settled = await Promise.allSettled(this.#ports.map(run));
    const failures = settled.map((part) => (part.status === 'rejected' ? [part.reason] : []));
    // The part in which it happened has the error itself; the others heard of it.
    const [failure] = [...(failures[this.#workers?.failedThread ?? 0] ?? []), ...failures.flat()];
    if (failure !== undefined) throw failure;
    const [first] = settled as PromiseFulfilledResult<RunOutcome>[];
    this.nowPs = first!.value.stoppedPs;
    return first!.value;
  }
}

const lastEndOf = (outlooks: readonly PartOutlook[]): number =>
  Math.max(...outlooks.map(({ endedPs }) => endedPs));

function deadlockOf(outlooks: readonly PartOutlook[]): DeadlockError {
  return new DeadlockError(
    outlooks.flatMap(({ waiting }) => waiting),
    'nothing is left to do but poll in vain, for longer than machine.pollPatienceMs',
  );
}
