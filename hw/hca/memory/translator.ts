/**
 * Address translation and protection: from (key, virtual address, length) to a physical address, by the MPT and MTT;
 * and from an offset in a queue's buffer to a physical address, by the MTT alone.
 *
 *   a user's port ─> key check (MPT cache) ─> MTT walk (MTT cache) ─> physical address
 *                            └──── miss ───────────┴─> line fill ─DMA─> ICM
 *
 * Each user has a port of its own. An access is answered at once if everything is on chip. Otherwise a DMA read begins;
 * the user is woken at its end and retries.
 */

import {
  ADDRESS_TOP_UNIT,
  addressDistance,
  type BusAddress,
  type VirtualAddress,
  type Wide,
} from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { QueuePair } from '../objects/index.ts';
import type { ContextMemory } from './context-memory.ts';
import { checkReservedKey, KeyCheck } from './key-check.ts';
import { LineFill, type LineFillSetup } from './line-fill.ts';
import { MttWalk } from './mtt-walk.ts';
import { type MissWaiter, PORT_COUNT, portNameOf, portNames, type TranslatorUsers } from './ports.ts';
import {
  BAD_KEY,
  BAD_PAGE,
  type BufferTranslation,
  PAGE_FAULT,
  PENDING,
  RESERVED_LKEY,
  TRANSLATED,
  type Translation,
} from './translation.ts';
import { type MptCache, type MttCache, NO_QPN } from './translation-cache.ts';
import { forgetLookups, TranslationPort } from './translation-port.ts';

const NO_LINE = -1;

export interface TranslatorSetup extends LineFillSetup {
  readonly mptCache: MptCache;
  readonly mttCache: MttCache;
  readonly contextMemory: ContextMemory;
}

export class Translator {
  /** Result of the last access that answered {@link TRANSLATED}: physical address and bytes contiguous from it. */
  physicalAddress: Wide = 0;
  contiguousBytes: Wide = 0;

  readonly #mptCache: MptCache;
  readonly #mttCache: MttCache;
  readonly #ports: readonly TranslationPort[];
  readonly #fill: LineFill;
  readonly #keys: KeyCheck;
  readonly #walk: MttWalk;

  constructor(setup: TranslatorSetup) {
    const { mptCache, mttCache, contextMemory, portCount } = setup;
    this.#mptCache = mptCache;
    this.#mttCache = mttCache;
    const ports = Array.from(
      { length: portCount },
      (_, port) => new TranslationPort(this, port, mptCache.directory, mttCache.directory),
    );
    const fill = new LineFill(setup);
    this.#ports = ports;
    this.#fill = fill;
    this.#keys = new KeyCheck({ mptCache, contextMemory, fill, ports });
    this.#walk = new MttWalk({ mttCache, contextMemory, fill, ports });
  }

  /** See Block.connect. */
  connect(users: TranslatorUsers): void {
    this.#fill.connect(portNames.map((name) => users[name]));
  }

  /** Connects the users of {@link aheadPorts}, in their order. */
  connectAhead(users: readonly MissWaiter[]): void {
    this.#fill.connectAhead(users);
  }

  /** All ports: those of {@link users}, then {@link aheadPorts}. */
  get ports(): readonly TranslationPort[] {
    return this.#ports;
  }

  /** The ways in of all users. */
  get users(): readonly TranslationPort[] {
    return this.#ports.slice(0, PORT_COUNT);
  }

  /** Ports of look-ups ahead. Each user moves its entry into the cache in the cycle in which it is woken. */
  get aheadPorts(): readonly TranslationPort[] {
    return this.#ports.slice(PORT_COUNT);
  }

  /** Lines that are being read. */
  get heldCount(): number {
    return this.#fill.heldCount;
  }

  /** The way in of a user that translates often. */
  port(port: number): TranslationPort {
    return this.#ports[port]!;
  }

  /** A translation that is not the port's last one: see {@link TranslationPort.translate}. */
  translateWhole(
    port: TranslationPort,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    if (key === RESERVED_LKEY)
      return this.#translateReserved(port, address, addressTop, lengthBytes, rights, pair);
    const { number } = port;
    const tag = key >>> 8;
    const line = this.#keys.find(number, tag);
    if (line === NO_LINE) {
      const missed = this.#keys.miss(number, tag);
      if (missed === BAD_KEY) pair.lastRefusal = BAD_KEY;
      return missed;
    }
    port.turnTo(line);
    const answer = this.#translateBy(port, key, pd, address, addressTop, lengthBytes, rights, pair);
    if (answer !== PENDING) this.#keys.ended(number, tag);
    if (answer >= BAD_KEY) pair.lastRefusal = answer;
    // An entry of one QP is checked each time.
    const isOfQp = this.#mptCache.boundQpn[line] !== NO_QPN;
    if (answer === TRANSLATED && !isOfQp) this.#remember(port, key, pd, address, addressTop, rights);
    return answer;
  }

  /** Checks an access by its key's entry alone: see {@link TranslationPort.check}. */
  checkKey(
    port: TranslationPort,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    if (key === RESERVED_LKEY)
      return this.#translateReserved(port, address, addressTop, lengthBytes, rights, pair);
    const { number } = port;
    const tag = key >>> 8;
    const line = this.#keys.find(number, tag);
    port.turnTo(line);
    port.mttLine = NO_LINE;
    const answer =
      line === NO_LINE
        ? this.#keys.miss(number, tag)
        : this.#keys.check(line, key, pd, address, addressTop, lengthBytes, rights, pair.qpn);
    if (answer !== PENDING) this.#keys.ended(number, tag);
    if (answer >= BAD_KEY) pair.lastRefusal = answer;
    return answer;
  }

  /** Translates DMA addresses, to which a kernel's QP has all local rights; nothing is looked up. */
  #translateReserved(
    port: TranslationPort,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    const answer = checkReservedKey(pair.allowsReservedKey, rights);
    if (answer !== TRANSLATED) {
      pair.lastRefusal = answer;
      return answer;
    }
    port.forget();
    port.mttLine = NO_LINE;
    this.physicalAddress = busAddressOf(address, addressTop);
    this.contiguousBytes = lengthBytes;
    return TRANSLATED;
  }

  #remember(
    last: TranslationPort,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    rights: number,
  ): void {
    const cache = this.#mptCache;
    const line = last.mptLine;
    // Below the same top: of a region that begins below another one it is beyond 0 or 2^52.
    const start = addressDistance(0, addressTop, cache.start[line]!, cache.startTop[line]!);
    const isPhysical = cache.isPhysical[line] === 1;
    last.key = key;
    last.pd = pd;
    last.addressTop = addressTop;
    last.rights = rights;
    last.mttLine = isPhysical ? NO_LINE : this.#walk.line;
    // Beyond 2^53 a bus address is rounded, and so would be the difference of the two.
    last.distance = isPhysical ? addressTop * ADDRESS_TOP_UNIT : this.physicalAddress - address;
    last.regionEnd = start + cache.length[line]!;
    const pageStart = address - this.#walk.inPage;
    last.firstByte = isPhysical ? start : Math.max(start, pageStart);
    last.pageEnd = isPhysical ? last.regionEnd : pageStart + cache.pageBytes[line]!;
  }

  /** The checks and the walk, with the MPT entry on chip. */
  #translateBy(
    { number: port, mptLine: line }: TranslationPort,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    { qpn }: QueuePair,
  ): Translation {
    const checked = this.#keys.check(line, key, pd, address, addressTop, lengthBytes, rights, qpn);
    if (checked !== TRANSLATED) return checked;
    const cache = this.#mptCache;
    if (cache.isPhysical[line] === 1) {
      // Virtual addresses of such a region are bus addresses.
      this.physicalAddress = busAddressOf(address, addressTop);
      this.contiguousBytes = lengthBytes;
      return TRANSLATED;
    }
    const byte = this.#keys.offset + cache.startInPage[line]!;
    const mttOffset = cache.mttOffset[line]!;
    const pageBytes = cache.pageBytes[line]!;
    const found = this.translateBuffer(port, mttOffset, pageBytes, byte, lengthBytes);
    return found === BAD_PAGE && cache.isOnDemand[line] === 1
      ? this.#onDemand(port, mttOffset, pageBytes, byte, lengthBytes)
      : found;
  }

  /**
   * The page of an on-demand region is absent by a line that was on chip. Entries change while they are cached, so a second read
   * decides, at a line that the port has read itself: now, or already, when another port has placed the line meanwhile.
   */
  #onDemand(
    port: number,
    mttOffset: number,
    pageBytes: number,
    byte: number,
    lengthBytes: number,
  ): Translation {
    const walk = this.#walk;
    if (!walk.isPageAbsent) return BAD_PAGE;
    if (walk.forgetAbsent()) return PAGE_FAULT;
    const found = this.translateBuffer(port, mttOffset, pageBytes, byte, lengthBytes);
    if (found !== BAD_PAGE || !walk.isPageAbsent) return found;
    walk.forgetAbsent();
    return PAGE_FAULT;
  }

  /** Translates the first part of a piece of a queue's buffer, or of a region's pages: see {@link MttWalk.translate}. */
  translateBuffer(
    port: number,
    mttOffset: number,
    pageBytes: number,
    byte: number,
    lengthBytes: number,
  ): BufferTranslation {
    const walk = this.#walk;
    const found = walk.translate(port, mttOffset, pageBytes, byte, lengthBytes);
    if (found === TRANSLATED) {
      this.physicalAddress = walk.physicalAddress;
      this.contiguousBytes = walk.contiguousBytes;
    }
    return found;
  }

  /** Forgets an MPT entry that software has changed, and all of the MTT. */
  forgetMpt(index: number): void {
    this.#keys.forget(index);
    this.forgetMtt();
  }

  /** A copy of the MPT entry of this tag (key >> 8) if it is on chip. */
  cachedMpt(tag: number): Uint8Array | undefined {
    return this.#keys.cached(tag);
  }

  /** Replaces the on-chip copy of an MPT entry that the device has changed in ICM. */
  replaceMpt(index: number, entry: DataView): void {
    forgetLookups(this.#ports);
    this.#keys.replace(index, entry);
  }

  /** Forgets MTT entries that the device has written, from a byte offset of the table on. */
  forgetMttRange(mttOffset: number, lengthBytes: number): void {
    forgetLookups(this.#ports);
    this.#walk.forgetRange(mttOffset, lengthBytes);
  }

  /**
   * Forgets all cached MTT entries: an object was created or destroyed, and drivers reuse its range of the MTT without
   * notifying the device (Linux: mlx4_write_mtt writes the new entries straight into ICM).
   */
  forgetMtt(): void {
    forgetLookups(this.#ports);
    this.#walk.forgetAll();
    this.#fill.forgetAll();
  }

  /** Forgets everything cached. */
  forgetAll(): void {
    this.#keys.forgetAll();
    this.forgetMtt();
  }

  reset(): void {
    this.forgetAll();
    this.#fill.reset();
    this.#keys.reset();
    this.#walk.reset();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const ports = this.#ports.map(({ key, number }) => ({
      ...(Number.isNaN(key) ? {} : { lastKey: key }),
      ...this.#fill.inspect(number),
      missed: [this.#keys.missedTag(number), this.#walk.missedTag(number)],
    }));
    return {
      mpt: this.#mptCache.directory.inspect(),
      mtt: this.#mttCache.directory.inspect(),
      deferred: this.#fill.deferred,
      ports: Object.fromEntries(ports.map((port, number) => [portNameOf(number), port])),
    };
  }
}

/**
 * Returns the bus address of a virtual address that is one. From 2^53 on it is the nearest number: no memory answers
 * there.
 */
const busAddressOf = (address: VirtualAddress, top: number): BusAddress =>
  (address as number) + top * ADDRESS_TOP_UNIT;
