/**
 * A PC in this process: v86 as its processor and chipset, our function in its PCI slot, and one clock for both.
 *
 *     runQuantum:   interrupts that were raised ─► the core runs ─► its stores reach the device ─► the devices come along
 *
 * Interrupts are raised only between two quanta: v86 would take one within an instruction of compiled code.
 */
import { ConfigurationError, outsideOfMicrotasks } from '../../base/index.ts';
import type { FunctionConfig } from '../../hw/pcie/index.ts';
import type { Slot } from '../serve/index.ts';
import { type BootFiles, loadForBoot } from './boot.ts';
import { type Core, type CoreHost, makeCore } from './core.ts';
import { CoreMemory } from './core-memory.ts';
import { CorePosition } from './core-position.ts';
import type { PcChance } from './jitter.ts';
import { KernelEntries } from './kernel-entries.ts';
import type { LockstepTime } from './lockstep-time.ts';
import { hcaDevice, hcaLine, localApicAddress, networkDevice, networkLine } from './memory-map.ts';
import { PageTables } from './page-tables.ts';
import type { PcConfig } from './parameters.ts';
import { PcClock, type PcTimeAccount } from './pc-clock.ts';
import {
  type AccessKind,
  type PcInterruptCounts,
  PcProfile,
  type PcProfileCounts,
  type PcProfileOptions,
} from './pc-profile.ts';
import { type ConfigWrite, PciFunction } from './pci-function.ts';
import { PciHost } from './pci-host.ts';
import { SeededNumbers } from './seeded-numbers.ts';

export interface PcOptions {
  readonly name: string;
  /** v86's machine code. */
  readonly coreCode: Uint8Array;
  readonly config: PcConfig;
  readonly slot: Slot;
  readonly functionConfig: FunctionConfig;
  readonly time: LockstepTime;
  /** The descriptors of its function's interrupts begin here. */
  readonly firstDescriptor: number;
  readonly seed: number;
  readonly chance: PcChance;
  /** Left out: nothing is profiled, which costs nothing. */
  readonly profile?: PcProfileOptions | undefined;
}

/** An interrupt on its way to the processor. */
interface RaisedInterrupt {
  readonly descriptor: number;
  readonly arrivesPs: number;
}

/** A PC at an instant between two quanta. */
export interface PcSnapshot {
  /** v86's own: processor, memory, chipset. */
  readonly state: Uint8Array<ArrayBuffer>;
  readonly instructionCount: number;
  readonly account: PcTimeAccount;
  readonly wakesAtPs: number;
  readonly random: number;
  /** Writes of the function's configuration space so far. */
  readonly configWrites: readonly ConfigWrite[];
}

/** Registers of a PC's processor; `privilege` is 0 in the kernel, 3 in programs. */
export interface PcRegisters {
  readonly eax: number;
  readonly ebx: number;
  readonly ecx: number;
  readonly edx: number;
  readonly esi: number;
  readonly edi: number;
  readonly ebp: number;
  readonly esp: number;
  readonly eip: number;
  readonly cr3: number;
  readonly privilege: number;
}

const vectorMask = 0xff;
/** Offset of the interrupt request register in the state of v86's local APIC (its src/rust/cpu/apic.rs). */
const requestRegisterOffset = 64;
const MIB = 2 ** 20;
const psPerMs = 1e9;
/** Time to the next check of a timer that v86 calls overdue although its interrupt is masked. */
const soonPs = 10_000_000;

export class Pc implements CoreHost {
  readonly name: string;
  readonly clock: PcClock;
  readonly function: PciFunction;
  readonly interrupts: PcInterruptCounts = { messages: 0, pins: 0 };
  /** Instant since power-on of the halted processor's next timer. */
  wakesAtPs = 0;
  /** Receives each byte that the guest writes to a serial port. */
  onSerial: (port: number, byte: number) => void = () => {};
  /** Receives each frame that its Ethernet card sends. */
  onFrame: (frame: Uint8Array) => void = () => {};
  readonly #time: LockstepTime;
  readonly #numbers: SeededNumbers;
  readonly #raised: RaisedInterrupt[] = [];
  readonly #chance: PcChance;
  #core!: Core;
  #profile: PcProfile | undefined;
  #entries: KernelEntries | undefined;
  /** Time of all accesses when the last of them ended. */
  #accessesPs = 0;
  #isPinRaised = false;
  #end: 'off' | 'reset' | undefined;
  /** Quanta so far, and those that a store has ended. */
  quantumCount = 0;
  cutQuantumCount = 0;

  private constructor(options: PcOptions) {
    const { name, config, slot, functionConfig, time, firstDescriptor, seed, chance } = options;
    this.#chance = chance;
    this.name = name;
    this.clock = new PcClock(config);
    this.#time = time;
    this.#numbers = new SeededNumbers(seed);
    this.function = new PciFunction(hcaDevice, slot, functionConfig, firstDescriptor, {
      beforeLoad: () => this.#beforeAccess(),
      afterLoad: () => this.clock.loadedAt(time.instantPs),
      loadWaits: (ps) => time.runFor(ps),
      nowPs: () => this.clock.nowPs,
      storeWaits: () => this.#storeWaits(),
      accessed: (kind) => this.#accessed(kind),
    });
  }

  /** A PC without software, its slot occupied. @throws CorePatchError for another version of v86 */
  static async make(options: PcOptions): Promise<Pc> {
    const pc = new Pc(options);
    pc.#core = await makeCore(
      options.coreCode,
      options.config.memoryMib * MIB,
      pc,
      options.profile?.kernel && ((event, value) => pc.#entries?.event(event, value)),
    );
    const { cpu } = pc.#core;
    // Time passes meanwhile, for software of simulated hosts, too.
    await outsideOfMicrotasks(() => {
      new PciHost(cpu, [pc.function]).placeBars();
      // The placement of BARs is not of the profile.
      if (options.profile !== undefined) pc.#makeProfile(options.profile);
      options.slot.clientConnected(new CoreMemory(cpu, pc.function.faults));
    });
    return pc;
  }

  /** Puts a kernel into memory and the processor at its entry. @throws ConfigurationError */
  load(files: BootFiles): void {
    loadForBoot(this.#core.cpu, files, [
      { device: hcaDevice, line: hcaLine },
      { device: networkDevice, line: networkLine },
    ]);
  }

  /** Its general registers, instruction pointer and page directory, between two quanta. */
  get registers(): PcRegisters {
    const { reg32, instruction_pointer: pointer, cr, cpl } = this.#core.cpu;
    const [eax, ecx, edx, ebx, esp, ebp, esi, edi] = Uint32Array.from(reg32);
    return {
      ...{ eax: eax!, ebx: ebx!, ecx: ecx!, edx: edx!, esi: esi!, edi: edi!, ebp: ebp!, esp: esp! },
      ...{ eip: pointer[0]! >>> 0, cr3: cr[3]! >>> 0, privilege: cpl[0]! },
    };
  }

  /** Account of its processor since it was made or restored, or since {@link beginProfile}; undefined without a profile. */
  get profile(): PcProfileCounts | undefined {
    this.#count();
    return this.#profile?.counts(this.clock.account, this.interrupts, this.#entries?.costs());
  }

  /** Forgets what was profiled so far. */
  beginProfile(): void {
    this.#profile?.begin(this.clock.account, this.interrupts);
    this.#entries?.begin();
  }

  /** How the guest has ended the PC, if it has: nothing of it runs after that. */
  get end(): 'off' | 'reset' | undefined {
    return this.#end;
  }

  ended(how: 'off' | 'reset'): void {
    this.#end = how;
    this.#core.endQuantum();
  }

  get isHalted(): boolean {
    return (
      this.#end !== undefined || (this.#core.cpu.in_hlt[0] === 1 && this.nextInterruptPs > this.clock.nowPs)
    );
  }

  /** Instant at which the next interrupt of the function arrives, Infinity if none is on its way. */
  get nextInterruptPs(): number {
    return this.#raised[0]?.arrivesPs ?? Number.POSITIVE_INFINITY;
  }

  /** Whether it never runs again: ended, or halted with interrupts off. */
  get isDead(): boolean {
    if (this.#end !== undefined) return true;
    return this.isHalted && (this.#core.cpu.flags[0]! & interruptFlag) === 0;
  }

  nowMs(): number {
    this.#count();
    return this.clock.nowMs;
  }

  random32(): number {
    return this.#numbers.next();
  }

  serialOutput(port: number, byte: number): void {
    this.onSerial(port, byte);
  }

  frameOutput(frame: Uint8Array): void {
    this.onFrame(frame.slice());
  }

  /** A frame arrives at its Ethernet card. */
  receive(frame: Uint8Array): void {
    this.#core.frameInput(frame);
  }

  setMac(mac: Uint8Array): void {
    this.#core.setMac(mac);
  }

  /** Types bytes into a serial port. */
  type(port: number, bytes: Uint8Array): void {
    this.#core.serialInput(port, bytes);
  }

  /** The device has raised the interrupt of a descriptor: the processor gets it before a quantum, after all earlier ones. */
  raise(descriptor: number): void {
    if (this.function.faults.isRemoved) return;
    const delayPs = this.#chance.interruptDelayPs();
    const before = this.#raised.at(-1)?.arrivesPs ?? 0;
    const arrivesPs = delayPs === 0 ? before : Math.max(before, this.#time.instantPs + delayPs);
    this.#raised.push({ descriptor, arrivesPs });
  }

  /** Everything that its software can see, but for the function, of which only the writes of configuration space are kept. */
  async snapshot(): Promise<PcSnapshot> {
    const state = new Uint8Array(await this.#core.saveState());
    return {
      state,
      instructionCount: this.clock.instructionCount,
      account: this.clock.account,
      wakesAtPs: this.wakesAtPs,
      random: this.#numbers.state,
      configWrites: [...this.function.configWrites],
    };
  }

  /** Continues from a snapshot of a PC whose function no driver had used yet. */
  async restore({
    state,
    instructionCount,
    account,
    wakesAtPs,
    random,
    configWrites,
  }: PcSnapshot): Promise<void> {
    await outsideOfMicrotasks(() => {
      for (const [offset, value, lengthBytes] of configWrites)
        this.function.configWrite(offset, value, lengthBytes);
    });
    this.clock.continueFrom(instructionCount, account, this.#core.cpu.instruction_counter[0]!);
    this.wakesAtPs = wakesAtPs;
    this.#numbers.state = random;
    // v86 sets its timestamp counter by the clock, which must have the snapshot's instant by then.
    await this.#core.restoreState(state.buffer);
    await outsideOfMicrotasks(() => this.#time.follow(this.clock.nowPs));
    this.#accessesPs = this.clock.accessesPs;
    this.beginProfile();
    this.#entries?.restored();
  }

  /** Runs about this number of instructions, with their stores; fewer if one of them ends the quantum. */
  runQuantum(instructions: number): void {
    this.quantumCount++;
    this.#takeInterrupts();
    const beganPs = this.clock.nowPs;
    const before = this.clock.instructionCount;
    this.#profile?.position.begin();
    const timerMs = this.#core.run(this.#chance.quantum(instructions));
    this.#count();
    this.#profile?.quantumEnded(this.clock.instructionCount - before);
    const extraPs = this.#chance.extraPs(this.clock.nowPs - beganPs);
    if (extraPs > 0) this.clock.delayed(extraPs);
    this.wakesAtPs = this.clock.nowPs + (timerMs > 0 ? Math.ceil(timerMs * psPerMs) : soonPs);
    this.#time.follow(this.clock.nowPs);
    if (!this.function.settle()) return;
    this.#storesSettled();
    const stallPs = this.#chance.stallPs();
    if (stallPs === 0) return;
    this.clock.delayed(stallPs);
    this.#time.follow(this.clock.nowPs);
  }

  /** Brings its clock to an instant, which the halted processor has slept through. */
  sleepUntil(instantPs: number): void {
    this.clock.sleptUntil(instantPs);
    this.#time.follow(this.clock.nowPs);
    if (this.function.settle()) this.#storesSettled();
  }

  /** @throws ConfigurationError unless all of the range is memory */
  readMemory(address: number, lengthBytes: number): Uint8Array {
    const { mem8 } = this.#core.cpu;
    if (!(address >= 0 && lengthBytes >= 0 && address + lengthBytes <= mem8.length))
      throw new ConfigurationError('address', address, `within the ${mem8.length} bytes of memory`);
    return mem8.slice(address, address + lengthBytes);
  }

  /** Memory at a linear address of the code that runs; undefined unless all of its pages are present. */
  readLinear(address: number, lengthBytes: number): Uint8Array | undefined {
    return this.#tablesOf(this.#core.cpu.cr[3]! >>> 0).bytesAt(address, lengthBytes);
  }

  #tablesOf(cr3: number): PageTables {
    const { mem8, cr } = this.#core.cpu;
    return new PageTables(mem8, cr3, (cr[4]! & physicalAddressExtension) !== 0);
  }

  #makeProfile({ programOf, kernel }: PcProfileOptions): void {
    const { cpu } = this.#core;
    const profile = new PcProfile(new CorePosition(cpu), (cr3) => programOf?.(this.#tablesOf(cr3)));
    this.#profile = profile;
    this.#accessesPs = this.clock.accessesPs;
    if (kernel !== undefined) {
      const { clock } = this;
      const core = this.#core;
      const count = (): void => this.#count();
      this.#entries = new KernelEntries(kernel, {
        get privilege() {
          return cpu.cpl[0]!;
        },
        get registers() {
          return cpu.reg32;
        },
        get account() {
          count();
          return clock.accountAfter(core.partialCount);
        },
        get instructionCount() {
          return clock.instructionCount + core.partialCount;
        },
        memoryBytes: cpu.mem8.length,
        get program() {
          return profile.programAt(cpu.cr[3]! >>> 0);
        },
        bytesAt: (address, lengthBytes) => this.readLinear(address, lengthBytes),
      });
    }
    this.beginProfile();
  }

  #accessed(kind: AccessKind): void {
    if (this.#profile === undefined) return;
    const { accessesPs } = this.clock;
    const { cpl, cr } = this.#core.cpu;
    this.#profile.accessed(kind, cpl[0]!, cr[3]! >>> 0, accessesPs - this.#accessesPs);
    this.#entries?.accessed(kind);
    this.#accessesPs = accessesPs;
  }

  #takeInterrupts(): void {
    const { nowPs } = this.clock;
    if (this.nextInterruptPs > nowPs) return;
    if (this.#core.cpu.in_hlt[0] === 1) this.clock.woke();
    while (this.nextInterruptPs <= nowPs) {
      const { descriptor } = this.#raised.shift()!;
      this.clock.interrupted();
      const message = this.function.messageOf(descriptor);
      if (message === undefined) this.#raisePin();
      else this.#deliver(message.address, message.data);
    }
  }

  /** A message of fixed delivery to the one processor sets its vector's bit in the interrupt request register. */
  #deliver(address: number, data: number): void {
    if (Math.floor(address / MIB) * MIB !== localApicAddress) return;
    this.interrupts.messages++;
    const vector = data & vectorMask;
    this.#entries?.deviceInterrupt(vector);
    this.#core.act((cpu) => {
      const request = new Uint32Array(cpu.wasm_memory.buffer, cpu.get_apic_addr() + requestRegisterOffset, 8);
      request[vector >> 5]! |= 1 << (vector & 31);
      cpu.handle_irqs();
    });
  }

  #raisePin(): void {
    this.interrupts.pins++;
    this.#isPinRaised = true;
    this.#core.act((cpu) => cpu.device_raise_irq(hcaLine));
  }

  /** As QEMU does with a level that vfio has masked: the guest's store has served it, or it is raised again. */
  #storesSettled(): void {
    this.cutQuantumCount++;
    if (!this.#isPinRaised) return;
    this.#isPinRaised = false;
    this.#core.act((cpu) => cpu.device_lower_irq(hcaLine));
    this.function.unmaskPin();
  }

  #storeWaits(): void {
    this.clock.stored();
    const delayPs = this.#chance.storeDelayPs();
    if (delayPs > 0) this.function.hold(delayPs);
    this.#core.endQuantum();
  }

  #beforeAccess(): void {
    this.#count();
    this.#time.follow(this.clock.nowPs);
  }

  #count(): void {
    if (this.#core !== undefined) this.clock.count(this.#core.cpu.instruction_counter[0]!);
  }
}

const interruptFlag = 1 << 9;
/** CR4.PAE. */
const physicalAddressExtension = 1 << 5;
