/**
 * Services that the network stack and the NIC's driver need of their machine: those of a device driver (driver/platform.ts),
 * timers, copy costs and more causes of cycles. The host fits these interfaces by structure; nothing here imports it. All waits
 * are in simulated time.
 */
import type {
  CpuCause as DriverCause,
  Cpu as DriverCpu,
  InterruptLines,
  KernelMemory,
  PciFunction,
  Signal,
  Stopwatch,
  SystemCallPath,
} from '../driver/index.ts';

export type { KernelMemory, Signal } from '../driver/index.ts';

/** Why a core's cycles were spent. Every cycle of a core has exactly one cause. */
type CpuCause = DriverCause | 'softirq' | 'protocol' | 'checksum' | 'socket' | 'wakeUp';

/** A thread of control on one core: a program, a system call on its behalf, a kernel thread or an interrupt handler. */
export interface Cpu extends DriverCpu {
  charge(cause: CpuCause, cycles: number): void;
}

/** A user process's memory. Both calls fault pages in and may yield the core meanwhile. */
export interface UserMemory {
  readonly processId: number;
  /** Reads user bytes. @returns false if some page is not mapped (EFAULT) */
  load(cpu: Cpu, address: number, target: Uint8Array): Promise<boolean>;
  /** Writes user bytes. @returns false if some page is not mapped or not writable (EFAULT) */
  store(cpu: Cpu, address: number, source: Uint8Array): Promise<boolean>;
}

/** Notified when a new epoch of simulated time begins: subtracts `ps` from every instant that it keeps. */
interface TimeKeeper {
  rebase(ps: number): void;
}

/** Copy costs in the machine's own cost profile. */
interface MachineCosts {
  readonly copyFixed: number;
  readonly copyBytesPerCycle: number;
}

/** The machine under the stack. */
export interface NetPlatform {
  readonly pci: PciFunction;
  readonly memory: KernelMemory;
  readonly interrupts: InterruptLines<Cpu>;
  readonly costs: MachineCosts;
  newSignal(): Signal;
  /** Simulated time in picoseconds of the epoch, and the start of the epoch. */
  nowPs(): number;
  epochUs(): number;
  /** Adds an object that keeps instants of the epoch: {@link TimeKeeper}. */
  addTimeKeeper(keeper: TimeKeeper): void;
  /** Counts simulated time from now on. */
  stopwatch(): Stopwatch;
  /** Calls `due` after this time, outside of any thread. */
  startTimer(delayPs: number, due: () => void): void;
  /** Starts a kernel thread on the core of the running thread; it preempts the program there. */
  spawn(name: string, body: (cpu: Cpu) => Promise<void>): void;
  /** Whether another thread of any level waits for this thread's core. */
  isCoreWanted(cpu: Cpu): boolean;
  /** Counts one system call of this thread, and charges its entry and return. */
  systemCallEntered(cpu: Cpu, name: string, path: SystemCallPath): void;
  /** The thread is in a part of a call that must not be interrupted: a killed process ends after it. */
  kernelEntered(cpu: Cpu): void;
  kernelLeft(cpu: Cpu): void;
  /** Receives a line for the kernel's log. Absent: the line is discarded. */
  log?(text: string): void;
}
