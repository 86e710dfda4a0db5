/**
 * Which instruction the core executes, at the two kinds of instants at which its own registers do not say so:
 *
 *     after the last instruction of a quantum    v86 then delivers a timer's interrupt, and its registers show the handler
 *     during an access of a device               compiled code keeps the instruction pointer of an earlier block
 *
 * v86 calls `run_hardware_timers` between the two steps of the first kind. In the second, compiled code calls the slow form of
 * an access with the instruction's offset within its page as its last argument, and `instruction_pointer` is right but for that
 * offset: v86 itself makes the address of a page fault of the two (`safe_read_slow_jit`, src/rust/cpu/cpu.rs). Interpreted code,
 * and the instructions that compiled code has interpreted (string and port instructions), set `previous_ip`.
 *
 * Made before the guest's first instruction, since compiled code binds the functions when it is compiled.
 */
import type { CoreCpu } from './core.ts';
import { CorePatchError } from './core-patch.ts';

const widths = {
  safe_read: ['8', '16', '32s', '64s', '128s'],
  safe_read_write: ['8', '16', '32s', '64'],
  safe_write: ['8', '16', '32', '64', '128'],
} as const;
const slowAccesses = Object.entries(widths).flatMap(([name, each]) =>
  each.map((width) => `${name}${width}_slow_jit`),
);
const offsetMask = 0xfff;
const interruptFlag = 1 << 9;
const NONE = -1;

type SlowAccess = (...values: (number | bigint)[]) => number;

export class CorePosition {
  /** State at the quantum's end: linear address of the next instruction, privilege level, page directory. */
  eip = 0;
  privilege = 0;
  cr3 = 0;
  /** Whether the quantum ended because the processor halted. */
  isHalted = false;
  /** HLT instructions executed so far. */
  haltCount = 0;
  readonly #cpu: CoreCpu;
  /** Offset in its page of the instruction of compiled code that makes an access. */
  #accessOffset = NONE;
  /** Calls of the timers in this quantum, by whether the processor was halted; and whether it was at the quantum's beginning. */
  #haltedCalls = 0;
  #calls = 0;
  #wasHalted = false;

  /**
   * @throws CorePatchError for another version of v86
   * @internal
   */
  constructor(cpu: CoreCpu) {
    this.#cpu = cpu;
    for (const name of slowAccesses) {
      const access = cpu.jit_imports[name];
      if (!isAccess(access)) throw new CorePatchError('imports of v86.wasm', 'others', `v86 has no ${name}`);
      cpu.jit_imports[name] = (...values: (number | bigint)[]): number => {
        this.#accessOffset = Number(values.at(-1)) & offsetMask;
        const entry = access(...values);
        this.#accessOffset = NONE;
        return entry;
      };
    }
    const timers = cpu.run_hardware_timers.bind(cpu);
    cpu.run_hardware_timers = (isAcpiEnabled, nowMs) => {
      this.#note();
      return timers(isAcpiEnabled, nowMs);
    };
  }

  /** Linear address of the instruction that accesses a device; only during the access. */
  get accessAddress(): number {
    const { instruction_pointer: pointer, previous_ip: previous } = this.#cpu;
    if (this.#accessOffset === NONE) return previous[0]! >>> 0;
    return ((pointer[0]! & ~offsetMask) | this.#accessOffset) >>> 0;
  }

  /** A quantum begins. */
  begin(): void {
    this.#calls = 0;
    this.#haltedCalls = 0;
    this.#wasHalted = this.#cpu.in_hlt[0] === 1;
  }

  /**
   * A quantum has ended. v86 calls the timers once at its end, once at its beginning if the processor was halted, and in each
   * HLT with interrupts enabled.
   */
  end(): void {
    const isInstructionless = this.#wasHalted && this.#calls <= 1;
    if (isInstructionless) return;
    const isLast = this.isHalted ? 1 : 0;
    const isFirst = this.#wasHalted ? 1 : 0;
    const isDead = this.isHalted && (this.#cpu.flags[0]! & interruptFlag) === 0;
    this.haltCount += this.#haltedCalls - isLast - isFirst + (isDead ? 1 : 0);
  }

  #note(): void {
    const { instruction_pointer: pointer, cpl, cr, in_hlt } = this.#cpu;
    this.#calls++;
    this.isHalted = in_hlt[0] === 1;
    if (this.isHalted) this.#haltedCalls++;
    this.eip = pointer[0]! >>> 0;
    this.privilege = cpl[0]!;
    this.cr3 = cr[3]! >>> 0;
  }
}

const isAccess = (value: unknown): value is SlowAccess => typeof value === 'function';
