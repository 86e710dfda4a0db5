/**
 * The returning half of the read engine: takes completions, lands their bytes in on-chip memory, reports the requests
 * that have come to their end, and times out reads that are not answered. See read-engine.ts.
 */
import { BlockCopier } from '../../base/block-copy.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import { Fifo } from '../../sim/fifo.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import {
  COMPLETION_DATA,
  type CompletionLandings,
  type CompletionTaker,
  FLAG_LANDED,
  FLAG_POISONED,
  PAYLOAD_OFFSET,
  STATUS_ABORT,
  STATUS_SUCCESS,
  statusOf,
  tagOf,
  WORD_BYTE_COUNT,
  WORD_DESCRIPTOR,
  WORD_FLAGS,
  WORD_KIND,
  WORD_LENGTH,
} from '../pcie/index.ts';
import { CompletionRun } from './completion-run.ts';
import { DmaDataPath } from './dma-data-path.ts';
import { DmaStatus } from './errors.ts';
import type { DmaReadFunction, DmaReadLink } from './link.ts';
import type { DmaConfig } from './parameters.ts';
import type { ReadQueue, ReadRequest } from './read-queue.ts';
import { type ReadTag, TAG_ABANDONED, TAG_ACTIVE, TAG_FREE, TagPool } from './tag-pool.ts';

/** Most completions one read can be split into: one per read completion boundary of 64 bytes, and one for the offset. */
const COMPLETIONS_PER_READ_MAX = 4096 / 64 + 1;

export interface DmaReadEngineOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaReadLink;
  readonly pcieFunction: DmaReadFunction;
  readonly config: DmaConfig;
  /** On-chip memory in which reads land. */
  readonly sram: Uint8Array;
}

export abstract class ReadReturn implements CompletionLandings, CompletionTaker {
  /** Cycles of the returning half: busy while completion data moves into on-chip memory. */
  readonly returnAccount = new BlockAccount('dmaReadReturn');
  /** Completions whose tag belongs to no read: never sent, or finished long ago. */
  unexpectedCompletions = 0;
  /** Completions that came after their read had timed out or was dropped by a reset. */
  lateCompletions = 0;
  /** Completions that do not continue their read where it stands; they are ignored. */
  malformedCompletions = 0;
  timeouts = 0;
  /** On-chip memory in which reads land. */
  readonly memory: Uint8Array;

  protected readonly lp: LogicalProcess;
  protected readonly domain: ClockDomain;
  protected readonly link: DmaReadLink;
  protected readonly pcieFunction: DmaReadFunction;
  protected readonly tags: TagPool;
  protected readonly sramBytes: number;
  readonly #copier = new BlockCopier();
  readonly #bytes: Uint8Array;
  readonly #words: Int32Array;
  readonly #dataPath: DmaDataPath;
  readonly #run: CompletionRun;
  readonly #returnStage: number;
  readonly #timeoutStage: number;
  readonly #completions: Fifo;
  #lastReportCycle = -1;
  /** The completion timeout last asked for, and the same in cycles, rounded up. */
  #timeoutPs = Number.POSITIVE_INFINITY;
  #timeoutCycles = Number.POSITIVE_INFINITY;
  /** Cycle at which the timeout stage runs next, or Infinity. */
  #expireCycle = Number.POSITIVE_INFINITY;

  constructor(options: DmaReadEngineOptions) {
    const { config, domain, link } = options;
    this.lp = options.lp;
    this.domain = domain;
    this.link = link;
    this.pcieFunction = options.pcieFunction;
    this.tags = new TagPool(config.tagCount);
    this.sramBytes = options.sram.length;
    this.memory = options.sram;
    this.#bytes = link.reader.bytes;
    this.#words = link.reader.words;
    this.#dataPath = new DmaDataPath(config.dataPathBytes);
    this.#run = new CompletionRun(options.lp, domain, link, this.tags, this.returnAccount, this.#dataPath);
    this.#completions = new Fifo(config.tagCount * COMPLETIONS_PER_READ_MAX);
    if (!link.returnsCompletionCredits) link.letTakeCompletions(this);
    this.#returnStage = domain.addStage(this.#return, this);
    this.#timeoutStage = domain.addStage(this.#expire, this);
  }

  /** Takes a completion TLP that has just arrived; the record is given back when its bytes have been moved. */
  receiveCompletion(offset: number): void {
    const completions = this.#completions;
    const cycle = this.domain.clock.cycleAfter(this.lp.nowPs);
    if (completions.isEmpty) {
      this.#await(offset, cycle);
    } else if (completions.isFull) {
      this.#unexpected(offset);
      this.link.consume(offset);
    } else {
      completions.push(offset, cycle);
    }
  }

  /** Whether a completion that has just arrived answers a read that no reset has taken back. */
  isAwaited(offset: number): boolean {
    return this.tags.tagOf(tagOf(this.#words[(offset >> 2) + WORD_DESCRIPTOR]!)).state !== TAG_ABANDONED;
  }

  /** See {@link CompletionRun.take}. */
  takeCompletions(offset: number): boolean {
    return this.#completions.isEmpty && this.#run.take(offset, this.isTagAwaited);
  }

  /** The completion just arrived, the only one, is taken at the first edge from `cycle` on at which the data path is free. */
  #await(offset: number, cycle: number): void {
    const { freeCycle } = this.returnAccount;
    this.#completions.push(offset, cycle);
    this.domain.wake(this.#returnStage, cycle > freeCycle ? cycle : freeCycle);
  }

  /**
   * Where the bytes of a completion land, or -1 unless they may land ahead of it. The place is its request's until all reads
   * of that have ended.
   */
  placeOf(descriptor: number, byteCount: number): number {
    const { landingEnd, remainingBytes } = this.tags.tagOf(tagOf(descriptor));
    return landingEnd > 0 && byteCount <= remainingBytes ? landingEnd - byteCount : -1;
  }

  /** Where reads are to land now is about to be used for something else: from now on bytes land when their completion comes. */
  detachLandings(): void {
    for (const tag of this.tags.tags) if (tag.state === TAG_ACTIVE) this.#strand(tag);
  }

  /** A reset at edge `cycle`, which may come before the completion that was taken on account of that very edge. */
  protected dropReads(cycle: number): void {
    if (this.#run.lastCycle === cycle && this.domain.isUpstream(this.#returnStage)) this.lateCompletions++;
    this.detachLandings();
    this.tags.abandonAll();
  }

  /** What is kept here, at a new epoch. */
  protected rebaseReturns(cycles: number): void {
    this.returnAccount.rebase(cycles);
    this.tags.rebase(cycles);
    this.#completions.rebase(cycles);
    this.#run.lastCycle -= cycles;
    this.#lastReportCycle -= cycles;
    this.#expireCycle -= cycles;
  }

  /** Whether {@link tagFreed} would do anything. */
  protected abstract get isTagAwaited(): boolean;

  /** A tag is free again, for use in this very cycle. */
  protected abstract tagFreed(cycle: number): void;

  /** A request of this queue has failed, and sends no more. */
  protected abstract requestFailed(queue: ReadQueue, cycle: number): void;

  /** Takes a free tag, of which the caller has checked that there is one, for a read sent in `cycle`. */
  protected takeTag(cycle: number): ReadTag {
    const tag = this.tags.take(cycle + this.#timeout());
    this.#expireAt(tag.deadlineCycle);
    return tag;
  }

  /**
   * Reports a request if it is finished and the oldest of its queue, and then those behind it that are finished as well:
   * one per cycle from `cycle` on.
   */
  protected report(request: ReadRequest, cycle: number): void {
    const { queue } = request;
    if (request !== queue.head || !request.isFinished) return;
    do {
      const { cookie, status } = queue.head;
      const wasFull = queue.count === queue.depth;
      const reportCycle = cycle > this.#lastReportCycle ? cycle : this.#lastReportCycle + 1;
      this.#lastReportCycle = reportCycle;
      queue.pop();
      queue.onDone(cookie, status, reportCycle);
      if (wasFull && queue.onSpace !== undefined) queue.onSpace();
    } while (queue.count > 0 && queue.head.isFinished);
  }

  #return(cycle: number): void {
    if (cycle < this.#nextReturnCycle()) return;
    this.#take(this.#completions.pop(), cycle);
    if (!this.#completions.isEmpty) this.domain.wake(this.#returnStage, this.#nextReturnCycle());
  }

  #take(offset: number, cycle: number): void {
    const serviceCycles = this.#takeCompletion(offset, cycle);
    this.link.consume(offset);
    this.returnAccount.serve(cycle, serviceCycles);
  }

  /** Cycle at which the oldest completion can be taken, or Infinity. */
  #nextReturnCycle(): number {
    const { headCycle } = this.#completions;
    const { freeCycle } = this.returnAccount;
    return headCycle > freeCycle ? headCycle : freeCycle;
  }

  /** Returns the cycles the data path is occupied by it. */
  #takeCompletion(offset: number, cycle: number): number {
    const words = this.#words;
    const record = offset >> 2;
    const tag = this.tags.tagOf(tagOf(words[record + WORD_DESCRIPTOR]!));
    if (tag.state === TAG_FREE) {
      this.#unexpected(offset);
      return 1;
    }
    const hasData = words[record + WORD_KIND] === COMPLETION_DATA;
    const bytes = hasData ? words[record + WORD_LENGTH]! : 0;
    const { remainingBytes } = tag;
    const continues =
      bytes > 0 && bytes <= remainingBytes && words[record + WORD_BYTE_COUNT] === remainingBytes;
    const isError = !hasData && statusOf(words[record + WORD_FLAGS]!) !== STATUS_SUCCESS;
    if (!continues && !isError) {
      this.malformedCompletions++;
      this.pcieFunction.reportUnexpectedCompletion(offset);
      return 1;
    }
    const serviceCycles = this.#dataPath.cyclesOf(bytes);
    const isLast = isError || bytes === remainingBytes;
    if (tag.state === TAG_ACTIVE) {
      this.#continueRead(tag, offset, bytes, cycle);
      if (isLast) this.#endRead(tag.request!, cycle + serviceCycles - 1);
    } else {
      this.lateCompletions++;
      if (tag.state !== TAG_ABANDONED) this.pcieFunction.reportUnexpectedCompletion(offset);
    }
    this.#passOver(tag, bytes, isLast, cycle);
    return serviceCycles;
  }

  /** The read goes on behind these bytes, or has come to its end. */
  #passOver(tag: ReadTag, bytes: number, isLast: boolean, cycle: number): void {
    tag.landingOffset += bytes;
    tag.remainingBytes -= bytes;
    if (isLast) this.#freeTag(tag, cycle);
  }

  /** Bytes that have landed ahead are in place, unless the place has been given up since. */
  #land(tag: ReadTag, offset: number, bytes: number, flags: number): void {
    const { keptBytes, landingOffset } = tag;
    if ((flags & FLAG_LANDED) === 0) {
      this.#copier.copy(this.memory, landingOffset, this.#bytes, offset + PAYLOAD_OFFSET, bytes);
    } else if (keptBytes !== undefined) {
      const from = keptBytes.length - tag.remainingBytes;
      this.memory.set(keptBytes.subarray(from, from + bytes), landingOffset);
    }
  }

  /** Keeps what has landed ahead for a read that is given up: its completions may still be taken for those of the tag's next. */
  #strand(tag: ReadTag): void {
    const { landingOffset, remainingBytes } = tag;
    tag.keptBytes ??= this.memory.slice(landingOffset, landingOffset + remainingBytes);
    tag.landingEnd = 0;
  }

  /** A completion of a read that is waited for: its bytes land, or its request fails. */
  #continueRead(tag: ReadTag, offset: number, bytes: number, cycle: number): void {
    const flags = this.#words[(offset >> 2) + WORD_FLAGS]!;
    if (bytes === 0) {
      this.#fail(tag.request!, statusOfCompletion(statusOf(flags)), cycle);
    } else if ((flags & FLAG_POISONED) !== 0) {
      this.#fail(tag.request!, DmaStatus.poisoned, cycle);
    } else {
      this.#land(tag, offset, bytes, flags);
    }
  }

  #unexpected(offset: number): void {
    this.unexpectedCompletions++;
    this.pcieFunction.reportUnexpectedCompletion(offset);
  }

  #freeTag(tag: ReadTag, cycle: number): void {
    this.tags.release(tag);
    this.tagFreed(cycle);
  }

  /** One read of a request has come to its end. */
  #endRead(request: ReadRequest, cycle: number): void {
    request.readCount--;
    this.report(request, cycle);
  }

  #fail(request: ReadRequest, status: number, cycle: number): void {
    request.queue.fail(request, status);
    this.requestFailed(request.queue, cycle);
  }

  // ---- timeout ----

  #timeout(): number {
    const timeoutPs = this.pcieFunction.completionTimeoutPs;
    if (timeoutPs !== this.#timeoutPs) {
      this.#timeoutPs = timeoutPs;
      this.#timeoutCycles = Math.ceil((timeoutPs * this.domain.clock.frequencyMHz) / 1e6);
    }
    return this.#timeoutCycles;
  }

  /** Has the timeout stage run at `cycle` at the latest. */
  #expireAt(cycle: number): void {
    if (cycle >= this.#expireCycle) return;
    this.#expireCycle = cycle;
    this.domain.wake(this.#timeoutStage, cycle);
  }

  #expire(cycle: number): void {
    this.#expireCycle = Number.POSITIVE_INFINITY;
    let tag = this.tags.nextToExpire();
    for (; tag !== undefined && tag.deadlineCycle <= cycle; tag = this.tags.nextToExpire()) {
      if (tag.state === TAG_ACTIVE) this.#timeOut(tag, cycle);
      else this.#freeTag(tag, cycle);
    }
    if (tag !== undefined) this.#expireAt(tag.deadlineCycle);
  }

  #timeOut(tag: ReadTag, cycle: number): void {
    this.timeouts++;
    this.pcieFunction.reportCompletionTimeout();
    this.#strand(tag);
    this.tags.expire(tag, cycle + this.#timeout());
    this.#fail(tag.request!, DmaStatus.timeout, cycle);
    this.#endRead(tag.request!, cycle);
  }
}

/** A Configuration Request Retry is no answer to a memory read: it counts as an unsupported request. */
function statusOfCompletion(status: number): number {
  return status === STATUS_ABORT ? DmaStatus.completerAbort : DmaStatus.unsupportedRequest;
}
