/**
 * What the network stack and the NIC's driver need of the machine they run on. The host fits these interfaces by
 * structure (it is the driver's platform of driver/platform.ts, with timers and the price of a copy); nothing here
 * imports it. All waiting is for simulated time.
 */

/** Why a core's cycles were spent. Every cycle of a core has exactly one cause. */
export type CpuCause =
  | 'systemCall'
  | 'copy'
  | 'interrupt'
  | 'contextSwitch'
  | 'driver'
  | 'softirq'
  | 'protocol'
  | 'checksum'
  | 'socket'
  | 'wakeUp';

/** A thread of control on one core: a program, a system call on its behalf, a kernel thread or an interrupt handler. */
export interface Cpu {
  readonly coreIndex: number;
  /** The core's own time in picoseconds: simulated time plus the cycles charged and not yet waited for. */
  readonly localPs: number;
  /** Spends cycles now, without waiting: the core's own time runs ahead until {@link settle}. */
  charge(cause: CpuCause, cycles: number): void;
  /** Waits until simulated time has caught up with the core's own time. */
  settle(): Promise<void>;
  /** Gives the core up for at least this long. */
  sleep(durationPs: number): Promise<void>;
  /** Uncached 32-bit load from device space: the core stalls for its completion. */
  mmioRead32(address: number): Promise<number>;
  /** Uncached 32-bit posted store to device space; leaves in program order at the core's own time. */
  mmioWrite32(address: number, value: number): void;
}

/** Something to wait for: raised by an interrupt handler, awaited by threads. */
export interface Signal {
  /** Wakes every thread that waits, or lets the next one that waits through at once. */
  raise(): void;
  /** Gives the core up until the signal is raised, or until `timeoutPs` have passed: then false. */
  wait(cpu: Cpu, timeoutPs?: number): Promise<boolean>;
}

/** Configuration space of the device's PCI function. */
export interface PciFunction {
  readConfig32(cpu: Cpu, offset: number): Promise<number>;
  writeConfig32(cpu: Cpu, offset: number, value: number): Promise<void>;
  /** Bus address assigned to a base address register, and its size in bytes (0: not implemented). */
  readonly bars: readonly { readonly address: number; readonly sizeBytes: number }[];
}

/** Physical memory as the kernel sees it: directly mapped. */
export interface KernelMemory {
  /** All of it, indexed by physical address. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Takes physically contiguous zeroed frames of 4 KiB. @returns the physical address, or -1 when there are none */
  allocateFrames(count: number): number;
  freeFrames(address: number, count: number): void;
}

/** Interrupt vectors of the device. */
export interface InterruptLines {
  /** Number of MSI-X messages the platform can deliver to this device. */
  readonly vectorCount: number;
  /** Message address and data to programme into MSI-X table entry `vector`. */
  messageFor(vector: number): { readonly address: number; readonly data: number };
  /** Installs the handler of a vector; it runs in interrupt context, where it must not sleep. */
  attach(vector: number, handler: (cpu: Cpu) => Promise<void>): void;
  /** Removes it; a later interrupt on the vector is counted as spurious. */
  detach(vector: number): void;
}

/** A user process's memory. Both calls fault pages in and may give the core up meanwhile. */
export interface UserMemory {
  readonly processId: number;
  /** Reads user bytes. @returns false when some page is not mapped (EFAULT) */
  load(cpu: Cpu, address: number, target: Uint8Array): Promise<boolean>;
  /** Writes user bytes. @returns false when some page is not mapped or not writable (EFAULT) */
  store(cpu: Cpu, address: number, source: Uint8Array): Promise<boolean>;
}

/** What the machine's own cost profile says of copies. */
export interface MachineCosts {
  readonly copyFixed: number;
  readonly copyBytesPerCycle: number;
}

/** The machine under the stack. */
export interface NetPlatform {
  readonly pci: PciFunction;
  readonly memory: KernelMemory;
  readonly interrupts: InterruptLines;
  readonly costs: MachineCosts;
  newSignal(): Signal;
  /** Simulated time in picoseconds. */
  nowPs(): number;
  /** Calls `due` after this time, outside of any thread. */
  startTimer(delayPs: number, due: () => void): void;
  /** Starts a kernel thread on the core of the running thread; it preempts the program there. */
  spawn(name: string, body: (cpu: Cpu) => Promise<void>): void;
  /** Whether another thread of any level waits for this thread's core. */
  isCoreWanted(cpu: Cpu): boolean;
  /** Counts one system call of this thread, and charges its entry and return. */
  systemCallEntered(cpu: Cpu, name: string, path: 'control' | 'dataPath'): void;
  /** The thread is in a part of a call that must not be left half-way: a process that is killed ends behind it. */
  kernelEntered(cpu: Cpu): void;
  kernelLeft(cpu: Cpu): void;
  /** Takes a line for the kernel's log. Absent: nothing is kept. */
  log?(text: string): void;
}
