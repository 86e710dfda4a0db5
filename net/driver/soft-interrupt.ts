/**
 * From interrupt to polling, fair to programs.
 *
 *     interrupt ─► handler: the device has masked itself ─► poll, poll … in interrupt context ─┬─ ring empty: unmask
 *                                                                                              │
 *             budget of frames used up, or more than the fair share of the core used recently ─┘
 *                          └─► kernel thread: poll ─► rest while a program wants the core ─► poll … ─► unmask
 *
 * Promises: while a program wants the core, interrupts and polling use no more than their share in the long run, regardless of
 * the number of frames or interrupts. Time beyond the share is a debt: it grows with time spent, shrinks with elapsed time, and
 * is paid by rests with interrupts off. A core that no program wants polls without rest. Source: Linux net_rx_action,
 * __do_softirq (budget, 2 ms) and ksoftirqd.
 */
import { nsToPs, psPerUs, usToPs } from '../../base/index.ts';
import type { NetStatistics } from '../net-statistics.ts';
import type { NetCostConfig, NetDriverConfig } from '../parameters.ts';
import type { Cpu, NetPlatform } from '../platform.ts';

/** Device that is polled. */
export interface Polled {
  /** Handles up to `weight` received frames. @returns how many; fewer than `weight` means that none is left */
  poll(cpu: Cpu, weight: number): Promise<number>;
  /** Re-enables the device's interrupts: it interrupts at once if a frame arrived meanwhile. */
  unmask(cpu: Cpu): void;
}

export class SoftInterrupt {
  /** Polling is in progress: the device is masked. */
  isScheduled = false;
  isStopped = false;
  readonly #platform: NetPlatform;
  readonly #config: NetDriverConfig;
  readonly #costs: NetCostConfig;
  readonly #counts: NetStatistics;
  readonly #polled: Polled;
  readonly #overheadPs: number;
  readonly #limitPs: number;
  readonly #share: number;
  #debtPs = 0;
  #debtAtPs = 0;

  constructor(
    platform: NetPlatform,
    config: NetDriverConfig,
    costs: NetCostConfig,
    counts: NetStatistics,
    polled: Polled,
  ) {
    this.#platform = platform;
    this.#config = config;
    this.#costs = costs;
    this.#counts = counts;
    this.#polled = polled;
    this.#overheadPs = nsToPs(config.interruptOverheadNs);
    this.#limitPs = usToPs(config.softirqTimeUs);
    this.#share = config.softirqSharePercent / 100;
    platform.addTimeKeeper(this);
  }

  /** Handles a new epoch: see TimeKeeper. */
  rebase(ps: number): void {
    this.#debtAtPs -= ps;
  }

  /** The handler of the data vector, in interrupt context. */
  async interrupt(cpu: Cpu): Promise<void> {
    const from = new OwnInstant(this.#platform, cpu.ownPs - this.#overheadPs);
    this.#counts.interrupts++;
    cpu.charge('interrupt', this.#costs.interruptHandler);
    await cpu.settle();
    if (this.isScheduled || this.isStopped) {
      this.#spent(from.ps, cpu.ownPs);
      return;
    }
    this.isScheduled = true;
    cpu.charge('softirq', this.#costs.softirqEntry);
    let isDone = this.#debtPs <= this.#limitPs && (await this.#pollHere(cpu, from));
    if (isDone && this.#spent(from.ps, cpu.ownPs) > this.#limitPs) isDone = false;
    if (isDone) this.#finish(cpu);
    else this.#defer();
  }

  /** Polls from a kernel thread: for the watchdog, which has found a frame that no interrupt announced. */
  schedule(): void {
    if (this.isScheduled || this.isStopped) return;
    this.isScheduled = true;
    this.#defer();
  }

  /** @returns whether the ring was found empty within the budget */
  async #pollHere(cpu: Cpu, from: OwnInstant): Promise<boolean> {
    const { pollWeight, softirqBudget } = this.#config;
    for (let handled = 0; handled < softirqBudget; ) {
      const count = await this.#polled.poll(cpu, pollWeight);
      if (this.isStopped || count < pollWeight) return true;
      handled += count;
      if (cpu.ownPs - from.ps > this.#limitPs) break;
    }
    this.#spent(from.ps, cpu.ownPs);
    return false;
  }

  #defer(): void {
    this.#counts.pollThreads++;
    this.#platform.spawn('ksoftirqd', (cpu) => this.#thread(cpu));
  }

  async #thread(cpu: Cpu): Promise<void> {
    const { pollWeight } = this.#config;
    cpu.charge('softirq', this.#costs.softirqEntry);
    await this.#rest(cpu);
    for (;;) {
      const from = new OwnInstant(this.#platform, cpu.ownPs);
      const count = this.isStopped ? 0 : await this.#polled.poll(cpu, pollWeight);
      this.#spent(from.ps, cpu.ownPs);
      await this.#rest(cpu);
      if (count < pollWeight) break;
    }
    this.#finish(cpu);
    await cpu.settle();
  }

  #finish(cpu: Cpu): void {
    this.isScheduled = false;
    if (!this.isStopped) this.#polled.unmask(cpu);
  }

  /** Yields the core to other threads until the debt is paid; if no other thread waits, the debt is cancelled. */
  async #rest(cpu: Cpu): Promise<void> {
    await cpu.settle();
    const debtPs = this.#spent(cpu.ownPs, cpu.ownPs);
    if (!this.#platform.isCoreWanted(cpu)) {
      this.#debtPs = 0;
      return;
    }
    if (debtPs <= 0) return;
    this.#counts.pollRests++;
    await cpu.sleep(debtPs / this.#share);
  }

  /** Adds time spent, and subtracts the share of elapsed time. @returns the debt */
  #spent(fromPs: number, untilPs: number): number {
    const passedPs = Math.max(0, untilPs - this.#debtAtPs);
    this.#debtAtPs = Math.max(untilPs, this.#debtAtPs);
    this.#debtPs = Math.max(0, this.#debtPs + (untilPs - fromPs) - passedPs * this.#share);
    return this.#debtPs;
  }
}

/** An instant of a thread's own time that remains valid over epochs. */
class OwnInstant {
  readonly #platform: NetPlatform;
  readonly #epochUs: number;
  readonly #ps: number;

  constructor(platform: NetPlatform, ps: number) {
    this.#platform = platform;
    this.#epochUs = platform.epochUs();
    this.#ps = ps;
  }

  /** Time counted from the present epoch. */
  get ps(): number {
    return this.#ps - (this.#platform.epochUs() - this.#epochUs) * psPerUs;
  }
}
