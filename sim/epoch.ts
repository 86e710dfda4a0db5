/**
 * Simulated time beyond the whole numbers of a float64 (2^53 ps are two and a half hours).
 *
 *     instant = epochUs × 10^6 + nowPs          epochUs grows at each new epoch, nowPs restarts near 0
 *
 * All instants of a process are relative to its epoch, so the hot path adds and compares small numbers. Between two stretches
 * of a run, when every process is at the same instant, a new epoch may begin: the same whole number of microseconds is
 * subtracted from every kept instant and edge. A microsecond is a whole number of cycles of every clock (clock.ts: MHz are
 * whole numbers), so edges remain whole, too: nothing is rounded, and no interval changes.
 *
 * An object that keeps an instant or an edge from one event to the next is a {@link TimeKeeper} or {@link EdgeKeeper} of its
 * process. Sums and durations are not moved. An instant that software keeps in a local variable cannot be: software measures
 * with {@link Stopwatch} or keeps a {@link exactPs}.
 */
import { ConfigurationError, type Picoseconds, psPerUs } from '../base/index.ts';

/** Keeps instants of its process. */
export interface TimeKeeper {
  /** Handles a new epoch: subtracts `ps` from every kept instant, which may become negative if it is stale. */
  rebase(ps: number): void;
}

/** Keeps edges of its clock domain, or instants as well. */
export interface EdgeKeeper {
  /** Handles a new epoch: subtracts `ps` from every kept instant and `cycles` from every edge. */
  rebase(ps: number, cycles: number): void;
}

/** Picoseconds since power-on, or of a long interval: a number while exact, a bigint from 2^53 on. */
export type ExactPs = number | bigint;

/** A clock relative to its epoch: `nowPs` counts from the epoch's start. */
export interface EpochClock {
  readonly epochUs: number;
  readonly nowPs: Picoseconds;
}

/** Time elapsed since an instant: exact, even over epochs. */
export interface Stopwatch {
  /** Picoseconds since the watch was started. @throws ConfigurationError from 2^53 on, because a number cannot hold it */
  readonly elapsedPs: Picoseconds;
  /** The elapsed time without a limit. */
  readonly exactElapsedPs: ExactPs;
}

class EpochStopwatch implements Stopwatch {
  readonly #clock: EpochClock;
  readonly #startUs: number;
  readonly #startPs: Picoseconds;

  constructor(clock: EpochClock) {
    this.#clock = clock;
    this.#startUs = clock.epochUs;
    this.#startPs = clock.nowPs;
  }

  get elapsedPs(): Picoseconds {
    const { epochUs, nowPs } = this.#clock;
    return numberOfPs('elapsedPs', epochUs - this.#startUs, nowPs - this.#startPs);
  }

  get exactElapsedPs(): ExactPs {
    const { epochUs, nowPs } = this.#clock;
    return exactPs(epochUs - this.#startUs, nowPs - this.#startPs);
  }
}

/** Starts counting by this clock. */
export function startStopwatch(clock: EpochClock): Stopwatch {
  return new EpochStopwatch(clock);
}

/**
 * From this many picoseconds (75 minutes) on, durations and sums are kept separately as bigints: shorter ones are exact in a
 * number, and so is a sum of two.
 */
export const farPs = 2 ** 52;

/** The exact sum: a number where that is exact, else a bigint. */
export function exactSumOf(...parts: readonly ExactPs[]): ExactPs {
  let sum = 0;
  for (const part of parts) {
    if (typeof part === 'bigint' || !Number.isSafeInteger(sum + part)) {
      const total = parts.reduce<bigint>((left, right) => left + BigInt(right), 0n);
      return Number.isSafeInteger(Number(total)) ? Number(total) : total;
    }
    sum += part;
  }
  return sum;
}

/** The instant `ps` of the epoch that began at `epochUs`. */
export function exactPs(epochUs: number, ps: number): ExactPs {
  const sum = epochUs * psPerUs + ps;
  return Number.isSafeInteger(sum) ? sum : BigInt(epochUs) * BigInt(psPerUs) + BigInt(ps);
}

/**
 * Returns the time as a number. @throws ConfigurationError from 2^53 on, where a number is not exact
 */
export function numberOfPs(field: string, epochUs: number, ps: number): number {
  const sum = epochUs * psPerUs + ps;
  if (Number.isSafeInteger(sum)) return sum;
  throw new ConfigurationError(
    field,
    exactPs(epochUs, ps).toString(),
    `at most ${Number.MAX_SAFE_INTEGER} ps (2.5 hours) where it is a number; instantPs and stopwatch() go on`,
  );
}

/** When a new epoch begins, and how much it subtracts: all whole microseconds but one, so that no later instant is 0, which marks a beginning. */
export const epochLengthPs = 2 ** 42;
/** The longest delay that can be added to any instant of an epoch: 2.49 hours. Longer waits are split. */
export const delayPsMax = 2 ** 53 - 2 ** 43;

/** Picoseconds that a new epoch subtracts from instants, at `nowPs`. */
export const epochStepPs = (nowPs: Picoseconds): number =>
  Math.max(0, (Math.floor(nowPs / psPerUs) - 1) * psPerUs);
