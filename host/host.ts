/**
 * A host: memory, cores, interrupt controller, processes and the programs they run.
 *
 *     programs ── processes ── address spaces ──┐
 *        │                                       ├── page frames ── physical memory ──┐
 *     cores ── store buffers ────────────────────┘                                    ├── root complex
 *        └─────── interrupt controller ───────────────────────────────────────────────┘
 *
 * At most one program runs on a core. A program is an async function that waits only by its `cpu`. The process exits when its
 * last program returns. A program that throws ends the run with its name and the simulated time.
 */
import { assertRange, bytesPerKib, bytesPerMib, type Picoseconds } from '../base/index.ts';
import { type BlockState, Clock, type ExactPs, type LogicalProcess } from '../sim/index.ts';
import { Core, type CoreKernel } from './core.ts';
import { type CoreThread, levelKernel, levelProgram } from './core-thread.ts';
import { verbsCostsOf } from './costs.ts';
import type { CpuReport } from './cpu-account.ts';
import type { BusMap, DevicePort } from './device-port.ts';
import { CoreBusyError, ProcessKilledError, ProgramFailedError, ProgramStuckError } from './host-error.ts';
import { HostMmPlatform, type MmKernel } from './host-mm-platform.ts';
import type { HostConfig } from './host-parameters.ts';
import {
  InterruptController,
  type InterruptStatistics,
  messageWindowAddress,
  messageWindowBytes,
} from './interrupt-controller.ts';
import { type IommuCosts, IommuDomain, type IommuPort } from './iommu-domain.ts';
import { countedPort, type StoreOwner } from './marked-operation.ts';
import {
  type AddressSpace,
  type FramePlaces,
  MemoryManager,
  type MemoryStatistics,
  PageFrames,
} from './mm/index.ts';
import { PhysicalMemory } from './physical-memory.ts';
import { PostSection } from './post-section.ts';
import {
  type ExitHook,
  Process,
  ProcessMemory,
  type SystemCallPath,
  SystemCallStatistics,
} from './process.ts';
import { instantOf, Signal } from './signal.ts';
import { WriteCombiningBuffers } from './write-combining-buffers.ts';

/** Physical memory allocated at the start: a machine with small transfers needs no more. */
const presentAtFirst = 16 * bytesPerMib;

export interface HostOptions {
  readonly logicalProcess: LogicalProcess;
  readonly config: HostConfig;
  /** Builds the root complex between this memory and interrupt controller and the link; returns its port for a core. */
  readonly connect: (
    memory: PhysicalMemory,
    interrupts: InterruptController,
  ) => (coreIndex: number) => DevicePort;
  /** Traffic class of a device store, by its bus address. */
  readonly busMap: BusMap;
  /** Needed if frames are scattered. */
  readonly framePlaces?: FramePlaces;
}

/** Context of a program. With the driver's devices added, it is the verbs library's platform. */
export interface ProgramContext {
  readonly name: string;
  readonly host: Host;
  readonly cpu: CoreThread;
  readonly process: Process;
  readonly memory: ProcessMemory;
  readonly costs: ReturnType<typeof verbsCostsOf>;
  /** Calls `hook` when the process ends, before its memory is freed. Returns a function that cancels it. */
  onExit(hook: ExitHook): () => void;
}

export type ProgramBody = (context: ProgramContext) => Promise<void>;

/** A program, while it runs and afterwards. */
export interface Program {
  readonly name: string;
  readonly process: Process;
  /** Simulated time at which it had ended, its process's exit included; undefined before. */
  readonly endedPs: ExactPs | undefined;
  /** Makes the waiting program continue with `body` instead of its own code. */
  continueAs(body: ProgramBody): void;
}

export interface HostReport {
  readonly cores: readonly CpuReport[];
  readonly systemCalls: { readonly control: number; readonly dataPath: number };
  readonly interrupts: readonly InterruptStatistics[];
  readonly memory: Readonly<MemoryStatistics>;
  readonly isBalanced: boolean;
}

export class Host implements CoreKernel, MmKernel {
  readonly logicalProcess: LogicalProcess;
  readonly config: HostConfig;
  readonly memory: PhysicalMemory;
  readonly frames: PageFrames;
  /** Areas, page tables, swap: the kernel's memory management. */
  readonly mm: MemoryManager;
  /** The device's access rights, if an IOMMU exists. */
  iommu: IommuDomain | undefined;
  readonly interrupts: InterruptController;
  readonly cores: readonly Core[];
  readonly systemCalls = new SystemCallStatistics();

  readonly #processOfThread = new WeakMap<CoreThread, Process>();
  readonly #processOfSpace = new WeakMap<AddressSpace, Process>();
  readonly #memoryPlatform: HostMmPlatform;
  #processCount = 0;
  readonly #postSections = new Set<PostSection>();

  constructor(options: HostOptions) {
    const { logicalProcess, config } = options;
    this.logicalProcess = logicalProcess;
    logicalProcess.stuckError = () => this.#stuckError();
    this.config = config;
    this.memory = new PhysicalMemory(config.memory.sizeMib * bytesPerMib, presentAtFirst);
    const places = config.memory.framePlacement === 'scattered' ? options.framePlaces : undefined;
    this.frames = new PageFrames(this.memory, config.memory.reservedKib * bytesPerKib, places);
    this.frames.withhold(messageWindowAddress, messageWindowBytes);
    const cores: Core[] = [];
    this.#memoryPlatform = new HostMmPlatform({
      process: logicalProcess,
      cores,
      deliveryNs: config.interrupt.deliveryNs,
      kernel: this,
    });
    this.mm = new MemoryManager({
      memory: this.memory,
      frames: this.frames,
      config,
      platform: this.#memoryPlatform,
      coreCount: config.core.count,
    });
    this.interrupts = new InterruptController(logicalProcess, cores, config.core.count, config.interrupt);
    const portOf = options.connect(this.memory, this.interrupts);
    for (let index = 0; index < config.core.count; index++) {
      cores.push(this.#newCore(index, portOf(index), options.busMap));
    }
    this.cores = cores;
    this.#memoryPlatform.start(this.mm);
    logicalProcess.countCyclesOf(this.cores[0]!.clock);
    logicalProcess.addTimeKeeper(this);
  }

  /** Enables an IOMMU's domain, before the first device is driven. Its faults interrupt on the platform's last vector. */
  useIommu(port: IommuPort, costs: IommuCosts): void {
    const domain = new IommuDomain(port, this.mm, costs);
    this.iommu = domain;
    const { interrupts } = this;
    const vector = interrupts.vectorCount - 1;
    interrupts.attach(vector, async (cpu) => {
      domain.takeFaults();
      await cpu.settle();
    });
    const { address, data } = interrupts.messageFor(vector);
    port.connect({ processor: { faultRecorded: () => interrupts.message(address, data) } });
  }

  /** The running thread's own time in picoseconds of the epoch, or simulated time if none runs. */
  get nowPs(): Picoseconds {
    return instantOf(this.cores);
  }

  /** Start of the epoch. */
  get epochUs(): number {
    return this.logicalProcess.epochUs;
  }

  newSignal(): Signal {
    return new Signal(this);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    for (const core of this.cores) core.rebase(ps);
    const cycles = this.cores[0]!.clock.cyclesOf(ps);
    for (const section of this.#postSections) section.rebase(cycles);
    this.mm.rebase(ps);
    this.#memoryPlatform.rebase(ps);
  }

  newProcess(name: string): Process {
    const { memlockLimitKib } = this.config.memory;
    const limitBytes = memlockLimitKib === 0 ? Number.POSITIVE_INFINITY : memlockLimitKib * bytesPerKib;
    const space = this.mm.newSpace(limitBytes);
    const { memory: physical, config, iommu } = this;
    const memory = new ProcessMemory(
      ++this.#processCount,
      space,
      physical,
      config.cost,
      iommu,
      this.#memoryPlatform,
    );
    const section = this.#newPostSection();
    const process = new Process(name, memory, section);
    if (section !== undefined)
      process.onExit(async () => {
        this.#postSections.delete(section);
      });
    this.#processOfSpace.set(space, process);
    return process;
  }

  #newPostSection(): PostSection | undefined {
    const { cost } = this.config;
    if (cost.postSection === 0 && cost.postSectionPerThread === 0) return undefined;
    const section = new PostSection(cost);
    this.#postSections.add(section);
    return section;
  }

  /**
   * Starts a program on a core, now (or at the running thread's own time), in a new process unless one is given.
   * @throws CoreBusyError if a program runs there
   */
  runProgram(name: string, coreIndex: number, body: ProgramBody, process = this.newProcess(name)): Program {
    const core = this.#coreAt(coreIndex);
    if (core.programName !== undefined) throw new CoreBusyError(coreIndex, core.programName, name);
    const cpu = core.newThread(name, levelProgram);
    const codeOf = (own: ProgramBody) => async (): Promise<void> => {
      await untilKilled(cpu, () => own(context));
      if (--process.programCount === 0) await process.exit(cpu);
    };
    const program = {
      name,
      process,
      endedPs: undefined as ExactPs | undefined,
      continueAs: (other: ProgramBody) => cpu.continueAs(codeOf(other)),
    };
    const context: ProgramContext = {
      name,
      host: this,
      cpu,
      process,
      memory: process.memory,
      costs: verbsCostsOf(this.config.cost),
      onExit: (hook) => process.onExit(hook),
    };
    this.#processOfThread.set(cpu, process);
    this.logicalProcess.addMember();
    process.programCount++;
    process.threads.add(cpu);
    core.start(cpu, this.nowPs, codeOf(body), () => {
      process.threads.delete(cpu);
      program.endedPs = this.logicalProcess.instantPs;
      this.logicalProcess.markEnded();
    });
    return program;
  }

  /**
   * Forks a process: the child runs `body` on a core, with the inherited memory. The caller is charged.
   * @returns its program, or ENOMEM
   * @throws CoreBusyError if a program runs there
   */
  fork(
    cpu: CoreThread,
    parent: Process,
    name: string,
    coreIndex: number,
    body: ProgramBody,
  ): Program | 'ENOMEM' {
    const core = this.#coreAt(coreIndex);
    if (core.programName !== undefined) throw new CoreBusyError(coreIndex, core.programName, name);
    if (core === cpu.core) throw new CoreBusyError(coreIndex, cpu.name, name);
    const child = this.newProcess(name);
    if (!parent.memory.space.fork(child.memory.space)) return 'ENOMEM';
    return this.runProgram(name, coreIndex, body, child);
  }

  /** Starts a kernel thread on the core of the running thread (else core 0): it preempts the program there. */
  spawn(name: string, body: (cpu: CoreThread) => Promise<void>): void {
    const core = this.cores.find(({ running }) => running !== undefined) ?? this.cores[0]!;
    const cpu = core.newThread(name, levelKernel);
    core.start(cpu, this.nowPs, () => body(cpu));
  }

  processOf(space: AddressSpace): Process | undefined {
    return this.#processOfSpace.get(space);
  }

  serveInterrupt(vector: number, cpu: CoreThread): Promise<void> {
    return this.#memoryPlatform.isShootdown(vector)
      ? this.#memoryPlatform.serveShootdown(cpu)
      : this.interrupts.serve(vector, cpu);
  }

  /** Counts a system call of this thread and charges both crossings. */
  systemCallEntered(cpu: CoreThread, name: string, path: SystemCallPath): void {
    const { systemCallEntry, systemCallExit } = this.config.cost;
    cpu.charge('systemCall', systemCallEntry + systemCallExit);
    this.systemCalls.add(name, path);
    if (cpu.operation !== undefined) cpu.operation.systemCalls++;
    this.#processOfThread.get(cpu)?.systemCalls.add(name, path);
  }

  /** State of the host's hardware blocks, by name: see Block.inspect. Memory and its management are left out. */
  inspect(): BlockState {
    const cores = this.cores.map((core) => [`core${core.index}`, core.inspect()]);
    return { interrupts: this.interrupts.inspect(), ...Object.fromEntries(cores) };
  }

  /** Accounts of cores, system calls and interrupts up to now. */
  report(): HostReport {
    const cores = this.cores.map((core) => core.report());
    return {
      cores,
      systemCalls: { control: this.systemCalls.control, dataPath: this.systemCalls.dataPath },
      interrupts: this.interrupts.counts(),
      memory: { ...this.mm.counts },
      isBalanced: cores.every(({ isBalanced }) => isBalanced) && this.interrupts.isBalanced,
    };
  }

  /** The failure of the first thread whose code runs without returning to a wait of its cpu. */
  #stuckError(): ProgramFailedError {
    const { nowPs, name, patienceMs } = this.logicalProcess;
    const running = this.cores.find((core) => core.running !== undefined)?.running;
    return new ProgramFailedError(running?.name ?? name, nowPs, new ProgramStuckError(patienceMs));
  }

  #coreAt(index: number): Core {
    assertRange('coreIndex', index, 0, this.cores.length - 1);
    return this.cores[index]!;
  }

  #newCore(index: number, corePort: DevicePort, busMap: BusMap): Core {
    const { core, cost } = this.config;
    const owner: StoreOwner = { operation: undefined };
    const port = countedPort(corePort, owner);
    const writeCombining = new WriteCombiningBuffers(port, busMap, {
      bufferCount: core.writeCombiningBuffers,
      chunkBytes: core.writeCombiningChunkBytes,
    });
    return new Core({
      index,
      process: this.logicalProcess,
      clock: new Clock(core.clockMHz),
      target: { memory: this.memory, port, busMap, writeCombining, owner },
      cost,
      storeBufferEntries: core.storeBufferEntries,
      storeSpaceBytes: core.storeSpaceKib * bytesPerKib,
      kernel: this,
    });
  }
}

/** Any thrown value, even a proxy: examining it must not throw. */
function isProcessKilled(thrown: unknown): boolean {
  try {
    return thrown instanceof ProcessKilledError;
  } catch {
    return false;
  }
}

/** Runs a program's code. A killed program ends as if it had returned; its uncommitted stores are dropped. */
async function untilKilled(cpu: CoreThread, body: () => Promise<void>): Promise<void> {
  try {
    await body();
  } catch (error) {
    const isKill = cpu.killedBy !== undefined && error === cpu.killedBy;
    if (!isKill && !isProcessKilled(error)) throw error;
    cpu.storeIfAny?.dropUncommitted();
  }
  // The exit of the process runs as kernel code.
  cpu.kernelDepth++;
}
