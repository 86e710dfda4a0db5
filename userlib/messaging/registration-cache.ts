/**
 * Registrations kept after use, because registering costs more than most transfers.
 *
 *     acquire ─► found? ─► one user more ─────────────► … ─► release ─► kept, the most recently used last
 *              └► regMr ─► over a limit? the least recently used that are idle are deregistered
 *     memory unmapped or replaced ─► stale: never found again; deregistered when its last user has released it
 *
 * A region pins the frames it was made over. When the program unmaps the range and maps something else there, the address is
 * the same and the frames are not: a cache that is not notified would let the device read and write the old frames. So the
 * cache follows the process's invalidations; without them it keeps nothing. A region whose range is invalidated during
 * registration may pin the old frames: it serves only its caller and is never found again.
 *
 * Kept regions count against the limit of pinned memory: if a registration fails for lack of it, they are deregistered, least
 * recently used first, and the registration is retried.
 */
import { InvariantError, pageBytes, roundUp } from '../../base/index.ts';
import { deregMr, regMr } from '../memory.ts';
import { checkArguments } from '../numbers.ts';
import type { IbvMr, IbvPd } from '../objects.ts';
import { VerbsError } from '../verbs-error.ts';

export interface RegistrationCacheLimits {
  /** Registrations kept; 0 keeps none. */
  readonly regionCount: number;
  /** Bytes that kept registrations may pin. */
  readonly pinnedBytes: number;
  /** Cycles of one look-up. */
  readonly lookupCycles: number;
}

/** Counters of the cache. */
export interface RegistrationCacheStatistics {
  hits: number;
  misses: number;
  evictions: number;
  invalidations: number;
}

/** A registration in use by a caller, until its release. */
export interface CachedRegion {
  readonly region: IbvMr;
  users: number;
  isStale: boolean;
}

const addressMax = Number.MAX_SAFE_INTEGER;

export class RegistrationCache {
  readonly counts: RegistrationCacheStatistics = { hits: 0, misses: 0, evictions: 0, invalidations: 0 };
  readonly #pd: IbvPd;
  readonly #access: number;
  readonly #limits: RegistrationCacheLimits;
  /** Usable ones, the least recently used first. */
  readonly #regions: CachedRegion[] = [];
  /** Stale idle regions, deregistered by the next thread that may wait. */
  #retired: CachedRegion[] = [];
  /** Ranges being registered now. */
  readonly #making: { readonly start: number; readonly end: number; isStale: boolean }[] = [];
  readonly #keeps: boolean;
  readonly #forgetInvalidations: () => void;

  /** @param access rights of the regions, a mask of IBV_ACCESS_… */
  constructor(pd: IbvPd, access: number, limits: RegistrationCacheLimits) {
    this.#pd = pd;
    this.#access = access;
    this.#limits = limits;
    const { memory } = pd.context.platform;
    const listener = {
      invalidate: (start: number, end: number, reason: string) => {
        if (reason !== 'protect') this.#invalidate(start, end);
      },
    };
    const forget = limits.regionCount > 0 ? memory.onInvalidate?.(listener) : undefined;
    this.#keeps = forget !== undefined;
    this.#forgetInvalidations = forget ?? (() => {});
  }

  /** Registrations kept or in use now. */
  get size(): number {
    return this.#regions.length;
  }

  /**
   * A region over [address, address + lengthBytes), registered unless the cache has one. The caller returns it by {@link
   * release}. @throws VerbsError as ibv_reg_mr does
   */
  async acquire(address: number, lengthBytes: number): Promise<CachedRegion> {
    checkArguments('ibv_reg_mr', ['addr', address, addressMax], ['length', lengthBytes, addressMax]);
    await this.#deregisterRetired();
    if (this.#keeps) {
      this.#pd.context.cpu.charge('application', this.#limits.lookupCycles);
      const found = this.#regions.find(({ region }) => covers(region, address, lengthBytes));
      if (found !== undefined) {
        this.counts.hits++;
        found.users++;
        this.#touch(found);
        return found;
      }
    }
    this.counts.misses++;
    // Whole pages: a later message on the same pages finds the region, too.
    const first = this.#keeps ? address - (address % pageBytes) : address;
    const length = (this.#keeps ? roundUp(address + lengthBytes, pageBytes) : address + lengthBytes) - first;
    if (this.#keeps) await this.#makeRoom(length);
    return this.#make(first, length);
  }

  /** Ends one use. A region that is not to be kept is deregistered, which takes time. */
  async release(cached: CachedRegion): Promise<void> {
    if (cached.users < 1) throw new InvariantError('users of a region', cached.users, 'at least 1');
    cached.users--;
    const isKept = this.#keeps && cached.region.length <= this.#limits.pinnedBytes;
    if (cached.users > 0 || (isKept && !cached.isStale)) return;
    this.#drop(cached);
    await deregMr(cached.region);
  }

  /** Deregisters all regions without users, and stops following the process's memory. */
  async close(): Promise<void> {
    this.#forgetInvalidations();
    await this.#deregisterRetired();
    for (const idle of this.#regions.filter(({ users }) => users === 0)) {
      this.#drop(idle);
      await deregMr(idle.region);
    }
  }

  async #make(first: number, length: number): Promise<CachedRegion> {
    const making = { start: first, end: first + length, isStale: false };
    this.#making.push(making);
    try {
      const region = await this.#register(first, length);
      const made = { region, users: 1, isStale: making.isStale };
      if (!made.isStale) this.#regions.push(made);
      return made;
    } finally {
      this.#making.splice(this.#making.indexOf(making), 1);
    }
  }

  /** Registers; while memory or the pin limit does not suffice, deregisters an idle region and tries again. */
  async #register(first: number, length: number): Promise<IbvMr> {
    for (;;) {
      try {
        return await regMr(this.#pd, first, length, this.#access);
      } catch (error) {
        if (!(error instanceof VerbsError) || error.code !== 'ENOMEM') throw error;
        if (!(await this.#evict())) throw error;
      }
    }
  }

  /** Deregisters the least recently used idle region. @returns false if no region is idle */
  async #evict(): Promise<boolean> {
    const victim = this.#regions.find(({ users }) => users === 0);
    if (victim === undefined) return false;
    this.counts.evictions++;
    this.#drop(victim);
    await deregMr(victim.region);
    return true;
  }

  #touch(found: CachedRegion): void {
    this.#drop(found);
    this.#regions.push(found);
  }

  #drop(entry: CachedRegion): void {
    const at = this.#regions.indexOf(entry);
    if (at >= 0) this.#regions.splice(at, 1);
  }

  /** Makes room for another region, as far as idle regions allow. */
  async #makeRoom(lengthBytes: number): Promise<void> {
    const { regionCount, pinnedBytes } = this.#limits;
    for (;;) {
      const kept = this.#regions.reduce((sum, { region }) => sum + region.length, 0);
      if (this.#regions.length < regionCount && kept + lengthBytes <= pinnedBytes) return;
      if (!(await this.#evict())) return;
    }
  }

  /** Called by the kernel in the middle of an munmap: nothing here may wait. */
  #invalidate(start: number, end: number): void {
    for (const making of this.#making) if (making.start < end && start < making.end) making.isStale = true;
    const hit = this.#regions.filter(
      ({ region }) => region.addr < end && start < region.addr + region.length,
    );
    for (const entry of hit) {
      this.counts.invalidations++;
      entry.isStale = true;
      this.#drop(entry);
      if (entry.users === 0) this.#retired.push(entry);
    }
  }

  async #deregisterRetired(): Promise<void> {
    const retired = this.#retired;
    this.#retired = [];
    for (const { region } of retired) await deregMr(region);
  }
}

const covers = ({ addr, length }: IbvMr, address: number, lengthBytes: number): boolean =>
  addr <= address && address + lengthBytes <= addr + length;
