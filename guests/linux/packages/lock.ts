/**
 * A lock between processes that fill the same cache. The operating system holds it (flock, by the program of that name), so it
 * always ends with its holder, and locks are never stale.
 */
import { spawn } from 'node:child_process';
import { ConfigurationError } from '../../../base/index.ts';

export interface Lock {
  [Symbol.asyncDispose](): Promise<void>;
}

/** Waits this long before reporting that it waits. */
const patienceMs = 1_000;

/**
 * Waits for the lock on `file`, which it creates, and takes it; `onWait` is called if that takes a while.
 * @throws ConfigurationError if the file cannot be locked
 */
export async function takeLock(file: string, onWait: () => void): Promise<Lock> {
  // The holder is a cat that ends with its input, and so with this process at the latest.
  const holder = spawn('flock', [file, 'sh', '-c', 'echo held; exec cat >/dev/null'], {
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  holder.on('close', () => {
    ended.resolve();
    held.reject(new ConfigurationError('lock', file, 'a file that can be locked'));
  });
  holder.on('error', held.reject);
  holder.stdout.once('data', () => held.resolve());
  holder.stdin.on('error', () => {});
  const waiting = setTimeout(onWait, patienceMs);
  try {
    await held.promise;
  } finally {
    clearTimeout(waiting);
  }
  return {
    async [Symbol.asyncDispose]() {
      holder.stdin.end();
      await ended.promise;
    },
  };
}
