/**
 * Two changes to v86's machine code when it is loaded, which make the length of a quantum a variable:
 *
 *     main loop, each compiled block   i32.const 100003          ──► i32.const 0, i32.load QUANTUM_WORD
 *     interpreter                      i32.const 100001          ──► the same
 *     main loop                        f64.const 1 (ms), f64.gt  ──► f64.const -1: leaves after one quantum
 *
 * Without them the processor returns after up to 100,003 instructions (`LOOP_COUNTER`, `INTERPRETER_ITERATION_LIMIT`) and 1 ms
 * (`TIME_PER_FRAME`; all in v86's src/rust/cpu/cpu.rs): a polling program would see a completion 40 us late. Upstream, both would be settings like
 * `set_jit_config`. The instructions are those of the WebAssembly core specification 2.0, 5.4; sections and bodies carry
 * their sizes (5.5), which the patch rewrites.
 */

import { SimulatorError } from '../../base/index.ts';
import { join, withBodies } from './wasm-bodies.ts';

/** Address in v86's own memory of the word that holds the quantum: unused between its eip_phys (624) and sysenter_cs (636). */
export const QUANTUM_WORD = 628;

const quantumConstant = [0x41, 0xa3, 0x8d, 0x06];
const interpreterConstant = [0x41, 0xa1, 0x8d, 0x06];
/** i32.const 0; i32.load with alignment 4 and QUANTUM_WORD as offset. */
const quantumLoad = [0x41, 0x00, 0x28, 0x02, 0xf4, 0x04];
/** Follows the constants in v86.wasm: i32.lt_u, br_if. */
const inCore = [0x49, 0x0d];
/** Surround it in a compiled block: local.get of the counter; i32.ge_u, br_if. */
const localGet = 0x20;
const inBlock = [0x4f, 0x0d];
/** f64.const 1, f64.gt, i32.eqz, br_if. */
const frameTest = [0x44, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x64, 0x45, 0x0d];
const signByte = 8;
const negative = 0x80;

/** v86's machine code does not have what is to be changed: another version. */
export class CorePatchError extends SimulatorError {
  override readonly name = 'CorePatchError';
}

/**
 * v86.wasm with a variable quantum.
 * @throws CorePatchError unless each of the three places is found exactly once
 */
export function patchCore(wasm: Uint8Array): Uint8Array<ArrayBuffer> {
  const frames = placesOf(wasm, frameTest);
  if (frames.length !== 1) throw new CorePatchError('ends of a frame in v86.wasm', frames.length, '1');
  // A copy: slice() of a Buffer, which is how a file is read, would share its bytes with the next machine.
  const core = new Uint8Array(wasm);
  core[frames[0]! + signByte]! |= negative;
  const isTest = (code: Uint8Array, at: number): boolean =>
    startsAt(code, at + quantumConstant.length, inCore);
  const main = withVariableQuantum(core, quantumConstant, isTest);
  const both = withVariableQuantum(main.bytes, interpreterConstant, isTest);
  if (main.count !== 1 || both.count !== 1)
    throw new CorePatchError('ends of a quantum in v86.wasm', `${main.count} and ${both.count}`, '1 and 1');
  return both.bytes;
}

/** A compiled block, as v86 hands it over, with the variable quantum. */
export function patchBlock(wasm: Uint8Array): Uint8Array<ArrayBuffer> {
  // A comparison of the guest's own with 100003 would follow another instruction than a local.get of one byte.
  const isTest = (code: Uint8Array, at: number): boolean =>
    code[at - 2] === localGet && startsAt(code, at + quantumConstant.length, inBlock);
  return withVariableQuantum(wasm, quantumConstant, isTest).bytes;
}

/** @param isTest whether the constant at an offset of a function's body is the quantum's */
function withVariableQuantum(
  wasm: Uint8Array,
  constant: readonly number[],
  isTest: (code: Uint8Array, at: number) => boolean,
): { readonly bytes: Uint8Array<ArrayBuffer>; readonly count: number } {
  let count = 0;
  const bytes = withBodies(wasm, (code) => {
    const places = placesOf(code, constant).filter((place) => isTest(code, place));
    count += places.length;
    return places.length === 0 ? code : replaced(code, places);
  });
  return { bytes, count };
}

function replaced(code: Uint8Array, places: readonly number[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const place of places) {
    parts.push(code.subarray(from, place), Uint8Array.from(quantumLoad));
    from = place + quantumConstant.length;
  }
  return join([...parts, code.subarray(from)]);
}

function placesOf(bytes: Uint8Array, pattern: readonly number[]): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(pattern[0]!); at >= 0; at = bytes.indexOf(pattern[0]!, at + 1))
    if (startsAt(bytes, at, pattern)) places.push(at);
  return places;
}

const startsAt = (bytes: Uint8Array, at: number, pattern: readonly number[]): boolean =>
  pattern.every((byte, index) => bytes[at + index] === byte);
