/**
 * Units of time and size. Time is an integer number of picoseconds in a float64 (a safe integer holds 2.5 hours: sim/epoch.ts);
 * sizes are bytes with binary multiples. A constructor names the unit exactly once and states its rounding.
 */

declare const unit: unique symbol;

/**
 * A number that counts or names one kind of thing. Any plain number is accepted for it, so arithmetic and literals need no
 * casts. A value declared as another kind is not: passing an instant as a cycle is a type error. At run time it is a number.
 */
export type Unit<Kind extends string> = number & { readonly [unit]?: Kind };

/** An edge of a block's clock, or a number of its cycles. */
export type Cycles = Unit<'cycles'>;
/** An instant of simulated time in the present epoch, or a duration. */
export type Picoseconds = Unit<'picoseconds'>;

/** An address used by a program, a WQE or a packet: under a key. */
export type VirtualAddress = Unit<'virtual address'>;
/** An address used by TLPs. */
export type BusAddress = Unit<'bus address'>;

export const psPerNs = 1_000;
export const psPerUs = 1_000_000;
export const psPerMs = 1_000_000_000;
export const psPerSecond = 1_000_000_000_000;

/** Picoseconds from nanoseconds; rounds to the nearest picosecond. */
export const nsToPs = (ns: number): number => Math.round(ns * psPerNs);
/** Picoseconds from microseconds; rounds to the nearest picosecond. */
export const usToPs = (us: number): number => Math.round(us * psPerUs);
/** Picoseconds from milliseconds; rounds to the nearest picosecond. */
export const msToPs = (ms: number): number => Math.round(ms * psPerMs);

export const bytesPerKib = 1024;
export const bytesPerMib = 1024 ** 2;
export const bytesPerGib = 1024 ** 3;

export const kib = (count: number): number => count * bytesPerKib;
export const mib = (count: number): number => count * bytesPerMib;

/** A page of the hosts' processors, and of the device's translations unless they state otherwise: 4 KiB. */
export const pageBytes = 4096;

/** An instant or a cycle that is never reached. */
export const NEVER = Number.POSITIVE_INFINITY;

/** The largest 24-bit number, for QPs, CQs and SRQs, PSNs, and the counters of CQs and EQs. */
export const mask24 = 0xff_ffff;

/** log2 of a power of two; the caller has checked that it is one. */
export const log2Exact = (powerOfTwo: number): number => 31 - Math.clz32(powerOfTwo);

/** The smallest n with 2^n at least `value` (value from 1 to 2^31). */
export const log2Ceil = (value: number): number => (value <= 1 ? 0 : 32 - Math.clz32(value - 1));

/** `value` rounded up to a multiple of `step`, any positive step. */
export const roundUp = (value: number, step: number): number => Math.ceil(value / step) * step;
