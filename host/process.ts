/**
 * A process: an address space, limits, and the steps at its end.
 *
 *     program ends ─> exit hooks, the latest first (the driver destroys remaining objects) ─> memory is unmapped
 *
 * {@link ProcessMemory} is the process's memory as the driver (pins, device windows) and the verbs library (loads
 * and stores) see it; it fits the interfaces of both by structure.
 */
import type { CoreThread } from './core-thread.ts';
import { ProcessKilledError } from './host-error.ts';
import type { CostConfig } from './host-parameters.ts';
import type { IommuDomain } from './iommu-domain.ts';
import {
  type AddressSpace,
  accessLater,
  holdForDevice,
  type InvalidationListener,
  type MapOptions,
  type PinAccess,
  type PinnedPages,
  pageBytes,
  pageCountOf,
  releaseFromDevice,
  userAccessLater,
} from './mm/index.ts';
import type { PhysicalMemory } from './physical-memory.ts';
import type { PostSection } from './post-section.ts';
import { threadOf } from './signal.ts';

/** Purpose of a system call: set-up or data transfer. */
export type SystemCallPath = 'control' | 'dataPath';

/** System calls counted by purpose. */
export class SystemCallStatistics {
  control = 0;
  dataPath = 0;
  readonly byName = new Map<string, number>();

  add(name: string, path: SystemCallPath): void {
    this[path]++;
    this.byName.set(name, (this.byName.get(name) ?? 0) + 1);
  }
}

/** A driver whose device reaches unpinned pages. Pages are named by their address. */
export interface PageWatcher {
  /** Translations of [start, end) are about to change. */
  invalidate(cpu: CoreThread | undefined, start: number, end: number): void;
  /** Whether the device may still reach the page. */
  holds(page: number): boolean;
  /** Reclaim wants the page. */
  wanted(page: number): void;
}

/** The cores, as the code that changes translations sees them. */
interface RunningCores {
  /** The thread that this core runs now; undefined between threads. */
  runningThread(): CoreThread | undefined;
}

export class ProcessMemory {
  readonly processId: number;
  readonly space: AddressSpace;
  /** Physical memory, indexed by the result of {@link physicalAddress}. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  readonly #memory: PhysicalMemory;
  readonly #cost: CostConfig;
  readonly #iommu: IommuDomain | undefined;
  readonly #cores: RunningCores;
  readonly #mappedForWriting = new WeakSet<PinnedPages>();

  constructor(
    processId: number,
    space: AddressSpace,
    memory: PhysicalMemory,
    cost: CostConfig,
    iommu: IommuDomain | undefined,
    cores: RunningCores,
  ) {
    this.processId = processId;
    this.space = space;
    this.#memory = memory;
    this.bytes = memory.followingBytes;
    this.view = memory.followingView;
    this.#cost = cost;
    this.#iommu = iommu;
    this.#cores = cores;
  }

  /** {@link bytes} at this instant: faster, but must not be kept, since memory grows. */
  get bytesNow(): Uint8Array {
    return this.#memory.bytes;
  }

  /** {@link view} at this instant: see {@link bytesNow}. */
  get viewNow(): DataView {
    return this.#memory.view;
  }

  /** Maps anonymous memory, allocated on first touch. @returns the user address, or -1 (ENOMEM) */
  map(lengthBytes: number): number {
    return this.space.map(lengthBytes);
  }

  /** Maps memory of another kind. @returns the user address, or -1 (ENOMEM) */
  mapWith(lengthBytes: number, options: MapOptions): number {
    return this.space.mapWith(lengthBytes, options);
  }

  /** Memory for queues: present at once, and in the same frames until it is unmapped. @returns as {@link map} */
  mapQueue(lengthBytes: number): number {
    return this.space.mapWith(lengthBytes, { isStable: true });
  }

  unmap(address: number, lengthBytes: number): void {
    this.space.unmap(address, lengthBytes);
  }

  /** Calls `listener` before translations of the process are removed. @returns a function that cancels it */
  onInvalidate(listener: InvalidationListener): () => void {
    return this.space.onInvalidate(listener);
  }

  /**
   * Physical address of a user address, faulted in as for a write (or for a read, if writing is not allowed). It stays there
   * while it is pinned or queue memory. @returns -1 if it is not mapped
   */
  physicalAddress(address: number): number {
    return this.space.locate(address);
  }

  /** Makes every page of a range present for an access. @returns false if some page is not mapped, or memory is exhausted */
  async touch(cpu: CoreThread, address: number, lengthBytes: number, isWrite: boolean): Promise<boolean> {
    return this.#forEachPage(cpu, address, lengthBytes, isWrite, () => {});
  }

  /** Reads, yielding the core while a page is read from a device. @returns as {@link touch} */
  async load(cpu: CoreThread, address: number, target: Uint8Array): Promise<boolean> {
    return this.#forEachPage(cpu, address, target.length, false, (physical, offset, length) => {
      target.set(this.bytes.subarray(physical, physical + length), offset);
    });
  }

  /** Writes, yielding the core while a page is read from a device. @returns as {@link touch}; earlier pages are written */
  async store(cpu: CoreThread, address: number, source: Uint8Array): Promise<boolean> {
    return this.#forEachPage(cpu, address, source.length, true, (physical, offset, length) => {
      this.bytes.set(source.subarray(offset, offset + length), physical);
    });
  }

  async #forEachPage(
    cpu: CoreThread,
    address: number,
    lengthBytes: number,
    isWrite: boolean,
    visit: (physical: number, offset: number, length: number) => void,
  ): Promise<boolean> {
    const { mm } = this.space;
    let isAgain = false;
    for (let done = 0; done < lengthBytes; ) {
      const length = Math.min(lengthBytes - done, pageBytes - ((address + done) % pageBytes));
      const physical = this.space.access(address + done, isWrite, userAccessLater, isAgain);
      isAgain = physical === accessLater;
      if (isAgain) {
        await cpu.sleep(Math.max(0, mm.retryPs - cpu.ownPs));
        continue;
      }
      if (physical < 0) return false;
      visit(physical, done, length);
      done += length;
    }
    return true;
  }

  /**
   * Pins the pages of a range for the device; the cycles are charged even if it fails, plus those of faults.
   * @param access `read` pins for the device to read; as mlx4 does, memory that may be written is pinned for writing
   */
  pin(
    cpu: unknown,
    address: number,
    lengthBytes: number,
    access: PinAccess = 'write',
  ): PinnedPages | 'EFAULT' | 'ENOMEM' {
    const isWrite = access === 'write' || this.space.isWritable(address, lengthBytes);
    const pinned = this.space.pin(address, lengthBytes, isWrite ? 'write' : 'read');
    const pageCount = typeof pinned === 'string' ? 1 : pageCountOf(address, lengthBytes);
    threadOf(cpu).charge('pin', this.#cost.pinPerPage * pageCount);
    if (typeof pinned !== 'string' && this.#iommu !== undefined) {
      for (const physical of pinned.pages) this.#iommu.map(physical, isWrite);
      if (isWrite) this.#mappedForWriting.add(pinned);
    }
    return pinned;
  }

  /** Drops one pin of every page. @throws InvariantError for pages that were already released */
  unpin(cpu: unknown, pinned: PinnedPages): void {
    this.#iommu?.unmap(pinned.pages, this.#mappedForWriting.has(pinned));
    this.space.unpin(pinned);
    threadOf(cpu).charge('pin', this.#cost.unpinPerPage * pinned.pageCount);
  }

  /**
   * Makes the page of an address present for the device without pinning it; faults are charged, waits yield the core.
   * @returns its physical address, or an errno: EFAULT (not mapped, or not to be written), ENOMEM
   */
  async holdPage(cpu: unknown, address: number, access: PinAccess): Promise<number | 'EFAULT' | 'ENOMEM'> {
    const thread = threadOf(cpu);
    thread.charge('pin', this.#cost.pinPerPage);
    for (let isAgain = false; ; isAgain = true) {
      const physical = holdForDevice(this.space, address, access, isAgain);
      if (physical === 'later') {
        await thread.sleep(Math.max(0, this.space.mm.retryPs - thread.ownPs));
        continue;
      }
      if (typeof physical === 'number') this.#iommu?.map(physical, access === 'write');
      return physical;
    }
  }

  /** Releases pages that the device can no longer reach. */
  releasePages(cpu: unknown, pages: readonly number[], access: PinAccess): void {
    this.#iommu?.unmap(pages, access === 'write');
    for (const physical of pages) releaseFromDevice(this.space, physical, access);
    threadOf(cpu).charge('pin', this.#cost.unpinPerPage * pages.length);
  }

  /** {@link onInvalidate} for a driver, which also receives the thread that changes the translations, undefined if there is no thread. */
  watchPages(watcher: PageWatcher): () => void {
    return this.space.onInvalidate({
      invalidate: (start, end) => watcher.invalidate(this.#cores.runningThread(), start, end),
      holds: (page) => watcher.holds(page),
      wanted: (page) => watcher.wanted(page),
    });
  }

  mapDevice(physicalAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number {
    return this.space.mapDevice(physicalAddress, lengthBytes, kind);
  }

  unmapDevice(userAddress: number): void {
    this.space.unmapDevice(userAddress);
  }
}

/** Runs a clean-up step when a process ends, on the core of the process's last program. */
export type ExitHook = (cpu: CoreThread) => Promise<void>;

export class Process {
  readonly id: number;
  readonly name: string;
  readonly memory: ProcessMemory;
  readonly systemCalls = new SystemCallStatistics();
  /** Programs of the process that have not ended. */
  programCount = 0;
  isEnded = false;
  /** Why the kernel killed it; undefined if it did not. */
  killReason: string | undefined;
  /** Passed by its posts in turn; undefined if posts do not delay each other. */
  readonly postSection: PostSection | undefined;
  /** Threads that run its programs. */
  readonly threads = new Set<CoreThread>();
  readonly #exitHooks: ExitHook[] = [];

  constructor(name: string, memory: ProcessMemory, postSection?: PostSection) {
    this.id = memory.processId;
    this.postSection = postSection;
    this.name = name;
    this.memory = memory;
  }

  /** Calls `hook` when the process ends, before its memory is freed; later hooks run first. Returns a function that cancels it. */
  onExit(hook: ExitHook): () => void {
    this.#exitHooks.push(hook);
    return () => {
      const at = this.#exitHooks.indexOf(hook);
      if (at >= 0) this.#exitHooks.splice(at, 1);
    };
  }

  /** Ends its programs at their next access or wait outside the kernel (SIGKILL). */
  kill(reason: string): void {
    if (this.isEnded || this.killReason !== undefined) return;
    this.killReason = reason;
    for (const thread of this.threads) thread.kill(new ProcessKilledError(this.name, reason));
  }

  /** Ends the process: runs the hooks and unmaps its memory. */
  async exit(cpu: CoreThread): Promise<void> {
    if (this.isEnded) return;
    this.isEnded = true;
    for (let hook = this.#exitHooks.pop(); hook !== undefined; hook = this.#exitHooks.pop()) await hook(cpu);
    this.memory.space.release();
  }
}
