/**
 * An on-chip cache of contexts (QPC, CQC or SRQC) in front of ICM.
 *
 * The contexts themselves are in the {@link ContextTable}; this directory decides which of them are on chip. A miss
 * is a DMA read of the context from its ICM page, an evicted dirty line is a DMA write of the encoded context to it.
 * Each user (port) has at most one miss outstanding, waits for it, and is woken to ask again; several ports that
 * miss on one context share the read. A port that has waited for a read may use the context once when it is woken, even if
 * another port has taken the line meanwhile: so ports that outnumber the lines cannot keep each other waiting for ever.
 */

import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import { type ContextTable, type ReplacementPolicy, SetAssociativeDirectory } from '../objects/index.ts';
import type { DmaReads, DmaWrites } from './dma-ports.ts';
import type { ContextKind, MissWaiter } from './ports.ts';

const NONE = -1;

/** Where contexts lie. */
interface ContextMap {
  /** Physical address of an object's context in ICM; -1 when its page is not mapped. */
  contextAddress(kind: ContextKind, objectNumber: number): number;
}

/** Who wants to know for which port the caches make their requests. */
export interface ContextMisses {
  /** A context is about to be read for a port, and another perhaps written back. */
  contextMissed(port: number): void;
}

/** @typeParam U names of the users */
export interface ContextCacheSetup<U extends string> {
  readonly entries: number;
  readonly ways: number;
  readonly policy: ReplacementPolicy;
  readonly missCycles: number;
  readonly portCount: number;
  /** By a user's name the number of its port. */
  readonly users: Readonly<Record<U, number>>;
  readonly table: ContextTable;
  readonly kind: ContextKind;
  readonly icm: ContextMap;
  readonly domain: ClockDomain;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: Uint8Array;
  /** Room for one context per port being read, then for `writeDepth` and one contexts being written. */
  readonly sramOffset: number;
  /** Depth of the write requester's fifo: at most so many write-backs are under way. */
  readonly writeDepth: number;
  /** Where TLPs are attributed to operations. */
  readonly misses?: ContextMisses | undefined;
}

/**
 * A user's way into the cache. It remembers the user's last access that found its context on chip, until a line may hold
 * another one: asked for again, that is a hit without a lookup.
 */
export class ContextPort {
  readonly number: number;
  /** A line filled by the access under way is a hit when asked for again, but was counted as a miss. */
  missedTag = NONE;
  /** Context that the port may use once, since it was read for it. */
  grantedTag = NONE;
  /** Of the last access: the context, its line, and whether it dirtied. */
  slot = NONE;
  line = NONE;
  isDirty = false;
  /** Contexts that the user has made use of, once for each of its works, and times that it had to wait for one. */
  useCount = 0;
  missCount = 0;
  /** Who is woken when a miss has been served. */
  user: MissWaiter | undefined;
  readonly #cache: ContextCache;
  readonly #directory: SetAssociativeDirectory;

  constructor(cache: ContextCache, number: number) {
    this.user = undefined;
    this.#cache = cache;
    this.#directory = cache.directory;
    this.number = number;
  }

  /** What {@link ContextCache.access} does for this port. */
  access(slot: number, dirties: boolean): boolean {
    if (slot !== this.slot || (dirties && !this.isDirty)) return this.#cache.lookUp(this, slot, dirties);
    this.#directory.touch(this.line);
    return true;
  }

  /** The user has done the work for which it needed the context. */
  used(): void {
    this.useCount++;
  }
}

export class ContextCache<U extends string = string> {
  readonly directory: SetAssociativeDirectory;
  writeBackCount = 0;
  readonly #setup: ContextCacheSetup<U>;
  readonly #readRequester: number;
  readonly #writeRequester: number;
  readonly #isDirty: Uint8Array;
  readonly #isFilling: Uint8Array;
  /** Ports waiting for each line, as a bit set. */
  readonly #waiters: Int32Array;
  /** Ports turned away because no line or no DMA room was free. */
  #deferred = 0;
  readonly #ports: readonly ContextPort[];

  constructor(setup: ContextCacheSetup<U>) {
    this.#setup = setup;
    const { kind, domain, portCount, writeDepth } = setup;
    const trafficClass = TrafficClass.context;
    const space = (): void => this.#retryDeferred(domain.cycle + 1);
    this.#readRequester = setup.dmaRead.addRequester(
      { name: `${kind}Read`, trafficClass, fifoDepth: portCount, weight: 4 },
      { done: (line, _status, cycle) => this.#fillDone(line, cycle), space },
    );
    this.#writeRequester = setup.dmaWrite.addRequester(
      { name: `${kind}Write`, trafficClass, fifoDepth: writeDepth },
      { space },
    );
    this.directory = new SetAssociativeDirectory(setup.entries, setup.ways, setup.policy);
    this.#isDirty = new Uint8Array(setup.entries);
    this.#isFilling = new Uint8Array(setup.entries);
    this.#waiters = new Int32Array(setup.entries);
    this.#ports = Array.from({ length: portCount }, (_, port) => new ContextPort(this, port));
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

  /** Lines that are being read. */
  get heldCount(): number {
    return this.#isFilling.reduce((sum, isFilling) => sum + isFilling, 0);
  }

  /** The way in of a user that asks often. */
  port(port: number): ContextPort {
    return this.#ports[port]!;
  }

  /** What {@link ContextPort.used} says of a port. */
  used(port: number): void {
    this.#ports[port]!.used();
  }

  /** True when the context is on chip; else the port is woken later and asks again. */
  access(port: number, slot: number, dirties: boolean): boolean {
    return this.#ports[port]!.access(slot, dirties);
  }

  /** An access that is not the port's last one. */
  lookUp(user: ContextPort, slot: number, dirties: boolean): boolean {
    const { directory } = this;
    const port = user.number;
    const line = directory.find(slot);
    const isGranted = user.grantedTag === slot;
    user.grantedTag = NONE;
    user.slot = NONE;
    if (line !== NONE && this.#isFilling[line] === 0) {
      directory.touch(line);
      if (dirties) this.#isDirty[line] = 1;
      if (user.missedTag === slot) user.missedTag = NONE;
      user.slot = slot;
      user.line = line;
      user.isDirty = dirties;
      return true;
    }
    if (isGranted) {
      user.missedTag = NONE;
      return true;
    }
    if (user.missedTag !== slot) {
      user.missedTag = slot;
      user.missCount++;
    }
    if (line !== NONE) this.#waiters[line] = this.#waiters[line]! | (1 << port);
    else this.#startFill(port, slot);
    return false;
  }

  /** A context was created on chip or destroyed: no line of it is worth anything. */
  forget(slot: number): void {
    const line = this.directory.find(slot);
    for (const user of this.#ports) if (user.grantedTag === slot) user.grantedTag = NONE;
    if (line !== -1 && this.#isFilling[line] === 0) {
      this.#invalidateLookups();
      this.directory.clear(line);
      this.#isDirty[line] = 0;
    }
  }

  reset(): void {
    this.directory.clearAll();
    this.#isDirty.fill(0);
    this.#isFilling.fill(0);
    this.#waiters.fill(0);
    this.#deferred = 0;
    for (const user of this.#ports) {
      user.missedTag = NONE;
      user.grantedTag = NONE;
      user.slot = NONE;
    }
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const linesOf = (flags: Uint8Array): number[] => [...flags.keys()].filter((line) => flags[line] === 1);
    return {
      ...this.directory.inspect(),
      dirty: linesOf(this.#isDirty),
      filling: linesOf(this.#isFilling),
      waiting: [...this.#waiters.keys()].filter((line) => this.#waiters[line] !== 0),
      deferred: this.#deferred,
      ports: this.#ports.map(({ missedTag, grantedTag, slot }) => ({ missedTag, grantedTag, slot })),
    };
  }

  /** DMA read of line `cookie` is complete. */
  #fillDone(cookie: number, cycle: Cycles): void {
    if (this.#isFilling[cookie] === 0) return;
    this.#isFilling[cookie] = 0;
    const waiters = this.#waiters[cookie]! | this.#deferred;
    for (let port = 0; port < this.#ports.length; port++) {
      if (((this.#waiters[cookie]! >> port) & 1) === 0) continue;
      const user = this.#ports[port]!;
      // Narrowed (build/README.md).
      user.grantedTag = this.directory.tags[cookie]! | 0;
      user.slot = NONE;
    }
    this.#waiters[cookie] = 0;
    this.#deferred = 0;
    this.#wakeAll(waiters, cycle + 1 + this.#setup.missCycles);
  }

  /** DMA room became free. */
  #retryDeferred(cycle: Cycles): void {
    const ports = this.#deferred;
    this.#deferred = 0;
    this.#wakeAll(ports, cycle + 1);
  }

  #startFill(port: number, slot: number): void {
    const { table, dmaRead, dmaWrite, sramOffset } = this.#setup;
    const line = this.#idleVictim(slot);
    const canRead = dmaRead.canRequest(this.#readRequester);
    if (line === -1 || !canRead || !dmaWrite.canRequest(this.#writeRequester)) {
      this.#deferred |= 1 << port;
      return;
    }
    const staging = sramOffset + port * table.contextBytes;
    const address = this.#addressOf(table.numberOf[slot]!);
    this.#setup.misses?.contextMissed(port);
    if (this.#isDirty[line] === 1) this.#writeBack(line);
    this.#invalidateLookups();
    this.directory.place(line, slot);
    this.#isDirty[line] = 0;
    this.#isFilling[line] = 1;
    this.#waiters[line] = 1 << port;
    dmaRead.request(this.#readRequester, address, table.contextBytes, staging, line);
  }

  /** A line may hold another context: earlier lookups are invalid. */
  #invalidateLookups(): void {
    for (const user of this.#ports) user.slot = NONE;
  }

  #idleVictim(slot: number): number {
    const line = this.directory.victimFor(slot);
    return this.#isFilling[line] === 0 ? line : -1;
  }

  #writeBack(line: number): void {
    const { table, dmaWrite, sram, sramOffset, portCount, writeDepth } = this.#setup;
    const staging = sramOffset + (portCount + (this.writeBackCount % (writeDepth + 1))) * table.contextBytes;
    const slot = this.directory.tags[line]!;
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
    return this.#setup.icm.contextAddress(this.#setup.kind, objectNumber);
  }

  #wakeAll(ports: number, cycle: Cycles): void {
    for (const { number, user } of this.#ports) if ((ports >> number) & 1) user!.wake(cycle);
  }
}
