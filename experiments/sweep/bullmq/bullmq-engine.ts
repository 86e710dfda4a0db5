/**
 * Points as jobs of a queue, which workers on any machine take (`worker.ts`).
 *
 *     point ─► add, id = hash ─► [waiting] ─► [active] ─► [completed] ─► outcome ─► row ─► remove
 *                                    ▲  worker lost │  │ lost startsMax times
 *                                    └──────────────┘  └─► [failed] ─► outcome
 *
 * A hash is one job however often it is added, so who is killed and comes back finds his points where they are: a job stays until its
 * row is written. Events only wake: what became of a job is always read from the job, so that one that is missed costs time alone.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { RunError } from '../../../sim/index.ts';
import { assignmentOf, lostOutcome, outcomeFrom, type RunManner } from '../assignment.ts';
import type { Outcome } from '../row.ts';
import { inLanes, type PointToRun, type SweepEngine, type TakeOutcome } from '../runner.ts';
import { type Connection, connected, keepOptions, type QueueAddress } from './connection.ts';
import type { Queue, QueueEvents, QueueJob } from './packages.ts';

/** Points of one sweep that are in the queue at once. */
const queuedMax = 1000;
/** Without an event a job is asked for so often. */
const askAgainMs = 10_000;
/** Times that a point is added which another removes. */
const addedMax = 3;
/** Then someone ought to be there. */
const firstWorkerMs = 5000;
/** No longer do we wait for connections to close. */
const closeMs = 5000;

interface EngineOptions {
  readonly manner: RunManner;
  readonly onNotice: (text: string) => void;
  /** Whether jobs that have failed in a queue before are run again. */
  readonly isFailedRetried?: boolean;
  /** Of a server that has gone, a second between them; 60 unless given. */
  readonly retries?: number;
}

export class BullmqEngine implements SweepEngine, AsyncDisposable {
  readonly #connection: Connection;
  readonly #options: EngineOptions;
  readonly #queue: Queue;
  readonly #events: QueueEvents;
  /** By hash, what goes on when an event names it. */
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
    // What they say of the connection is known from the connection itself.
    for (const emitter of [this.#queue, this.#events]) emitter.on('error', () => {});
    redis.on('end', () => this.#giveUp(connection.lostError()));
  }

  /** @throws ConfigurationError when there is no server, or the packages are not installed */
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
      // Whatever was under way says only that the connection is closed.
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
      // Another sweep that has this point too may have removed it.
      await job.remove().catch(() => {});
    } catch (error) {
      this.#giveUp(error);
      throw error;
    }
  }

  /** The job of a point when it has ended, with us or before. */
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

  /** A sweep that was killed may have left a failure behind. */
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
        // Only now: what ends while the answer is on its way wakes.
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
        this.#options.onNotice('No worker takes points yet: start some by hca sweep worker.');
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
