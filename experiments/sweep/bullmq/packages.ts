/**
 * BullMQ and ioredis, loaded at first use: a sweep on one machine needs neither, and they are not installed with the
 * emulator. Only their used parts are declared here, so that the types need no optional package. Source: BullMQ, guide:
 * connections; workers, stalled jobs.
 */
import { createRequire } from 'node:module';
import { ConfigurationError } from '../../../base/index.ts';

/** A point in the queue. */
export interface QueueJob {
  readonly id: string;
  readonly data: unknown;
  /** Time of the job's completion or failure. */
  readonly finishedOn?: number;
  readonly returnvalue?: unknown;
  readonly failedReason?: string;
  remove(): Promise<void>;
  /** Returns it to the queue as the first waiting job. */
  moveToWait(token?: string): Promise<unknown>;
}

interface Emitter {
  on(event: string, listener: (...values: never[]) => void): unknown;
  close(): Promise<void>;
}

interface JobOptions {
  /** A job whose id already exists is not added again. */
  readonly jobId: string;
}

/** Time for which finished jobs are kept. */
interface KeepOptions {
  readonly removeOnComplete: { readonly age: number };
  readonly removeOnFail: { readonly age: number };
}

interface QueueOptions {
  readonly connection: Redis;
}

export interface Queue extends Emitter {
  add(name: string, data: unknown, options: JobOptions & KeepOptions): Promise<unknown>;
  getJob(id: string): Promise<QueueJob | undefined>;
  getWorkersCount(): Promise<number>;
}

export interface QueueEvents extends Emitter {
  waitUntilReady(): Promise<unknown>;
}

interface WorkerOptions extends QueueOptions, KeepOptions {
  readonly concurrency: number;
  readonly lockDuration: number;
  readonly stalledInterval: number;
  readonly maxStalledCount: number;
}

interface Worker extends Emitter {
  pause(isActiveLeft: boolean): Promise<void>;
}

type Process = (job: QueueJob, token?: string) => Promise<unknown>;

interface BullmqPackage {
  readonly Queue: new (name: string, options: QueueOptions) => Queue;
  readonly QueueEvents: new (name: string, options: QueueOptions) => QueueEvents;
  readonly Worker: new (name: string, process: Process, options: WorkerOptions) => Worker;
  readonly WaitingError: new () => Error;
}

export interface Redis {
  readonly status: string;
  on(event: 'end' | 'error', listener: (error: Error) => void): unknown;
  connect(): Promise<void>;
  disconnect(): void;
}

interface RedisOptions {
  readonly lazyConnect: boolean;
  readonly connectTimeout: number;
  /** Time limit for the answer to a command. */
  readonly socketTimeout: number;
  readonly maxRetriesPerRequest: null;
  readonly retryStrategy: (times: number) => number | null;
}

interface RedisPackage {
  readonly Redis: new (url: string, options: RedisOptions) => Redis;
}

export type QueuePackages = BullmqPackage & RedisPackage;

/** An optional package is missing. */
export class PackageMissingError extends ConfigurationError {
  constructor(reason: string) {
    super('packages bullmq and ioredis', reason, 'installed');
    this.message = `a queue of points needs the packages bullmq and ioredis: run \`npm install bullmq ioredis\` (${reason})`;
  }
}

/** @throws PackageMissingError */
export function loadQueuePackages(
  require: (name: string) => unknown = createRequire(import.meta.url),
): QueuePackages {
  try {
    const bullmq = require('bullmq') as BullmqPackage;
    const ioredis = require('ioredis') as RedisPackage;
    const { Queue, QueueEvents, Worker, WaitingError } = bullmq;
    return { Queue, QueueEvents, Worker, WaitingError, Redis: ioredis.Redis };
  } catch (error) {
    throw new PackageMissingError(error instanceof Error ? error.message.split('\n')[0]! : String(error));
  }
}
