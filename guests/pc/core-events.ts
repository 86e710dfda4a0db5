/**
 * Calls that v86's machine code makes when the processor enters or leaves the kernel, added when it is loaded:
 *
 *     call_interrupt_vector   a vector, by hardware, exception or INT     instr_0F34, instr_0F35   SYSENTER, SYSEXIT
 *     iret                    IRET                                        instr32_9D, update_eflags   POPF
 *
 * Each begins with a call of `console_log_from_wasm(event, value)`, which v86 imports and calls only when it panics.
 * The interpreter's functions also count what it has executed (interpreted-count.ts). All functions are found by the
 * names that the published build keeps in its name section (WebAssembly core specification 2.0, appendix: custom
 * sections). Upstream, this would be a hook like that of exceptions in debug builds (`cpu_exception_hook`).
 */
import { CorePatchError } from './core-patch.ts';
import { countingNoPrefix, countingOne } from './interpreted-count.ts';
import { join, unsigned, unsignedAt, withBodies } from './wasm-bodies.ts';

/** The first argument of the call. A vector has two events: 0 for hardware and exceptions, 1 for INT. */
export const CoreEvent = {
  VECTOR: 0,
  SOFTWARE_VECTOR: 1,
  IRET: 2,
  SYSENTER: 3,
  SYSEXIT: 4,
  POPF: 5,
} as const;

/** Receives an event before it takes effect: registers are those of the code that is left. */
export type CoreEventListener = (event: number, value: number) => void;

/** The function for {@link eventImport}: events go to their listener, and what v86 says when it panics to v86's own function. */
export const withoutEvents =
  (console: unknown, listener: CoreEventListener): CoreEventListener =>
  (first, second) => {
    if (first <= CoreEvent.POPF) listener(first, second);
    else if (typeof console === 'function') console(first, second);
  };

/** Name of the import that receives the events. */
export const eventImport = 'console_log_from_wasm';

const constant = (value: number): Uint8Array => Uint8Array.of(0x41, value);
const parameter = (index: number): Uint8Array => Uint8Array.of(0x20, index);
const call = 0x10;

/** Ends of the functions' names, and the two arguments of the call that each begins with. */
const places: readonly (readonly [name: RegExp, event: Uint8Array, value: Uint8Array])[] = [
  [/cpu3cpu21call_interrupt_vector$/, parameter(1), parameter(0)],
  [/cpu3cpu4iret$/, constant(CoreEvent.IRET), constant(0)],
  [/^instr_0F34$/, constant(CoreEvent.SYSENTER), constant(0)],
  [/^instr_0F35$/, constant(CoreEvent.SYSEXIT), constant(0)],
  [/cpu12instructions10instr32_9D$/, constant(CoreEvent.POPF), constant(0)],
  [/^update_eflags$/, constant(CoreEvent.POPF), constant(0)],
];

/** v86.wasm that calls {@link eventImport} for each event. @throws CorePatchError for another version of v86 */
export function withEvents(wasm: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const module = new WebAssembly.Module(wasm);
  const imported = WebAssembly.Module.imports(module).filter(({ kind }) => kind === 'function').length;
  const names = functionNames(module);
  const listener = indexOf(names, new RegExp(`${eventImport}$`));
  const calls = new Map(
    places.map(([name, event, value]) => [
      indexOf(names, name) - imported,
      join([event, value, Uint8Array.of(call), unsigned(listener)]),
    ]),
  );
  calls.set(indexOf(names, /gen11interpreter3run$/) - imported, countingOne);
  calls.set(indexOf(names, /cpu3cpu22run_prefix_instruction$/) - imported, countingNoPrefix);
  return withBodies(wasm, (code, index) => {
    const added = calls.get(index);
    if (added === undefined) return code;
    const at = localsEnd(code);
    return join([code.subarray(0, at), added, code.subarray(at)]);
  });
}

/** Names of the module's functions by index. */
function functionNames(module: WebAssembly.Module): string[] {
  const [section] = WebAssembly.Module.customSections(module, 'name');
  const bytes = new Uint8Array(section ?? new ArrayBuffer(0));
  const names: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const size = unsignedAt(bytes, at + 1);
    if (bytes[at] === functionSubsection) readNames(bytes, size.end, names);
    at = size.end + size.value;
  }
  return names;
}

function readNames(bytes: Uint8Array, from: number, names: string[]): void {
  const count = unsignedAt(bytes, from);
  for (let left = count.value, at = count.end; left > 0; left--) {
    const index = unsignedAt(bytes, at);
    const length = unsignedAt(bytes, index.end);
    at = length.end + length.value;
    names[index.value] = new TextDecoder().decode(bytes.subarray(length.end, at));
  }
}

const functionSubsection = 1;

/** @throws CorePatchError unless exactly one function has such a name */
function indexOf(names: readonly string[], name: RegExp): number {
  const found = names.flatMap((each, index) => (name.test(each) ? [index] : []));
  if (found.length !== 1)
    throw new CorePatchError(`functions of v86.wasm like ${name.source}`, found.length, '1');
  return found[0]!;
}

/** Offset of a body's first instruction, after its groups of locals: a count and a type of one byte each. */
function localsEnd(code: Uint8Array): number {
  const groups = unsignedAt(code, 0);
  let at = groups.end;
  for (let left = groups.value; left > 0; left--) at = unsignedAt(code, at).end + 1;
  return at;
}

/** Address in v86's own memory of a word for {@link withPartialCounts}: unused, after that of the quantum (core-patch.ts). */
export const PARTIAL_COUNT_WORD = 632;

const [localGet, localSet, constI32, add, load, store] = [0x20, 0x21, 0x41, 0x6a, 0x28, 0x36] as const;
/** i32.store with alignment 4 at {@link PARTIAL_COUNT_WORD}, to address 0. */
const storePartial = [store, 2, ...unsigned(PARTIAL_COUNT_WORD)];

/**
 * A compiled block that keeps in memory the instructions that it has not yet added to v86's counter, which it does when it ends: 0
 * between blocks. Blocks of an address count in a local variable, at the beginning of each of their parts.
 * @param counterAddress of v86's counter
 */
export function withPartialCounts(wasm: Uint8Array, counterAddress: number): Uint8Array<ArrayBuffer> {
  const address = [constI32, ...unsigned(counterAddress)];
  const loaded = [...address, ...address, load];
  return withBodies(wasm, (code) => {
    const parts: Uint8Array[] = [];
    let from = 0;
    const addAt = (at: number, added: readonly number[]): void => {
      parts.push(code.subarray(from, at), Uint8Array.from(added));
      from = at;
    };
    const counter = counterOf(code, loaded);
    if (counter === undefined) return code;
    for (let at = localsEnd(code); at < code.length; at++) {
      const counted = countEnd(code, at, counter);
      if (counted !== undefined) addAt(counted, [constI32, 0, localGet, counter, ...storePartial]);
      else if (matches(code, at, loaded))
        addAt(at + loaded.length + updateBytes, [constI32, 0, constI32, 0, ...storePartial]);
    }
    return join([...parts, code.subarray(from)]);
  });
}

/** Alignment and offset of the load; local.get, its local, i32.add, i32.store, alignment and offset. */
const updateBytes = 8;

/** The local that is added to the counter. */
function counterOf(code: Uint8Array, loaded: readonly number[]): number | undefined {
  for (let at = 0; at < code.length; at++) {
    const after = at + loaded.length + 2;
    if (matches(code, at, loaded) && code[after] === localGet && code[after + 2] === add)
      return code[after + 1]!;
  }
  return undefined;
}

/** End of `counter += constant` that begins at an offset. */
function countEnd(code: Uint8Array, at: number, counter: number): number | undefined {
  if (code[at] !== localGet || code[at + 1] !== counter || code[at + 2] !== constI32) return undefined;
  const { end } = unsignedAt(code, at + 3);
  return matches(code, end, [add, localSet, counter]) ? end + 3 : undefined;
}

const matches = (code: Uint8Array, at: number, bytes: readonly number[]): boolean =>
  bytes.every((byte, index) => code[at + index] === byte);
