/**
 * The DMA write engine: turns requests into memory write TLPs, in one order of age over all requesters.
 *
 *     payload ──┐
 *     CQE ──────┼──▶ one queue, oldest first ──▶ [send] ──MWr──▶ link port     dataPathBytes per cycle
 *     MSI-X ────┘    (each requester has its own bound)
 *
 * Promises:
 * - A request is split at MPS and 4 KiB; its TLPs, and those of different requests, leave in the order in which the
 *   requests were made. So a CQE never passes the payload written before it, and an interrupt message never passes
 *   its event. PCIe keeps the order (posted does not pass posted; relaxed ordering is not set).
 * - At most one TLP leaves per cycle. `onDone` is called in the cycle in which the last one was handed to the link
 *   port; until then the source bytes must stay as they are.
 * - With bus mastering off, requests are dropped and counted, and done all the same: nobody waits for them.
 *
 * Requests are made at clock edges of the engine's domain, and are seen one cycle later.
 */
import { assertInvariant, assertRange } from '../../base/assert.ts';
import { BlockAccount } from '../../sim/block-account.ts';
import type { ClockDomain } from '../../sim/clock-domain.ts';
import type { LogicalProcess } from '../../sim/logical-process.ts';
import * as tlp from '../pcie/tlp.ts';
import { DmaRequestError } from './errors.ts';
import type { DmaWriteFunction, DmaWriteLink } from './link.ts';
import type { DmaConfig } from './parameters.ts';
import { firstTlpBytes } from './split.ts';
import * as waiting from './waiting.ts';
import { StallClock, writeStallReasons } from './waiting.ts';
import { type WriteDone, WriteQueue, WriteRequester, type WriteRequesterOptions } from './write-queue.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { POSTED } = tlp;
const { STALL_LINK } = waiting;

export interface DmaWriteEngineOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaWriteLink;
  readonly pcieFunction: DmaWriteFunction;
  readonly config: DmaConfig;
}

export class DmaWriteEngine {
  /** Busy while payload moves to the link, stalled while the link port has no room. */
  readonly account = new BlockAccount('dmaWrite', writeStallReasons);
  /** Bytes not sent because bus mastering was off. */
  droppedBytes = 0;

  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #link: DmaWriteLink;
  readonly #function: DmaWriteFunction;
  readonly #config: DmaConfig;
  readonly #stage: number;
  readonly #queue = new WriteQueue();
  readonly #stalls = new StallClock();
  #isBlocked = false;

  constructor(options: DmaWriteEngineOptions) {
    this.#lp = options.lp;
    this.#domain = options.domain;
    this.#link = options.link;
    this.#function = options.pcieFunction;
    this.#config = options.config;
    this.#stage = options.domain.addStage((cycle) => this.#send(cycle));
    options.link.onSendSpace(POSTED, () => this.#linkHasSpace());
  }

  /** Adds a requester and returns its number. All requesters are added before the first request. */
  addRequester(options: WriteRequesterOptions, onDone?: WriteDone): number {
    assertRange(`${options.name}.fifoDepth`, options.fifoDepth, 1, 65536);
    assertInvariant(this.#queue.count === 0, 'write requesters are added before the first request');
    return this.#queue.addRequester(new WriteRequester(options, onDone));
  }

  canRequest(requester: number): boolean {
    const owner = this.#queue.requesters[requester]!;
    return owner.count < owner.depth;
  }

  /** `listener` is called, inside the engine's stage, when the requester's full fifo has room again. */
  onSpace(requester: number, listener: () => void): void {
    this.#queue.requesters[requester]!.onSpace = listener;
  }

  /**
   * Asks for `lengthBytes` bytes of `source` from `sourceOffset` on to be written at bus address `address`.
   * @param cookie handed back with the report
   * @throws DmaRequestError for an empty request, bytes outside the source, or no room in the fifo
   */
  request(
    requester: number,
    address: number,
    lengthBytes: number,
    source: Uint8Array,
    sourceOffset: number,
    cookie: number,
  ): void {
    const queue = this.#queue;
    const owner = queue.requesters[requester]!;
    if (!(lengthBytes > 0))
      throw new DmaRequestError(`${owner.name} write lengthBytes`, lengthBytes, '1 or more');
    if (!(sourceOffset >= 0 && sourceOffset + lengthBytes <= source.length)) {
      const range = `0 to ${source.length - lengthBytes}`;
      throw new DmaRequestError(`${owner.name} write sourceOffset`, sourceOffset, range);
    }
    if (owner.count === owner.depth) {
      throw new DmaRequestError(`${owner.name} write requests`, owner.count + 1, `at most ${owner.depth}`);
    }
    const cycle = this.#domain.cycle + 1;
    const linkCycles = this.#stalls.linkCyclesAt(cycle);
    queue.push(requester, address, lengthBytes, source, sourceOffset, cookie, cycle, linkCycles);
    if (queue.count === 1) this.#domain.wake(this.#stage, cycle);
  }

  /** Drops every request unreported. */
  reset(cycle: number): void {
    this.#queue.clear();
    this.#unblock(cycle);
    this.account.rest(cycle);
  }

  /** True when no request is held. */
  get isIdle(): boolean {
    return this.#queue.count === 0;
  }

  /** The requesters with their counters, in the order added. */
  get requesters(): readonly WriteRequester[] {
    return this.#queue.requesters;
  }

  #send(cycle: number): void {
    const queue = this.#queue;
    if (queue.count === 0) return;
    const freeCycle = this.account.freeCycle;
    const startCycle = Math.max(queue.readyCycle[queue.head]!, freeCycle);
    if (cycle < startCycle) {
      this.#domain.wake(this.#stage, startCycle);
      return;
    }
    if (!this.#function.isBusMaster()) {
      this.#unblock(cycle);
      this.#drop(cycle);
    } else if (this.#link.canSend(POSTED)) {
      this.#unblock(cycle);
      this.#sendTlp(cycle);
    } else {
      this.#isBlocked = true;
      this.#stalls.begin(STALL_LINK, cycle);
      this.account.stall(cycle, STALL_LINK);
    }
  }

  #sendTlp(cycle: number): void {
    const queue = this.#queue;
    const slot = queue.head;
    const owner = queue.requesters[queue.requester[slot]!]!;
    const address = queue.address[slot]!;
    const remainingBytes = queue.remainingBytes[slot]!;
    const bytes = firstTlpBytes(address, remainingBytes, this.#function.maxPayloadBytes());
    const source = queue.source[slot]!;
    this.#link.sendMemoryWrite(address, owner.trafficClass, source, queue.sourceOffset[slot]!, bytes);
    const counters = owner.counters;
    const linkCycles = this.#stalls.linkCyclesAt(cycle) - queue.readyLinkCycles[slot]!;
    counters.tlps++;
    counters.waitLinkCycles += linkCycles;
    counters.waitArbitrationCycles += cycle - queue.readyCycle[slot]! - linkCycles;
    const nextCycle = this.#occupy(cycle, bytes);
    if (bytes === remainingBytes) this.#done(cycle);
    else queue.advance(bytes, nextCycle, this.#stalls.linkCyclesAt(nextCycle));
    if (queue.count > 0) this.#domain.wake(this.#stage, nextCycle);
  }

  /** Accounts for a TLP; returns the cycle at which the next one can go. */
  #occupy(cycle: number, bytes: number): number {
    const { dataPathBytes, writeIssueCycles } = this.#config;
    const dataCycles = bytes <= dataPathBytes ? 1 : Math.ceil(bytes / dataPathBytes);
    const serviceCycles = Math.max(dataCycles, writeIssueCycles);
    this.account.serve(cycle, serviceCycles);
    return cycle + serviceCycles;
  }

  /** Bus mastering is off: what remains of the oldest request is not sent. */
  #drop(cycle: number): void {
    const queue = this.#queue;
    this.droppedBytes += queue.remainingBytes[queue.head]!;
    queue.requesters[queue.requester[queue.head]!]!.counters.failedRequests++;
    const nextCycle = this.#occupy(cycle, 1);
    this.#done(cycle);
    if (queue.count > 0) this.#domain.wake(this.#stage, nextCycle);
  }

  #done(cycle: number): void {
    const queue = this.#queue;
    const owner = queue.requesters[queue.requester[queue.head]!]!;
    const wasFull = owner.count === owner.depth;
    const cookie = queue.cookie[queue.head]!;
    queue.pop();
    if (owner.onDone !== undefined) owner.onDone(cookie, cycle);
    if (wasFull && owner.onSpace !== undefined) owner.onSpace();
  }

  #unblock(cycle: number): void {
    if (!this.#isBlocked) return;
    this.#isBlocked = false;
    this.#stalls.end(cycle);
  }

  #linkHasSpace(): void {
    if (this.#isBlocked) this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }
}
