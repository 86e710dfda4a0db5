/**
 * A worker of a queue of points: takes one when it has nothing to do, runs it, and returns its outcome.
 *
 * While it runs a point it renews its lease on it, from this thread, so points run in others. A worker that is killed renews nothing:
 * the others find out within three leases, and one of them takes the point. One that was only held up so long finds its lease gone, and its
 * outcome is dropped.
 */
import { ConfigurationError } from '../../../base/index.ts';
import { orderOf, startsMax } from '../assignment.ts';
import type { PointRunner } from '../runner.ts';
import { connected, keepOptions, type QueueAddress } from './connection.ts';
import type { QueueJob } from './packages.ts';

export interface QueueWork {
  /** Of other threads. */
  readonly runner: PointRunner;
  readonly leaseMs: number;
  /** When aborted, points under way are ended and no more are taken. */
  readonly stop: AbortSignal;
  readonly onNotice: (text: string) => void;
}

/**
 * Takes points until it is stopped.
 * @returns how many it has run
 * @throws ConfigurationError for a point that is not of this version of the emulator, which stays for others; RunError when the server
 *   has gone
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
