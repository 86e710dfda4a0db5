/**
 * The DMA read engine: turns requests into memory read TLPs and their completions back into bytes in on-chip memory.
 *
 *     request fifos ──arbiter──▶ [issue] ──MRd──▶ link port          one MRd per readIssueCycles, one tag each
 *     onDone ◀── reorder per requester ◀── [return] ◀──CplD── link    dataPathBytes per cycle
 *                                     [timeout] looks at the oldest tag only
 *
 * Promises:
 * - A request is split at MRRS and at 4 KiB; its bytes land at the right offsets whatever the order in which its
 *   reads are answered. Completions of one read come in address order (PCIe Base 3.0, 2.3.1.1) and may be interleaved
 *   with those of others.
 * - Each requester's reports come in the order of its requests, one per cycle over all requesters. The cycle given
 *   to `onDone` is the one in which the last byte has landed; it may lie a few cycles ahead of the edge being run, so
 *   the callee only leaves work for later cycles than that.
 * - A failed request is reported once all its reads have come to an end; nothing lands for it afterwards.
 * - A tag is free as soon as the header of the last completion has been taken, for use in that very cycle.
 * - Reset drops every request unreported. Tags in flight stay unused until their completions or timeouts.
 *
 * Requests are made at clock edges of the engine's domain, and are seen one cycle later.
 */
import { assertRange } from '../../base/assert.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import { Fifo } from '../../sim/fifo.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import * as tlp from '../pcie/tlp.ts';
import { statusOf } from '../pcie/tlp.ts';
import * as arbiterConstants from './arbiter.ts';
import { Arbiter } from './arbiter.ts';
import { copyBytes, wordsOver } from './copy.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';
import type { DmaReadFunction, DmaReadLink } from './link.ts';
import type { DmaConfig } from './parameters.ts';
import { type ReadDone, ReadQueue, type ReadRequesterOptions } from './read-queue.ts';
import { firstTlpBytes } from './split.ts';
import * as tagPool from './tag-pool.ts';
import { TagPool } from './tag-pool.ts';
import * as waitingConstants from './waiting.ts';
import { readStallReasons, StallClock } from './waiting.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { COMPLETION_DATA, FLAG_POISONED, NON_POSTED, PAYLOAD_OFFSET, STATUS_ABORT, STATUS_SUCCESS } = tlp;
const { WORD_BYTE_COUNT, WORD_FLAGS, WORD_KIND, WORD_LENGTH, WORD_TAG } = tlp;
const { REQUESTER_COUNT_MAX } = arbiterConstants;
const { TAG_ABANDONED, TAG_ACTIVE, TAG_FREE } = tagPool;
const { STALL_LINK, STALL_TAGS } = waitingConstants;

const NOT_BLOCKED = -1;
/** Most completions one read can be split into: one per read completion boundary of 64 bytes, and one for the offset. */
const COMPLETIONS_PER_READ_MAX = 4096 / 64 + 1;

export interface DmaReadEngineOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaReadLink;
  readonly pcieFunction: DmaReadFunction;
  readonly config: DmaConfig;
  /** On-chip memory in which reads land; begins on a word boundary of its buffer. */
  readonly sram: Uint8Array;
}

export class DmaReadEngine {
  /** Cycles of the issuing half: busy per memory read, stalled for tags or for the link. */
  readonly account = new BlockAccount('dmaRead', readStallReasons);
  /** Cycles of the returning half: busy while completion data moves into on-chip memory. */
  readonly returnAccount = new BlockAccount('dmaReadReturn', []);
  /** Completions whose tag belongs to no read: never sent, or finished long ago. */
  unexpectedCompletions = 0;
  /** Completions that came after their read had timed out or was dropped by a reset. */
  lateCompletions = 0;
  /** Completions that do not continue their read where it stands; they are ignored. */
  malformedCompletions = 0;
  timeouts = 0;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #link: DmaReadLink;
  readonly #function: DmaReadFunction;
  readonly #config: DmaConfig;
  readonly #sram: Uint8Array;
  readonly #sramWords: Int32Array;
  readonly #returnStage: number;
  readonly #timeoutStage: number;
  readonly #issueStage: number;
  readonly #queues: ReadQueue[] = [];
  readonly #arbiter: Arbiter;
  readonly #tags: TagPool;
  readonly #completions: Fifo;
  readonly #stalls = new StallClock();
  /** Requesters with something to send; those that became so in #newCycle are seen only after it. */
  #waitingMask = 0;
  #newMask = 0;
  #newCycle = -1;
  #blockedBy = NOT_BLOCKED;
  #lastReportCycle = -1;
  /** The completion timeout last asked for, and the same in cycles, rounded up. */
  #timeoutPs = Number.POSITIVE_INFINITY;
  #timeoutCycles = Number.POSITIVE_INFINITY;

  constructor(options: DmaReadEngineOptions) {
    const { config, domain, link } = options;
    this.#lp = options.lp;
    this.#domain = domain;
    this.#link = link;
    this.#function = options.pcieFunction;
    this.#config = config;
    this.#sram = options.sram;
    this.#sramWords = wordsOver(options.sram);
    this.#arbiter = new Arbiter(config.readArbitration);
    this.#tags = new TagPool(config.tagCount);
    this.#completions = new Fifo(config.tagCount * COMPLETIONS_PER_READ_MAX);
    this.#returnStage = domain.addStage((cycle) => this.#return(cycle));
    this.#timeoutStage = domain.addStage((cycle) => this.#expire(cycle));
    this.#issueStage = domain.addStage((cycle) => this.#issue(cycle));
    link.onSendSpace(NON_POSTED, () => this.#linkHasSpace());
  }

  /** Adds a requester behind those added before, and returns its number. */
  addRequester(options: ReadRequesterOptions, onDone: ReadDone): number {
    assertRange(`${options.name}.fifoDepth`, options.fifoDepth, 1, 65536);
    assertRange(`${options.name}.weight`, options.weight, 1, 1_000_000);
    assertRange('read requesters', this.#queues.length + 1, 1, REQUESTER_COUNT_MAX);
    this.#queues.push(new ReadQueue(options, onDone));
    this.#arbiter.addRequester(options.weight);
    return this.#queues.length - 1;
  }

  canRequest(requester: number): boolean {
    const queue = this.#queues[requester]!;
    return queue.count < queue.depth;
  }

  /** `listener` is called, inside the engine's stage, when the requester's full fifo has room again. */
  onSpace(requester: number, listener: () => void): void {
    this.#queues[requester]!.onSpace = listener;
  }

  /**
   * Asks for `lengthBytes` bytes at bus address `address` to be put at `sramOffset`.
   * @param cookie handed back with the report
   * @throws DmaRequestError for an empty request, one outside the memory, or one without room in the fifo
   */
  request(requester: number, address: number, lengthBytes: number, sramOffset: number, cookie: number): void {
    const queue = this.#queues[requester]!;
    if (!(lengthBytes > 0))
      throw new DmaRequestError(`${queue.name} read lengthBytes`, lengthBytes, '1 or more');
    if (!(sramOffset >= 0 && sramOffset + lengthBytes <= this.#sram.length)) {
      throw new DmaRequestError(
        `${queue.name} read sramOffset`,
        sramOffset,
        `0 to ${this.#sram.length - lengthBytes}`,
      );
    }
    if (queue.count === queue.depth) {
      throw new DmaRequestError(`${queue.name} read requests`, queue.count + 1, `at most ${queue.depth}`);
    }
    const cycle = this.#domain.cycle;
    queue.push(address, lengthBytes, sramOffset, cookie);
    if (queue.unsentCount > 1) return;
    this.#ready(queue, cycle + 1);
    if (this.#newCycle !== cycle) {
      this.#newCycle = cycle;
      this.#newMask = 0;
    }
    this.#newMask |= 1 << requester;
    this.#waitingMask |= 1 << requester;
    if (this.#blockedBy === NOT_BLOCKED) this.#domain.wake(this.#issueStage, cycle + 1);
  }

  /** Takes a completion TLP that has just arrived; the record is given back when its bytes have been moved. */
  receiveCompletion(offset: number): void {
    if (this.#completions.isFull) {
      this.#unexpected(offset);
      this.#link.consume(offset);
      return;
    }
    const cycle = this.#domain.clock.cycleAfter(this.#lp.nowPs);
    this.#completions.push(offset, cycle);
    this.#domain.wake(this.#returnStage, cycle);
  }

  /** Drops every request unreported. */
  reset(cycle: number): void {
    for (const queue of this.#queues) queue.clear();
    this.#tags.abandonAll();
    this.#arbiter.reset();
    this.#waitingMask = 0;
    this.#unblock(cycle);
    this.account.rest(cycle);
  }

  /** True when no request is held and no tag is out. */
  get isIdle(): boolean {
    return this.#tags.takenCount === 0 && this.#queues.every((queue) => queue.count === 0);
  }

  /** Tags whose completions may still come: the Transactions Pending bit. */
  get pendingTagCount(): number {
    return this.#tags.takenCount;
  }

  /** Most tags out at once so far. */
  get tagHighWater(): number {
    return this.#tags.highWater;
  }

  /** The requesters with their counters, in the order added. */
  get requesters(): readonly ReadQueue[] {
    return this.#queues;
  }

  // ---- issue: from the request fifos to the link ----

  #issue(cycle: number): void {
    if (cycle < this.account.freeCycle) {
      this.#domain.wake(this.#issueStage, this.account.freeCycle);
      return;
    }
    const waiting = this.#newCycle === cycle ? this.#waitingMask & ~this.#newMask : this.#waitingMask;
    if (waiting === 0) {
      this.#unblock(cycle);
      this.account.rest(cycle);
      if (this.#waitingMask !== 0) this.#domain.wake(this.#issueStage, cycle + 1);
      return;
    }
    const isBusMaster = this.#function.isBusMaster();
    if (isBusMaster && this.#tags.freeCountBelow(this.#function.tagCountMax) === 0)
      this.#block(STALL_TAGS, cycle);
    else if (isBusMaster && !this.#link.canSend(NON_POSTED)) this.#block(STALL_LINK, cycle);
    else this.#serve(this.#arbiter.grant(waiting), isBusMaster, cycle);
  }

  #serve(requester: number, isBusMaster: boolean, cycle: number): void {
    this.#unblock(cycle);
    const queue = this.#queues[requester]!;
    if (isBusMaster) this.#sendRead(queue, requester, cycle);
    else this.#refuse(queue, cycle);
    this.account.serve(cycle, this.#config.readIssueCycles);
    if (queue.unsentCount === 0) this.#waitingMask &= ~(1 << requester);
    else this.#ready(queue, cycle + this.#config.readIssueCycles);
    if (this.#waitingMask !== 0) this.#domain.wake(this.#issueStage, cycle + this.#config.readIssueCycles);
  }

  #sendRead(queue: ReadQueue, requester: number, cycle: number): void {
    const slot = queue.issueSlot;
    const address = queue.address[slot]!;
    const bytes = firstTlpBytes(address, queue.unsentBytes[slot]!, this.#function.maxReadRequestBytes());
    const tags = this.#tags;
    const deadlineCycle = cycle + this.#timeout();
    const tag = tags.take(deadlineCycle);
    if (tags.oldestTag === tag) this.#domain.wake(this.#timeoutStage, deadlineCycle);
    tags.requester[tag] = requester;
    tags.slot[tag] = slot;
    tags.landingOffset[tag] = queue.sramOffset[slot]!;
    tags.remainingBytes[tag] = bytes;
    this.#link.sendMemoryRead(address, queue.trafficClass, bytes, tag, this.#function.requesterId());
    queue.sent(bytes);
    const counters = queue.counters;
    const linkCycles = this.#stalls.linkCyclesAt(cycle) - queue.readyLinkCycles;
    const tagCycles = this.#stalls.tagCyclesAt(cycle) - queue.readyTagCycles;
    counters.tlps++;
    counters.waitLinkCycles += linkCycles;
    counters.waitTagCycles += tagCycles;
    counters.waitArbitrationCycles += cycle - queue.readySinceCycle - linkCycles - tagCycles;
  }

  #refuse(queue: ReadQueue, cycle: number): void {
    queue.fail(queue.issueSlot, DmaStatus.busMasterDisabled);
    this.#report(queue, cycle);
  }

  /** From `cycle` on the queue's next memory read could be sent. */
  #ready(queue: ReadQueue, cycle: number): void {
    queue.readySinceCycle = cycle;
    queue.readyLinkCycles = this.#stalls.linkCyclesAt(cycle);
    queue.readyTagCycles = this.#stalls.tagCyclesAt(cycle);
  }

  #block(reason: number, cycle: number): void {
    this.#blockedBy = reason;
    this.#stalls.begin(reason, cycle);
    this.account.stall(cycle, reason);
  }

  #unblock(cycle: number): void {
    if (this.#blockedBy === NOT_BLOCKED) return;
    this.#blockedBy = NOT_BLOCKED;
    this.#stalls.end(cycle);
  }

  #linkHasSpace(): void {
    if (this.#blockedBy === STALL_LINK) this.#domain.wakeAfter(this.#issueStage, this.#lp.nowPs);
  }

  // ---- return: from the link to on-chip memory ----

  #return(cycle: number): void {
    const completions = this.#completions;
    const freeCycle = this.returnAccount.freeCycle;
    const readyCycle = Math.max(completions.headCycle, freeCycle);
    if (cycle < readyCycle) {
      if (!completions.isEmpty) this.#domain.wake(this.#returnStage, readyCycle);
      return;
    }
    const offset = completions.pop();
    const serviceCycles = this.#takeCompletion(offset, cycle);
    this.#link.consume(offset);
    this.returnAccount.serve(cycle, serviceCycles);
    if (completions.isEmpty) return;
    const nextCycle = cycle + serviceCycles;
    const headCycle = completions.headCycle;
    this.#domain.wake(this.#returnStage, Math.max(headCycle, nextCycle));
  }

  /** Returns the cycles the data path is occupied by it. */
  #takeCompletion(offset: number, cycle: number): number {
    const words = this.#link.reader.words;
    const record = offset >> 2;
    const tags = this.#tags;
    const tag = words[record + WORD_TAG]!;
    if (tag < 0 || tag >= tags.tagCount || tags.state[tag] === TAG_FREE) {
      this.#unexpected(offset);
      return 1;
    }
    const flags = words[record + WORD_FLAGS]!;
    const status = statusOf(flags);
    const hasData = words[record + WORD_KIND] === COMPLETION_DATA;
    const isError = !hasData && status !== STATUS_SUCCESS;
    const bytes = hasData ? words[record + WORD_LENGTH]! : 0;
    const remainingBytes = tags.remainingBytes[tag]!;
    const continues =
      bytes > 0 && bytes <= remainingBytes && words[record + WORD_BYTE_COUNT] === remainingBytes;
    if (!isError && !continues) {
      this.malformedCompletions++;
      this.#function.reportUnexpectedCompletion(offset);
      return 1;
    }
    const serviceCycles =
      bytes <= this.#config.dataPathBytes ? 1 : Math.ceil(bytes / this.#config.dataPathBytes);
    const isLast = isError || bytes === remainingBytes;
    const landedCycle = cycle + serviceCycles - 1;
    if (tags.state[tag] === TAG_ACTIVE) {
      const queue = this.#queues[tags.requester[tag]!]!;
      if (isError) this.#fail(tag, statusOfCompletion(status), cycle);
      else if ((flags & FLAG_POISONED) !== 0) this.#fail(tag, DmaStatus.poisoned, cycle);
      else this.#land(offset, tags.landingOffset[tag]!, bytes);
      if (isLast) this.#finish(queue, tags.slot[tag]!, landedCycle);
    } else {
      this.lateCompletions++;
      if (tags.state[tag] !== TAG_ABANDONED) this.#function.reportUnexpectedCompletion(offset);
    }
    tags.landingOffset[tag] = tags.landingOffset[tag]! + bytes;
    tags.remainingBytes[tag] = remainingBytes - bytes;
    if (isLast) this.#freeTag(tag, cycle);
    return serviceCycles;
  }

  #unexpected(offset: number): void {
    this.unexpectedCompletions++;
    this.#function.reportUnexpectedCompletion(offset);
  }

  #land(offset: number, sramOffset: number, bytes: number): void {
    const reader = this.#link.reader;
    const payload = offset + PAYLOAD_OFFSET;
    copyBytes(this.#sram, this.#sramWords, sramOffset, reader.bytes, reader.words, payload, bytes);
  }

  #freeTag(tag: number, cycle: number): void {
    this.#tags.release(tag);
    if (this.#blockedBy === STALL_TAGS) this.#domain.wake(this.#issueStage, cycle);
  }

  /** One read of a request has come to its end. */
  #finish(queue: ReadQueue, slot: number, cycle: number): void {
    queue.tagCount[slot] = queue.tagCount[slot]! - 1;
    this.#report(queue, cycle);
  }

  /** The request of this tag has failed and sends no more; with nothing behind it, its requester waits no longer. */
  #fail(tag: number, status: number, cycle: number): void {
    const requester = this.#tags.requester[tag]!;
    const queue = this.#queues[requester]!;
    queue.fail(this.#tags.slot[tag]!, status);
    if (queue.unsentCount > 0) return;
    this.#waitingMask &= ~(1 << requester);
    if (this.#waitingMask === 0 && this.#blockedBy !== NOT_BLOCKED)
      this.#domain.wake(this.#issueStage, cycle);
  }

  /** Reports the requests at the head of a queue that are finished, one per cycle from `cycle` on. */
  #report(queue: ReadQueue, cycle: number): void {
    for (let slot = queue.finishedSlot; slot >= 0; slot = queue.finishedSlot) {
      const wasFull = queue.count === queue.depth;
      const reportCycle = cycle > this.#lastReportCycle ? cycle : this.#lastReportCycle + 1;
      this.#lastReportCycle = reportCycle;
      const cookie = queue.cookie[slot]!;
      const status = queue.status[slot]!;
      queue.pop();
      queue.onDone(cookie, status, reportCycle);
      if (wasFull && queue.onSpace !== undefined) queue.onSpace();
    }
  }

  // ---- timeout ----

  #timeout(): number {
    const timeoutPs = this.#function.completionTimeoutPs;
    if (timeoutPs !== this.#timeoutPs) {
      this.#timeoutPs = timeoutPs;
      this.#timeoutCycles = Math.ceil((timeoutPs * this.#domain.clock.frequencyMHz) / 1e6);
    }
    return this.#timeoutCycles;
  }

  #expire(cycle: number): void {
    const tags = this.#tags;
    while (tags.nextDeadlineCycle <= cycle) {
      const tag = tags.oldestTag;
      if (tags.state[tag] === TAG_ACTIVE) {
        this.timeouts++;
        this.#function.reportCompletionTimeout();
        tags.expire(tag, cycle + this.#timeout());
        this.#fail(tag, DmaStatus.timeout, cycle);
        this.#finish(this.#queues[tags.requester[tag]!]!, tags.slot[tag]!, cycle);
      } else {
        this.#freeTag(tag, cycle);
      }
    }
    if (tags.oldestTag >= 0) this.#domain.wake(this.#timeoutStage, tags.nextDeadlineCycle);
  }
}

/** A Configuration Request Retry is no answer to a memory read: it counts as an unsupported request. */
function statusOfCompletion(status: number): number {
  return status === STATUS_ABORT ? DmaStatus.completerAbort : DmaStatus.unsupportedRequest;
}
