/**
 * Runs all parts of a machine together: as one run, with one outcome and one error.
 *
 *     run ─► stretch ─► stretch ─► … ─► all have ended, or the limit
 *                    └─ between them: do the programs only poll? is the epoch too long? were there too many steps?
 *
 * A run until the end is cut into stretches, which do not change its events. If programs only polled for a whole
 * stretch, and only their polls are due anywhere, the polled event never occurs: a DeadlockError. (If programs spin,
 * sleep or wait for events, nothing at all is due, and the runners detect it themselves.) The optional step limit
 * detects a device block that retries every few cycles indefinitely.
 *
 * The parts count picoseconds from an epoch (sim/epoch.ts). When a stretch reaches the epoch's end, all parts begin a
 * new one. A period in which nothing is due anywhere is one stretch, however long it is.
 */
import { ConfigurationError, NEVER, psPerMs, psPerUs } from '../base/index.ts';
import {
  DeadlockError,
  type ExactPs,
  epochLengthPs,
  epochStepPs,
  exactPs,
  farPs,
  type RunOutcome,
  StepLimitError,
} from '../sim/index.ts';
import type { PartActivity } from './partition/part-activity.ts';
import type { PartPort } from './partition/part-port.ts';
import type { WorkerParts } from './partition/worker-parts.ts';

/** The longest stretch, in units of the shortest: used while no program polls, so that long idle periods cost little. */
const stretchMax = 10;
/** Interval at which steps are counted if they are limited and anything is due: a few million steps in a busy machine. */
const checkEveryPs = 10 * psPerMs;

/** Runs one part up to an instant of the epoch. */
type RunPart = (port: PartPort, limitPs: number) => Promise<RunOutcome>;

/** End of a stretch, in picoseconds of the epoch. */
interface Stretch {
  readonly reason: RunOutcome['reason'];
  /** Whether it stopped early because everything is done; else it reached its end. */
  readonly isDone: boolean;
  readonly isAtEnd: boolean;
  /** Time that epochs begun during the stretch have subtracted from all instants. */
  readonly shiftPs: number;
}

export class PartRuns {
  readonly #ports: readonly PartPort[];
  readonly #workers: WorkerParts | undefined;
  readonly #stretchPs: number;
  readonly #epochPs: number;
  readonly #stepLimit: number;
  /** Instant of the epoch that all parts have reached, and the start of the epoch. */
  #nowPs = 0;
  #epochUs = 0;
  /** Nothing is due before this instant of the epoch, as last seen. */
  #quiescentUntilPs = 0;
  /** Step counts as last seen, by logical process. */
  #stepCounts: ReadonlyMap<string, number> = new Map();
  /** Wall time of all runs, in milliseconds. */
  wallMs = 0;
  isRunning = false;

  /**
   * @param stretchPs the shortest stretch: how long programs may poll without success
   * @param epochPs length of an epoch
   * @param stepLimit steps of all processes after which a run until the end is ended
   */
  constructor(
    ports: readonly PartPort[],
    workers: WorkerParts | undefined,
    stretchPs: number,
    epochPs = epochLengthPs,
    stepLimit = NEVER,
  ) {
    this.#ports = ports;
    this.#workers = workers;
    this.#stretchPs = stretchPs;
    this.#epochPs = epochPs;
    this.#stepLimit = stepLimit;
  }

  /** Simulated time since power-on that all parts have reached. */
  get instantPs(): ExactPs {
    return exactPs(this.#epochUs, this.#nowPs);
  }

  /** Start of the epoch in microseconds since power-on. */
  get epochUs(): number {
    return this.#epochUs;
  }

  /**
   * Runs everything due before `limitPs`, since power-on.
   * @throws RunError
   */
  runTo(limitPs: ExactPs): Promise<RunOutcome> {
    return this.#timed(async () => {
      this.#checkLimit(limitPs);
      await this.#runStretch((port, ps) => port.runTo(ps), this.#inEpoch(limitPs));
      return this.#outcome('limit');
    });
  }

  /**
   * Runs until all programs have ended and `drainPs` more, or to `limitPs`, since power-on.
   * @throws RunError that of the part that failed first; DeadlockError if programs wait for an event that never occurs;
   *   StepLimitError if they have not ended within the step limit
   */
  runUntilEnded(drainPs: number, limitPs: ExactPs): Promise<RunOutcome> {
    return this.#timed(async () => {
      if (limitPs !== NEVER) this.#checkLimit(limitPs);
      return this.#runStretches(drainPs, limitPs);
    });
  }

  /**
   * Runs in steps, each of which begins at the next due event, until `isOver` holds between two steps, nothing is due,
   * or all programs have ended.
   */
  runInSteps(stepPs: number, isOver: () => Promise<boolean>): Promise<RunOutcome> {
    return this.#timed(async () => {
      while (!(await isOver())) {
        const activities = await Promise.all(this.#ports.map((port) => port.activity()));
        this.#quiescentUntilPs = Math.min(...activities.map(({ nextPs }) => nextPs));
        // A device in a part of its own has no programs, but packets in flight: both conditions are checked over the
        // whole machine.
        const isStuck = activities.every(({ isQuiescent }) => isQuiescent);
        const hasEnded = activities.every(({ waiting }) => waiting.length === 0);
        if (this.#quiescentUntilPs === NEVER || isStuck || hasEnded) break;
        const run: RunPart = (port, ps) => port.runTo(ps);
        await this.#runStretch(run, Math.max(this.#nowPs, this.#quiescentUntilPs) + stepPs);
      }
      return this.#outcome('limit');
    });
  }

  async #runStretches(drainPs: number, limitPs: ExactPs): Promise<RunOutcome> {
    let startPs = this.#nowPs;
    for (let stretchPs = this.#stretchPs; ; ) {
      const limit = this.#inEpoch(limitPs);
      // If nothing is due in the whole stretch, it begins at the next due event.
      const isIdle = this.#quiescentUntilPs !== NEVER && this.#quiescentUntilPs > this.#nowPs + stretchPs;
      const endPs = Math.min(limit, (isIdle ? this.#quiescentUntilPs : this.#nowPs) + stretchPs);
      const run: RunPart = (port, ps) => port.runUntilEnded(drainPs, ps);
      const { reason, isDone, isAtEnd, shiftPs } = await this.#runStretch(run, endPs).catch(
        (failure: unknown) => this.#explain(failure),
      );
      startPs -= shiftPs;
      if (isDone || (isAtEnd && endPs === limit)) return this.#outcome(reason);
      const activities = await Promise.all(this.#ports.map((port) => port.activity()));
      this.#quiescentUntilPs = Math.min(...activities.map(({ nextPs }) => nextPs));
      if (reason === 'ended') {
        const lastPs = Math.max(startPs, lastEndOf(activities)) + drainPs;
        return this.#drain(Math.min(this.#inEpoch(limitPs), lastPs));
      }
      const isPolling = activities.some((activity) => activity.isPolling);
      if (isPolling && activities.every(({ isQuiescent }) => isQuiescent)) throw deadlockOf(activities);
      stretchPs = isPolling ? this.#stretchPs : Math.min(stretchPs * 2, stretchMax * this.#stretchPs);
    }
  }

  /** @throws StepLimitError if there were too many */
  async #checkSteps(): Promise<void> {
    const parts = await Promise.all(this.#ports.map((port) => port.steps()));
    this.#quiescentUntilPs = Math.min(...parts.map(({ nextPs }) => nextPs));
    const before = this.#stepCounts;
    this.#stepCounts = new Map(parts.flatMap(({ counts }) => counts).map((one) => [one.name, one.stepCount]));
    const stepCount = [...this.#stepCounts.values()].reduce((sum, count) => sum + count, 0);
    if (stepCount <= this.#stepLimit) return;
    const lately = ([name, count]: [string, number]): number => count - (before.get(name) ?? 0);
    const [busiest] = [...this.#stepCounts].toSorted((left, right) => lately(right) - lately(left));
    const activities = await Promise.all(this.#ports.map((port) => port.activity()));
    throw new StepLimitError(stepCount, busiest![0], this.instantPs, programsOf(activities));
  }

  /** The runners know which hosts have not ended; the parts know the waits of their programs. */
  async #explain(failure: unknown): Promise<never> {
    if (!(failure instanceof DeadlockError)) throw failure;
    const activities = await Promise.all(this.#ports.map((port) => port.activity()));
    throw new DeadlockError(failure.waiting, undefined, programsOf(activities));
  }

  /** All programs have ended, but the stretch ended before everything in flight had time to arrive. */
  async #drain(endPs: number): Promise<RunOutcome> {
    await this.#runStretch((port, ps) => port.runTo(ps), endPs);
    return this.#outcome('ended');
  }

  /** Runs to an instant of the present epoch, through as many epochs as necessary; stops earlier if everything has ended. */
  async #runStretch(run: RunPart, endPs: number): Promise<Stretch> {
    let shiftPs = 0;
    for (;;) {
      shiftPs += await this.#beginEpoch();
      const restPs = endPs - shiftPs;
      // Nothing happens before the next due event: the next epoch begins there.
      const epochEndPs = Math.max(this.#epochPs, Math.floor(this.#quiescentUntilPs / psPerUs) * psPerUs);
      const checkPs =
        this.#stepLimit === NEVER ? NEVER : Math.max(this.#nowPs, this.#quiescentUntilPs) + checkEveryPs;
      const limitPs = Math.min(restPs, epochEndPs, farPs, checkPs);
      const { reason, stoppedPs } = await this.#run((port) => run(port, limitPs));
      this.#nowPs = stoppedPs;
      if (this.#stepLimit !== NEVER && reason !== 'ended') await this.#checkSteps();
      const isDone = stoppedPs < limitPs;
      const isAtEnd = !isDone && limitPs === restPs;
      if (isDone || isAtEnd || reason === 'ended') return { reason, isDone, isAtEnd, shiftPs };
    }
  }

  /**
   * Begins a new epoch if this one is too long.
   * @returns the picoseconds subtracted from all instants
   */
  async #beginEpoch(): Promise<number> {
    if (this.#nowPs < this.#epochPs) return 0;
    const shiftPs = epochStepPs(this.#nowPs);
    const nextPs = await settled(this.#ports.map((port) => port.rebase(shiftPs)));
    this.#nowPs -= shiftPs;
    this.#epochUs += shiftPs / psPerUs;
    this.#quiescentUntilPs = Math.min(...nextPs);
    return shiftPs;
  }

  /** Converts an instant since power-on to the epoch: exact if the result is a safe integer. */
  #inEpoch(instantPs: ExactPs): number {
    if (instantPs === NEVER) return NEVER;
    return Number(BigInt(instantPs) - BigInt(this.#epochUs) * BigInt(psPerUs));
  }

  #outcome(reason: RunOutcome['reason']): RunOutcome {
    return { reason, stoppedPs: Number(this.instantPs) };
  }

  /** @throws ConfigurationError unless the limit is an integer of picoseconds that is not in the past */
  #checkLimit(limitPs: ExactPs): void {
    const isWhole = typeof limitPs === 'bigint' || Number.isInteger(limitPs);
    if (isWhole && this.#inEpoch(limitPs) >= this.#nowPs) return;
    throw new ConfigurationError('limitPs', limitPs, `a whole number of at least ${this.instantPs}`);
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
    const outcomes = await Promise.allSettled(this.#ports.map(run));
    const failures = outcomes.map((part) => (part.status === 'rejected' ? [part.reason] : []));
    // The part in which it occurred has the error itself; the others were ended because of it.
    const [failure] = [...(failures[this.#workers?.failedThread ?? 0] ?? []), ...failures.flat()];
    if (failure !== undefined) {
      // Terminated threads no longer answer; a single thread keeps the instant that it has reached.
      if (this.#workers === undefined)
        this.#nowPs = Math.max(this.#nowPs, (await this.#ports[0]!.steps()).nowPs);
      throw failure;
    }
    const [first] = outcomes as PromiseFulfilledResult<RunOutcome>[];
    return first!.value;
  }
}

/** All values, or the first error once every call has settled. */
async function settled<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return results.map((result) => (result as PromiseFulfilledResult<T>).value);
}

const lastEndOf = (activities: readonly PartActivity[]): number =>
  Math.max(...activities.map(({ endedPs }) => endedPs));

function deadlockOf(activities: readonly PartActivity[]): DeadlockError {
  return new DeadlockError(
    activities.flatMap(({ waiting }) => waiting),
    'programs only poll, and nothing else has been due for longer than machine.pollPatienceMs',
    programsOf(activities),
  );
}

const programsOf = (activities: readonly PartActivity[]): string[] =>
  activities.flatMap(({ programs }) => programs);
