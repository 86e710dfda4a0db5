/**
 * What the kernel driver needs of the machine it runs on. The host fits these interfaces by structure; the
 * driver imports nothing of it. All waiting is for simulated time.
 */

/** Why a core's cycles were spent. Every cycle of a core has exactly one cause. */
export type CpuCause =
  | 'post'
  | 'poll'
  | 'systemCall'
  | 'pin'
  | 'copy'
  | 'interrupt'
  | 'contextSwitch'
  | 'driver'
  | 'application'
  | 'idle';

/** A thread of control on one core: a program, a system call on its behalf, or an interrupt handler. */
export interface Cpu {
  readonly coreIndex: number;
  /** The core's own time in picoseconds: simulated time plus the cycles charged and not yet waited for. */
  readonly localPs: number;
  /** The same, counted from the epoch of simulated time: for listeners that are called when a new one begins. */
  readonly ownPs: number;
  /** Counts the core's own time from now on. */
  stopwatch(): Stopwatch;
  /** Spends cycles now, without waiting: the core's own time runs ahead until {@link settle}. */
  charge(cause: CpuCause, cycles: number): void;
  /** Waits until simulated time has caught up with the core's own time. */
  settle(): Promise<void>;
  /** No interrupt and no other thread takes the core before its own time as it is now: the end of what spin_lock_irqsave begins. */
  keepCore(): void;
  /** Gives the core up for at least this long. */
  sleep(durationPs: number): Promise<void>;
  /** Uncached 32-bit load from device space: a non-posted read, the core stalls for its completion. The cause is the driver by default. */
  mmioRead32(address: number, cause?: CpuCause): Promise<number>;
  /**
   * Uncached 32-bit store to device space; `value` is the little-endian value on the bus. Posted: it leaves
   * the core in program order at the core's own time, behind all memory stores issued before.
   */
  mmioWrite32(address: number, value: number): void;
  /**
   * Store to memory, up to a page, that leaves the core right ahead of its next store to device space and not before: what a device reads by
   * itself must not be there while simulated time is behind the core's own.
   */
  storeMemory(physicalAddress: number, bytes: Uint8Array): void;
}

/** Time counted since an instant. */
export interface Stopwatch {
  readonly elapsedPs: number;
  /** The same, exact also where a number is not: from 2^53 on. */
  readonly exactElapsedPs: number | bigint;
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
  readonly sizeBytes: number;
  /** What there is of it so far, indexed by physical address. Not to be kept: taken anew after frames have been taken. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /**
   * Takes `count` physically contiguous frames of 4 KiB, zeroed.
   * @returns the physical address, or -1 when there are none (ENOMEM)
   */
  allocateFrames(count: number): number;
  /** Frames that were just taken are the device's until they are freed: no software writes to them. */
  leaveToDevice(address: number, count: number): void;
  freeFrames(address: number, count: number): void;
}

/** Interrupt vectors of the device. @template Thread what a handler runs as */
export interface InterruptLines<Thread extends Cpu = Cpu> {
  /** Number of MSI-X messages the platform can deliver to this device. */
  readonly vectorCount: number;
  /** Message address and data to programme into MSI-X table entry `vector`. */
  messageFor(vector: number): { readonly address: number; readonly data: number };
  /** Installs the handler of a vector; it runs in interrupt context on the vector's core, where it must not sleep. */
  attach(vector: number, handler: (cpu: Thread) => Promise<void>): void;
  /** Removes it; a later interrupt on the vector is counted as spurious. */
  detach(vector: number): void;
  /**
   * The legacy pin, for a device whose MSI-X test fails. The handler must make the device deassert it. Absent: the
   * platform has no legacy interrupts, and such a device is not driven at all.
   */
  readonly legacy?: LegacyInterrupt<Thread>;
}

/** The INTx pin of the device. */
export interface LegacyInterrupt<Thread extends Cpu = Cpu> {
  attach(handler: (cpu: Thread) => Promise<void>): void;
  detach(): void;
}

/** What a system call is for: setting up, or moving data (the report shows 0 of these for polling programs). */
export type SystemCallPath = 'control' | 'dataPath';

/** A user process's memory, as the kernel's memory management has it. */
export interface ProcessMemory {
  readonly processId: number;
  /**
   * Pins the pages under [address, address + lengthBytes) for the device: present, the process's own, and held.
   * @param access whether the device will write; memory that the process may write is pinned for writing in any case, as
   *   mlx4 does. Left out: it will
   * @returns physical addresses of the 4 KiB pages in order, or an errno: EFAULT (not mapped, or not to be written),
   *   ENOMEM (RLIMIT_MEMLOCK would be passed, or no memory). Nothing stays pinned on an error.
   */
  pin(
    cpu: Cpu,
    address: number,
    lengthBytes: number,
    access?: 'read' | 'write',
  ): PinnedPages | 'EFAULT' | 'ENOMEM';
  /** Drops one pin of every page. */
  unpin(cpu: Cpu, pages: PinnedPages): void;
  /**
   * Makes a page present for the device without pinning it, for on-demand regions. Absent, with the two below: the host has
   * no on-demand paging.
   * @returns its physical address, or an errno as {@link pin}
   */
  holdPage?(cpu: Cpu, address: number, access: 'read' | 'write'): Promise<number | 'EFAULT' | 'ENOMEM'>;
  /** Gives back what {@link holdPage} gave: the device cannot reach it any more. */
  releasePages?(cpu: Cpu, pages: readonly number[], access: 'read' | 'write'): void;
  /** Calls `watcher` before translations of the process go away. Returns how to take it back. */
  watchPages?(watcher: PageWatcher): () => void;
  /** Maps `lengthBytes` of device space (a doorbell page) into the process; returns its user address. */
  mapDevice(physicalAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number;
  unmapDevice(userAddress: number): void;
}

/** Who lets a device reach pages that are not pinned; each is named by its address. None of these may wait. */
interface PageWatcher {
  /** Translations of [start, end) are about to change, by this thread if there is one. */
  invalidate(cpu: Cpu | undefined, start: number, end: number): void;
  /** Whether the device may still reach the page. */
  holds(page: number): boolean;
  /** Reclaim would take the page, and passes it over while it is held. */
  wanted(page: number): void;
}

export interface PinnedPages {
  /** First byte and length of what was asked for. */
  readonly address: number;
  readonly lengthBytes: number;
  /** 4 KiB pages that the range touches. */
  readonly pageCount: number;
  /** Physical address of each, in order; of memory that repeats those of one stretch: page k is `pages[k % pages.length]`. */
  readonly pages: readonly number[];
  /** The device may write to them: the process could when they were pinned (ib_umem.writable of Linux). */
  readonly isWritable: boolean;
}

/** Cycle costs of what the driver does. Fields are cycles of the core. */
interface DriverCosts {
  readonly commandPost: number;
  readonly commandComplete: number;
  readonly registerRegionFixed: number;
  readonly registerRegionPerPage: number;
  readonly deregisterRegionFixed: number;
  readonly deregisterRegionPerPage: number;
  readonly createObject: number;
  readonly interruptHandler: number;
  readonly eventDispatch: number;
}

/** Times are the core's own, `ownPs`; a WQE counter has 16 bits. */
interface KernelOperations {
  opened(qpNumber: number, wqeCount: number): void;
  closed(qpNumber: number): void;
  posted(qpNumber: number, wqeCounter: number, opcode: number, ownPs: number): void;
  completed(qpNumber: number, wqeCounter: number, ownPs: number): void;
}

/** A port of the subnet, as a table of static neighbours names it. */
export interface Neighbour {
  /** IPv4 address as text. */
  readonly address: string;
  readonly portGuid: bigint;
  /** 48 bits; what counts where ports are of Ethernet. */
  readonly mac: number;
}

/** The machine under the driver. */
export interface DriverPlatform {
  readonly pci: PciFunction;
  readonly memory: KernelMemory;
  readonly interrupts: InterruptLines;
  readonly costs: DriverCosts;
  /** 32 random bits, by the seed of the machine (get_random_u32). */
  randomBits(): number;
  newSignal(): Signal;
  /**
   * Counts one system call that this thread makes, and charges its entry and return. The driver calls it once at the
   * start of each of its entry points. Absent: system calls are neither counted nor charged.
   */
  systemCallEntered?(cpu: Cpu, name: string, path: SystemCallPath): void;
  /** The thread is in a call that must not be left half-way: a process that is killed ends behind it. */
  kernelEntered?(cpu: Cpu): void;
  kernelLeft?(cpu: Cpu): void;
  /** Counts simulated time from now on, for time limits. */
  stopwatch(): Stopwatch;
  /**
   * Calls `due` after this time, outside of any thread. Absent: the driver does without its health timer, and connections
   * without time limits.
   * @param purpose a check of the device's health, which keeps no run going, or what a protocol waits for
   */
  startTimer?(delayPs: number, due: () => void, purpose: 'health' | 'protocol'): void;
  /** Notified of the work requests of the kernel's own QPs, as a library's tap is of a program's. Absent: not counted. */
  readonly operations?: KernelOperations;
  /**
   * Ports that this host finds by their addresses, its own among them. Absent: connections are not managed, and a port of Ethernet
   * has link-local addresses alone.
   */
  readonly neighbours?: readonly Neighbour[];
  /** Takes a line for the kernel's log. Absent: nothing is kept. */
  log?(text: string): void;
  /** Starts a kernel thread (workqueue item) on a core; it must end by itself. */
  spawn(name: string, body: (cpu: Cpu) => Promise<void>): void;
}
