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
import type { BusAddress } from '../../base/units.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import { NON_POSTED } from '../pcie/index.ts';
import { Arbiter, REQUESTER_COUNT_MAX } from './arbiter.ts';
import { DmaRequestError, DmaStatus } from './errors.ts';
import { type ReadDone, ReadQueue, type ReadRequesterOptions } from './read-queue.ts';
import { type DmaReadEngineOptions, ReadReturn } from './read-return.ts';
import { firstTlpBytes } from './split.ts';
import { readStalls, STALL_LINK, STALL_TAGS, StallClock } from './waiting.ts';

export class DmaReadEngine extends ReadReturn {
  /** Cycles of the issuing half: busy per memory read, stalled for tags or for the link. */
  readonly account = new BlockAccount('dmaRead', readStalls);

  readonly #issueStage: number;
  readonly #issueCycles: number;
  readonly #queues: ReadQueue[] = [];
  readonly #arbiter: Arbiter;
  readonly #stalls = new StallClock();
  /** Requesters with something to send; those that became so in #newCycle are seen only after it. */
  #waitingMask = 0;
  #newMask = 0;
  #newCycle = -1;

  constructor(options: DmaReadEngineOptions) {
    super(options);
    const { config, domain, link } = options;
    this.#issueCycles = config.readIssueCycles;
    this.#arbiter = new Arbiter(config.readArbitration);
    this.#issueStage = domain.addStage(this.#issue, this);
    link.onSendSpace(NON_POSTED, () => this.#linkHasSpace());
    domain.addEdgeKeeper(this);
  }

  /** Adds a requester behind those added before, and returns its number. */
  addRequester(options: ReadRequesterOptions, onDone: ReadDone): number {
    assertRange(`${options.name}.fifoDepth`, options.fifoDepth, 1, 65536);
    assertRange(`${options.name}.weight`, options.weight, 1, 1_000_000);
    assertRange('read requesters', this.#queues.length + 1, 1, REQUESTER_COUNT_MAX);
    this.#queues.push(new ReadQueue(options, this.#queues.length, onDone));
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
  request(
    requester: number,
    address: BusAddress,
    lengthBytes: number,
    sramOffset: number,
    cookie: number,
  ): void {
    const queue = this.#queues[requester]!;
    const lastOffset = this.sramBytes - lengthBytes;
    if (!(lengthBytes > 0))
      throw new DmaRequestError(`${queue.name} read lengthBytes`, lengthBytes, '1 or more');
    if (!(sramOffset >= 0 && sramOffset <= lastOffset))
      throw new DmaRequestError(`${queue.name} read sramOffset`, sramOffset, `0 to ${lastOffset}`);
    if (queue.count === queue.depth)
      throw new DmaRequestError(`${queue.name} read requests`, queue.count + 1, `at most ${queue.depth}`);
    queue.push(address, lengthBytes, sramOffset, cookie);
    if (queue.unsentCount === 1) this.#beginToWait(queue, this.domain.cycle);
  }

  /** Drops every request unreported. */
  reset(cycle: number): void {
    for (const queue of this.#queues) queue.clear();
    this.dropReads(cycle);
    this.#arbiter.reset();
    this.#waitingMask = 0;
    this.#stalls.end(cycle);
    this.account.rest(cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.account.rebase(cycles);
    this.#stalls.rebase(cycles);
    this.#newCycle -= cycles;
    for (const queue of this.#queues) queue.readySinceCycle -= cycles;
    this.rebaseReturns(cycles);
  }

  /** True when no request is held and no tag is out. */
  get isIdle(): boolean {
    return this.tags.takenCount === 0 && this.#queues.every((queue) => queue.count === 0);
  }

  /** Tags whose completions may still come: the Transactions Pending bit. */
  get pendingTagCount(): number {
    return this.tags.takenCount;
  }

  /** Most tags out at once so far. */
  get tagHighWater(): number {
    return this.tags.highWater;
  }

  /** The requesters with their counters, in the order added. */
  get requesters(): readonly ReadQueue[] {
    return this.#queues;
  }

  #beginToWait(queue: ReadQueue, cycle: number): void {
    this.#ready(queue, cycle + 1);
    if (this.#newCycle !== cycle) {
      this.#newCycle = cycle;
      this.#newMask = 0;
    }
    this.#newMask |= queue.bit;
    this.#waitingMask |= queue.bit;
    if (!this.#stalls.isStalled) this.domain.wake(this.#issueStage, cycle + 1);
  }

  #issue(cycle: number): void {
    for (let edge = cycle; this.#issueAt(edge); ) {
      edge += this.#issueCycles;
      if (!this.domain.passTo(this.#issueStage, edge)) return this.domain.wake(this.#issueStage, edge);
    }
  }

  /** Returns whether a request was served and there is more to send. */
  #issueAt(cycle: number): boolean {
    if (cycle < this.account.freeCycle) {
      this.domain.wake(this.#issueStage, this.account.freeCycle);
      return false;
    }
    const waiting = this.#newCycle === cycle ? this.#waitingMask & ~this.#newMask : this.#waitingMask;
    if (waiting === 0) {
      this.#stalls.end(cycle);
      this.account.rest(cycle);
      if (this.#waitingMask !== 0) this.domain.wake(this.#issueStage, cycle + 1);
      return false;
    }
    const isBusMaster = this.pcieFunction.isBusMaster();
    if (isBusMaster && this.tags.freeCountBelow(this.pcieFunction.tagCountMax) === 0)
      return this.#block(STALL_TAGS, cycle);
    if (isBusMaster && !this.link.canSend(NON_POSTED)) return this.#block(STALL_LINK, cycle);
    this.#serve(this.#queues[this.#arbiter.grant(waiting)]!, isBusMaster, cycle);
    return this.#waitingMask !== 0;
  }

  #serve(queue: ReadQueue, isBusMaster: boolean, cycle: number): void {
    this.#stalls.end(cycle);
    if (isBusMaster) this.#sendRead(queue, cycle);
    else this.#refuse(queue, cycle);
    this.account.serve(cycle, this.#issueCycles);
    if (queue.unsentCount === 0) this.#waitingMask &= ~queue.bit;
    else this.#ready(queue, cycle + this.#issueCycles);
  }

  #sendRead(queue: ReadQueue, cycle: number): void {
    const request = queue.issuing;
    const { pcieFunction } = this;
    const bytes = firstTlpBytes(request.address, request.unsentBytes, pcieFunction.maxReadRequestBytes());
    const tag = this.takeTag(cycle);
    tag.request = request;
    tag.landingOffset = request.sramOffset;
    tag.remainingBytes = bytes;
    tag.landingEnd = queue.landsAhead && tag.keptBytes === undefined ? request.sramOffset + bytes : 0;
    this.link.sendMemoryRead(
      request.address,
      queue.trafficClass,
      bytes,
      tag.number,
      pcieFunction.requesterId(),
    );
    queue.sent(bytes);
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

  #refuse(queue: ReadQueue, cycle: number): void {
    const request = queue.issuing;
    queue.fail(request, DmaStatus.busMasterDisabled);
    this.report(request, cycle);
  }

  /** From `cycle` on the queue's next memory read could be sent. */
  #ready(queue: ReadQueue, cycle: number): void {
    queue.readySinceCycle = cycle;
    queue.readyLinkCycles = this.#stalls.linkCyclesAt(cycle);
    queue.readyTagCycles = this.#stalls.tagCyclesAt(cycle);
  }

  #block(reason: number, cycle: number): false {
    this.#stalls.begin(reason, cycle);
    this.account.stall(cycle, reason);
    return false;
  }

  #linkHasSpace(): void {
    if (this.#stalls.isStalledFor(STALL_LINK)) this.domain.wakeAfter(this.#issueStage, this.lp.nowPs);
  }

  protected override get isTagAwaited(): boolean {
    return this.#stalls.isStalledFor(STALL_TAGS);
  }

  protected override tagFreed(cycle: number): void {
    if (this.isTagAwaited) this.domain.wake(this.#issueStage, cycle);
  }

  /** With nothing to send behind the request, its requester waits no longer. */
  protected override requestFailed(queue: ReadQueue, cycle: number): void {
    if (queue.unsentCount > 0) return;
    this.#waitingMask &= ~queue.bit;
    if (this.#waitingMask === 0 && this.#stalls.isStalled) this.domain.wake(this.#issueStage, cycle);
  }
}
