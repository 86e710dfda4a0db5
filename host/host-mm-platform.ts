/**
 * The host as memory management sees it: the running thread's time and cycles, interrupts between cores, kswapd.
 *
 *     shootdown ── delivery time ──> interrupt on the other core: the handler's cycles
 *     below "low" ──> kswapd, a kernel thread on the core that noticed: it works until "high" and ends
 *
 * A kswapd that finds no reclaimable page is not restarted for a tenth of a second (Linux: HZ / 10).
 */
import { nsToPs, type Picoseconds } from '../base/index.ts';
import { type LogicalProcess, PHASE_HARDWARE } from '../sim/index.ts';
import type { Core } from './core.ts';
import type { CoreThread } from './core-thread.ts';
import { ProcessKilledError } from './host-error.ts';
import type { AddressSpace, MemoryCause, MemoryManager, MmPlatform } from './mm/index.ts';
import type { Process } from './process.ts';
import { instantOf } from './signal.ts';

export interface HostMmPlatformOptions {
  readonly process: LogicalProcess;
  /** The cores; filled before the first use. */
  readonly cores: readonly Core[];
  readonly deliveryNs: number;
  readonly kernel: MmKernel;
}

/** Services of the rest of the kernel for memory management. */
export interface MmKernel {
  /** Starts a kernel thread on the core of the running thread. */
  spawn(name: string, body: (cpu: CoreThread) => Promise<void>): void;
  /** The process that owns the memory. */
  processOf(space: AddressSpace): Process | undefined;
}

/** Number beyond the interrupt controller's lines, served before all others. */
const shootdownVector = 2 ** 20;
const batchPages = 32;
const firstPriority = 12;
const idleAfterFailurePs = 100e9;

export class HostMmPlatform implements MmPlatform {
  readonly #options: HostMmPlatformOptions;
  readonly #deliveryPs: Picoseconds;
  readonly #deliverHandler: number;
  readonly #writebackHandler: number;
  /** Cycles of arrived shootdowns that are not served yet, by core. */
  readonly #pendingCycles: number[] = [];
  #mm: MemoryManager | undefined;
  #isReclaiming = false;
  #reclaimFromPs = 0;

  constructor(options: HostMmPlatformOptions) {
    this.#options = options;
    this.#deliveryPs = nsToPs(options.deliveryNs);
    const { queue } = options.process;
    this.#deliverHandler = queue.addHandler((core, cycles) => this.#deliver(core, cycles), PHASE_HARDWARE);
    this.#writebackHandler = queue.addHandler(() => this.#mm!.writebackDue(), PHASE_HARDWARE);
  }

  /** The memory manager that it serves. */
  start(mm: MemoryManager): void {
    this.#mm = mm;
  }

  runningCore(): number {
    const { cores } = this.#options;
    for (let index = 0; index < cores.length; index++) if (cores[index]!.running !== undefined) return index;
    return -1;
  }

  instantPs(): Picoseconds {
    return instantOf(this.#options.cores);
  }

  get epochUs(): number {
    return this.#options.process.epochUs;
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#reclaimFromPs -= ps;
  }

  charge(cause: MemoryCause, cycles: number): void {
    if (cycles > 0) this.runningThread()?.charge(cause, cycles);
  }

  waitUntil(atPs: Picoseconds): void {
    const thread = this.runningThread();
    if (thread === undefined) return;
    const { core } = thread;
    const cycles = core.clock.cycleAtOrAfter(atPs) - core.localCycle;
    if (cycles > 0) thread.charge('swapWait', cycles);
  }

  interruptCores(cores: readonly number[], cycles: number): void {
    const atPs = this.instantPs() + this.#deliveryPs;
    for (const core of cores) this.#options.process.queue.schedule(atPs, this.#deliverHandler, core, cycles);
  }

  callAt(atPs: Picoseconds): void {
    const { process } = this.#options;
    process.queue.schedule(Math.max(atPs, process.nowPs), this.#writebackHandler);
  }

  kill(space: AddressSpace): void {
    const process = this.#options.kernel.processOf(space);
    if (process === undefined) return;
    process.kill('out of memory');
    const running = this.runningThread();
    if (running !== undefined && process.threads.has(running) && running.kernelDepth === 0)
      throw new ProcessKilledError(process.name, 'out of memory');
  }

  isShootdown(vector: number): boolean {
    return vector === shootdownVector;
  }

  /** The interrupt of a shootdown, on its target core. */
  async serveShootdown(cpu: CoreThread): Promise<void> {
    cpu.charge('interrupt', this.#pendingCycles[cpu.coreIndex] ?? 0);
    this.#pendingCycles[cpu.coreIndex] = 0;
    await cpu.settle();
  }

  wakeReclaim(): void {
    if (this.#isReclaiming || this.instantPs() < this.#reclaimFromPs) return;
    this.#isReclaiming = true;
    this.#mm!.counts.kswapdWakeUps++;
    this.#options.kernel.spawn('kswapd', (cpu) => this.#reclaimUntilHigh(cpu));
  }

  async #reclaimUntilHigh(cpu: CoreThread): Promise<void> {
    const { frames, reclaim, highFrames } = this.#mm!;
    for (let priority = firstPriority; priority >= 0; ) {
      reclaim.completeWriteback(cpu.ownPs);
      if (frames.freeCount >= highFrames) break;
      if (frames.freeCount + reclaim.writebackCount >= highFrames) {
        await cpu.sleep(Math.max(0, reclaim.writebackDonePs - cpu.ownPs));
        continue;
      }
      priority = reclaim.shrink(batchPages, priority) === 0 ? priority - 1 : firstPriority;
      if (priority < 0) this.#reclaimFromPs = cpu.ownPs + idleAfterFailurePs;
      await cpu.settle();
    }
    this.#isReclaiming = false;
  }

  #deliver(core: number, cycles: number): void {
    const pending = this.#pendingCycles[core] ?? 0;
    this.#pendingCycles[core] = pending + cycles;
    // A pending shootdown also serves this one.
    if (pending === 0) this.#options.cores[core]!.interrupt(shootdownVector);
  }

  /** The thread that this core runs now; undefined between threads. */
  runningThread(): CoreThread | undefined {
    const index = this.runningCore();
    return index < 0 ? undefined : this.#options.cores[index]!.running;
  }
}
