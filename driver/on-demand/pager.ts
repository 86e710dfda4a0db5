/**
 * The pager of one device: serves its page requests, and evicts its pages.
 *
 *     page request EQE ─► queue ─► kernel thread: pages made present ─► entries written ─► PAGE_FAULT_RESUME
 *     munmap, fork, ... ─┐
 *     reclaim wants it ──┼─► entries cleared ─► leaving ─► kernel thread: INVALIDATE_PAGES ─► frames given back
 *     too many present ──┘   (invalidate doorbell)
 *
 * Promises: a frame is given back only when the device has forgotten its translation and no access is under way; work that a
 * core posts after an invalidation is translated again, since the doorbell of the invalidation reaches the device before that
 * of the work (posted writes keep their order); at most one kernel thread runs, and it ends when no work is left.
 */
import { Bar, EventType, pageRequestEqe, uarOffset } from '../../abi/index.ts';
import type { CommandInterface } from '../command-interface.ts';
import type { DeviceLifecycle } from '../device-lifecycle.ts';
import type { EventQueue } from '../event-queue.ts';
import type { EventRouter } from '../event-router.ts';
import { KernelError } from '../kernel-error.ts';
import { Mutex } from '../mutex.ts';
import type { DriverConfig } from '../parameters.ts';
import type { Cpu, DriverPlatform } from '../platform.ts';
import { type OnDemandRegion, onDemandPageBytes } from './region.ts';

/** Costs of on-demand paging for the driver. */
export interface OnDemandStatistics {
  pageRequests: number;
  /** Requests that failed: not mapped, no right, or no memory. */
  refusedRequests: number;
  /** Requests whose first page was already present. */
  spuriousRequests: number;
  /** Pages made present for the device. */
  pagesEntered: number;
  /** Pages evicted from it, by reason: memory management changed them, reclaim wanted them, or too many were present. */
  pagesInvalidated: number;
  pagesWanted: number;
  pagesEvicted: number;
  /** INVALIDATE_PAGES commands, each for all leaving pages. */
  fences: number;
}

interface PageRequest {
  readonly key: number;
  readonly address: number;
  readonly lengthBytes: number;
  readonly token: number;
}

interface Place {
  readonly region: OnDemandRegion;
  readonly index: number;
}

export interface PagerSetup {
  readonly platform: DriverPlatform;
  readonly config: DriverConfig;
  readonly commands: CommandInterface;
  readonly lifecycle: DeviceLifecycle;
  readonly router: EventRouter;
  readonly asyncEq: EventQueue;
}

/** Part of the present-page limit that one eviction frees. */
const evictedShare = 1 / 8;

export class Pager {
  readonly counts: OnDemandStatistics = {
    pageRequests: 0,
    refusedRequests: 0,
    spuriousRequests: 0,
    pagesEntered: 0,
    pagesInvalidated: 0,
    pagesWanted: 0,
    pagesEvicted: 0,
    fences: 0,
  };
  /** Pages that the device may reach now. */
  presentPages = 0;
  private readonly setup: PagerSetup;
  private readonly presentMax: number;
  private readonly regions = new Map<number, { region: OnDemandRegion; unwatch: () => void }>();
  private readonly requests: PageRequest[] = [];
  /** Pages in order of arrival; those that have left are skipped. */
  private arrivals: Place[] = [];
  private leaving: Place[] = [];
  private readonly fenceLock: Mutex;
  private isAtWork = false;
  private areRequestsMapped = false;

  constructor(setup: PagerSetup) {
    const { platform, config, router } = setup;
    this.setup = setup;
    const quarter = platform.memory.sizeBytes / onDemandPageBytes / 4;
    const max = config.onDemandPagesMax === 0 ? quarter : config.onDemandPagesMax;
    this.presentMax = Math.max(2 * config.pageRequestPagesMax, max);
    this.fenceLock = new Mutex(() => platform.newSignal());
    router.pageRequested = (address) => this.requested(address);
  }

  /** From the first on-demand region on, page requests go to the asynchronous event queue. */
  async open(cpu: Cpu): Promise<void> {
    if (this.areRequestsMapped) return;
    const input = 1n << BigInt(EventType.PAGE_REQUEST);
    await this.setup.commands.execute(cpu, 'MAP_EQ', { input, inputModifier: this.setup.asyncEq.eqn });
    this.areRequestsMapped = true;
  }

  add(key: number, region: OnDemandRegion): void {
    const unwatch = region.process.watchPages({
      invalidate: (cpu, start, end) => this.invalidate(cpu, region, start, end),
      holds: (page) => region.holds(page),
      wanted: (page) => this.wanted(region, page),
    });
    this.regions.set(key, { region, unwatch });
  }

  /** The device no longer has the region: frees all of its pages. */
  async remove(cpu: Cpu, key: number): Promise<void> {
    const { region, unwatch } = this.regions.get(key)!;
    region.isClosed = true;
    this.withdraw(region, 0, region.pageCount);
    await this.fence(cpu);
    unwatch();
    this.regions.delete(key);
    this.arrivals = this.arrivals.filter((place) => place.region !== region);
  }

  private requested(address: number): void {
    const { key, address: wanted, lengthBytes, token } = pageRequestEqe.fields;
    this.counts.pageRequests++;
    this.requests.push({
      key: key.get(this.setup.platform.memory.view, address),
      address: wanted.getNumber(this.setup.platform.memory.view, address),
      lengthBytes: lengthBytes.get(this.setup.platform.memory.view, address),
      token: token.get(this.setup.platform.memory.view, address),
    });
    this.startWork();
  }

  /** Called in the middle of a translation change: nothing here may wait. */
  private invalidate(cpu: Cpu | undefined, region: OnDemandRegion, start: number, end: number): void {
    const first = Math.max(0, region.indexOf(start));
    const last = Math.min(region.pageCount, region.indexOf(end - 1) + 1);
    const count = this.withdraw(region, first, last);
    if (count === 0) return;
    this.counts.pagesInvalidated += count;
    if (cpu !== undefined) this.ringInvalidate(cpu);
    this.startWork();
  }

  private wanted(region: OnDemandRegion, page: number): void {
    const index = region.indexOf(page);
    if (!region.isPresent(index)) return;
    this.counts.pagesWanted += this.withdraw(region, index, index + 1);
    this.startWork();
  }

  private ringInvalidate(cpu: Cpu): void {
    const { address } = this.setup.platform.pci.bars[Bar.UAR]!;
    if (!this.setup.lifecycle.isDead) cpu.mmioWrite32(address + uarOffset.invalidate, 1);
  }

  private withdraw(region: OnDemandRegion, first: number, end: number): number {
    let count = 0;
    for (let index = first; index < end; index++) {
      if (!region.isPresent(index)) continue;
      region.withdraw(index);
      this.leaving.push({ region, index });
      count++;
    }
    this.presentPages -= count;
    return count;
  }

  private startWork(): void {
    if (this.isAtWork || this.setup.lifecycle.isDead) return;
    this.isAtWork = true;
    this.setup.platform.spawn('pager', (cpu) => this.work(cpu));
  }

  private async work(cpu: Cpu): Promise<void> {
    try {
      while (!this.setup.lifecycle.isDead && this.leaving.length + this.requests.length > 0) {
        const request = this.requests.shift();
        if (request !== undefined) await this.serve(cpu, request);
        else await this.fence(cpu);
      }
    } catch (error) {
      // The device has died: the remaining pages are freed with their regions.
      if (!(error instanceof KernelError)) throw error;
    } finally {
      this.isAtWork = false;
    }
  }

  private async serve(cpu: Cpu, { key, address, lengthBytes, token }: PageRequest): Promise<void> {
    const { commands, platform } = this.setup;
    cpu.charge('driver', platform.costs.eventDispatch);
    const region = this.regions.get(key)?.region;
    const isThere = region !== undefined && (await this.makePresent(cpu, region, address, lengthBytes));
    if (!isThere) this.counts.refusedRequests++;
    const command = { inputModifier: token, opcodeModifier: isThere ? 0 : 1 };
    try {
      await commands.execute(cpu, 'PAGE_FAULT_RESUME', command);
    } catch (error) {
      // A QP that was reset meanwhile no longer waits.
      if (!(error instanceof KernelError) || this.setup.lifecycle.isDead) throw error;
    }
  }

  /** @returns whether the first page is present; the following pages are also made present as long as that succeeds */
  private async makePresent(
    cpu: Cpu,
    region: OnDemandRegion,
    address: number,
    lengthBytes: number,
  ): Promise<boolean> {
    const first = region.indexOf(address);
    const last = Math.min(
      region.pageCount - 1,
      region.indexOf(address + Math.max(1, lengthBytes) - 1),
      first + this.setup.config.pageRequestPagesMax - 1,
    );
    if (first < 0 || first >= region.pageCount) return false;
    if (region.isPresent(first)) this.counts.spuriousRequests++;
    for (let index = first; index <= last; index++) {
      const isThere = await this.makeOnePresent(cpu, region, index);
      if (!isThere) return index > first;
    }
    return true;
  }

  private async makeOnePresent(cpu: Cpu, region: OnDemandRegion, index: number): Promise<boolean> {
    while (region.isLeaving(index) || this.presentPages >= this.presentMax) {
      if (!region.isLeaving(index)) this.evict();
      await this.fence(cpu);
    }
    if (region.isClosed) return false;
    if (region.isPresent(index)) return true;
    const physical = await region.process.holdPage(cpu, region.addressOf(index), region.access);
    if (typeof physical === 'string') return false;
    if (region.isClosed) {
      region.process.releasePages(cpu, [physical], region.access);
      return false;
    }
    cpu.charge('pin', this.setup.platform.costs.registerRegionPerPage);
    region.enter(index, physical);
    this.arrivals.push({ region, index });
    this.presentPages++;
    this.counts.pagesEntered++;
    return true;
  }

  /** Evicts the oldest pages from the device. */
  private evict(): void {
    const wanted = Math.max(1, Math.floor(this.presentMax * evictedShare));
    let count = 0;
    let at = 0;
    for (; at < this.arrivals.length && count < wanted; at++) {
      const { region, index } = this.arrivals[at]!;
      count += this.withdraw(region, index, index + 1);
    }
    this.arrivals.splice(0, at);
    this.counts.pagesEvicted += count;
  }

  /** Returns when all leaving pages have left; waits for another fence in progress. */
  private async fence(cpu: Cpu): Promise<void> {
    await this.fenceLock.run(cpu, async () => {
      const places = this.leaving;
      if (places.length === 0) return;
      this.leaving = [];
      this.counts.fences++;
      await this.setup.commands.execute(cpu, 'INVALIDATE_PAGES');
      this.giveBack(cpu, places);
      if (this.arrivals.length > 2 * this.presentMax) this.forgetGone();
      await cpu.settle();
    });
  }

  private giveBack(cpu: Cpu, places: readonly Place[]): void {
    const { costs } = this.setup.platform;
    const pagesOf = new Map<OnDemandRegion, number[]>();
    for (const { region, index } of places) {
      const pages = pagesOf.get(region) ?? [];
      pagesOf.set(region, pages);
      pages.push(region.leave(index));
    }
    for (const [region, pages] of pagesOf) region.process.releasePages(cpu, pages, region.access);
    cpu.charge('pin', costs.deregisterRegionPerPage * places.length);
  }

  /** A page that was present, evicted and made present again is in the list more than once. */
  private forgetGone(): void {
    const latest = new Map<OnDemandRegion, Set<number>>();
    this.arrivals = this.arrivals
      .toReversed()
      .filter(({ region, index }) => {
        const seen = latest.get(region) ?? new Set();
        latest.set(region, seen);
        const isLatest = !seen.has(index) && region.isPresent(index);
        seen.add(index);
        return isLatest;
      })
      .toReversed();
  }
}
