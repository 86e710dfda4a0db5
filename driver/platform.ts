/**
 * Services that the kernel driver needs of its machine. The host fits these interfaces by structure; the driver imports nothing
 * of it. All waits are in simulated time.
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
  /** The core's own time in picoseconds: simulated time plus charged cycles that have not elapsed yet. */
  readonly localPs: number;
  /**
   * The core's own time, counted from the epoch of simulated time: for listeners that are called when a new epoch
   * begins.
   */
  readonly ownPs: number;
  /** Starts counting the core's own time. */
  stopwatch(): Stopwatch;
  /** Charges cycles without waiting: the core's own time runs ahead until {@link settle}. */
  charge(cause: CpuCause, cycles: number): void;
  /** Waits until simulated time has caught up with the core's own time. */
  settle(): Promise<void>;
  /** Defers interrupts and other threads of the core until its present own time: the end of what spin_lock_irqsave begins. */
  keepCore(): void;
  /** Yields the core for at least this long. */
  sleep(durationPs: number): Promise<void>;
  /** Uncached 32-bit load from device space: a non-posted read; the core stalls until its completion. The cause is the driver by default. */
  mmioRead32(address: number, cause?: CpuCause): Promise<number>;
  /**
   * Uncached 32-bit store to device space; `value` is the little-endian value on the bus. Posted: it leaves the core in program
   * order at the core's own time, after all earlier memory stores.
   */
  mmioWrite32(address: number, value: number): void;
  /**
   * Stores to memory, up to a page. The store becomes visible right before the core's next store to device space: the device
   * must not read it while simulated time is earlier than the core's own time.
   */
  storeMemory(physicalAddress: number, bytes: Uint8Array): void;
}

/** Time elapsed since an instant. */
export interface Stopwatch {
  readonly elapsedPs: number;
  /** Elapsed time, exact even from 2^53 ps on, where it is a bigint. */
  readonly exactElapsedPs: number | bigint;
}

/** A signal: raised by an interrupt handler, awaited by threads. */
export interface Signal {
  /** Wakes every waiting thread; if none waits, lets the next one pass at once. */
  raise(): void;
  /** Yields the core until the signal is raised, or until `timeoutPs` have passed: then false. */
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
  /** The memory allocated so far, indexed by physical address. Do not keep it: get it again after each allocation of frames. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /**
   * Takes `count` physically contiguous frames of 4 KiB, zeroed.
   * @returns the physical address, or -1 if no frames are left (ENOMEM)
   */
  allocateFrames(count: number): number;
  /** Marks newly allocated frames as the device's until they are freed: no software writes to them. */
  leaveToDevice(address: number, count: number): void;
  freeFrames(address: number, count: number): void;
}

/** Interrupt vectors of the device. @template Thread context in which a handler runs */
export interface InterruptLines<Thread extends Cpu = Cpu> {
  /** Number of MSI-X messages the platform can deliver to this device. */
  readonly vectorCount: number;
  /** Message address and data to programme into MSI-X table entry `vector`. */
  messageFor(vector: number): { readonly address: number; readonly data: number };
  /** Installs the handler of a vector; it runs in interrupt context on the vector's core and must not sleep. */
  attach(vector: number, handler: (cpu: Thread) => Promise<void>): void;
  /** Removes it; a later interrupt on the vector is counted as spurious. */
  detach(vector: number): void;
  /**
   * The legacy pin, for a device whose MSI-X test fails. The handler must make the device deassert it. Absent: the platform has
   * no legacy interrupts, and such a device is rejected.
   */
  readonly legacy?: LegacyInterrupt<Thread>;
}

/** The INTx pin of the device. */
export interface LegacyInterrupt<Thread extends Cpu = Cpu> {
  attach(handler: (cpu: Thread) => Promise<void>): void;
  detach(): void;
}

/** Purpose of a system call: set-up or data transfer (the report shows 0 of the latter for polling programs). */
export type SystemCallPath = 'control' | 'dataPath';

/** A user process's memory, as seen by the kernel's memory management. */
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
  /** Releases what {@link holdPage} returned: the device can no longer reach it. */
  releasePages?(cpu: Cpu, pages: readonly number[], access: 'read' | 'write'): void;
  /** Calls `watcher` before translations of the process are removed. @returns a function that cancels it */
  watchPages?(watcher: PageWatcher): () => void;
  /** Maps `lengthBytes` of device space (a doorbell page) into the process; returns its user address. */
  mapDevice(physicalAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number;
  unmapDevice(userAddress: number): void;
}

/** A device that can reach unpinned pages; each is named by its address. These methods must not wait. */
interface PageWatcher {
  /** Translations of [start, end) are about to change, by this thread if it is given. */
  invalidate(cpu: Cpu | undefined, start: number, end: number): void;
  /** Whether the device may still reach the page. */
  holds(page: number): boolean;
  /** Reclaim wants the page, and skips it while it is held. */
  wanted(page: number): void;
}

export interface PinnedPages {
  /** First byte and length of the requested range. */
  readonly address: number;
  readonly lengthBytes: number;
  /** 4 KiB pages that the range touches. */
  readonly pageCount: number;
  /** Physical address of each, in order; for memory that repeats one stretch, those of the stretch: page k is `pages[k % pages.length]`. */
  readonly pages: readonly number[];
  /** Whether the device may write to them: the process could when they were pinned (ib_umem.writable of Linux). */
  readonly isWritable: boolean;
}

/** Cycle costs of the driver's actions. Fields are cycles of the core. */
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
  /** 48 bits; used if the ports are Ethernet. */
  readonly mac: number;
}

/** The machine under the driver. */
export interface DriverPlatform {
  /** Whether the node's management agents answer others on the fabric (management/); left out: no. */
  readonly answersManagement?: boolean;
  readonly pci: PciFunction;
  readonly memory: KernelMemory;
  readonly interrupts: InterruptLines;
  readonly costs: DriverCosts;
  /** 32 random bits from the machine's seed (get_random_u32). */
  randomBits(): number;
  newSignal(): Signal;
  /**
   * Counts one system call that this thread makes, and charges its entry and return. The driver calls it once at the
   * start of each of its entry points. Absent: system calls are neither counted nor charged.
   */
  systemCallEntered?(cpu: Cpu, name: string, path: SystemCallPath): void;
  /** The thread is in a call that must not be interrupted: a killed process ends after it. */
  kernelEntered?(cpu: Cpu): void;
  kernelLeft?(cpu: Cpu): void;
  /** Counts simulated time from now on, for time limits. */
  stopwatch(): Stopwatch;
  /**
   * Calls `due` after this time, outside of any thread. Absent: the driver has no health timer, and connections have no time
   * limits.
   * @param purpose a health check of the device, which does not keep a run alive, or a protocol's timer
   */
  startTimer?(delayPs: number, due: () => void, purpose: 'health' | 'protocol'): void;
  /** Notified of the work requests of the kernel's own QPs, as a library's tap is of a program's. Absent: not counted. */
  readonly operations?: KernelOperations;
  /**
   * Ports that this host finds by their addresses, its own among them. Absent: connections are not managed, and an Ethernet
   * port has only link-local addresses.
   */
  readonly neighbours?: readonly Neighbour[];
  /** Receives a line for the kernel's log. Absent: the line is discarded. */
  log?(text: string): void;
  /** Starts a kernel thread (workqueue item) on a core; it must end by itself. */
  spawn(name: string, body: (cpu: Cpu) => Promise<void>): void;
}
