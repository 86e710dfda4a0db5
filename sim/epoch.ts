/**
 * Simulated time beyond the whole numbers of a float64 (2^53 ps are two and a half hours).
 *
 *     instant = epochUs × 10^6 + nowPs          epochUs grows at each new epoch, nowPs begins again near 0
 *
 * All that a process keeps is relative to its epoch, so the hot path adds and compares small numbers. Between two stretches of
 * a run, when every process stands at the same instant, a new epoch may begin: every instant and every edge kept anywhere moves
 * back by the same whole number of microseconds. A microsecond is a whole number of cycles of every clock (clock.ts: MHz are
 * whole numbers), so that the edges keep their places too: nothing is rounded, and no interval changes.
 *
 * Whatever keeps an instant or an edge from one event to the next is a {@link TimeKeeper} or {@link EdgeKeeper} of its process.
 * Sums and durations are not moved. An instant that software keeps in a local variable cannot be: software measures with
 * {@link Stopwatch} or keeps a {@link exactPs}.
 */
import { ConfigurationError, type Picoseconds, psPerUs } from '../base/index.ts';

/** Keeps instants of its process. */
export interface TimeKeeper {
  /** A new epoch: every instant kept is `ps` less, of which there may be none left: it may be negative. */
  rebase(ps: number): void;
}

/** Keeps edges of its clock domain, or instants as well. */
export interface EdgeKeeper {
  /** A new epoch: every instant kept is `ps` less, every edge `cycles`. */
  rebase(ps: number, cycles: number): void;
}

/** Picoseconds since power-on, or of a long interval: a number while that is exact, a bigint beyond 2^53. */
export type ExactPs = number | bigint;

/** A clock by its epoch: `nowPs` counts from there. */
export interface EpochClock {
  readonly epochUs: number;
  readonly nowPs: Picoseconds;
}

/** Time counted since an instant: exact, whatever epochs have begun since. */
export interface Stopwatch {
  /** Picoseconds since the watch was started. @throws ConfigurationError from 2^53 on, which a number cannot hold */
  readonly elapsedPs: Picoseconds;
  /** The same without a limit. */
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

/** Counts from now on, by this clock. */
export function startStopwatch(clock: EpochClock): Stopwatch {
  return new EpochStopwatch(clock);
}

/**
 * Beyond so many picoseconds (75 minutes) durations and sums are kept apart as bigints: whatever is shorter is exact in a
 * number, and so is the sum with one more.
 */
export const farPs = 2 ** 52;

/** Exact as one: a number where that is exact, else a bigint. */
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

/** The same as a number. @throws ConfigurationError from 2^53 on, where a number cannot say the picosecond */
export function numberOfPs(field: string, epochUs: number, ps: number): number {
  const sum = epochUs * psPerUs + ps;
  if (Number.isSafeInteger(sum)) return sum;
  throw new ConfigurationError(
    field,
    exactPs(epochUs, ps).toString(),
    `at most ${Number.MAX_SAFE_INTEGER} ps (2.5 hours) where it is a number; instantPs and stopwatch() go on`,
  );
}

/**
 * When a new epoch begins, and how much is taken off: all whole microseconds but one, so that no instant that is still to
 * come is 0, as a beginning is.
 */
export const epochLengthPs = 2 ** 42;
/** The longest delay that can be added to any instant of an epoch: 2.49 hours. What lasts longer waits in parts. */
export const delayPsMax = 2 ** 53 - 2 ** 43;

/** What a new epoch takes off instants, at `nowPs`. */
export const epochStepPs = (nowPs: Picoseconds): number =>
  Math.max(0, (Math.floor(nowPs / psPerUs) - 1) * psPerUs);
