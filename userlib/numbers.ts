/**
 * Ranges of numbers where libibverbs has an integer type. C truncates a number that does not fit; here it causes EINVAL before
 * any effect.
 *
 *   int, enum   whole, within 32 bits        uint32_t  0 … 2^32 − 1      uint8_t, uint16_t  likewise
 *   uint64_t    an address, as a number: 0 … 2^53 − 1; an operand of an atomic, as a bigint: 0n … 2^64 − 1;
 *               a peer's address: either
 *   length      0 … 2^31 − 1: a longer one has the bit of the WQE that makes a data pointer an inline segment
 *
 * A `wrId` is the program's own number, and its completion returns it unchanged.
 */
import type { IbvSge } from './objects.ts';
import { VerbsError } from './verbs-error.ts';

const addressMax = Number.MAX_SAFE_INTEGER;

export const isInt32 = (value: number): boolean => (value | 0) === value;
export const isUint32 = (value: number): boolean => value >>> 0 === value;
/** NaN fails both comparisons; an infinite value fails one. */
export const isAddress = (value: number): boolean =>
  value >= 0 && value <= addressMax && Math.floor(value) === value;
export const isUint64 = (value: bigint): boolean =>
  typeof value === 'bigint' && BigInt.asUintN(64, value) === value;

/** An address of the peer, whose host may use all 64 bits. */
export const isRemoteAddress = (value: number | bigint): boolean =>
  typeof value === 'number' ? isAddress(value) : isUint64(value);

/** Whether the first `numSge` buffers of a list exist and fit a data pointer; `numSge` is within the queue's limit. */
export function isListValid(sgList: readonly IbvSge[], numSge: number): boolean {
  if (numSge > sgList.length) return false;
  for (let at = 0; at < numSge; at++) {
    const { addr, length, lkey } = sgList[at]!;
    if ((length | 0) !== length || length < 0 || !isUint32(lkey) || !isAddress(addr)) return false;
  }
  return true;
}

/** One numeric argument: its name, its value, and its upper limit. */
export type Argument = readonly [name: string, value: number, max: number];

export const uint8Max = 0xff;
export const uint16Max = 0xffff;
export const uint32Max = 0xffff_ffff;

/**
 * Checks the arguments of control verbs.
 * @throws VerbsError EINVAL naming the first argument that is not a whole number from 0 to its limit
 */
export function checkArguments(verbName: string, ...args: readonly Argument[]): void {
  for (const [name, value, max] of args) {
    if (isAddress(value) && value <= max) continue;
    throw new VerbsError(verbName, 'EINVAL', `${name} is ${shown(value)}, expected 0 to ${max}`);
  }
}

/**
 * Checks the number of entries of a queue, or the bytes of a region.
 * @throws VerbsError EINVAL if it is not a whole number from 1 to its limit
 */
export function checkCount(verbName: string, [name, value, max]: Argument): void {
  if (isAddress(value) && value >= 1 && value <= max) return;
  throw new VerbsError(verbName, 'EINVAL', `${name} is ${shown(value)}, expected 1 to ${max}`);
}

/** A value in a message: a text with its quotation marks, so that '5' is not taken for 5. */
const shown = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value));
