/**
 * Requirements of memory management on its host: the running thread, its time, and interrupts to other cores.
 *
 * **The rule for synchronous access.** A program's load or store completes at once, while simulated time stands still. Its
 * costs (fault, zeroing, copy, walk) are charged to the running thread, whose own time advances. If it must wait for a device,
 * {@link waitUntil} advances the thread's own time to the device's completion, like a stalled core. The effect on memory is
 * immediate. That is safe: no device can reach a frame that changes its owner this way, since pinned frames are never
 * reclaimed, and page tables change in the order in which the threads' code runs, which is the same in every run. Waits of
 * other threads are not affected; they may be served before the thread's own time, as on a machine with a very fast lock.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { AddressSpace } from './address-space.ts';

export type MemoryCause = 'memory' | 'reclaim' | 'swapWait';

export interface MmPlatform {
  /** Core of the thread whose code runs; -1 if none does (a read from outside the simulation). */
  runningCore(): number;
  /** Own time of the running thread in picoseconds of the epoch, else simulated time. */
  instantPs(): Picoseconds;
  /** Start of the epoch. */
  readonly epochUs: number;
  /** Charges cycles to the running thread; does nothing if none runs. */
  charge(cause: MemoryCause, cycles: number): void;
  /** Stalls the running thread until this instant of its own time. */
  waitUntil(atPs: Picoseconds): void;
  /** Interrupts other cores to empty their TLBs; the handler costs each `cycles`. */
  interruptCores(cores: readonly number[], cycles: number): void;
  /** Free memory is below the low watermark. */
  wakeReclaim(): void;
  /** Schedules {@link MemoryManager.writebackDue} at an instant. */
  callAt(atPs: Picoseconds): void;
  /** The out-of-memory killer has chosen this process: it never runs its program again. */
  kill(space: AddressSpace): void;
}

/** Memory management without cores: only waits advance time. */
export class BarePlatform implements MmPlatform {
  nowPs = 0;
  readonly epochUs = 0;
  readonly killed: AddressSpace[] = [];
  reclaimWakeUps = 0;

  runningCore(): number {
    return -1;
  }

  instantPs(): Picoseconds {
    return this.nowPs;
  }

  charge(): void {}

  waitUntil(atPs: Picoseconds): void {
    this.nowPs = Math.max(this.nowPs, atPs);
  }

  interruptCores(): void {}

  wakeReclaim(): void {
    this.reclaimWakeUps++;
  }

  callAt(): void {}

  kill(space: AddressSpace): void {
    this.killed.push(space);
  }
}
