/**
 * The processor and chipset of the PC: one v86, driven a quantum at a time, with everything in it that would depend on the wall
 * clock or on chance replaced.
 *
 *     microtick, Date      the PC's clock                     the guest's rdtsc, timers, real-time clock
 *     get_rand_int         the PC's seeded numbers             rdrand
 *     codegen_finalize     blocks wait, and are compiled between two quanta, in order
 *
 * v86 itself would compile in the background, so where compiled code begins to run, and with it the end of a quantum, would
 * depend on the wall clock. Its internals are used by the names that its published build keeps; {@link makeCore} checks
 * that each of them is there.
 */
import type { V86 } from 'v86';
import {
  type CoreEventListener,
  eventImport,
  PARTIAL_COUNT_WORD,
  withEvents,
  withoutEvents,
  withPartialCounts,
} from './core-events.ts';
import { CorePatchError, patchBlock, patchCore, QUANTUM_WORD } from './core-patch.ts';
import { COUNTER_ADDRESS, forgetInterpreted, interpretedCount } from './interpreted-count.ts';
import { networkLine, offSleepType, powerControlPort } from './memory-map.ts';

/** The version of v86 that core-patch.ts and the names below were read from. */
export const coreVersion = '0.5.462';

/** The parts of a PC that its core uses. */
export interface CoreHost {
  /** Milliseconds since power-on. */
  nowMs(): number;
  /** A random number of 32 bits. */
  random32(): number;
  /** Each byte that the guest writes to a serial port. */
  serialOutput(port: number, byte: number): void;
  /** The guest switches the PC off by ACPI, or resets it. */
  ended(how: 'off' | 'reset'): void;
  /** A frame that the guest's Ethernet card sends. */
  frameOutput(frame: Uint8Array): void;
}

type Access8 = (address: number) => number;
type Store = (address: number, value: number) => void;

/** v86's bus of PCI devices, whose methods answer the ports 0xcf8 to 0xcff. */
interface CorePci {
  pci_addr: Uint8Array;
  device_spaces: (Int32Array | undefined)[];
  pci_status32: Int32Array;
  pci_response32: Int32Array;
  pci_query(): void;
  pci_write8(address: number, value: number): void;
  pci_write16(address: number, value: number): void;
  pci_write32(address: number, value: number): void;
}

/** v86's real-time clock; `timer` brings it up to date, and returns milliseconds until its next interrupt. */
interface CoreRtc {
  rtc_time: number;
  timer: (nowMs: number) => number;
}

/**
 * The members of v86's CPU that the PC uses.
 * @internal
 */
export interface CoreCpu {
  readonly mem8: Uint8Array;
  readonly wasm_memory: WebAssembly.Memory;
  readonly in_hlt: Uint8Array;
  readonly instruction_counter: Uint32Array;
  readonly instruction_pointer: Int32Array;
  readonly previous_ip: Int32Array;
  readonly reg32: Int32Array;
  readonly sreg: Uint16Array;
  readonly cr: Int32Array;
  readonly flags: Int32Array;
  readonly cpl: Uint8Array;
  readonly protected_mode: Int32Array;
  readonly is_32: Int32Array;
  readonly stack_size_32: Int32Array;
  readonly segment_is_null: Uint8Array;
  readonly segment_offsets: Int32Array;
  readonly segment_limits: Uint32Array;
  readonly apic_enabled: Uint8Array;
  readonly jit_imports: WebAssembly.ModuleImports;
  readonly io: {
    mmap_register(
      from: number,
      sizeBytes: number,
      read8: Access8,
      write8: Store,
      read32: Access8,
      write32: Store,
    ): void;
    register_write(port: number, device: object, write8: undefined, write16: (value: number) => void): void;
  };
  readonly devices: {
    readonly pci: CorePci & { readonly isa_bridge_space8: Uint8Array };
    /** The Ethernet card, whose memory begins with its address, each byte twice. */
    readonly net: { readonly mac: Uint8Array; readonly memory: Uint8Array };
    readonly rtc: CoreRtc;
  };
  update_state_flags(): void;
  handle_irqs(): void;
  device_raise_irq(line: number): void;
  device_lower_irq(line: number): void;
  get_apic_addr(): number;
  jit_dirty_cache(from: number, to: number): void;
  jit_clear_cache(): void;
  codegen_finalize_finished(index: number, start: number, flags: number): void;
  main_loop(): number;
  reboot_internal: () => void;
  /** Called by v86's machine code; returns milliseconds until the next timer. */
  run_hardware_timers: (isAcpiEnabled: number, nowMs: number) => number;
}

/** A block of the guest's code that v86 has translated, until it is compiled. */
interface WaitingBlock {
  readonly index: number;
  readonly start: number;
  readonly flags: number;
  readonly wasm: Uint8Array<ArrayBuffer>;
}

const TABLE_OFFSET = 1024;
const serialPorts = [0, 1] as const;
/** No program in the guest shows a picture; v86 accepts no less. */
const screenBytes = 2 ** 20;

/** The real-time clock at power-on: 2026-01-01 00:00:00 UTC, in every run. */
const bootTimeMs = Date.UTC(2026, 0, 1);
/** Register of the ISA bridge (82371SB, PIRQRCA) that leads the pin of the Ethernet card to its line. */
const networkRoute = 0x60;
/** Fields of the power management control register (ACPI 6.5, 4.8.4.2.1). */
const sleepEnable = 1 << 13;
const sleepTypeShift = 10;
const sleepTypeMask = 7 << sleepTypeShift;
/** No timer of the real-time clock is due: Linux takes its ticks from the APIC. */
const timerFarMs = 100;

/** The clock that answers v86's devices, which share one function: that of the PC whose core runs. */
let running: CoreHost | undefined;

/** @internal */
export class Core {
  readonly cpu: CoreCpu;
  readonly #v86: V86;
  readonly #bus: CoreBus;
  readonly #host: CoreHost;
  readonly #table: WebAssembly.Table;
  readonly #waiting: WaitingBlock[];
  readonly #isTraced: boolean;
  #quantum: Uint32Array;

  constructor(
    v86: V86,
    { cpu, bus }: CoreInternals,
    host: CoreHost,
    table: WebAssembly.Table,
    waiting: WaitingBlock[],
    isTraced: boolean,
  ) {
    this.#v86 = v86;
    this.#bus = bus;
    this.cpu = cpu;
    this.#host = host;
    this.#table = table;
    this.#waiting = waiting;
    this.#isTraced = isTraced;
    const { byteOffset } = cpu.instruction_counter;
    if (byteOffset !== COUNTER_ADDRESS)
      throw new CorePatchError("address of v86's counter of instructions", byteOffset, `${COUNTER_ADDRESS}`);
    this.#quantum = new Uint32Array(cpu.wasm_memory.buffer, QUANTUM_WORD, 1);
  }

  /**
   * Runs about `instructions` of the guest, at most twice as many; then its timers, and interrupts that are due.
   * @returns milliseconds until the next timer, if the processor is halted
   */
  run(instructions: number): number {
    running = this.#host;
    this.#setQuantum(instructions);
    const dueMs = this.cpu.main_loop();
    for (const { index, start, flags, wasm } of this.#waiting.splice(0)) {
      const block = patchBlock(wasm);
      const counterAddress = this.cpu.instruction_counter.byteOffset;
      const module = new WebAssembly.Module(
        this.#isTraced ? withPartialCounts(block, counterAddress) : block,
      );
      const { exports } = new WebAssembly.Instance(module, { e: this.cpu.jit_imports });
      this.#table.set(TABLE_OFFSET + index, exports['f']);
      this.cpu.codegen_finalize_finished(index, start, flags);
    }
    return dueMs;
  }

  /** Ends the quantum that runs, as soon as the present block of code allows. */
  endQuantum(): void {
    this.#setQuantum(0);
  }

  /** Instructions that the core has executed and not yet counted; 0 unless events are received. */
  get partialCount(): number {
    if (!this.#isTraced) return 0;
    const { buffer } = this.cpu.wasm_memory;
    return new Uint32Array(buffer, PARTIAL_COUNT_WORD, 1)[0]! + interpretedCount(buffer);
  }

  /** Types bytes into a serial port; only between two quanta, since it raises an interrupt. */
  serialInput(port: number, bytes: Uint8Array): void {
    running = this.#host;
    this.#v86.serial_send_bytes(port, bytes);
  }

  /** A frame arrives at the Ethernet card; only between two quanta. */
  frameInput(frame: Uint8Array): void {
    running = this.#host;
    this.#bus.send('net0-receive', frame);
  }

  /** Gives the Ethernet card its address. */
  setMac(mac: Uint8Array): void {
    const { net } = this.cpu.devices;
    net.mac.set(mac);
    for (const [index, byte] of mac.entries()) net.memory.fill(byte, 2 * index, 2 * index + 2);
  }

  /** Acts on the chipset between two quanta. */
  act(action: (cpu: CoreCpu) => void): void {
    running = this.#host;
    action(this.cpu);
  }

  async saveState(): Promise<ArrayBuffer> {
    running = this.#host;
    return await this.#v86.save_state();
  }

  async restoreState(state: ArrayBuffer): Promise<void> {
    running = this.#host;
    await this.#v86.restore_state(state);
    forgetInterpreted(this.cpu.wasm_memory.buffer);
    this.#waiting.length = 0;
  }

  /** v86's memory may have grown, which detaches every view of it. */
  #setQuantum(instructions: number): void {
    if (this.#quantum.length === 0)
      this.#quantum = new Uint32Array(this.cpu.wasm_memory.buffer, QUANTUM_WORD, 1);
    this.#quantum[0] = instructions;
  }
}

/**
 * A core with that much memory, switched on but without code to run.
 * @param code v86's machine code
 * @param onEvent receives the processor's ways into the kernel and out of it; left out: they cost nothing
 * @throws CorePatchError for another version of v86
 * @internal
 */
export async function makeCore(
  code: Uint8Array,
  memoryBytes: number,
  host: CoreHost,
  onEvent?: CoreEventListener,
): Promise<Core> {
  const waiting: WaitingBlock[] = [];
  let table: WebAssembly.Table | undefined;
  let memory: WebAssembly.Memory | undefined;
  running = host;
  const wasm_fn = async (imports: WebAssembly.Imports): Promise<WebAssembly.Exports> => {
    const env = imports['env']!;
    Object.assign(env, {
      microtick: () => host.nowMs(),
      get_rand_int: () => host.random32(),
      codegen_finalize: (index: number, start: number, flags: number, at: number, lengthBytes: number) => {
        waiting.push({
          index,
          start,
          flags,
          wasm: new Uint8Array(memory!.buffer, at >>> 0, lengthBytes).slice(),
        });
      },
    });
    table = env['__indirect_function_table'] as WebAssembly.Table;
    if (onEvent !== undefined) env[eventImport] = withoutEvents(env[eventImport], onEvent);
    const patched = patchCore(code);
    const { instance } = await WebAssembly.instantiate(
      onEvent === undefined ? patched : withEvents(patched),
      imports,
    );
    memory = instance.exports['memory'] as WebAssembly.Memory;
    return instance.exports;
  };
  // Not before it is needed: other commands share the file into which this module is built.
  const { V86: Machine } = await import('v86');
  const v86 = new Machine({
    ...{ wasm_fn, memory_size: memoryBytes, vga_memory_size: screenBytes, acpi: true, uart1: true },
    ...{ autostart: false, disable_speaker: true, disable_keyboard: true, disable_mouse: true },
    net_device: { type: 'ne2k' },
  });
  for (const port of serialPorts)
    v86.add_listener(`serial${port}-output-byte`, (byte: number) => host.serialOutput(port, byte));
  v86.add_listener('net0-send', (frame: Uint8Array) => host.frameOutput(frame));
  await new Promise<void>((resolve) => v86.add_listener('emulator-loaded', () => resolve()));
  const internals = internalsOf(v86);
  internals.shared.microtick = () => running!.nowMs();
  const { rtc, pci } = internals.cpu.devices;
  pci.isa_bridge_space8[networkRoute] = networkLine;
  const { cpu } = internals;
  cpu.reboot_internal = () => host.ended('reset');
  cpu.io.register_write(powerControlPort, cpu, undefined, (value) => {
    if ((value & sleepEnable) !== 0 && (value & sleepTypeMask) >> sleepTypeShift === offSleepType)
      host.ended('off');
  });
  rtc.timer = (nowMs) => {
    rtc.rtc_time = bootTimeMs + Math.floor(nowMs);
    return timerFarMs;
  };
  return new Core(v86, internals, host, table!, waiting, onEvent !== undefined);
}

/** The side of v86's message bus on which the world outside the PC is. */
interface CoreBus {
  send(name: string, value: Uint8Array): void;
}

interface CoreInternals {
  readonly cpu: CoreCpu;
  readonly bus: CoreBus;
  /** The clock is one function for the devices of every v86. */
  readonly shared: { microtick: () => number };
}

const usedMembers = [
  ...[
    'mem8',
    'wasm_memory',
    'in_hlt',
    'instruction_counter',
    'instruction_pointer',
    'previous_ip',
    'reg32',
    'sreg',
    'cr',
    'flags',
  ],
  ...[
    'protected_mode',
    'is_32',
    'stack_size_32',
    'segment_is_null',
    'segment_offsets',
    'segment_limits',
    'cpl',
  ],
  ...[
    'apic_enabled',
    'jit_imports',
    'io',
    'devices',
    'update_state_flags',
    'handle_irqs',
    'device_raise_irq',
  ],
  ...['device_lower_irq', 'get_apic_addr', 'jit_dirty_cache', 'jit_clear_cache', 'codegen_finalize_finished'],
  ...['main_loop', 'reboot_internal', 'run_hardware_timers'],
] as const satisfies readonly (keyof CoreCpu)[];

/** v86's internals by the names of its published build. @throws CorePatchError if one is missing */
function internalsOf(v86: object): CoreInternals {
  const inner: unknown = 'v86' in v86 ? v86.v86 : undefined;
  const bus: unknown = 'bus' in v86 ? v86.bus : undefined;
  if (!hasCpu(inner) || !isBus(bus) || !('microtick' in inner.constructor))
    throw new CorePatchError(
      'internals of v86',
      'others',
      `those of version ${coreVersion}: ${usedMembers.join(', ')}`,
    );
  return { cpu: inner.cpu, bus, shared: inner.constructor as { microtick: () => number } };
}

function hasCpu(inner: unknown): inner is { readonly cpu: CoreCpu; readonly constructor: object } {
  if (typeof inner !== 'object' || inner === null || !('cpu' in inner)) return false;
  const { cpu } = inner;
  return typeof cpu === 'object' && cpu !== null && usedMembers.every((name) => name in cpu);
}

const isBus = (bus: unknown): bus is CoreBus => typeof bus === 'object' && bus !== null && 'send' in bus;
