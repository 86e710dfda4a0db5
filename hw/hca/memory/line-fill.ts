/**
 * Reads MPT entries and lines of the MTT from context memory, one at a time for each port of the translator.
 *
 *   request ─> DMA read ─> the port's buffer ─> take: into a line of a cache
 *                     └──> failed: reported to the port once
 *
 * Each port has a buffer of its own for an MPT entry and another for a line of the MTT, and a read entry stays there
 * until the port retries. However few lines the caches have, ports that miss at the same time cannot evict each other's
 * lines indefinitely. A port that joins a look-up's read has no copy of its own, and requests the entry again if it was
 * evicted meanwhile.
 */
import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { SetAssociativeDirectory } from '../objects/index.ts';
import type { DmaReads } from './dma-ports.ts';
import { type MissWaiter, PORT_COUNT } from './ports.ts';
import { MTT_LINE_BYTES } from './translation-cache.ts';

export const FILL_MPT = 0;
export const FILL_MTT = 1;
export type FillKind = typeof FILL_MPT | typeof FILL_MTT;

/** Answers to a request. */
export const FILL_PENDING = 0;
export const FILL_FAILED = 1;
export type FillAnswer = typeof FILL_PENDING | typeof FILL_FAILED;

/** Instead of the generation of a read: its bytes are discarded. */
const OUTDATED = -1;
const NO_TAG = -1;

/** A cache that a read entry is placed in. */
export interface FilledCache {
  readonly directory: SetAssociativeDirectory;
  /** Decodes the entry at `offset` of `view` into `line`. */
  load(line: number, view: DataView, offset: number): void;
}

export interface LineFillSetup {
  readonly domain: ClockDomain;
  readonly dmaRead: DmaReads;
  readonly missCycles: number;
  readonly portCount: number;
  /** Depth of the read requester's fifo, and limit of reads under way. */
  readonly readDepth: number;
  readonly sram: Uint8Array;
  /** Room for two lines of 64 bytes per port: one of the MPT and one of the MTT. */
  readonly sramOffset: number;
}

/** A line fill as the key check and the MTT walk use it. */
export type EntryReads = Pick<LineFill, 'request' | 'holds' | 'take' | 'drop'>;

export class LineFill {
  readonly #domain: ClockDomain;
  readonly #dmaRead: DmaReads;
  readonly #missCycles: number;
  readonly #sramOffset: number;
  readonly #view: DataView;
  readonly #requester: number;
  /** Woken when their read has ended, by port. */
  #users: readonly MissWaiter[] = [];
  #ahead: readonly MissWaiter[] = [];
  readonly #kind: Uint8Array;
  readonly #tag: Float64Array;
  readonly #isFilling: Uint8Array;
  /**
   * Tag and kind of a failed read, by port, until the port requests it again or requests another entry; or {@link
   * NO_TAG}.
   */
  readonly #failedTag: Float64Array;
  /** Ports without room for their read, one bit each. */
  #deferred = 0;
  /** Raised when all cached entries are forgotten: a read begun before is discarded. */
  #generation = 0;
  readonly #fillGeneration: Int32Array;
  /** Ports that also wait for the read of each port, one bit each. */
  readonly #joined: Int32Array;
  /** Cycle at which the port's user moves the entry into the cache. */
  readonly #takenCycle: Float64Array;
  /**
   * Tag of the entry in the buffer, by port and kind, or {@link NO_TAG}.
   */
  readonly #bufferedTag: Float64Array;

  constructor(setup: LineFillSetup) {
    const { domain, dmaRead, missCycles, portCount, readDepth, sram, sramOffset } = setup;
    this.#domain = domain;
    this.#dmaRead = dmaRead;
    this.#missCycles = missCycles;
    this.#sramOffset = sramOffset;
    this.#view = new DataView(sram.buffer, sram.byteOffset, sram.byteLength);
    this.#requester = dmaRead.addRequester(
      { name: 'translation', trafficClass: TrafficClass.translation, fifoDepth: readDepth, weight: 4 },
      {
        done: (port, status, cycle) => this.#readDone(port, status, cycle),
        space: () => this.#retryDeferred(domain.cycle + 1),
      },
    );
    this.#kind = new Uint8Array(portCount);
    this.#tag = new Float64Array(portCount);
    this.#isFilling = new Uint8Array(portCount);
    this.#failedTag = new Float64Array(portCount).fill(NO_TAG);
    this.#fillGeneration = new Int32Array(portCount);
    this.#joined = new Int32Array(portCount);
    this.#takenCycle = new Float64Array(portCount);
    if (portCount > PORT_COUNT) domain.addEdgeKeeper(this);
    this.#bufferedTag = new Float64Array(2 * portCount).fill(NO_TAG);
  }

  connect(users: readonly MissWaiter[]): void {
    this.#users = users;
  }

  /** Connects the users of the ports from {@link PORT_COUNT} on. */
  connectAhead(users: readonly MissWaiter[]): void {
    this.#ahead = users;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    for (let port = 0; port < this.#takenCycle.length; port++) this.#takenCycle[port]! -= cycles;
  }

  /** Reads under way. */
  get heldCount(): number {
    return this.#isFilling.reduce((sum, isFilling) => sum + isFilling, 0);
  }

  /**
   * Requests the entry at `address`; a negative address is not mapped.
   * @returns {@link FILL_PENDING}: the port's user will be woken; {@link FILL_FAILED}: the entry cannot be read
   */
  request(port: number, kind: FillKind, tag: number, address: BusAddress, lengthBytes: number): FillAnswer {
    if (this.#isFilling[port] === 1) return FILL_PENDING;
    if (address < 0 || this.#failedTag[port] === tag * 2 + kind) {
      this.#failedTag[port] = NO_TAG;
      return FILL_FAILED;
    }
    this.#failedTag[port] = NO_TAG;
    if (this.#joins(port, kind, tag)) return FILL_PENDING;
    if (!this.#dmaRead.canRequest(this.#requester)) {
      this.#deferred |= 1 << port;
      return FILL_PENDING;
    }
    this.#isFilling[port] = 1;
    this.#kind[port] = kind;
    this.#tag[port] = tag;
    this.#fillGeneration[port] = this.#generation;
    this.#bufferedTag[port * 2 + kind] = NO_TAG;
    this.#dmaRead.request(this.#requester, address, lengthBytes, this.#bufferOf(port, kind), port);
    return FILL_PENDING;
  }

  /**
   * Joins a read that a look-up ahead has begun. The look-up's user places the entry in the cache when it is woken, so
   * this port is woken one cycle later.
   */
  #joins(port: number, kind: FillKind, tag: number): boolean {
    for (let other = PORT_COUNT; other < this.#isFilling.length; other++) {
      if (other === port) continue;
      if (this.#isFilling[other] === 1 && this.#kind[other] === kind && this.#tag[other] === tag) {
        if (this.#fillGeneration[other] !== this.#generation) continue;
        this.#joined[other]! |= 1 << port;
        return true;
      }
      const isTakenSoon = this.#isFilling[other] === 0 && this.#takenCycle[other]! >= this.#domain.cycle;
      if (isTakenSoon && this.#bufferedTag[other * 2 + kind] === tag) {
        this.#wake(port, this.#takenCycle[other]! + 1);
        return true;
      }
    }
    return false;
  }

  #wake(port: number, cycle: Cycles): void {
    const user = port < PORT_COUNT ? this.#users[port]! : this.#ahead[port - PORT_COUNT]!;
    user.wake(cycle);
  }

  /** True when the port's buffer holds the entry. */
  holds(port: number, kind: FillKind, tag: number): boolean {
    return this.#bufferedTag[port * 2 + kind] === tag;
  }

  /** Moves the entry from the port's buffer into a line of `cache`, and returns the line. The caller has checked {@link holds}. */
  take(port: number, kind: FillKind, tag: number, cache: FilledCache): number {
    this.#bufferedTag[port * 2 + kind] = NO_TAG;
    const line = cache.directory.victimFor(tag);
    cache.directory.place(line, tag);
    cache.load(line, this.#view, this.#bufferOf(port, kind));
    return line;
  }

  /** Discards every buffer and the bytes of every read under way. */
  forgetAll(): void {
    this.#generation++;
    this.#bufferedTag.fill(NO_TAG);
    this.#failedTag.fill(NO_TAG);
  }

  /** Discards buffers and reads under way of some entries. */
  drop(kind: FillKind, isDropped: (tag: number) => boolean): void {
    for (let port = 0; port < this.#isFilling.length; port++) {
      if (isDropped(this.#bufferedTag[port * 2 + kind]!)) this.#bufferedTag[port * 2 + kind] = NO_TAG;
      const isReading = this.#isFilling[port] === 1 && this.#kind[port] === kind;
      if (isReading && isDropped(this.#tag[port]!)) this.#fillGeneration[port] = OUTDATED;
    }
  }

  reset(): void {
    this.forgetAll();
    this.#isFilling.fill(0);
    this.#joined.fill(0);
    this.#deferred = 0;
  }

  /** Ports without room for their read, one bit each. */
  get deferred(): number {
    return this.#deferred;
  }

  /** The state of one port. See Block.inspect. */
  inspect(port: number): Readonly<Record<string, BlockState[string]>> {
    const isFilling = this.#isFilling[port] === 1;
    return {
      ...(isFilling ? { reads: this.#kind[port] === FILL_MPT ? 'mpt' : 'mtt', tag: this.#tag[port]! } : {}),
      buffered: [this.#bufferedTag[port * 2]!, this.#bufferedTag[port * 2 + 1]!],
      failed: this.#failedTag[port]!,
    };
  }

  #bufferOf(port: number, kind: FillKind): number {
    return this.#sramOffset + (port * 2 + kind) * MTT_LINE_BYTES;
  }

  /** The DMA read begun for `port` has ended. */
  #readDone(port: number, status: number, cycle: Cycles): void {
    if (this.#isFilling[port] === 0) return;
    this.#isFilling[port] = 0;
    const tag = this.#tag[port]!;
    const kind = this.#kind[port]!;
    if (this.#fillGeneration[port] === this.#generation) {
      if (status !== 0) this.#failedTag[port] = tag * 2 + kind;
      else this.#bufferedTag[port * 2 + kind] = tag;
    }
    const wakeCycle = cycle + 1 + this.#missCycles;
    this.#wake(port, wakeCycle);
    this.#takenCycle[port] = wakeCycle;
    const joined = this.#joined[port]!;
    this.#joined[port] = 0;
    this.#wakeAll(joined, wakeCycle + 1);
    this.#retryDeferred(wakeCycle);
  }

  /** Wakes the ports that were turned away: DMA room became free. */
  #retryDeferred(cycle: Cycles): void {
    const ports = this.#deferred;
    this.#deferred = 0;
    this.#wakeAll(ports, cycle);
  }

  #wakeAll(ports: number, cycle: Cycles): void {
    for (let port = 0; ports >> port !== 0; port++) if ((ports >> port) & 1) this.#wake(port, cycle);
  }
}
