/** A slot with its device and without a socket: a spec acts as a guest's machine, and advances the wall clock. */
import { defaultsOf } from '../../../base/parameter.ts';
import type { AnalysisOptions } from '../../../machine/analysis/index.ts';
import type { JsonValue, ProgramFunction } from '../../../machine/index.ts';
import { configurationOf, type ParameterValues } from '../../../machine/profile/index.ts';
import type { GuestMemory } from '../../slot/memory.ts';
import { Emulation } from '../emulation.ts';
import { servingParameters } from '../parameters.ts';
import type { Cabling } from '../served-plan.ts';
import { ServedTime } from '../served-time.ts';
import type { Slot } from '../slot.ts';

export const CONFIG = 7;
export const BAR0 = 0;
export const BAR2 = 2;

/** Guest memory in one piece, from address 0, which records accesses outside it. */
export class BenchGuestMemory implements GuestMemory {
  readonly bytes: Uint8Array;
  isMapped = true;
  writeCount = 0;
  refusedCount = 0;

  constructor(sizeBytes: number) {
    this.bytes = new Uint8Array(sizeBytes);
  }

  get sizeBytes(): number {
    return this.bytes.length;
  }

  get regions(): GuestMemory['regions'] {
    const rights = { isReadable: true, isWritable: true, access: 'mapped' } as const;
    return this.isMapped ? [{ address: 0, sizeBytes: this.sizeBytes, ...rights }] : [];
  }

  canRead(address: number, lengthBytes: number): boolean {
    return this.isMapped && address >= 0 && address + lengthBytes <= this.bytes.length;
  }

  readInto(address: number, lengthBytes: number, target: Uint8Array, targetOffset: number): boolean {
    if (!this.#allows(address, lengthBytes)) return false;
    target.set(this.bytes.subarray(address, address + lengthBytes), targetOffset);
    return true;
  }

  write(address: number, lengthBytes: number, source: Uint8Array, sourceOffset: number): boolean {
    if (!this.#allows(address, lengthBytes)) return false;
    this.bytes.set(source.subarray(sourceOffset, sourceOffset + lengthBytes), address);
    this.writeCount++;
    return true;
  }

  read(address: number, lengthBytes: number): Uint8Array | undefined {
    return this.canRead(address, lengthBytes) ? this.bytes.slice(address, address + lengthBytes) : undefined;
  }

  #allows(address: number, lengthBytes: number): boolean {
    if (this.canRead(address, lengthBytes)) return true;
    this.refusedCount++;
    return false;
  }
}

export interface SlotBenchOptions {
  readonly set?: ParameterValues;
  readonly hcaCount?: number;
  readonly cabling?: Cabling;
  readonly timeScale?: number;
  readonly shortcuts?: boolean;
  /** The computer's own clock instead of a simulated one: for code that must end within real time. */
  readonly isRealTime?: boolean;
  /** The program of a simulated host on a cable: all actions must then run from callbacks of the event loop. */
  readonly peer?: ProgramFunction;
  readonly analysis?: AnalysisOptions;
}

export class SlotBench {
  readonly emulation: Emulation;
  /** Descriptors that were written, in order. */
  readonly raised: number[] = [];
  /** Values that the simulated host's program has put into the exchange, in order. */
  readonly values: (readonly [name: string, value: JsonValue])[] = [];
  /** The wall clock. */
  wallMs = 1000;

  constructor(options: SlotBenchOptions = {}) {
    const { set = {}, hcaCount = 1, timeScale = 1, isRealTime = false } = options;
    const { shortcuts = true, peer, analysis } = options;
    const { cabling = peer === undefined ? 'loopback' : 'cable' } = options;
    const serving = defaultsOf(servingParameters);
    const wall = isRealTime ? () => performance.now() : () => this.wallMs;
    this.emulation = new Emulation({
      config: configurationOf({ set }),
      hcaCount,
      cabling,
      faults: [],
      shortcuts,
      serving,
      makeTime: (runner) => new ServedTime(runner, serving, timeScale, wall),
      wall,
      raise: (descriptor) => this.raised.push(descriptor),
      analysis,
      peer: peer && { name: 'peer', run: peer, args: null },
      onValue: (name, value) => this.values.push([name, value]),
    });
  }

  slot(node = 0): Slot {
    return this.emulation.slots[node]!;
  }

  /** A guest connects. */
  connect(node = 0, sizeBytes = 1 << 20): BenchGuestMemory {
    const memory = new BenchGuestMemory(sizeBytes);
    this.slot(node).clientConnected(memory);
    return memory;
  }

  /** Firmware of the guest: addresses, memory decoding and bus mastering. */
  enable(node = 0, bar0 = 0xfe00_0000, bar2 = 0xe000_0000): void {
    this.write(CONFIG, 0x10, bar0, 4, node);
    this.write(CONFIG, 0x18, bar2, 4, node);
    this.write(CONFIG, 0x04, 6, 2, node);
  }

  read(region: number, offset: number, lengthBytes = 4, node = 0): number {
    const into = Buffer.alloc(lengthBytes);
    this.slot(node).regionRead(region, offset, into);
    return into.readUIntLE(0, lengthBytes);
  }

  write(region: number, offset: number, value: number, lengthBytes = 4, node = 0): void {
    const bytes = Buffer.alloc(lengthBytes);
    bytes.writeUIntLE(value >>> 0, 0, lengthBytes);
    this.slot(node).regionWrite(region, offset, bytes);
  }

  /** Big-endian, as the registers of the HCA are. */
  readRegister(offset: number, node = 0): number {
    const into = Buffer.alloc(4);
    this.slot(node).regionRead(BAR0, offset, into);
    return into.readUInt32BE();
  }

  writeRegister(offset: number, value: number, node = 0): void {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32BE(value >>> 0);
    this.slot(node).regionWrite(BAR0, offset, bytes);
  }

  /** Works until the devices are idle; the wall clock stands still meanwhile. */
  work(): number {
    for (;;) {
      const dueMs = this.emulation.work(1000);
      const defect = this.emulation.defects.at(-1);
      if (this.emulation.hasFailed) throw new Error(`${defect?.access}: ${defect?.stack}`);
      if (dueMs > 0) return dueMs;
    }
  }
}
