/**
 * Points as jobs of a queue, which workers on any machine process (`worker.ts`).
 *
 *     point ─► add, id = hash ─► [waiting] ─► [active] ─► [completed] ─► outcome ─► row ─► remove
 *                                    ▲  worker lost │  │ lost startsMax times
 *                                    └──────────────┘  └─► [failed] ─► outcome
 *
 * A hash is one job however often it is added, so a sweep that was killed and restarted finds its points where they
 * are: a job stays until its row is written. Events only wake the engine: it always reads the state of a job from the
 * job itself, so that a missed event costs only time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { RunError } from '../../../sim/index.ts';
import { assignmentOf, lostOutcome, outcomeFrom, type RunManner } from '../assignment.ts';
import type { Outcome } from '../row.ts';
import { inLanes, type PointToRun, type SweepEngine, type TakeOutcome } from '../runner.ts';
import { type Connection, connected, keepOptions, type QueueAddress } from './connection.ts';
import type { Queue, QueueEvents, QueueJob } from './packages.ts';

/** Greatest number of points of one sweep that are in the queue at once. */
const queuedMax = 1000;
/** Interval at which a job is checked without an event. */
const askAgainMs = 10_000;
/** Number of times that a point is added again after another sweep removed it. */
const addedMax = 3;
/** Time after which a worker should have appeared. */
const firstWorkerMs = 5000;
/** Longest wait for connections to close. */
const closeMs = 5000;

interface EngineOptions {
  readonly manner: RunManner;
  readonly onNotice: (text: string) => void;
  /** Whether to run jobs again that failed in this queue before. */
  readonly isFailedRetried?: boolean;
  /** Reconnection attempts to a lost server, one second apart; default 60. */
  readonly retries?: number;
}

export class BullmqEngine implements SweepEngine, AsyncDisposable {
  readonly #connection: Connection;
  readonly #options: EngineOptions;
  readonly #queue: Queue;
  readonly #events: QueueEvents;
  /** Callbacks to continue when an event names the hash, by hash. */
  readonly #wakers = new Map<string, () => void>();
  #failure: unknown;

  private constructor(connection: Connection, queue: string, options: EngineOptions) {
    const { packages, redis } = connection;
    this.#connection = connection;
    this.#options = options;
    this.#queue = new packages.Queue(queue, { connection: redis });
    this.#events = new packages.QueueEvents(queue, { connection: redis });
    const wake = ({ jobId }: { readonly jobId: string }): void => this.#wakers.get(jobId)?.();
    for (const event of ['completed', 'failed', 'removed']) this.#events.on(event, wake);
    // Errors of a connection are handled through the connection itself.
    for (const emitter of [this.#queue, this.#events]) emitter.on('error', () => {});
    redis.on('end', () => this.#giveUp(connection.lostError()));
  }

  /** @throws ConfigurationError if the server does not exist, or the packages are not installed */
  static async open(address: QueueAddress, options: EngineOptions): Promise<BullmqEngine> {
    return new BullmqEngine(await connected(address, options.retries), address.queue, options);
  }

  async run(points: readonly PointToRun[], take: TakeOutcome): Promise<void> {
    const over = new AbortController();
    void this.#noticeAbsence(over.signal);
    try {
      await this.#events.waitUntilReady();
      await inLanes(points, queuedMax, (point) => this.#carried(point, take));
    } catch (error) {
      // Pending operations only report that the connection is closed.
      const { redis, lostError } = this.#connection;
      throw redis.status === 'end' ? lostError() : error;
    } finally {
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = Promise.allSettled([this.#events.close(), this.#queue.close()]);
    await Promise.race([closed, sleep(closeMs, undefined, { ref: false })]);
    this.#connection.redis.disconnect();
  }

  async #carried(point: PointToRun, take: TakeOutcome): Promise<void> {
    try {
      const job = await this.#ended(point);
      take(point.hash, outcomeOfJob(job));
      // Another sweep with the same point may have removed it.
      await job.remove().catch(() => {});
    } catch (error) {
      this.#giveUp(error);
      throw error;
    }
  }

  /** The job of a point after it has ended, in this sweep or an earlier one. */
  async #ended(point: PointToRun): Promise<QueueJob> {
    const data = assignmentOf(point, this.#options.manner);
    if (this.#options.isFailedRetried === true) await this.#forgetFailure(point.hash);
    for (let added = 0; added < addedMax; added++) {
      await this.#queue.add('point', data, { jobId: point.hash, ...keepOptions });
      const job = await this.#endedUnlessRemoved(point.hash);
      if (job !== undefined) return job;
    }
    throw new RunError(`point ${point.hash} was taken out of the queue ${addedMax} times`);
  }

  /** A killed sweep may have left a failed job. */
  async #forgetFailure(hash: string): Promise<void> {
    const job = await this.#queue.getJob(hash);
    if (job?.finishedOn !== undefined && outcomeOfJob(job).status === 'failed')
      await job.remove().catch(() => {});
  }

  async #endedUnlessRemoved(hash: string): Promise<QueueJob | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const { promise: woken, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, askAgainMs);
      this.#wakers.set(hash, resolve);
      try {
        // Registered only now: a job that ends while the answer is on its way triggers the event.
        const job = await this.#queue.getJob(hash);
        if (job === undefined || job.finishedOn !== undefined) return job;
        await woken;
      } finally {
        clearTimeout(timer);
        this.#wakers.delete(hash);
      }
    }
  }

  /** Every lane ends with the same error. */
  #giveUp(error: unknown): void {
    this.#failure ??= error;
    for (const wake of this.#wakers.values()) wake();
  }

  async #noticeAbsence(signal: AbortSignal): Promise<void> {
    try {
      await sleep(firstWorkerMs, undefined, { signal });
      if ((await this.#queue.getWorkersCount()) === 0)
        this.#options.onNotice('No worker is connected yet: start some with hca sweep worker.');
    } catch {
      // The sweep is over, or the server lists no clients.
    }
  }
}

function outcomeOfJob({ returnvalue, failedReason }: QueueJob): Outcome {
  const outcome = outcomeFrom(returnvalue);
  if (outcome !== undefined) return outcome;
  if (failedReason?.includes('stalled')) return lostOutcome;
  return { status: 'failed', error: failedReason ?? 'a worker gave no outcome' };
}
