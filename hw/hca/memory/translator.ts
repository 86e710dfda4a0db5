/**
 * Address translation and protection: from (key, virtual address, length) to a physical address, by the MPT and
 * MTT; and from an offset in a queue's buffer to a physical address, by the MTT alone.
 *
 * Each user has a port of its own. An access answers at once when everything is on chip; else a DMA read is begun,
 * the port is woken when it is done, and asks again. What was read for a port waits in a buffer of the port's own, one
 * for the MPT and one for the MTT, until that port asks: so however few lines the caches have, ports that miss at the
 * same time cannot take them from each other for ever.
 * Checks per access, in this order: entry valid, whole key equal, protection domain (of a window of type 2: QP), bounds, right
 * (interface sheet 5.4). Sizes of pages: any power of two of at least 4 KiB that the entry names.
 */

import {
  ADDRESS_TOP_UNIT,
  addressDistance,
  type BusAddress,
  type Cycles,
  type VirtualAddress,
  type Wide,
} from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { QueuePair, SetAssociativeDirectory } from '../objects/index.ts';
import type { DmaReads } from './dma-ports.ts';
import type { IcmMap } from './icm.ts';
import { portNames, type TranslatorUsers } from './ports.ts';
import {
  BAD_KEY,
  BAD_PAGE,
  BAD_PD,
  type BufferTranslation,
  MISSING_RIGHT,
  OUT_OF_BOUNDS,
  PAGE_FAULT,
  PENDING,
  RESERVED_LKEY,
  TRANSLATED,
  type Translation,
} from './translation.ts';
import {
  MPT_ENTRY_BYTES,
  type MptCache,
  MTT_LINE_BYTES,
  type MttCache,
  NO_QPN,
  RIGHT_LOCAL_READ,
  RIGHT_LOCAL_WRITE,
} from './translation-cache.ts';
import { TranslationPort } from './translation-port.ts';

const FILL_MPT = 0;
const FILL_MTT = 1;
/** What is read on a miss, and the answer where it cannot be read. */
interface Fill<F> {
  readonly kind: number;
  readonly lengthBytes: number;
  readonly failure: F;
}
const mptFill: Fill<typeof BAD_KEY> = { kind: FILL_MPT, lengthBytes: MPT_ENTRY_BYTES, failure: BAD_KEY };
const mttFill: Fill<typeof BAD_PAGE> = { kind: FILL_MTT, lengthBytes: MTT_LINE_BYTES, failure: BAD_PAGE };
/** In place of the generation of a fill: what it brings is not kept. */
const OUTDATED = -1;
const NO_LINE = -1;
const LOCAL_RIGHTS = RIGHT_LOCAL_READ | RIGHT_LOCAL_WRITE;

export interface TranslatorSetup {
  readonly mptCache: MptCache;
  readonly mttCache: MttCache;
  readonly missCycles: number;
  readonly portCount: number;
  readonly domain: ClockDomain;
  readonly icm: IcmMap;
  readonly dmaRead: DmaReads;
  /** Depth of the read requester's fifo: at most so many reads are under way. */
  readonly readDepth: number;
  readonly sram: Uint8Array;
  /** Room for two lines of 64 bytes per port: one of the MPT and one of the MTT. */
  readonly sramOffset: number;
}

export class Translator {
  /** Result of the last access that answered {@link TRANSLATED}: physical address and bytes contiguous from it. */
  physicalAddress: Wide = 0;
  contiguousBytes: Wide = 0;

  readonly #setup: TranslatorSetup;
  readonly #readRequester: number;
  readonly #mptDirectory: SetAssociativeDirectory;
  readonly #mttDirectory: SetAssociativeDirectory;
  readonly #ports: readonly TranslationPort[];
  /** Line of the MTT in which the last access found its page, and how far into the page it was. */
  #mttLine = NO_LINE;
  #inPage: Wide = 0;
  readonly #view: DataView;
  readonly #fillKind: Uint8Array;
  readonly #fillTag: Float64Array;
  readonly #isFilling: Uint8Array;
  /** By port: what could not be read, until the port has asked for it again, or for something else; or -1. */
  readonly #failedTag: Float64Array;
  /** An access counts as a miss once, however often it is retried. */
  readonly #missedMpt: Float64Array;
  readonly #missedMtt: Float64Array;
  #deferred = 0;
  /** Where the last access found its page absent, and whether the line had just been read; no line: it could not be. */
  #absentLine = NO_LINE;
  #isAbsentFresh = false;
  /** Raised when all cached entries are forgotten: a fill begun before is not kept. */
  #generation = 0;
  readonly #fillGeneration: Int32Array;
  /** What the port's buffers hold, by port and kind: a tag, or -1. */
  readonly #bufferedTag: Float64Array;

  constructor(setup: TranslatorSetup) {
    const { portCount, sram, dmaRead, readDepth, domain } = setup;
    this.#setup = setup;
    this.#readRequester = dmaRead.addRequester(
      { name: 'translation', trafficClass: TrafficClass.translation, fifoDepth: readDepth, weight: 4 },
      {
        done: (port, status, cycle) => this.#fillDone(port, status, cycle),
        space: () => this.#retryDeferred(domain.cycle + 1),
      },
    );
    this.#mptDirectory = setup.mptCache.directory;
    this.#mttDirectory = setup.mttCache.directory;
    this.#ports = Array.from(
      { length: portCount },
      (_, port) => new TranslationPort(this, port, this.#mptDirectory, this.#mttDirectory),
    );
    this.#view = new DataView(sram.buffer, sram.byteOffset, sram.byteLength);
    this.#fillKind = new Uint8Array(portCount);
    this.#fillTag = new Float64Array(portCount);
    this.#isFilling = new Uint8Array(portCount);
    this.#failedTag = new Float64Array(portCount).fill(-1);
    this.#missedMpt = new Float64Array(portCount).fill(-1);
    this.#missedMtt = new Float64Array(portCount).fill(-1);
    this.#fillGeneration = new Int32Array(portCount);
    this.#bufferedTag = new Float64Array(2 * portCount).fill(-1);
  }

  /** See Block.connect. */
  connect(users: TranslatorUsers): void {
    for (const port of this.#ports) port.user = users[portNames[port.number]!];
  }

  /** The ways in of all users. */
  get users(): readonly TranslationPort[] {
    return this.#ports;
  }

  /** Lines that are being read. */
  get heldCount(): number {
    return this.#isFilling.reduce((sum, isFilling) => sum + isFilling, 0);
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
    const directory = this.#mptDirectory;
    const index = key >>> 8;
    const { number } = port;
    let line = directory.find(index);
    if (line === NO_LINE) line = this.#takeBuffered(number, FILL_MPT, index);
    if (line === NO_LINE) {
      const missed = this.#missMpt(number, index);
      if (missed === BAD_KEY) pair.lastRefusal = BAD_KEY;
      return missed;
    }
    directory.touch(line);
    port.turnTo(line);
    const answer = this.#translateWith(port, key, pd, address, addressTop, lengthBytes, rights, pair);
    if (answer !== PENDING && this.#missedMpt[number] === index) this.#missedMpt[number] = -1;
    if (answer >= BAD_KEY) pair.lastRefusal = answer;
    // What is of one QP is checked each time.
    const isOfQp = this.#setup.mptCache.boundQpn[line] !== NO_QPN;
    if (answer === TRANSLATED && !isOfQp) this.#remember(port, key, pd, address, addressTop, rights);
    return answer;
  }

  /** DMA addresses, to which a kernel's QP has all local rights; nothing is looked up. */
  #translateReserved(
    port: TranslationPort,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    if (pair.allowsReservedKey === 0) {
      pair.lastRefusal = BAD_KEY;
      return BAD_KEY;
    }
    if ((rights & ~LOCAL_RIGHTS) !== 0) {
      pair.lastRefusal = MISSING_RIGHT;
      return MISSING_RIGHT;
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
    const cache = this.#setup.mptCache;
    const line = last.mptLine;
    // Below the same top: of a region that begins below another one it is beyond 0 or 2^52.
    const start = addressDistance(0, addressTop, cache.start[line]!, cache.startTop[line]!);
    const isPhysical = cache.isPhysical[line] === 1;
    last.key = key;
    last.pd = pd;
    last.addressTop = addressTop;
    last.rights = rights;
    last.mttLine = isPhysical ? NO_LINE : this.#mttLine;
    last.distance = this.physicalAddress - address;
    last.regionEnd = start + cache.length[line]!;
    const pageStart = address - this.#inPage;
    last.firstByte = isPhysical ? start : Math.max(start, pageStart);
    last.pageEnd = isPhysical ? last.regionEnd : pageStart + cache.pageBytes[line]!;
  }

  /** The checks, with the MPT entry on chip. */
  #translateWith(
    { number: port, mptLine: line }: TranslationPort,
    key: number,
    pd: number,
    address: VirtualAddress,
    addressTop: number,
    lengthBytes: number,
    rights: number,
    pair: QueuePair,
  ): Translation {
    const cache = this.#setup.mptCache;
    if (cache.status[line] !== 0 || cache.key[line] !== key) return BAD_KEY;
    // A window gives a peer access, never a work request of this side.
    if (cache.isRegion[line] === 0 && (rights & LOCAL_RIGHTS) !== 0) return BAD_KEY;
    if (cache.pd[line] !== pd) return BAD_PD;
    const boundQpn = cache.boundQpn[line]!;
    if (boundQpn !== NO_QPN && boundQpn !== pair.qpn) return BAD_PD;
    const offset = addressDistance(cache.start[line]!, cache.startTop[line]!, address, addressTop);
    if (offset < 0 || offset + lengthBytes > cache.length[line]!) return OUT_OF_BOUNDS;
    if ((cache.rights[line]! & rights) !== rights) return MISSING_RIGHT;
    if (cache.isPhysical[line] === 1) {
      // Such a region has bus addresses for virtual ones.
      this.physicalAddress = busAddressOf(address, addressTop);
      this.contiguousBytes = lengthBytes;
      return TRANSLATED;
    }
    const byte = offset + cache.startInPage[line]!;
    const mttOffset = cache.mttOffset[line]!;
    const pageBytes = cache.pageBytes[line]!;
    const found = this.translateBuffer(port, mttOffset, pageBytes, byte, lengthBytes);
    return found === BAD_PAGE && cache.isOnDemand[line] === 1
      ? this.#onDemand(port, mttOffset, pageBytes, byte, lengthBytes)
      : found;
  }

  /**
   * The page of an on-demand region is absent by a line that was on chip. Entries come while they are cached, so a second read
   * decides, at a line that the port has read itself: now, or already, when another port has placed the line meanwhile.
   */
  #onDemand(
    port: number,
    mttOffset: number,
    pageBytes: number,
    byte: number,
    lengthBytes: number,
  ): Translation {
    if (this.#absentLine === NO_LINE) return BAD_PAGE;
    const isSure = this.#isAbsentFresh;
    this.#forgetAbsent();
    if (isSure) return PAGE_FAULT;
    const found = this.translateBuffer(port, mttOffset, pageBytes, byte, lengthBytes);
    if (found !== BAD_PAGE || this.#absentLine === NO_LINE) return found;
    this.#forgetAbsent();
    return PAGE_FAULT;
  }

  /** Forgets the line in which the last access found its page absent. */
  #forgetAbsent(): void {
    this.#invalidateLookups();
    this.#mttDirectory.clear(this.#absentLine);
  }

  /**
   * Translates the first part of a piece of a queue's buffer, or of a region's pages.
   * @param mttOffset of the buffer's first page; @param pageBytes its page size; @param byte offset from the first page's start
   */
  translateBuffer(
    port: number,
    mttOffset: number,
    pageBytes: number,
    byte: number,
    lengthBytes: number,
  ): BufferTranslation {
    const directory = this.#mttDirectory;
    const page = Math.floor(byte / pageBytes);
    const entryOffset = mttOffset + page * 8;
    const tag = Math.floor(entryOffset / MTT_LINE_BYTES);
    let line = directory.find(tag);
    let isFresh = false;
    if (line === NO_LINE) {
      line = this.#takeBuffered(port, FILL_MTT, tag);
      isFresh = true;
    }
    if (line === NO_LINE) return this.#missMtt(port, tag);
    directory.touch(line);
    this.#mttLine = line;
    if (this.#missedMtt[port] === tag) this.#missedMtt[port] = -1;
    const pageAddress = this.#setup.mttCache.pages[line * 8 + ((entryOffset / 8) & 7)]!;
    if (pageAddress < 0) {
      this.#absentLine = line;
      this.#isAbsentFresh = isFresh;
      return BAD_PAGE;
    }
    const within = byte - page * pageBytes;
    this.#inPage = within;
    this.physicalAddress = pageAddress + within;
    this.contiguousBytes = Math.min(lengthBytes, pageBytes - within);
    return TRANSLATED;
  }

  /** An MPT entry changed: forget it. Entries are cached by all of key >> 8, of which the index is the low part. */
  forgetMpt(index: number): void {
    const directory = this.#setup.mptCache.directory;
    const count = 2 ** (this.#setup.icm.placeOf('dmpt')?.logEntries ?? 0);
    for (let line = 0; line < directory.lineCount; line++) {
      if (directory.tags[line] !== -1 && directory.tags[line]! % count === index) directory.clear(line);
    }
    this.forgetMtt();
  }

  /** A copy of the MPT entry of this tag (key >> 8) if it is on chip. */
  cachedMpt(tag: number): Uint8Array | undefined {
    const { directory, bytes } = this.#setup.mptCache;
    const line = directory.find(tag);
    if (line === NO_LINE) return undefined;
    directory.touch(line);
    return bytes.slice(line * MPT_ENTRY_BYTES, (line + 1) * MPT_ENTRY_BYTES);
  }

  /** The device has changed an MPT entry in ICM: what is on chip of it changes, and what was read of it before is dropped. */
  replaceMpt(index: number, entry: DataView): void {
    this.#invalidateLookups();
    const { mptCache, icm } = this.#setup;
    const { tags } = mptCache.directory;
    const count = 2 ** (icm.placeOf('dmpt')?.logEntries ?? 0);
    const isOfEntry = (tag: number): boolean => tag !== -1 && tag % count === index;
    for (let line = 0; line < tags.length; line++) if (isOfEntry(tags[line]!)) mptCache.load(line, entry, 0);
    this.#dropReads(FILL_MPT, isOfEntry);
  }

  /** The device has written MTT entries from a byte offset of the table on: cached ones are read again. */
  forgetMttRange(mttOffset: number, lengthBytes: number): void {
    this.#invalidateLookups();
    const directory = this.#mttDirectory;
    const first = Math.floor(mttOffset / MTT_LINE_BYTES);
    const last = Math.floor((mttOffset + lengthBytes - 1) / MTT_LINE_BYTES);
    for (let tag = first; tag <= last; tag++) {
      const line = directory.find(tag);
      if (line !== NO_LINE) directory.clear(line);
    }
    this.#dropReads(FILL_MTT, (tag) => tag >= first && tag <= last);
  }

  /**
   * Forgets all cached MTT entries: an object has come or gone, and drivers give its range of the MTT to another one
   * without a word to the device (Linux: mlx4_write_mtt writes the new entries straight into ICM).
   */
  forgetMtt(): void {
    this.#invalidateLookups();
    this.#mttDirectory.clearAll();
    this.#forgetReads();
  }

  /** Forgets everything cached. */
  forgetAll(): void {
    this.#mptDirectory.clearAll();
    this.forgetMtt();
  }

  /** The DMA read begun for `port` is complete. */
  #fillDone(port: number, status: number, cycle: Cycles): void {
    if (this.#isFilling[port] === 0) return;
    this.#isFilling[port] = 0;
    const tag = this.#fillTag[port]!;
    const kind = this.#fillKind[port]!;
    if (this.#fillGeneration[port] === this.#generation) {
      if (status !== 0) this.#failedTag[port] = tag * 2 + kind;
      else this.#bufferedTag[port * 2 + kind] = tag;
    }
    const wakeCycle = cycle + 1 + this.#setup.missCycles;
    this.#ports[port]!.user!.wake(wakeCycle);
    this.#retryDeferred(wakeCycle);
  }

  /** DMA room or a line became free: ports turned away ask again. */
  #retryDeferred(cycle: Cycles): void {
    const ports = this.#deferred;
    this.#deferred = 0;
    for (let port = 0; ports >> port !== 0; port++)
      if ((ports >> port) & 1) this.#ports[port]!.user!.wake(cycle);
  }

  reset(): void {
    this.forgetAll();
    this.#isFilling.fill(0);
    this.#deferred = 0;
    this.#missedMpt.fill(-1);
    this.#missedMtt.fill(-1);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const ports = this.#ports.map(({ key, number }) => ({
      ...(Number.isNaN(key) ? {} : { lastKey: key }),
      ...(this.#isFilling[number] === 1
        ? { reads: this.#fillKind[number] === FILL_MPT ? 'mpt' : 'mtt', tag: this.#fillTag[number]! }
        : {}),
      buffered: [this.#bufferedTag[number * 2]!, this.#bufferedTag[number * 2 + 1]!],
      failed: this.#failedTag[number]!,
      missed: [this.#missedMpt[number]!, this.#missedMtt[number]!],
    }));
    return {
      mpt: this.#mptDirectory.inspect(),
      mtt: this.#mttDirectory.inspect(),
      deferred: this.#deferred,
      ports: Object.fromEntries(ports.map((port, number) => [portNames[number]!, port])),
    };
  }

  #missMpt(port: number, index: number): typeof PENDING | typeof BAD_KEY {
    if (this.#missedMpt[port] !== index) {
      this.#missedMpt[port] = index;
      this.#ports[port]!.mptMisses++;
    }
    const address = this.#setup.icm.dmptEntryAddress(index);
    return this.#miss(port, mptFill, index, address);
  }

  #missMtt(port: number, tag: number): typeof PENDING | typeof BAD_PAGE {
    if (this.#missedMtt[port] !== tag) {
      this.#missedMtt[port] = tag;
      this.#ports[port]!.mttMisses++;
    }
    const address = this.#setup.icm.mttEntryAddress(tag * MTT_LINE_BYTES);
    this.#absentLine = NO_LINE;
    return this.#miss(port, mttFill, tag, address);
  }

  #miss<F extends typeof BAD_KEY | typeof BAD_PAGE>(
    port: number,
    { kind, lengthBytes, failure }: Fill<F>,
    tag: number,
    address: BusAddress,
  ): typeof PENDING | F {
    const { dmaRead, sramOffset } = this.#setup;
    if (this.#isFilling[port] === 1) return PENDING;
    if (address < 0 || this.#failedTag[port] === tag * 2 + kind) {
      this.#failedTag[port] = -1;
      return failure;
    }
    if (!dmaRead.canRequest(this.#readRequester)) {
      this.#deferred |= 1 << port;
      return PENDING;
    }
    this.#failedTag[port] = -1;
    this.#isFilling[port] = 1;
    this.#fillKind[port] = kind;
    this.#fillTag[port] = tag;
    this.#fillGeneration[port] = this.#generation;
    this.#bufferedTag[port * 2 + kind] = -1;
    dmaRead.request(
      this.#readRequester,
      address,
      lengthBytes,
      sramOffset + (port * 2 + kind) * MTT_LINE_BYTES,
      port,
    );
    return PENDING;
  }

  /** What was read and what is being read may be out of date. */
  #forgetReads(): void {
    this.#generation++;
    this.#bufferedTag.fill(-1);
    this.#failedTag.fill(-1);
  }

  /** Of these entries, what was read and what is being read is out of date. */
  #dropReads(kind: number, isDropped: (tag: number) => boolean): void {
    for (const { number } of this.#ports) {
      if (isDropped(this.#bufferedTag[number * 2 + kind]!)) this.#bufferedTag[number * 2 + kind] = -1;
      if (
        this.#isFilling[number] === 1 &&
        this.#fillKind[number] === kind &&
        isDropped(this.#fillTag[number]!)
      )
        this.#fillGeneration[number] = OUTDATED;
    }
  }

  /** A line of a cache may hold another entry: earlier lookups are invalid. */
  #invalidateLookups(): void {
    for (const port of this.#ports) port.forget();
  }

  /** Moves what was read for the port into a line of the cache. Returns the line, or -1 when it is not what is wanted. */
  #takeBuffered(port: number, kind: number, tag: number): number {
    const buffer = port * 2 + kind;
    if (this.#bufferedTag[buffer] !== tag) return -1;
    this.#bufferedTag[buffer] = -1;
    const cache = kind === FILL_MPT ? this.#setup.mptCache : this.#setup.mttCache;
    this.#invalidateLookups();
    const line = cache.directory.victimFor(tag);
    cache.directory.place(line, tag);
    cache.load(line, this.#view, this.#setup.sramOffset + buffer * MTT_LINE_BYTES);
    return line;
  }
}

/** A virtual address that is a bus address. From 2^53 on it is the nearest number: nothing answers there. */
const busAddressOf = (address: VirtualAddress, top: number): BusAddress =>
  (address as number) + top * ADDRESS_TOP_UNIT;
