/**
 * Requirements of memory management on its host: the running thread, its time, and interrupts to other cores.
 *
 * **The rule for synchronous access.** A program's load or store completes at once, while simulated time stands still.
 * What it costs (fault, zeroing, copy, walk) is charged to the running thread, whose own time moves ahead; where it must
 * wait for a device, {@link waitUntil} moves the thread's own time to the instant at which the device is done, as a core
 * that stands still. The effect on memory is there at once. That is safe: a frame that changes hands this way is one
 * that no device can reach, since pinned frames are never taken, and everything that threads do to page tables happens in
 * the order in which their code runs, which is the same in every run. The waits of other threads are not affected; they
 * may be served before the thread's own time, as on a machine with a very fast lock.
 */
import type { Picoseconds } from '../../base/index.ts';
import type { AddressSpace } from './address-space.ts';

export type MemoryCause = 'memory' | 'reclaim' | 'swapWait';

export interface MmPlatform {
  /** Core of the thread whose code runs; -1 when none does (a read from outside the simulation). */
  runningCore(): number;
  /** Own time of the running thread in picoseconds of the epoch, else simulated time. */
  instantPs(): Picoseconds;
  /** Begin of the epoch. */
  readonly epochUs: number;
  /** Spends cycles of the running thread; nothing when none runs. */
  charge(cause: MemoryCause, cycles: number): void;
  /** The running thread stands still until this instant of its own time. */
  waitUntil(atPs: Picoseconds): void;
  /** Interrupts other cores to empty their TLBs; the handler costs them `cycles`. */
  interruptCores(cores: readonly number[], cycles: number): void;
  /** Free memory is below the low watermark. */
  wakeReclaim(): void;
  /** Has {@link MemoryManager.writebackDue} called at an instant. */
  callAt(atPs: Picoseconds): void;
  /** The out-of-memory killer has chosen this process: it never runs its program again. */
  kill(space: AddressSpace): void;
}

/** Memory management without cores: time passes only by waiting. */
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
