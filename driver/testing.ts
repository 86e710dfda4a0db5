/**
 * A machine for the driver's specs: memory, a core whose waits take no real time, and a device that takes commands at its
 * registers, remembers each one, and answers by a script. It decodes contexts only as far as raising events requires; hw/hca
 * and the system tests cover the behaviour of a real device.
 */
import { bar0 } from '../abi/bar-map.ts';
import { type CommandName, commandNameOf } from '../abi/commands.ts';
import { eqc } from '../abi/eqc.ts';
import { commandEqe, completionEqe, EventType, eqeBytes, portChangeEqe } from '../abi/eqe.ts';
import { hcr, hcrGoOffset } from '../abi/hcr.ts';
import { icmPageBytes, mapEntry } from '../abi/map-icm.ts';
import { mttEntry } from '../abi/mtt.ts';
import { msixTableEntry } from '../abi/pci/index.ts';
import { viewOf } from '../base/bytes.ts';
import { passBit } from '../base/ring-index.ts';
import { roundUp } from '../base/units.ts';
import type { Cpu, CpuCause, DriverPlatform } from './platform.ts';
import { TestProcess, TestSignal } from './testing-process.ts';

/** A command as the device saw it. */
export interface SeenCommand {
  readonly name: CommandName;
  readonly opcodeModifier: number;
  readonly inputModifier: number;
  readonly event: number;
  readonly toggle: number;
  readonly token: number;
  readonly inParam: bigint;
  readonly outParam: bigint;
  /** The first 512 bytes of the mailbox, if in_param is its address. */
  readonly input: Uint8Array;
}

export interface Answer {
  readonly status?: number;
  readonly immediate?: bigint;
  /** Bytes for the output mailbox. */
  readonly output?: Uint8Array;
  /** The command is accepted and never answered. */
  readonly isLost?: boolean;
}

export type Script = (command: SeenCommand) => Answer | undefined;

const bar0Address = 0x1_0000_0000;
const bar2Address = 0x1_1000_0000;
const bar2Bytes = 0x200_0000;

export class TestMachine {
  /** Shared, like a machine's own memory: unshared memory would trigger the garbage collector for each machine. */
  readonly memory = new Uint8Array(new SharedArrayBuffer(96 * 2 ** 20));
  readonly view = viewOf(this.memory);
  readonly commands: SeenCommand[] = [];
  /** Writes to BAR2: offset and bytes as they lie on the bus, low address first. */
  readonly doorbells: { readonly offset: number; readonly value: number }[] = [];
  readonly charged = new Map<CpuCause, number>();
  readonly systemCalls: string[] = [];
  script: Script = () => undefined;
  /** False: events are written, but no interrupt is raised. */
  interruptsWork = true;
  /** Frames that can still be allocated. */
  framesLeft = Number.POSITIVE_INFINITY;
  framesTaken = 0;
  /** Addresses of pages that the driver promises not to write. */
  readonly pagesLeft = new Set<number>();
  time = 0;
  ownerValue = 0;
  resetCount = 0;
  /** Writes to the clear-interrupt register. */
  legacyClears = 0;
  readonly cpu: Cpu;
  readonly platform: DriverPlatform;
  private readonly registers = new Uint8Array(hcr.sizeBytes);
  private readonly registerView = viewOf(this.registers);
  private readonly config = new Map<number, number>();
  private readonly handlers = new Map<number, (cpu: Cpu) => Promise<void>>();
  private legacyHandler: ((cpu: Cpu) => Promise<void>) | undefined;
  private readonly freeRuns: { address: number; count: number }[] = [];
  private readonly icmPages = new Map<number, number>();
  private readonly eqs = new Map<
    number,
    { readonly context: ReturnType<typeof eqc.decode>; producer: number }
  >();
  private mttBase = 0;
  private asyncEqn = -1;
  private readonly msix = new Uint8Array(128 * msixTableEntry.sizeBytes);
  private nextFrame = 1;

  constructor(hasLegacyPin = false) {
    this.cpu = this.newCpu();
    const platform = this.newPlatform();
    const legacy = {
      attach: (handler: (cpu: Cpu) => Promise<void>) => {
        this.legacyHandler = handler;
      },
      detach: () => {
        this.legacyHandler = undefined;
      },
    };
    this.platform = hasLegacyPin ? { ...platform, interrupts: { ...platform.interrupts, legacy } } : platform;
    this.config.set(0x00, 0x1003_15b3);
    this.config.set(0x34, 0x9c);
    this.config.set(0x9c, (127 << 16) | 0x11);
    this.config.set(0xa0, bar0.registers.msixTable.offset);
  }

  /** Names of the commands so far. */
  names(): CommandName[] {
    return this.commands.map(({ name }) => name);
  }

  last(name: CommandName): SeenCommand {
    return this.commands.findLast((command) => command.name === name)!;
  }

  /** A process whose pages are physical ones; `limitPages` is its RLIMIT_MEMLOCK. */
  newProcess(limitPages = Number.POSITIVE_INFINITY): TestProcess {
    return new TestProcess(this, limitPages);
  }

  /** The device writes an event and raises its queue's interrupt. */
  async raise(eqn: number, write: (address: number, owner: number) => void): Promise<void> {
    const eq = this.eqs.get(eqn)!;
    const { logEntries, mttAddress, interruptNumber, logPageSize4k } = eq.context;
    const offset = (eq.producer % 2 ** logEntries) * eqeBytes;
    const pageBytes = icmPageBytes * 2 ** logPageSize4k;
    const entry = this.icmAddress(this.mttBase + mttAddress + Math.floor(offset / pageBytes) * 8);
    const address = mttEntry.fields.pageAddress.getNumber(this.view, entry) + (offset % pageBytes);
    write(address, passBit(eq.producer, logEntries));
    eq.producer++;
    if (this.interruptsWork) await this.handlers.get(interruptNumber)?.(this.cpu);
    else await this.legacyHandler?.(this.cpu);
  }

  raiseCompletion(eqn: number, cqn: number): Promise<void> {
    return this.raise(eqn, (at, owner) => completionEqe.encodeInto({ cqn, owner }, this.memory, at));
  }

  raisePort(subtype: number, port: number): Promise<void> {
    const type = EventType.PORT_CHANGE;
    return this.raise(this.asyncEqn, (at, owner) =>
      portChangeEqe.encodeInto({ type, subtype, port, owner }, this.memory, at),
    );
  }

  get asyncEq(): number {
    return this.asyncEqn;
  }

  /** Host address of a byte of ICM. */
  icmAddress(icmAddress: number): number {
    const page = this.icmPages.get(Math.floor(icmAddress / icmPageBytes));
    if (page === undefined) throw new Error(`ICM 0x${icmAddress.toString(16)} is not mapped`);
    return page + (icmAddress % icmPageBytes);
  }

  /** Pages of ICM that are mapped. */
  get icmPageCount(): number {
    return this.icmPages.size;
  }

  private newCpu(): Cpu {
    const charge = (cause: CpuCause, cycles: number): void => {
      this.charged.set(cause, (this.charged.get(cause) ?? 0) + cycles);
    };
    const machine = this;
    return {
      coreIndex: 0,
      get localPs() {
        return machine.time;
      },
      get ownPs() {
        return machine.time;
      },
      stopwatch: () => machine.platform.stopwatch(),
      charge,
      settle: async () => {},
      keepCore: () => {},
      sleep: async (durationPs) => {
        this.time += durationPs;
      },
      mmioRead32: async (address) => this.read(address),
      mmioWrite32: (address, value) => this.write(address, value),
      storeMemory: (address, bytes) => this.platform.memory.bytes.set(bytes, address),
    };
  }

  private newPlatform(): DriverPlatform {
    return {
      pci: {
        bars: [
          { address: bar0Address, sizeBytes: bar0.sizeBytes },
          { address: 0, sizeBytes: 0 },
          { address: bar2Address, sizeBytes: bar2Bytes },
        ],
        readConfig32: async (_cpu, offset) => this.config.get(offset) ?? 0,
        writeConfig32: async (_cpu, offset, value) => void this.config.set(offset, value),
      },
      memory: {
        sizeBytes: this.memory.length,
        bytes: this.memory,
        view: this.view,
        allocateFrames: (count) => this.allocate(count),
        leaveToDevice: (address, count) => {
          for (let at = 0; at < count; at++) this.pagesLeft.add(address + at * icmPageBytes);
        },
        freeFrames: (address, count) => this.free(address, count),
      },
      interrupts: {
        vectorCount: 3,
        messageFor: (vector) => ({ address: 0xfee0_0000, data: vector }),
        attach: (vector, handler) => void this.handlers.set(vector, handler),
        detach: (vector) => void this.handlers.delete(vector),
      },
      costs: {
        commandPost: 100,
        commandComplete: 10,
        registerRegionFixed: 1000,
        registerRegionPerPage: 7,
        deregisterRegionFixed: 500,
        deregisterRegionPerPage: 3,
        createObject: 20,
        interruptHandler: 50,
        eventDispatch: 5,
      },
      randomBits: () => 0,
      newSignal: () => new TestSignal(this),
      stopwatch: () => {
        const startPs = this.time;
        const machine = this;
        return {
          get elapsedPs() {
            return machine.time - startPs;
          },
          get exactElapsedPs() {
            return machine.time - startPs;
          },
        };
      },
      spawn: (_name, body) => void body(this.cpu),
      systemCallEntered: (_cpu, name) => void this.systemCalls.push(name),
    };
  }

  private allocate(count: number): number {
    if (count > this.framesLeft - this.framesTaken) return -1;
    const at = this.freeRuns.findIndex((run) => run.count === count);
    const address = at >= 0 ? this.freeRuns.splice(at, 1)[0]!.address : this.takeFresh(count);
    if (address < 0) return -1;
    this.framesTaken += count;
    this.memory.fill(0, address, address + count * icmPageBytes);
    return address;
  }

  private takeFresh(count: number): number {
    const first = roundUp(this.nextFrame, count);
    if ((first + count) * icmPageBytes > this.memory.length) return -1;
    this.nextFrame = first + count;
    return first * icmPageBytes;
  }

  private free(address: number, count: number): void {
    this.framesTaken -= count;
    this.freeRuns.push({ address, count });
  }

  private read(address: number): number {
    const offset = address - bar0Address;
    const { owner, semaphore } = bar0.registers;
    if (offset === owner.offset) return this.ownerValue;
    if (offset === semaphore.offset) return 0;
    return this.registerView.getUint32(offset - bar0.registers.hcr.offset, true);
  }

  private write(address: number, value: number): void {
    if (address >= bar2Address) {
      this.doorbells.push({ offset: address - bar2Address, value });
      return;
    }
    const offset = address - bar0Address;
    const { reset, owner, msixTable, clearInterrupt } = bar0.registers;
    if (offset === reset.offset) this.reset();
    else if (offset === owner.offset) this.ownerValue = value;
    else if (offset >= clearInterrupt.offset && offset < clearInterrupt.offset + 8) this.legacyClears++;
    else if (offset >= msixTable.offset && offset < msixTable.offset + this.msix.length) {
      viewOf(this.msix).setUint32(offset - msixTable.offset, value, true);
    } else {
      this.registerView.setUint32(offset - bar0.registers.hcr.offset, value, true);
      if (offset - bar0.registers.hcr.offset === hcrGoOffset) this.execute();
    }
  }

  private reset(): void {
    this.resetCount++;
    this.registers.fill(0);
    this.eqs.clear();
    this.icmPages.clear();
  }

  private execute(): void {
    const posted = hcr.decode(this.registers);
    const name = commandNameOf(posted.opcode)!;
    const hasMailbox = posted.inParam > 0n && posted.inParam + 512n < BigInt(this.memory.length);
    const at = Number(posted.inParam);
    const input = hasMailbox ? this.memory.slice(at, at + 512) : new Uint8Array(512);
    const command: SeenCommand = { name, ...posted, input };
    this.commands.push(command);
    const answer = this.script(command) ?? {};
    if ((answer.status ?? 0) === 0) this.track(command);
    if (answer.output !== undefined) this.memory.set(answer.output, Number(posted.outParam));
    if (answer.isLost === true) {
      if (posted.event === 1) this.registerView.setUint32(hcrGoOffset, 0);
      return;
    }
    hcr.fields.go.set(this.registerView, 0, 0);
    if (posted.event === 0) {
      hcr.fields.status.set(this.registerView, 0, answer.status ?? 0);
      if (answer.immediate !== undefined) hcr.fields.outParam.set(this.registerView, 0, answer.immediate);
      return;
    }
    const outParam = answer.immediate ?? 0n;
    const values = { type: EventType.CMD, token: posted.token, status: answer.status ?? 0, outParam };
    void this.raise(this.asyncEqn, (to, owner) =>
      commandEqe.encodeInto({ ...values, owner }, this.memory, to),
    );
  }

  /** Data that the device needs to find its event queues. */
  private track(command: SeenCommand): void {
    if (command.name === 'MAP_ICM') {
      for (let entry = 0; entry < command.inputModifier; entry++) {
        const { icmAddress, physicalAddress, logSize4k } = mapEntry.decode(
          this.memory,
          Number(command.inParam) + entry * mapEntry.sizeBytes,
        );
        for (let page = 0; page < 2 ** logSize4k; page++) {
          this.icmPages.set(
            Number(icmAddress) / icmPageBytes + page,
            Number(physicalAddress) + page * icmPageBytes,
          );
        }
      }
    }
    if (command.name === 'UNMAP_ICM') {
      for (let page = 0; page < command.inputModifier; page++) {
        this.icmPages.delete(Number(command.inParam) / icmPageBytes + page);
      }
    }
    if (command.name === 'INIT_HCA') this.mttBase = Number(viewOf(command.input).getBigUint64(0x100));
    if (command.name === 'SW2HW_EQ') this.startEq(command);
    if (command.name === 'MAP_EQ') this.asyncEqn = command.inputModifier & 0xff;
  }

  private startEq(command: SeenCommand): void {
    const context = eqc.decode(command.input);
    this.eqs.set(command.inputModifier, { context, producer: 0 });
    const bytes = 2 ** context.logEntries * eqeBytes;
    const pageBytes = icmPageBytes * 2 ** context.logPageSize4k;
    for (let offset = 0; offset < bytes; offset += eqeBytes) {
      const entry = this.icmAddress(this.mttBase + context.mttAddress + Math.floor(offset / pageBytes) * 8);
      const page = mttEntry.fields.pageAddress.getNumber(this.view, entry);
      this.memory[page + (offset % pageBytes) + eqeBytes - 1] = 0x80;
    }
  }
}
