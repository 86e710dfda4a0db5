/**
 * An on-chip cache of contexts (QPC, CQC or SRQC) in front of the card's context memory.
 *
 * The contexts themselves are in the {@link ContextTable}; this directory decides which of them are on chip. A miss is
 * a DMA read of the context from its page, an evicted dirty line is a DMA write of the encoded context to it. A user
 * (port) waits for its miss and is woken to retry, or continues with other work and is notified of the context, with
 * several reads in flight, up to a limit; several ports that miss on one context share the read. A port that has waited
 * for a read may use the context once when it is woken, even if another port has replaced the line meanwhile: so ports
 * that outnumber the lines cannot keep each other waiting indefinitely. A user that continues ensures this itself.
 */

import type { BusAddress, Cycles, Wide } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import { type ContextTable, type ReplacementPolicy, SetAssociativeDirectory } from '../objects/index.ts';
import type { ContextMemory } from './context-memory.ts';
import type { DmaReads, DmaWrites } from './dma-ports.ts';
import type { ContextKind, MissWaiter } from './ports.ts';

const NONE = -1;
/**
 * Added to a slot, names the half of a QP's context that serves the peer's requests; the slot alone names the half of its
 * own requests and their answers. A QP that does both occupies two lines, where `qpcLinesPerContext` is 2.
 */
export const RESPONDER_HALF = 1 << 24;
const slotOf = (half: number): number => half & (RESPONDER_HALF - 1);
const NO_LIMIT = Number.POSITIVE_INFINITY;

/** Observer of the port for which the caches make their requests. */
export interface ContextMisses {
  /** A context is about to be read for a port, and another perhaps written back. */
  contextMissed(port: number): void;
}

/** @typeParam U names of the users */
export interface ContextCacheSetup<U extends string> {
  readonly entries: number;
  readonly ways: number;
  readonly policy: ReplacementPolicy;
  /** Whether a hash selects the set of a shared line. */
  readonly isHashed?: boolean;
  /** Cycles of a miss in addition to its read: of a shared line, and of a line that a user has for itself. */
  readonly missCycles: number;
  readonly ownMissCycles?: number;
  readonly portCount: number;
  /** Port number of each user, by its name. */
  readonly users: Readonly<Record<U, number>>;
  readonly table: ContextTable;
  readonly kind: ContextKind;
  readonly contextMemory: Pick<ContextMemory, 'contextAddress'>;
  readonly domain: ClockDomain;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: Uint8Array;
  /** Room for the contexts being read ({@link contextReadDepth}), then for `writeDepth` and one contexts being written. */
  readonly sramOffset: number;
  /** Depth of the write requester's fifo: the limit of write-backs in flight. */
  readonly writeDepth: number;
  /**
   * Users with lines of their own, apart from those of the others, and the number of lines, 0 for none; any of these
   * holds any context.
   */
  readonly ownEntries?: Readonly<Partial<Record<string, number>>> | undefined;
  /**
   * Users that continue with other work while contexts are read for them, and the limit of reads that each has in
   * flight.
   */
  readonly readsInFlight?: Readonly<Partial<Record<string, number>>> | undefined;
  /** Observer that attributes TLPs to operations, if used. */
  readonly misses?: ContextMisses | undefined;
}

const ownWays = (lines: number, ways: number): number =>
  (lines & (lines - 1)) === 0 && lines > ways ? ways : lines;

/** Returns how many contexts may be read at once: one for each port, or as many as the port may have in flight. */
export function contextReadDepth({
  portCount,
  readsInFlight = {},
}: Pick<ContextCacheSetup<string>, 'portCount' | 'readsInFlight'>): number {
  return Object.values(readsInFlight).reduce<number>((depth, reads = 1) => depth + reads - 1, portCount);
}

/** Lines that some users share, or that one has for itself. */
interface Part {
  readonly directory: SetAssociativeDirectory;
  /** Number of its first line among all. */
  readonly firstLine: number;
}

/**
 * A user's access to the cache. It remembers the user's last access that found its context on chip, until another
 * context may occupy the line: repeating that access is a hit without a lookup.
 */
export class ContextPort {
  readonly number: number;
  /** Tag of a line filled by the current access: the retry hits, but the access was counted as a miss. */
  missedTag = NONE;
  /** Context that the port may use once, since it was read for it. */
  grantedTag = NONE;
  /** The last access: the context, its line in the part, and whether it made the line dirty. */
  slot = NONE;
  line = NONE;
  isDirty = false;
  /** Contexts that the user has made use of, once for each of its works, and times that it had to wait for one. */
  useCount = 0;
  missCount = 0;
  /** Uses for which the context had to be read, for a user that continues with other work meanwhile. */
  readUseCount = 0;
  /** Contexts being read that it waits for. */
  awaitedCount = 0;
  /**
   * Limit of {@link awaitedCount}; none for a port that waits for each context.
   */
  readonly awaitedMax: number;
  /** The user to wake when a miss has been served. */
  user: MissWaiter | undefined;
  readonly #cache: ContextCache;
  readonly #directory: SetAssociativeDirectory;
  readonly part: Part;

  constructor(cache: ContextCache, number: number, part: Part, awaitedMax: number) {
    this.awaitedMax = awaitedMax;
    this.part = part;
    this.user = undefined;
    this.#cache = cache;
    this.#directory = part.directory;
    this.number = number;
  }

  /**
   * Accesses a context for this port: see {@link ContextCache.access}.
   * @param slot of the context, plus {@link RESPONDER_HALF} for that half of a QP's
   * @param isFetched the user continues with other work, and was notified that the context was read for it
   */
  access(slot: number, dirties: boolean, isFetched = false): boolean {
    if (slot !== this.slot || (dirties && !this.isDirty))
      return this.#cache.lookUp(this, slot, dirties, isFetched);
    this.#directory.touch(this.line);
    return true;
  }

  /**
   * True after a missed access if the context is not being read either, because no read can begin or its user waits for
   * too many.
   */
  get isTurnedAway(): boolean {
    return this.#cache.isTurnedAway(this.number);
  }

  /**
   * Notes that the user has done the work for which it needed the context.
   * @param wasRead of a user that continues with other work: the context had to be read
   */
  used(wasRead = false): void {
    this.useCount++;
    if (wasRead) this.readUseCount++;
  }

  /**
   * Uses of contexts that were on chip. For a user that waits for each miss, each miss is followed by its use, unless
   * it was abandoned.
   */
  get hitCount(): number {
    if (this.awaitedMax !== NO_LIMIT) return this.useCount - this.readUseCount;
    return Math.max(0, this.useCount - this.missCount);
  }
}

export class ContextCache<U extends string = string> {
  /** The lines that users share. */
  readonly directory: SetAssociativeDirectory;
  writeBackCount = 0;
  readonly #setup: ContextCacheSetup<U>;
  readonly #readRequester: number;
  readonly #writeRequester: number;
  readonly #readDepth: number;
  readonly #parts: Part[];
  /**
   * Contexts read so far: they use the buffers cyclically. A late read may share its buffer, since no block uses the
   * bytes.
   */
  #readCount: Wide = 0;
  readonly #isDirty: Uint8Array;
  readonly #isFilling: Uint8Array;
  /** Ports waiting for each line, as a bit set. */
  readonly #waiters: Int32Array;
  /** Ports turned away because no line or no DMA room was free. */
  #deferred = 0;
  readonly #ports: ContextPort[] = [];

  constructor(setup: ContextCacheSetup<U>) {
    this.#setup = setup;
    const { kind, domain, portCount, writeDepth } = setup;
    const trafficClass = TrafficClass.context;
    this.#readDepth = contextReadDepth(setup);
    const space = (): void => this.#retryDeferred(domain.cycle + 1);
    this.#readRequester = setup.dmaRead.addRequester(
      { name: `${kind}Read`, trafficClass, fifoDepth: this.#readDepth, weight: 4 },
      { done: (line, _status, cycle) => this.#fillDone(line, cycle), space },
    );
    this.#writeRequester = setup.dmaWrite.addRequester(
      { name: `${kind}Write`, trafficClass, fifoDepth: writeDepth },
      { space },
    );
    this.directory = new SetAssociativeDirectory(setup.entries, setup.ways, setup.policy, setup.isHashed);
    const shared: Part = { directory: this.directory, firstLine: 0 };
    this.#parts = [shared];
    const names = new Map(Object.entries<number>(setup.users).map(([name, number]) => [number, name]));
    let lines = setup.entries;
    for (let port = 0; port < portCount; port++) {
      const name = names.get(port) ?? '';
      const own = setup.ownEntries?.[name] ?? 0;
      if (own > 0)
        this.#parts.push({
          directory: new SetAssociativeDirectory(own, ownWays(own, setup.ways), setup.policy, true),
          firstLine: lines,
        });
      const part = own > 0 ? this.#parts.at(-1)! : shared;
      this.#ports.push(new ContextPort(this, port, part, setup.readsInFlight?.[name] ?? NO_LIMIT));
      lines += own;
    }
    this.#isDirty = new Uint8Array(lines);
    this.#isFilling = new Uint8Array(lines);
    this.#waiters = new Int32Array(lines);
  }

  /** See Block.connect. */
  connect(users: Readonly<Record<U, MissWaiter>>): void {
    for (const [name, number] of Object.entries<number>(this.#setup.users))
      this.#ports[number]!.user = users[name as U];
  }

  /** The ways in of all users. */
  get users(): readonly ContextPort[] {
    return this.#ports;
  }

  /** Contexts that another one evicted. */
  get evictionCount(): number {
    return this.#parts.reduce((sum, { directory }) => sum + directory.evictionCount, 0);
  }

  /** Lines that are being read. */
  get heldCount(): number {
    return this.#isFilling.reduce((sum, isFilling) => sum + isFilling, 0);
  }

  /** Returns the port of a user that accesses often. */
  port(port: number): ContextPort {
    return this.#ports[port]!;
  }

  /** Counts a use: see {@link ContextPort.used}. */
  used(port: number): void {
    this.#ports[port]!.used();
  }

  /** True if the context is on chip; otherwise the port is woken later and retries. */
  access(port: number, slot: number, dirties: boolean): boolean {
    return this.#ports[port]!.access(slot, dirties);
  }

  /** An access that is not the port's last one. */
  lookUp(user: ContextPort, slot: number, dirties: boolean, isFetched = false): boolean {
    const { directory, firstLine } = user.part;
    const port = user.number;
    const place = directory.find(slot);
    const line = place === NONE ? NONE : firstLine + place;
    const isGranted = isFetched || user.grantedTag === slot;
    user.grantedTag = NONE;
    user.slot = NONE;
    if (line !== NONE && this.#isFilling[line] === 0) {
      directory.touch(place);
      if (dirties) this.#isDirty[line] = 1;
      if (user.missedTag === slot) user.missedTag = NONE;
      user.slot = slot;
      user.line = place;
      user.isDirty = dirties;
      return true;
    }
    if (isGranted) {
      user.missedTag = NONE;
      return true;
    }
    this.#deferred &= ~(1 << port);
    if (line !== NONE && ((this.#waiters[line]! >> port) & 1) === 1) return false;
    if (user.missedTag !== slot) {
      user.missedTag = slot;
      user.missCount++;
    }
    if (user.awaitedCount >= user.awaitedMax) this.#deferred |= 1 << port;
    else if (line !== NONE) this.#await(user, line);
    else this.#startFill(user, slot);
    return false;
  }

  /** See {@link ContextPort.isTurnedAway}. */
  isTurnedAway(port: number): boolean {
    return ((this.#deferred >> port) & 1) === 1;
  }

  /** Forgets a context that was created on chip or destroyed: all its lines become invalid. */
  forget(slot: number): void {
    this.#forgetHalf(slot);
    this.#forgetHalf(slot + RESPONDER_HALF);
  }

  #forgetHalf(half: number): void {
    for (const user of this.#ports) if (user.grantedTag === half) user.grantedTag = NONE;
    for (const { directory, firstLine } of this.#parts) {
      const place = directory.find(half);
      if (place === NONE || this.#isFilling[firstLine + place] === 1) continue;
      this.#invalidateLookups();
      directory.clear(place);
      this.#isDirty[firstLine + place] = 0;
    }
  }

  reset(): void {
    for (const { directory } of this.#parts) directory.clearAll();
    this.#isDirty.fill(0);
    this.#isFilling.fill(0);
    this.#waiters.fill(0);
    this.#deferred = 0;
    for (const user of this.#ports) {
      user.missedTag = NONE;
      user.grantedTag = NONE;
      user.slot = NONE;
      user.awaitedCount = 0;
    }
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const linesOf = (flags: Uint8Array): number[] => [...flags.keys()].filter((line) => flags[line] === 1);
    const own = this.#parts.slice(1).map(({ directory }) => directory.inspect());
    return {
      ...this.directory.inspect(),
      ...(own.length === 0 ? {} : { own }),
      dirty: linesOf(this.#isDirty),
      filling: linesOf(this.#isFilling),
      waiting: [...this.#waiters.keys()].filter((line) => this.#waiters[line] !== 0),
      deferred: this.#deferred,
      ports: this.#ports.map(({ missedTag, grantedTag, slot, awaitedCount }) => ({
        missedTag,
        grantedTag,
        slot,
        awaitedCount,
      })),
    };
  }

  /** DMA read of line `cookie` is complete. */
  #fillDone(cookie: number, cycle: Cycles): void {
    if (this.#isFilling[cookie] === 0) return;
    this.#isFilling[cookie] = 0;
    const waiters = this.#waiters[cookie]!;
    const woken = waiters | this.#deferred;
    const { missCycles, ownMissCycles = missCycles } = this.#setup;
    const from = cycle + 1 + (cookie < this.directory.lineCount ? missCycles : ownMissCycles);
    // Narrowed (build/README.md).
    const slot = this.#tagOf(cookie) | 0;
    this.#waiters[cookie] = 0;
    this.#deferred = 0;
    for (let port = 0; port < this.#ports.length; port++) {
      if (((waiters >> port) & 1) === 0) continue;
      const user = this.#ports[port]!;
      user.awaitedCount--;
      user.slot = NONE;
      if (user.awaitedMax === NO_LIMIT) user.grantedTag = slot;
      else user.user!.contextFetched!(slot, from);
    }
    this.#wakeAll(woken, from);
  }

  /** DMA room became free. */
  #retryDeferred(cycle: Cycles): void {
    const ports = this.#deferred;
    this.#deferred = 0;
    this.#wakeAll(ports, cycle + 1);
  }

  #await(user: ContextPort, line: number): void {
    this.#waiters[line] = this.#waiters[line]! | (1 << user.number);
    user.awaitedCount++;
  }

  #startFill(user: ContextPort, slot: number): void {
    const { table, dmaRead, dmaWrite, sramOffset } = this.#setup;
    const { directory, firstLine } = user.part;
    const place = directory.victimFor(slot);
    const line = firstLine + place;
    const canRead = dmaRead.canRequest(this.#readRequester);
    if (this.#isFilling[line] === 1 || !canRead || !dmaWrite.canRequest(this.#writeRequester)) {
      this.#deferred |= 1 << user.number;
      return;
    }
    const staging = sramOffset + (this.#readCount % this.#readDepth) * table.contextBytes;
    this.#readCount++;
    const address = this.#addressOf(table.numberOf[slotOf(slot)]!);
    this.#setup.misses?.contextMissed(user.number);
    if (this.#isDirty[line] === 1) this.#writeBack(line);
    this.#invalidateLookups();
    directory.place(place, slot);
    this.#isDirty[line] = 0;
    this.#isFilling[line] = 1;
    this.#await(user, line);
    dmaRead.request(this.#readRequester, address, table.contextBytes, staging, line);
  }

  /** A line may hold another context: earlier lookups are invalid. */
  #invalidateLookups(): void {
    for (const user of this.#ports) user.slot = NONE;
  }

  /** The context that a line holds. */
  #tagOf(line: number): number {
    for (const { directory, firstLine } of this.#parts)
      if (line < firstLine + directory.lineCount) return directory.tags[line - firstLine]!;
    return NONE;
  }

  #writeBack(line: number): void {
    const { table, dmaWrite, sram, sramOffset, writeDepth } = this.#setup;
    const room = this.#readDepth + (this.writeBackCount % (writeDepth + 1));
    const staging = sramOffset + room * table.contextBytes;
    const slot = slotOf(this.#tagOf(line));
    const objectNumber = table.numberOf[slot]!;
    if (objectNumber === -1) return;
    table.sync(slot);
    const offset = table.offsetOf(slot);
    sram.set(table.bytes.subarray(offset, offset + table.contextBytes), staging);
    this.writeBackCount++;
    dmaWrite.request(
      this.#writeRequester,
      this.#addressOf(objectNumber),
      table.contextBytes,
      sram,
      staging,
      line,
    );
  }

  #addressOf(objectNumber: number): BusAddress {
    return this.#setup.contextMemory.contextAddress(this.#setup.kind, objectNumber);
  }

  #wakeAll(ports: number, cycle: Cycles): void {
    for (const { number, user } of this.#ports) if ((ports >> number) & 1) user!.wake(cycle);
  }
}
