/**
 * A worker of a queue of points: when idle, it dequeues one, runs it, and returns its outcome.
 *
 * While it runs a point, it renews its lease from this thread, so points run in other threads. A killed worker renews
 * nothing: the others detect this within three leases, and one of them runs the point. A worker that was only delayed
 * that long has lost its lease, and its outcome is dropped.
 */
import { ConfigurationError } from '../../../base/index.ts';
import { orderOf, startsMax } from '../assignment.ts';
import type { PointRunner } from '../runner.ts';
import { connected, keepOptions, type QueueAddress } from './connection.ts';
import type { QueueJob } from './packages.ts';

export interface QueueWork {
  /** Executed in other threads. */
  readonly runner: PointRunner;
  readonly leaseMs: number;
  /** When aborted, points in progress are ended and no more are dequeued. */
  readonly stop: AbortSignal;
  readonly onNotice: (text: string) => void;
}

/**
 * Processes points until it is stopped.
 * @returns how many it has run
 * @throws ConfigurationError for a point of another version of the emulator, which stays for others; RunError if the
 * server
 *   was lost
 */
export async function serveQueue(address: QueueAddress, work: QueueWork): Promise<number> {
  const { packages, redis, lostError } = await connected(address);
  const { runner, leaseMs, stop, onNotice } = work;
  const ended = Promise.withResolvers<void>();
  let ranCount = 0;
  const process = async (job: QueueJob, token?: string): Promise<unknown> => {
    try {
      const outcome = await runner.run(orderOf(job.data, job.id));
      ranCount++;
      return outcome;
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      await job.moveToWait(token);
      await worker.pause(true);
      ended.reject(error);
      throw new packages.WaitingError();
    }
  };
  const worker = new packages.Worker(address.queue, process, {
    connection: redis,
    concurrency: runner.capacity,
    lockDuration: leaseMs,
    stalledInterval: leaseMs,
    maxStalledCount: startsMax - 1,
    ...keepOptions,
  });
  let noticed = '';
  worker.on('error', ({ message }: Error) => {
    if (message !== noticed) onNotice(message);
    noticed = message;
  });
  redis.on('end', () => ended.reject(lostError()));
  stop.addEventListener('abort', () => ended.resolve(), { once: true });
  try {
    await ended.promise;
  } finally {
    await worker.close();
    redis.disconnect();
  }
  return ranCount;
}
