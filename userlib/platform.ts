/**
 * Services that the user-space verbs library needs of its process. The host fits these interfaces by structure; the library
 * imports nothing of it.
 */

import type {
  Cpu as KernelCpu,
  KernelDevice,
  ProcessMemory as KernelProcessMemory,
} from '../driver/index.ts';
import type { IbvCompChannel, IbvCq, IbvQp, IbvRecvWr, IbvSendWr, IbvSrq, IbvTargetQp } from './objects.ts';

/** Causes to which the library charges cycles; the host has more of them. */
export type UserCause = 'post' | 'poll' | 'copy' | 'application';

/**
 * The core that runs the program.
 *
 * Stores are pushed into the core's store buffer and become visible, in program order, at the core's own time
 * of the next {@link UserCpu.commit}. So a verb that posts never waits, and a device cannot see a work request
 * before the instant at which the processor would have stored it.
 */
export interface UserCpu {
  /** The core's own time in picoseconds; see `ownPs` of the driver's Cpu. */
  readonly localPs: number;
  readonly ownPs: number;
  /** Store buffer contents as bytes and as the processor's words (little-endian); filled at the offsets that the push calls return. */
  readonly storeBytes: Uint8Array;
  readonly storeView: DataView;
  readonly storeWords: Int32Array;
  /** Reserves a store of `lengthBytes` (at most 4096) to physical memory. Returns its byte offset in {@link storeBytes}. */
  pushMemoryStore(physicalAddress: number, lengthBytes: number): number;
  /**
   * Reserves a store to device space. Uncached: `lengthBytes` is 4 or 8, one TLP. Write-combining: up to 256 bytes, combined in
   * 64-byte buffers and flushed by the host's rules.
   */
  pushDeviceStore(busAddress: number, lengthBytes: number, kind: 'uncached' | 'writeCombining'): number;
  /** Charges `cycles` and makes the pushed stores visible at the resulting own time of the core. */
  commit(cause: UserCause, cycles: number): void;
  charge(cause: UserCause, cycles: number): void;
  settle(): Promise<void>;
  /**
   * Spins until `isReady()` holds: it is evaluated at once and again after each write that the device makes
   * to the 4 KiB page of `physicalAddress`. The time is charged to polling in whole rounds of `roundCycles`.
   */
  spin(physicalAddress: number, roundCycles: number, isReady: () => boolean): Promise<void>;
  /**
   * `settle`, then `spin`, then `take` at the instant when the condition is found to hold.
   * @param timeoutPs ends the spin after that time even if the condition does not hold
   * @returns the result of `take`
   */
  spinThen<T>(
    physicalAddress: number,
    roundCycles: number,
    isReady: () => boolean,
    take: () => T | Promise<T>,
    timeoutPs?: number,
  ): Promise<T>;
  /** Records the call in which the thread waits, and its object, for the error of a run that cannot continue; undefined: none. */
  waitsIn(describe: (() => string) | undefined): void;
}

/** Virtual memory of the process, as its own loads and stores see it. */
export interface UserMemory {
  /** Physical memory, indexed by the result of {@link physicalAddress}: the effect of the processor's MMU. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** The same memory at this instant: faster, but must not be kept, since memory grows. */
  readonly bytesNow: Uint8Array;
  readonly viewNow: DataView;
  /** Anonymous pages. @returns the user address, or -1 (ENOMEM). */
  map(lengthBytes: number): number;
  /** Memory for queues: present at once, and never moved until it is unmapped. @returns as {@link map} */
  mapQueue(lengthBytes: number): number;
  unmap(address: number, lengthBytes: number): void;
  /**
   * @returns the physical address of a user address, or -1 if it is not mapped. The page is faulted in; it stays there
   *   as long as it is pinned, or queue memory
   */
  physicalAddress(address: number): number;
  /**
   * Notifies `listener` before translations of [start, end) are removed or replaced (mmu_notifier), in the middle of the system
   * call that does so: it must not wait. Absent if memory is never removed. @returns a function that cancels it
   */
  onInvalidate?(listener: InvalidationListener): () => void;
}

/** Notified with the reason: `unmap`, `clear` (the page is replaced), `protect` (rights withdrawn), `release` (the process ends). */
export interface InvalidationListener {
  invalidate(start: number, end: number, reason: string): void;
}

/** Cycle costs of the data path. */
export interface VerbsCosts {
  readonly postSend: number;
  readonly postSendPerSegment: number;
  readonly postSendPerInlineByte64: number;
  readonly postRecv: number;
  readonly pollEmpty: number;
  readonly pollCompletion: number;
  readonly readDmaLine: number;
  readonly mmioStore: number;
  readonly copyFixed: number;
  readonly copyBytesPerCycle: number;
}

/** Notified of buffers that the device owns, to check the contract of use. Times are the core's own, `ownPs`. */
export interface BufferWatch {
  sendPosted(qpNumber: number, wqeCounter: number, wr: IbvSendWr, ownPs: number): void;
  /** This request and earlier ones of its queue. */
  sendCompleted(qpNumber: number, wqeCounter: number): void;
  /** @param slot index in a shared receive queue; -1 in the FIFO queue of a QP */
  receivePosted(queue: string, slot: number, wr: IbvRecvWr, ownPs: number): void;
  receiveCompleted(queue: string, slot: number): void;
  /** The QP was destroyed or reset. */
  forgotten(qpNumber: number): void;
}

/**
 * Notified of calls and their results, to explain requests that fail or never end. `place` is the calling line of the program,
 * from {@link CallWatch.place} when the call began.
 */
export interface CallWatch {
  /** The calling line of the program; undefined if it is unknown. */
  place(): string | undefined;
  /** A QP (by number), a region (by key) or a CQ (by number) was created or destroyed. */
  made(kind: 'QP' | 'MR' | 'CQ', number: number, place: string | undefined): void;
  unmade(kind: 'QP' | 'MR' | 'CQ', number: number, place: string | undefined): void;
  /** The QP entered a state. */
  modified(qp: IbvQp | IbvTargetQp, place: string | undefined): void;
  sendPosted(qp: IbvQp, wqeCounter: number, wr: IbvSendWr, ownPs: number): void;
  receivesPosted(queue: IbvQp | IbvSrq, count: number): void;
  /** A post returned an error number. */
  refused(call: string, queue: IbvQp | IbvSrq, errno: number, wr: IbvSendWr | IbvRecvWr): void;
  /** A poll found this number of completions. */
  polled(cq: IbvCq, count: number): void;
  armed(cq: IbvCq, isSolicitedOnly: boolean): void;
  /** The thread waits for an event of the channel; it received that of a CQ. */
  awaitsEvent(channel: IbvCompChannel): void;
  gotEvent(cq: IbvCq): void;
  /** The limit of a shared receive queue was armed. */
  limitArmed(): void;
  /** The thread waits for an asynchronous event; it has received the event. */
  awaitsAsyncEvent(): void;
  gotAsyncEvent(isOfLimit: boolean): void;
  /** A request call of rdma_cm, by its name in C, with its address or port. */
  connectionCalled(call: string, detail: string): void;
  /** The thread waits for an event of rdma_cm; it has received the event, by its name in C. */
  awaitsConnectionEvent(): void;
  gotConnectionEvent(event: string, status: number): void;
}

/**
 * Notified of every work request of the data path, for a report that follows operations: at the core's own time in picoseconds,
 * `ownPs`. A completion identifies the work request by its WQE counter at posting; unsignalled ones complete silently with the
 * next signalled one.
 */
export interface OperationTap {
  readonly watch?: BufferWatch | undefined;
  readonly calls?: CallWatch | undefined;
  /** A QP was created that can have this number of outstanding requests, rounded up to a power of two; or it was destroyed. */
  opened(qpNumber: number, requestCount: number): void;
  closed(qpNumber: number): void;
  /** `wqeCounter` runs freely in 16 bits; `opcode` is the WQE's. */
  posted(qpNumber: number, wqeCounter: number, opcode: number, ownPs: number): void;
  completed(qpNumber: number, wqeCounter: number, ownPs: number): void;
}

/** The thread that uses an object of the library; the kernel is entered on the same thread. */
export type VerbsCpu = UserCpu & KernelCpu;

/** The process in which a program runs, as seen by one of its threads: the library uses it to list and open devices. */
export interface VerbsPlatform {
  readonly cpu: VerbsCpu;
  readonly memory: UserMemory & KernelProcessMemory;
  readonly costs: VerbsCosts;
  /** The devices that the kernel drives. */
  readonly devices: readonly KernelDevice[];
  /** Called if defined; costs nothing otherwise. */
  readonly tap?: OperationTap;
  /**
   * Cycles for which a post waits for those of other threads of the process, if it has `cycles` left before its store.
   * Absent: posts do not delay each other.
   */
  waitToPost?(cycles: number): number;
  /** Notified of each copy that the processor makes for the program. Absent: copies are not counted. */
  copied?(lengthBytes: number): void;
  /**
   * Calls `hook` when the process ends, before its memory is freed: the kernel closes the device files that are still open.
   * @returns a function that cancels it
   */
  onExit?(hook: (cpu: KernelCpu) => Promise<void>): () => void;
}
