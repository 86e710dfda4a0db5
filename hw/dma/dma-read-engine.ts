/**
 * The DMA read engine: turns requests into memory read TLPs and their completions back into bytes in on-chip memory.
 *
 *     request fifos ──arbiter──▶ [issue] ──MRd──▶ link port          one MRd per readIssueCycles, one tag each
 *     done ◀── reorder per requester ◀── [return] ◀──CplD── link    dataPathBytes per cycle
 *                                     [timeout] checks the oldest tag only
 *
 * Promises:
 * - A request is split at MRRS and at 4 KiB; its bytes are stored at the right offsets for any order of answers. Completions of
 *   one read arrive in address order (PCIe Base 3.0, 2.3.1.1) and may be interleaved with those of others.
 * - Each requester receives its reports in the order of its requests, one per cycle over all requesters. The cycle passed to
 *   `done` is the one in which the last byte is stored; it may be a few cycles after the edge being run, so the callee only
 *   leaves work for cycles after it.
 * - A failed request is reported after all its reads have ended; nothing is stored for it afterwards.
 * - A tag is free as soon as the header of the last completion has been taken, for use in that same cycle.
 * - Reset drops every request unreported. Tags in flight stay unused until their completions or timeouts.
 *
 * Requests are made at clock edges of the engine's domain, and are seen one cycle later.
 */

import { assertRange, type BusAddress, type Cycles } from '../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
  type RunAhead,
} from '../../sim/index.ts';
import {
  COMPLETION_DATA,
  type CompletionRunReceiver,
  type EarlyPlaces,
  FLAG_POISONED,
  NON_POSTED,
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
import { Arbiter, REQUESTER_COUNT_MAX } from './arbiter.ts';
import { DmaDataPath } from './dma-data-path.ts';
import { EarlyPlacement } from './early-placement.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';
import type { DmaReadFunction, DmaReadLink } from './link.ts';
import type { DmaConfig } from './parameters.ts';
import { PlacementOnArrival, type ReadPlacement } from './placement-on-arrival.ts';
import {
  ReadQueue,
  type ReadRequest,
  type ReadRequesterOptions,
  type ReadRequesterPort,
} from './read-queue.ts';
import { firstTlpBytes } from './split.ts';
import { type ReadTag, TAG_ABANDONED, TAG_ACTIVE, TAG_FREE, TagPool } from './tag-pool.ts';
import { readStalls, STALL_LINK, STALL_TAGS, StallClock } from './waiting.ts';

/** Limit of completions of one read: one per read completion boundary of 64 bytes, and one for the offset. */
const COMPLETIONS_PER_READ_MAX = 4096 / 64 + 1;

export interface DmaReadEngineOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaReadLink;
  readonly config: DmaConfig;
  /** On-chip memory into which reads put their bytes. */
  readonly sram: Uint8Array;
  /** Whether a host in the same thread may place them there early; left out: false. */
  readonly hasEarlyPlacement?: boolean;
}

export class DmaReadEngine implements CompletionRunReceiver {
  /** Cycles of the issuing half: busy per memory read, stalled for tags or for the link. */
  readonly account = new BlockAccount('dmaRead', readStalls);
  /** Cycles of the returning half: busy while completion data moves into on-chip memory. */
  readonly returnAccount = new BlockAccount('dmaReadReturn');
  /** Completions whose tag belongs to no read: never sent, or finished long ago. */
  unexpectedCompletions = 0;
  /** Completions that arrived after their read had timed out or was dropped by a reset. */
  lateCompletions = 0;
  /** Completions that do not continue their read; they are ignored. */
  malformedCompletions = 0;
  timeouts = 0;
  /** Services that a root complex in the same thread needs to place bytes early. */
  readonly earlyPlaces: EarlyPlaces | undefined;
  /** Neighbours of the link port besides the function: the taker of completions whose bytes were placed early. */
  readonly completionRuns: CompletionRunReceiver | undefined;

  readonly #lp: LogicalProcess;
  readonly #runAhead: RunAhead;
  readonly #domain: ClockDomain;
  readonly #link: DmaReadLink;
  readonly #tags: TagPool;
  readonly #sramBytes: number;

  readonly #issueStage: number;
  readonly #issueCycles: number;
  readonly #queues: ReadQueue[] = [];
  readonly #arbiter: Arbiter;
  readonly #stalls = new StallClock();
  #pcieFunction!: DmaReadFunction;
  /** Requesters with requests to send; those added in #newCycle are visible only after it. */
  #waitingMask = 0;
  #newMask = 0;
  #newCycle = -1;

  readonly #words: Int32Array;
  readonly #dataPath: DmaDataPath;
  readonly #placement: ReadPlacement;
  readonly #returnStage: number;
  readonly #timeoutStage: number;
  readonly #completions: Fifo;
  #lastReportCycle = -1;
  /** The completion timeout read last, and the same in cycles, rounded up. */
  #timeoutPs = Number.POSITIVE_INFINITY;
  #timeoutCycles = Number.POSITIVE_INFINITY;
  /** Cycle at which the timeout stage runs next, or Infinity. */
  #expireCycle = Number.POSITIVE_INFINITY;

  constructor(options: DmaReadEngineOptions) {
    const { lp, domain, link, config } = options;
    this.#lp = lp;
    this.#runAhead = lp.runAhead;
    this.#domain = domain;
    this.#link = link;
    this.#tags = new TagPool(config.tagCount);
    this.#sramBytes = options.sram.length;
    this.#words = link.reader.words;
    this.#dataPath = new DmaDataPath(config.dataPathBytes);
    const parts = {
      lp,
      domain,
      link,
      tags: this.#tags,
      account: this.returnAccount,
      dataPath: this.#dataPath,
    };
    const early =
      options.hasEarlyPlacement === true ? new EarlyPlacement({ ...parts, memory: options.sram }) : undefined;
    this.earlyPlaces = early;
    this.#placement = early ?? new PlacementOnArrival(options.sram, link.reader.bytes);
    this.#completions = new Fifo({
      name: 'completions',
      capacity: config.tagCount * COMPLETIONS_PER_READ_MAX,
      whenFull: 'never: a read has its tag until its last completion',
    });
    this.completionRuns = early === undefined || link.returnsCompletionCredits ? undefined : this;
    this.#returnStage = domain.addStage(this.#return, this);
    this.#timeoutStage = domain.addStage(this.#expire, this);
    this.#issueCycles = config.readIssueCycles;
    this.#arbiter = new Arbiter(config.readArbitration);
    this.#issueStage = domain.addStage(this.#issue, this);
    domain.addEdgeKeeper(this);
  }

  connect({ pcieFunction }: { readonly pcieFunction: DmaReadFunction }): void {
    this.#pcieFunction = pcieFunction;
  }

  /** Adds a requester after those added before, and returns its number. */
  addRequester(options: ReadRequesterOptions, port: ReadRequesterPort): number {
    assertRange(`${options.name}.fifoDepth`, options.fifoDepth, 1, 65536);
    assertRange(`${options.name}.weight`, options.weight, 1, 1_000_000);
    assertRange('read requesters', this.#queues.length + 1, 1, REQUESTER_COUNT_MAX);
    this.#queues.push(new ReadQueue(options, this.#queues.length, port));
    this.#arbiter.addRequester(options.weight);
    return this.#queues.length - 1;
  }

  canRequest(requester: number): boolean {
    const queue = this.#queues[requester]!;
    return queue.count < queue.depth;
  }

  /** See LinkSender. */
  linkSpace(): void {
    if (this.#stalls.isStalledFor(STALL_LINK)) this.#domain.wakeAfter(this.#issueStage, this.#lp.nowPs);
  }

  /**
   * Requests `lengthBytes` bytes at bus address `address`, to be stored at `sramOffset`.
   * @param cookie returned with the report
   * @throws DmaRequestError for an empty request, one outside the memory, or one without room in the fifo
   */
  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    sramOffset: number,
    cookie: number,
  ): void {
    const queue = this.#queues[requester]!;
    const lastOffset = this.#sramBytes - lengthBytes;
    if (!(lengthBytes > 0))
      throw new DmaRequestError(`${queue.name} read lengthBytes`, lengthBytes, '1 or more');
    if (!(sramOffset >= 0 && sramOffset <= lastOffset))
      throw new DmaRequestError(`${queue.name} read sramOffset`, sramOffset, `0 to ${lastOffset}`);
    if (queue.count === queue.depth)
      throw new DmaRequestError(`${queue.name} read requests`, queue.count + 1, `at most ${queue.depth}`);
    queue.push(address, lengthBytes, sramOffset, cookie);
    if (queue.unsentCount === 1) this.#beginToWait(queue, this.#domain.cycle);
  }

  /** Drops every request unreported, at edge `cycle`, which may be earlier than a completion that was taken in place of that same edge. */
  reset(cycle: Cycles): void {
    for (const queue of this.#queues) queue.clear();
    if (this.#placement.hasTakenAt(cycle) && this.#domain.isUpstream(this.#returnStage))
      this.lateCompletions++;
    this.withdrawPlaces();
    this.#tags.abandonAll();
    this.#arbiter.reset();
    this.#waitingMask = 0;
    this.#stalls.end(cycle);
    this.account.rest(cycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.account.rebase(cycles);
    this.#stalls.rebase(cycles);
    this.#newCycle -= cycles;
    for (const queue of this.#queues) queue.readySinceCycle -= cycles;
    this.returnAccount.rebase(cycles);
    this.#tags.rebase(cycles);
    this.#completions.rebase(cycles);
    this.#placement.rebase(cycles);
    this.#lastReportCycle -= cycles;
    this.#expireCycle -= cycles;
  }

  get fifos(): readonly Fifo[] {
    return [this.#completions];
  }

  /** See Block.inspect. The same whether arrived completions were taken early or wait for their edge. */
  inspect(): BlockState {
    return {
      requesters: Object.fromEntries(this.#queues.map((queue) => [queue.name, queue.inspect()])),
      waitsFor: this.#stalls.reason ?? 'nothing',
      arbiter: this.#arbiter.inspect(),
      tags: this.#tags.inspect(this.#arrivedBytes()),
    };
  }

  /**
   * Returns, by tag, the bytes of arrived completions that have not been taken; a completion without data ends its
   * read.
   */
  #arrivedBytes(): ReadonlyMap<number, number> {
    const arrived = new Map<number, number>();
    for (const offset of this.#completions.values) {
      const record = offset >> 2;
      const hasData = this.#words[record + WORD_KIND] === COMPLETION_DATA;
      const bytes = hasData ? this.#words[record + WORD_LENGTH]! : Number.POSITIVE_INFINITY;
      const tag = tagOf(this.#words[record + WORD_DESCRIPTOR]!);
      arrived.set(tag, (arrived.get(tag) ?? 0) + bytes);
    }
    return arrived;
  }

  /** True if no request is held and no tag is in use. */
  get isIdle(): boolean {
    return this.#tags.takenCount === 0 && this.#queues.every((queue) => queue.count === 0);
  }

  /** Tags whose completions may still arrive: the Transactions Pending bit. */
  get pendingTagCount(): number {
    return this.#tags.takenCount;
  }

  /** The tag pool, for observers. */
  get tags(): TagPool {
    return this.#tags;
  }

  /** Maximum of tags in use so far. */
  get tagHighWater(): number {
    return this.#tags.highWater;
  }

  /** The requesters with their counters, in the order of addition. */
  get requesters(): readonly ReadQueue[] {
    return this.#queues;
  }

  // ---- issue ----

  #beginToWait(queue: ReadQueue, cycle: Cycles): void {
    this.#ready(queue, cycle + 1);
    if (this.#newCycle !== cycle) {
      this.#newCycle = cycle;
      this.#newMask = 0;
    }
    this.#newMask |= queue.bit;
    this.#waitingMask |= queue.bit;
    if (!this.#stalls.isStalled) this.#domain.wake(this.#issueStage, cycle + 1);
  }

  #issue(cycle: Cycles): void {
    for (let edge = cycle; this.#issueAt(edge); ) {
      edge += this.#issueCycles;
      if (!this.#runAhead.passTo(this.#domain, this.#issueStage, edge))
        return this.#domain.wake(this.#issueStage, edge);
    }
  }

  /** Returns whether a request was served and more is left to send. */
  #issueAt(cycle: Cycles): boolean {
    if (cycle < this.account.freeCycle) {
      this.#domain.wake(this.#issueStage, this.account.freeCycle);
      return false;
    }
    const waiting = this.#newCycle === cycle ? this.#waitingMask & ~this.#newMask : this.#waitingMask;
    if (waiting === 0) {
      this.#stalls.end(cycle);
      this.account.rest(cycle);
      if (this.#waitingMask !== 0) this.#domain.wake(this.#issueStage, cycle + 1);
      return false;
    }
    const isBusMaster = this.#pcieFunction.isBusMaster();
    if (isBusMaster && this.#tags.freeCountBelow(this.#pcieFunction.tagCountMax) === 0)
      return this.#block(STALL_TAGS, cycle);
    if (isBusMaster && !this.#link.canSend(NON_POSTED)) return this.#block(STALL_LINK, cycle);
    this.#serve(this.#queues[this.#arbiter.grant(waiting)]!, isBusMaster, cycle);
    return this.#waitingMask !== 0;
  }

  #serve(queue: ReadQueue, isBusMaster: boolean, cycle: Cycles): void {
    this.#stalls.end(cycle);
    if (isBusMaster) this.#sendRead(queue, cycle);
    else this.#refuse(queue, cycle);
    this.account.serve(cycle, this.#issueCycles);
    if (queue.unsentCount === 0) this.#waitingMask &= ~queue.bit;
    else this.#ready(queue, cycle + this.#issueCycles);
  }

  #sendRead(queue: ReadQueue, cycle: Cycles): void {
    const request = queue.issuing;
    const pcieFunction = this.#pcieFunction;
    const bytes = firstTlpBytes(request.address, request.unsentBytes, pcieFunction.maxReadRequestBytes());
    const tag = this.#takeTag(cycle);
    tag.request = request;
    tag.sramOffset = request.sramOffset;
    tag.remainingBytes = bytes;
    this.#placement.begin(tag, request, bytes);
    const read = this.#link.read.begin(request.address, bytes);
    read.trafficClass = queue.trafficClass;
    read.tag = tag.number;
    read.requesterId = pcieFunction.requesterId();
    this.#link.sendMemoryRead();
    queue.sent(bytes);
    this.#arbiter.sent(request.unsentBytes > 0);
    queue.counters.tlps++;
    if (cycle > queue.readySinceCycle) this.#countWait(queue, cycle - queue.readySinceCycle);
  }

  #countWait({ counters, readyLinkCycles, readyTagCycles }: ReadQueue, cycles: number): void {
    const linkCycles = this.#stalls.linkCycles - readyLinkCycles;
    const tagCycles = this.#stalls.tagCycles - readyTagCycles;
    counters.waitLinkCycles += linkCycles;
    counters.waitTagCycles += tagCycles;
    counters.waitArbitrationCycles += cycles - linkCycles - tagCycles;
  }

  #refuse(queue: ReadQueue, cycle: Cycles): void {
    const request = queue.issuing;
    queue.fail(request, DmaStatus.busMasterDisabled);
    this.#report(request, cycle);
  }

  /** From `cycle` on the queue's next memory read could be sent. */
  #ready(queue: ReadQueue, cycle: Cycles): void {
    queue.readySinceCycle = cycle;
    queue.readyLinkCycles = this.#stalls.linkCyclesAt(cycle);
    queue.readyTagCycles = this.#stalls.tagCyclesAt(cycle);
  }

  #block(reason: number, cycle: Cycles): false {
    this.#stalls.begin(reason, cycle);
    this.account.stall(cycle, reason);
    return false;
  }

  get #isTagAwaited(): boolean {
    return this.#stalls.isStalledFor(STALL_TAGS);
  }

  #tagFreed(cycle: Cycles): void {
    if (this.#isTagAwaited) this.#domain.wake(this.#issueStage, cycle);
  }

  /** If the request has nothing left to send, its requester waits no longer. */
  #requestFailed(queue: ReadQueue, cycle: Cycles): void {
    if (queue.unsentCount > 0) return;
    this.#waitingMask &= ~queue.bit;
    if (this.#waitingMask === 0 && this.#stalls.isStalled) this.#domain.wake(this.#issueStage, cycle);
  }

  // ---- return ----

  /** Takes a completion TLP that has just arrived; the record is released when its bytes have been moved. */
  receiveCompletion(offset: number): void {
    const completions = this.#completions;
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs);
    if (completions.isEmpty) {
      this.#await(offset, cycle);
    } else if (completions.isFull) {
      this.#unexpected(offset);
      this.#link.consume(offset);
    } else {
      completions.push(offset, cycle);
    }
  }

  /** Whether a completion that has just arrived answers a read that no reset has cancelled. */
  isAwaited(offset: number): boolean {
    return this.#tags.tagOf(tagOf(this.#words[(offset >> 2) + WORD_DESCRIPTOR]!)).state !== TAG_ABANDONED;
  }

  /** See {@link ReadPlacement.takeAtOnce}. */
  receiveCompletionRun(offset: number): boolean {
    return this.#completions.isEmpty && this.#placement.takeAtOnce(offset, this.#isTagAwaited);
  }

  /** The just-arrived, only completion is taken at the first edge from `cycle` on at which the data path is free. */
  #await(offset: number, cycle: Cycles): void {
    const { freeCycle } = this.returnAccount;
    this.#completions.push(offset, cycle);
    this.#domain.wake(this.#returnStage, cycle > freeCycle ? cycle : freeCycle);
  }

  /** The memory of pending reads is about to be reused: later completions must see its new state. */
  withdrawPlaces(): void {
    for (const tag of this.#tags.tags) if (tag.state === TAG_ACTIVE) this.#placement.giveUp(tag);
  }

  /** Takes a free tag for a read sent in `cycle`; the caller has checked that one is free. */
  #takeTag(cycle: Cycles): ReadTag {
    const tag = this.#tags.take(cycle + this.#timeout());
    this.#expireAt(tag.deadlineCycle);
    return tag;
  }

  /** Reports a request if it is finished and the oldest of its queue, then the finished ones after it: one per cycle from `cycle` on. */
  #report(request: ReadRequest, cycle: Cycles): void {
    const { queue } = request;
    if (request !== queue.head || !request.isFinished) return;
    do {
      const { cookie, status } = queue.head;
      const wasFull = queue.count === queue.depth;
      const reportCycle = cycle > this.#lastReportCycle ? cycle : this.#lastReportCycle + 1;
      this.#lastReportCycle = reportCycle;
      queue.pop();
      queue.port.done(cookie, status, reportCycle);
      if (wasFull) queue.port.space?.();
    } while (queue.count > 0 && queue.head.isFinished);
  }

  #return(cycle: Cycles): void {
    if (cycle < this.#nextReturnCycle()) return;
    this.#take(this.#completions.pop(), cycle);
    if (!this.#completions.isEmpty) this.#domain.wake(this.#returnStage, this.#nextReturnCycle());
  }

  #take(offset: number, cycle: Cycles): void {
    const serviceCycles = this.#takeCompletion(offset, cycle);
    this.#link.consume(offset);
    this.returnAccount.serve(cycle, serviceCycles);
  }

  /** Cycle at which the oldest completion can be taken, or Infinity. */
  #nextReturnCycle(): Cycles {
    const { headCycle } = this.#completions;
    const { freeCycle } = this.returnAccount;
    return headCycle > freeCycle ? headCycle : freeCycle;
  }

  /** Returns the cycles for which it occupies the data path. */
  #takeCompletion(offset: number, cycle: Cycles): number {
    const words = this.#words;
    const record = offset >> 2;
    const tag = this.#tags.tagOf(tagOf(words[record + WORD_DESCRIPTOR]!));
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
      this.#pcieFunction.reportUnexpectedCompletion(offset);
      return 1;
    }
    const serviceCycles = this.#dataPath.cyclesOf(bytes);
    const isLast = isError || bytes === remainingBytes;
    if (tag.state === TAG_ACTIVE) {
      this.#continueRead(tag, offset, bytes, cycle);
      if (isLast) this.#endRead(tag.request!, cycle + serviceCycles - 1);
    } else {
      this.lateCompletions++;
      if (tag.state !== TAG_ABANDONED) this.#pcieFunction.reportUnexpectedCompletion(offset);
    }
    this.#passOver(tag, bytes, isLast, cycle);
    return serviceCycles;
  }

  /** The read continues after these bytes, or has ended. */
  #passOver(tag: ReadTag, bytes: number, isLast: boolean, cycle: Cycles): void {
    tag.sramOffset += bytes;
    tag.remainingBytes -= bytes;
    if (isLast) this.#freeTag(tag, cycle);
  }

  /** A completion of an awaited read: its bytes are stored, or its request fails. */
  #continueRead(tag: ReadTag, offset: number, bytes: number, cycle: Cycles): void {
    const flags = this.#words[(offset >> 2) + WORD_FLAGS]!;
    if (bytes === 0) {
      this.#fail(tag.request!, statusOfCompletion(statusOf(flags)), cycle);
    } else if ((flags & FLAG_POISONED) !== 0) {
      this.#fail(tag.request!, DmaStatus.poisoned, cycle);
    } else {
      this.#placement.place(tag, offset, bytes);
    }
  }

  #unexpected(offset: number): void {
    this.unexpectedCompletions++;
    this.#pcieFunction.reportUnexpectedCompletion(offset);
  }

  #freeTag(tag: ReadTag, cycle: Cycles): void {
    this.#tags.release(tag);
    this.#tagFreed(cycle);
  }

  /** One read of a request has ended. */
  #endRead(request: ReadRequest, cycle: Cycles): void {
    request.readCount--;
    this.#report(request, cycle);
  }

  #fail(request: ReadRequest, status: number, cycle: Cycles): void {
    request.queue.fail(request, status);
    this.#requestFailed(request.queue, cycle);
  }

  // ---- timeout ----

  #timeout(): number {
    const timeoutPs = this.#pcieFunction.completionTimeoutPs;
    if (timeoutPs !== this.#timeoutPs) {
      this.#timeoutPs = timeoutPs;
      this.#timeoutCycles = Math.ceil((timeoutPs * this.#domain.clock.frequencyMHz) / 1e6);
    }
    return this.#timeoutCycles;
  }

  /** Runs the timeout stage at `cycle` at the latest. */
  #expireAt(cycle: Cycles): void {
    if (cycle >= this.#expireCycle) return;
    this.#expireCycle = cycle;
    this.#domain.wake(this.#timeoutStage, cycle);
  }

  #expire(cycle: Cycles): void {
    this.#expireCycle = Number.POSITIVE_INFINITY;
    let tag = this.#tags.nextToExpire();
    for (; tag !== undefined && tag.deadlineCycle <= cycle; tag = this.#tags.nextToExpire()) {
      if (tag.state === TAG_ACTIVE) this.#timeOut(tag, cycle);
      else this.#freeTag(tag, cycle);
    }
    if (tag !== undefined) this.#expireAt(tag.deadlineCycle);
  }

  #timeOut(tag: ReadTag, cycle: Cycles): void {
    this.timeouts++;
    this.#pcieFunction.reportCompletionTimeout();
    this.#placement.giveUp(tag);
    this.#tags.expire(tag, cycle + this.#timeout());
    this.#fail(tag.request!, DmaStatus.timeout, cycle);
    this.#endRead(tag.request!, cycle);
  }
}

/** A Configuration Request Retry is not a valid answer to a memory read: it counts as an unsupported request. */
function statusOfCompletion(status: number): number {
  return status === STATUS_ABORT ? DmaStatus.completerAbort : DmaStatus.unsupportedRequest;
}
