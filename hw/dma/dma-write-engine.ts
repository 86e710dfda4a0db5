/**
 * The DMA write engine: turns requests into memory write TLPs, in one order of age over all requesters.
 *
 *     payload ──┐
 *     CQE ──────┼──▶ one queue, oldest first ──▶ [send] ──MWr──▶ link port     dataPathBytes per cycle
 *     MSI-X ────┘    (each requester has its own bound)
 *
 * Promises:
 * - A request is split at MPS and 4 KiB; its TLPs, and those of different requests, leave in the order in which the requests
 *   were made. So a CQE never passes the earlier payload, and an interrupt message never passes its event. PCIe keeps the order
 *   (posted does not pass posted; relaxed ordering is not set).
 * - At most one TLP leaves per cycle. `done` is called in the cycle in which the last TLP was handed to the link port; until
 *   then the source bytes must not change.
 * - With bus mastering off, requests are dropped and counted, and reported as done, so that no requester waits for them.
 *
 * Requests are made at clock edges of the engine's domain, and are seen one cycle later.
 */

import { asInteger, assertInvariant, assertRange, type BusAddress, type Cycles } from '../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  type RunAhead,
} from '../../sim/index.ts';
import { POSTED } from '../pcie/index.ts';
import { DmaDataPath } from './dma-data-path.ts';
import { DmaRequestError } from './errors.ts';
import type { DmaWriteFunction, DmaWriteLink } from './link.ts';
import type { DmaConfig } from './parameters.ts';
import { firstTlpBytes, tlpCountOf } from './split.ts';
import { STALL_LINK, StallClock, writeStalls } from './waiting.ts';
import {
  WriteQueue,
  type WriteRequest,
  WriteRequester,
  type WriteRequesterOptions,
  type WriteRequesterPort,
} from './write-queue.ts';

export interface DmaWriteEngineOptions {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly link: DmaWriteLink;
  readonly config: DmaConfig;
}

export class DmaWriteEngine {
  /** Busy while payload moves to the link, stalled while the link port has no room. */
  readonly account = new BlockAccount('dmaWrite', writeStalls);
  /** Bytes not sent because bus mastering was off. */
  droppedBytes = 0;

  readonly #lp: LogicalProcess;
  readonly #runAhead: RunAhead;
  readonly #domain: ClockDomain;
  readonly #link: DmaWriteLink;
  readonly #dataPath: DmaDataPath;
  readonly #issueCycles: number;
  readonly #stage: number;
  readonly #queue = new WriteQueue();
  readonly #stalls = new StallClock();
  #function!: DmaWriteFunction;

  constructor(options: DmaWriteEngineOptions) {
    this.#lp = options.lp;
    this.#runAhead = options.lp.runAhead;
    this.#domain = options.domain;
    this.#link = options.link;
    this.#dataPath = new DmaDataPath(options.config.dataPathBytes);
    this.#issueCycles = options.config.writeIssueCycles;
    this.#stage = options.domain.addStage(this.#send, this);
    options.domain.addEdgeKeeper(this);
  }

  connect({ pcieFunction }: { readonly pcieFunction: DmaWriteFunction }): void {
    this.#function = pcieFunction;
  }

  /** Adds a requester and returns its number. All requesters are added before the first request. */
  addRequester(options: WriteRequesterOptions, port: WriteRequesterPort = {}): number {
    assertRange(`${options.name}.fifoDepth`, options.fifoDepth, 1, 65536);
    assertInvariant(this.#queue.count === 0, 'write requesters are added before the first request');
    return this.#queue.addRequester(new WriteRequester(options, port));
  }

  canRequest(requester: number): boolean {
    const owner = this.#queue.requesters[requester]!;
    return owner.count < owner.depth;
  }

  /** See LinkSender. */
  linkSpace(): void {
    if (this.#stalls.isStalled) this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  /**
   * Requests that `lengthBytes` bytes of `source` from `sourceOffset` on be written at bus address `address`.
   * @param cookie returned with the report
   * @throws DmaRequestError for an empty request, bytes outside the source, or no room in the fifo
   */
  request(
    requester: number,
    address: BusAddress,
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
    const added = queue.append(owner, lengthBytes);
    added.address = address;
    // Most use the same memory: storing an object reference is expensive (build/README.md).
    if (added.source !== source) added.source = source;
    // Narrowed (build/README.md).
    added.sourceOffset = sourceOffset | 0;
    added.cookie = asInteger(cookie);
    added.readyCycle = cycle;
    added.readyLinkCycles = this.#stalls.linkCyclesAt(cycle);
    if (queue.count === 1) this.#wakeAt(cycle);
  }

  /** Drops every request unreported. */
  reset(cycle: Cycles): void {
    this.#queue.clear();
    this.#stalls.end(cycle);
    this.account.rest(cycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(_ps: number, cycles: number): void {
    this.account.rebase(cycles);
    this.#queue.rebase(cycles);
    this.#stalls.rebase(cycles);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return { ...this.#queue.inspect(), waitsFor: this.#stalls.reason ?? 'nothing' };
  }

  /** True if no request is held. */
  get isIdle(): boolean {
    return this.#queue.count === 0;
  }

  /** The requesters with their counters, in the order of addition. */
  get requesters(): readonly WriteRequester[] {
    return this.#queue.requesters;
  }

  /** TLPs of a write of this many bytes. */
  tlpCount(address: BusAddress, lengthBytes: number): number {
    return tlpCountOf(address, lengthBytes, this.#function.maxPayloadBytes());
  }

  /** Continues the oldest request in `cycle`, or as soon as the engine is free. */
  #wakeAt(cycle: Cycles): void {
    const { freeCycle } = this.account;
    this.#domain.wake(this.#stage, cycle > freeCycle ? cycle : freeCycle);
  }

  #send(cycle: Cycles): void {
    for (let next = cycle; this.#queue.count > 0; ) {
      const request = this.#queue.head!;
      if (next < request.readyCycle || next < this.account.freeCycle) return this.#wakeAt(request.readyCycle);
      if (!this.#function.isBusMaster()) return this.#drop(request, next);
      if (!this.#link.canSend(POSTED)) return this.#block(next);
      next = this.#sendTlp(request, next);
      if (this.#queue.count > 0 && !this.#runAhead.passTo(this.#domain, this.#stage, next))
        return this.#domain.wake(this.#stage, next);
    }
  }

  /** Returns the cycle at which the next TLP can leave. */
  #sendTlp(request: WriteRequest, cycle: Cycles): number {
    const { owner, address, remainingBytes, source, sourceOffset } = request;
    this.#stalls.end(cycle);
    const bytes = firstTlpBytes(address, remainingBytes, this.#function.maxPayloadBytes());
    this.#link.write.begin(address, source, sourceOffset, bytes).trafficClass = owner.trafficClass;
    this.#link.sendMemoryWrite();
    owner.counters.tlps++;
    if (cycle > request.readyCycle) this.#countWait(request, cycle - request.readyCycle);
    const nextCycle = this.#occupy(cycle, bytes);
    if (bytes === remainingBytes) {
      this.#done(request, cycle);
      return nextCycle;
    }
    this.#advance(request, bytes, nextCycle);
    return nextCycle;
  }

  /** `bytes` of a request were sent; the rest can leave from `nextCycle` on. */
  #advance(request: WriteRequest, bytes: number, nextCycle: Cycles): void {
    request.address += bytes;
    request.remainingBytes -= bytes;
    request.sourceOffset += bytes;
    request.readyCycle = nextCycle;
    request.readyLinkCycles = this.#stalls.linkCycles;
  }

  #countWait({ owner, readyLinkCycles }: WriteRequest, cycles: number): void {
    const linkCycles = this.#stalls.linkCycles - readyLinkCycles;
    owner.counters.waitLinkCycles += linkCycles;
    owner.counters.waitArbitrationCycles += cycles - linkCycles;
  }

  /** Accounts for a TLP; returns the cycle at which the next one can leave. */
  #occupy(cycle: Cycles, bytes: number): number {
    const dataCycles = this.#dataPath.cyclesOf(bytes);
    const serviceCycles = dataCycles > this.#issueCycles ? dataCycles : this.#issueCycles;
    this.account.serve(cycle, serviceCycles);
    return cycle + serviceCycles;
  }

  /** Bus mastering is off: the rest of the oldest request is not sent. */
  #drop(request: WriteRequest, cycle: Cycles): void {
    this.#stalls.end(cycle);
    this.droppedBytes += request.remainingBytes;
    request.owner.counters.failedRequests++;
    const nextCycle = this.#occupy(cycle, 1);
    this.#done(request, cycle);
    if (this.#queue.count > 0) this.#domain.wake(this.#stage, nextCycle);
  }

  /** The oldest request is complete and leaves. */
  #done(request: WriteRequest, cycle: Cycles): void {
    const { owner, cookie } = request;
    const wasFull = owner.count === owner.depth;
    this.#queue.pop();
    owner.port.done?.(cookie, cycle);
    if (wasFull) owner.port.space?.();
  }

  #block(cycle: Cycles): void {
    this.#stalls.begin(STALL_LINK, cycle);
    this.account.stall(cycle, STALL_LINK);
  }
}
