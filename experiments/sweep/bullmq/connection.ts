/**
 * The connection to Redis or Valkey. A server that is missing at first is an immediate error; a server lost later is
 * retried for a minute, during which commands wait.
 */
import { ConfigurationError } from '../../../base/index.ts';
import { RunError } from '../../../sim/index.ts';
import { loadQueuePackages, type QueuePackages, type Redis } from './packages.ts';

/** Server and name of the queue. */
export interface QueueAddress {
  /**
   * URL such as `redis://:password@host:6379/0`, or `rediss:` for TLS.
   */
  readonly url: string;
  readonly queue: string;
}

export interface Connection {
  readonly packages: QueuePackages;
  readonly redis: Redis;
  /** Reason for the lost connection. */
  lostError(): RunError;
}

const connectTimeoutMs = 5000;
/** Longer than any command waits. */
const silenceMaxMs = 60_000;
const retryMs = 1000;
const defaultRetries = 60;

/** Time for which ended jobs are kept if the process that added them does not return. */
const keptSeconds = 7 * 24 * 3600;
export const keepOptions = {
  removeOnComplete: { age: keptSeconds },
  removeOnFail: { age: keptSeconds },
} as const;

/**
 * @param retries after the server was lost, one second apart
 * @throws ConfigurationError if no server answers at the address; PackageMissingError
 */
export async function connected({ url }: QueueAddress, retries = defaultRetries): Promise<Connection> {
  const shown = shownUrl(url);
  const packages = loadQueuePackages();
  let isUp = false;
  let reason = '';
  const redis = new packages.Redis(url, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    socketTimeout: silenceMaxMs,
    maxRetriesPerRequest: null,
    retryStrategy: (times) => (isUp && times <= retries ? retryMs : null),
  });
  redis.on('error', (error) => {
    reason = error.message;
  });
  const limit = setTimeout(() => redis.disconnect(), 2 * connectTimeoutMs);
  try {
    await redis.connect();
    isUp = true;
  } catch (error) {
    redis.disconnect();
    const what = reason || (error instanceof Error ? error.message : String(error));
    throw new ConfigurationError('--redis', shown, `the address of a Redis or Valkey server (${what})`);
  } finally {
    clearTimeout(limit);
  }
  const lostError = (): RunError =>
    new RunError(
      `${shown} did not answer to ${retries} attempts (${reason}); finished points are kept, and the same command continues`,
    );
  return { packages, redis, lostError };
}

/**
 * The address without its password.
 * @throws ConfigurationError for an invalid server address
 */
export function shownUrl(url: string): string {
  const parsed = URL.parse(url);
  if (parsed === null || !['redis:', 'rediss:'].includes(parsed.protocol) || parsed.hostname === '')
    throw new ConfigurationError('--redis', url, 'an address such as redis://127.0.0.1:6379');
  const { protocol, username, password, host, pathname } = parsed;
  const user = password === '' ? username : `${username}:…`;
  return `${protocol}//${user === '' ? '' : `${user}@`}${host}${pathname}`;
}
