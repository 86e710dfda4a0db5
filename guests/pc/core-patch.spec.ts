import { describe, expect, it } from 'vitest';
import { coreCode } from './core-code.ts';
import { CorePatchError, patchBlock, patchCore, QUANTUM_WORD } from './core-patch.ts';

/** LEB128 of a number below 2^14. */
const leb = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, value >> 7]);
const section = (id: number, body: readonly number[]): number[] => [id, ...leb(body.length), ...body];

/**
 * A module as v86 compiles a block (its src/rust/jit.rs): imports the memory e.m, exports the function f of one parameter, which
 * counts up in a local until the test of the quantum, and leaves its count in memory at 0.
 */
function block(compared: readonly number[]): Uint8Array {
  const body = [
    ...[1, 1, 0x7f],
    ...[0x02, 0x40, 0x03, 0x40],
    // The test: local.get 1, constant, i32.ge_u, br_if 1.
    ...compared,
    ...[0x20, 1, 0x41, 1, 0x6a, 0x21, 1, 0x0c, 0, 0x0b, 0x0b],
    ...[0x41, 0, 0x20, 1, 0x36, 2, 0, 0x0b],
  ];
  return Uint8Array.from([
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, 1, 0x7f, 0]),
    ...section(2, [1, 1, 0x65, 1, 0x6d, 2, 0, 1]),
    ...section(3, [1, 0]),
    ...section(7, [1, 1, 0x66, 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

const quantumTest = [0x20, 1, 0x41, 0xa3, 0x8d, 0x06, 0x4f, 0x0d, 1];

function countOf(module: Uint8Array<ArrayBuffer>, quantum: number): number {
  const memory = new WebAssembly.Memory({ initial: 1 });
  new Uint32Array(memory.buffer)[QUANTUM_WORD / 4] = quantum;
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module), { e: { m: memory } });
  (exports['f'] as (state: number) => void)(0);
  return new Uint32Array(memory.buffer)[0]!;
}

describe("the patch of a block that v86's compiler has made", () => {
  it('replaces the end of a quantum by the word in memory', () => {
    expect(countOf(Uint8Array.from(block(quantumTest)), 7)).toBe(100_003);
    expect(countOf(patchBlock(block(quantumTest)), 7)).toBe(7);
    expect(countOf(patchBlock(block(quantumTest)), 90_000)).toBe(90_000);
  });

  it("leaves a guest's own comparison with the same number as it is", () => {
    // local.tee 1 instead of local.get: a value that the guest has just computed.
    const own = block([0x20, 1, 0x22, 1, 0x41, 0xa3, 0x8d, 0x06, 0x4f, 0x0d, 1]);
    expect([...patchBlock(own)]).toEqual([...own]);
  });
});

describe("the patch of v86's machine code", () => {
  it('finds its places in the published build, whose code is valid after that', () => {
    const patched = patchCore(coreCode());
    // Two constants of 4 bytes become loads of 6.
    expect(patched.length).toBe(coreCode().length + 4);
    expect(() => new WebAssembly.Module(patched)).not.toThrow();
  });

  it('leave the given bytes as they are, so that a second machine of the process can be made of them', () => {
    const code = coreCode();
    const before = Uint8Array.from(code);
    const first = patchCore(code);
    expect(Buffer.compare(code, before)).toBe(0);
    expect(Buffer.compare(patchCore(code), first)).toBe(0);
  });

  it('refuses code in which a place is missing, or was changed before', () => {
    expect(() => patchCore(patchCore(coreCode()))).toThrow(CorePatchError);
    expect(() => patchCore(block(quantumTest))).toThrow(/ends of a frame in v86.wasm is 0, expected 1/);
    const other = coreCode();
    // Another version's limit: 100,004 in the main loop.
    other[1_423_930] = 0xa4;
    expect(() => patchCore(other)).toThrow(/ends of a quantum in v86.wasm is "0 and 1", expected 1 and 1/);
  });
});
