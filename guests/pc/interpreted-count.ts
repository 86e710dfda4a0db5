/**
 * Instructions that v86's interpreter has executed and not yet added to its counter. It adds them when it leaves a
 * page:
 *
 *     run                      (one call for each instruction)   a new value of the counter ──► count = 0;   count += 1
 *     run_prefix_instruction   (run again, after a prefix)                                      count -= 1
 *
 * While the counter has the value at which the count began, the interpreter is within such a run; otherwise all is
 * counted.
 */
import { join, unsigned } from './wasm-bodies.ts';

/**
 * Addresses in v86's own memory, whose first variable is at 64: the counter's value when the count began, and the
 * count.
 */
const [beganWord, countWord] = [0, 4] as const;
/** Address of v86's counter of instructions. */
export const COUNTER_ADDRESS = 664;

const [constI32, load, store, add, subtract, notEqual] = [0x41, 0x28, 0x36, 0x6a, 0x6b, 0x47] as const;
const [ifThen, emptyType, end] = [0x04, 0x40, 0x0b] as const;
const alignment = 2;

const loaded = (address: number): number[] => [constI32, 0, load, alignment, ...unsigned(address)];
const stored = (address: number, value: readonly number[]): number[] => [
  ...[constI32, 0, ...value],
  ...[store, alignment, ...unsigned(address)],
];

/** Code that the interpreter's function begins with: counts the instruction that it is called for. */
export const countingOne: Uint8Array<ArrayBuffer> = join([
  Uint8Array.from([...loaded(COUNTER_ADDRESS), ...loaded(beganWord), notEqual, ifThen, emptyType]),
  Uint8Array.from([...stored(beganWord, loaded(COUNTER_ADDRESS)), ...stored(countWord, [constI32, 0]), end]),
  Uint8Array.from(stored(countWord, [...loaded(countWord), constI32, 1, add])),
]);

/** Code that begins each instruction after a prefix: the prefix, counted already, is no instruction of its own. */
export const countingNoPrefix: Uint8Array<ArrayBuffer> = Uint8Array.from(
  stored(countWord, [...loaded(countWord), constI32, 1, subtract]),
);

/** The instructions not yet counted, in the memory of a core with both codes; 0 outside of the interpreter. */
export function interpretedCount(memory: ArrayBufferLike): number {
  const words = new Uint32Array(memory, 0, COUNTER_ADDRESS / 4 + 1);
  return words[COUNTER_ADDRESS / 4] === words[beganWord / 4] ? words[countWord / 4]! : 0;
}

/** The core runs nothing: another state than that of the count has been restored. */
export function forgetInterpreted(memory: ArrayBufferLike): void {
  new Uint32Array(memory)[countWord / 4] = 0;
}
