/**
 * A descriptor ring: its registers, and the descriptors that are on chip.
 *
 *     host memory   0 … head … fetched … tail … count      head: the one in use         tail: written by software
 *                        └ cached ┘└ to be fetched ┘
 *     on chip       cache of descriptors, filled by one DMA read at a time of up to PREFETCH descriptors
 *
 * The queue: off ──ENABLE──► on ──ENABLE = 0──► stopping ──engine at rest──► off
 *             └── illegal programming ──► fault ◄── illegal tail, failed fetch or transfer ──┘   (ENABLE = 0 leaves it)
 *
 * Promises: nothing outside [base, base + length) is fetched, and nothing beyond the tail. Descriptors fetched for a stopped
 * queue are discarded. A tail outside the ring, an invalid length or an unaligned address causes a fault.
 */

import { NicCause, nicDescriptorBytes } from '../../abi/nic/index.ts';
import type { Cycles } from '../../base/index.ts';
import type { BlockState, ClockDomain } from '../../sim/index.ts';
import { type DmaReadEngine, DmaStatus, TrafficClass } from '../dma/index.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';

const LENGTH_UNIT = 128;
const LENGTH_MAX = 1 << 20;
const ADDRESS_ALIGNMENT = 16;
const FOUR_GIB = 0x1_0000_0000;

export interface RingOptions {
  readonly name: string;
  readonly domain: ClockDomain;
  readonly reads: DmaReadEngine;
  /** Offset of the cache in the memory that receives reads. */
  readonly cacheOffset: number;
  readonly cacheEntries: number;
  readonly resetPrefetch: number;
  readonly counters: NicCounters;
  readonly interrupts: NicInterrupts;
}

export interface RingPorts {
  readonly engine: {
    /** Something has changed: descriptors, the tail, or the state. */
    wake(cycle: Cycles): void;
  };
}

export class DescriptorRing {
  /** The registers. */
  baseLow = 0;
  baseHigh = 0;
  lengthBytes = 0;
  head = 0;
  tail = 0;
  prefetch: number;
  isEnabled = false;
  isFaulty = false;
  /** The queue is switched off as soon as its engine is idle. */
  isStopping = false;
  /** Descriptors on chip, from the head on. */
  cachedCount = 0;

  readonly #options: RingOptions;
  #engine!: RingPorts['engine'];
  readonly #requester: number;
  readonly #stage: number;
  #cacheHead = 0;
  #fetchIndex = 0;
  #isFetching = false;
  /** Generation of the queue: a report for an earlier one is dropped. */
  #generation = 0;
  #fetchCount = 0;
  /** A fetch has ended, with its result: applied at the edge after its last byte. */
  #hasArrived = false;
  #arrivedStatus = 0;
  #arrivedCycle = 0;

  constructor(options: RingOptions) {
    this.#options = options;
    this.prefetch = options.resetPrefetch;
    this.#requester = options.reads.addRequester(
      {
        name: `${options.name}Descriptors`,
        trafficClass: TrafficClass.descriptorRead,
        fifoDepth: 1,
        weight: 1,
      },
      { done: (generation, status, cycle) => this.#fetched(generation, status, cycle) },
    );
    this.#stage = options.domain.addStage(this.#run, this);
  }

  connect({ engine }: RingPorts): void {
    this.#engine = engine;
  }

  /** Descriptors in the ring. */
  get count(): number {
    return this.lengthBytes / nicDescriptorBytes;
  }

  /** Descriptors that software has provided and the device has not used. */
  get available(): number {
    if (!this.isEnabled) return 0;
    return (this.tail - this.head + this.count) % this.count;
  }

  /** Whether its engine may begin with a descriptor. */
  get isRunning(): boolean {
    return this.isEnabled && !this.isFaulty && !this.isStopping;
  }

  /** On-chip offset of the descriptor at the head; one is cached. */
  get cachedOffset(): number {
    return this.#options.cacheOffset + this.#cacheHead * nicDescriptorBytes;
  }

  /** Bus address of the descriptor at the head. */
  get headAddress(): number {
    return this.#base + this.head * nicDescriptorBytes;
  }

  /** The descriptor at the head was used. */
  pop(cycle: Cycles): void {
    this.head = this.#next(this.head);
    this.#cacheHead = (this.#cacheHead + 1) % this.#options.cacheEntries;
    this.cachedCount--;
    this.#options.domain.wake(this.#stage, cycle + 1);
  }

  /** Software wrote the tail register. */
  writeTail(value: number, cycle: Cycles): void {
    if (this.isEnabled && value >= this.count) {
      this.#illegal(cycle);
      return;
    }
    this.tail = value;
    if (!this.isRunning) return;
    this.#options.domain.wake(this.#stage, cycle + 1);
    this.#engine.wake(cycle);
  }

  /** Software sets ENABLE: the ring begins at descriptor 0. */
  enable(cycle: Cycles): void {
    if (this.isEnabled || this.isFaulty) return;
    const { lengthBytes } = this;
    const isLegal =
      lengthBytes >= LENGTH_UNIT &&
      lengthBytes <= LENGTH_MAX &&
      lengthBytes % LENGTH_UNIT === 0 &&
      this.baseLow % ADDRESS_ALIGNMENT === 0 &&
      this.tail < this.count;
    if (!isLegal) {
      this.#illegal(cycle);
      return;
    }
    this.isEnabled = true;
    this.#startOver();
    this.#options.domain.wake(this.#stage, cycle + 1);
    this.#engine.wake(cycle);
  }

  /** Software clears ENABLE; takes effect when the engine is idle, see {@link stopped}. */
  disable(cycle: Cycles): void {
    this.isFaulty = false;
    if (!this.isEnabled) return;
    this.isStopping = true;
    this.#engine.wake(cycle);
  }

  /** The engine is idle: the queue is off. */
  stopped(): void {
    this.isStopping = false;
    this.isEnabled = false;
    this.#startOver();
  }

  /** A transfer failed: the queue does nothing until software has switched it off. */
  fail(): void {
    this.isFaulty = true;
  }

  reset(): void {
    this.baseLow = 0;
    this.baseHigh = 0;
    this.lengthBytes = 0;
    this.tail = 0;
    this.prefetch = this.#options.resetPrefetch;
    this.isFaulty = false;
    this.#isFetching = false;
    this.stopped();
  }

  inspect(): BlockState {
    const { baseLow, baseHigh, lengthBytes, head, tail, prefetch, cachedCount } = this;
    const { isEnabled, isFaulty, isStopping } = this;
    return {
      baseLow,
      baseHigh,
      lengthBytes,
      head,
      tail,
      prefetch,
      isEnabled,
      isFaulty,
      isStopping,
      cachedCount,
      cacheHead: this.#cacheHead,
      fetchIndex: this.#fetchIndex,
      fetching: this.#isFetching ? this.#fetchCount : 0,
      hasArrived: this.#hasArrived,
    };
  }

  get #base(): number {
    return this.baseHigh * FOUR_GIB + this.baseLow;
  }

  #next(index: number): number {
    return index + 1 === this.count ? 0 : index + 1;
  }

  #startOver(): void {
    this.head = 0;
    this.cachedCount = 0;
    this.#cacheHead = 0;
    this.#fetchIndex = 0;
    this.#generation++;
    if (!this.#hasArrived) return;
    this.#hasArrived = false;
    this.#isFetching = false;
  }

  #illegal(cycle: Cycles): void {
    this.isFaulty = true;
    this.#options.counters.programmingErrors++;
    this.#options.interrupts.set(NicCause.PROGERR, cycle);
    this.#engine.wake(cycle);
  }

  #run(cycle: Cycles): void {
    if (this.#hasArrived && cycle > this.#arrivedCycle) this.#takeOver(cycle);
    this.#fetch();
  }

  #fetch(): void {
    const { cacheEntries, cacheOffset, reads } = this.#options;
    if (this.#isFetching || !this.isRunning || this.tail === this.#fetchIndex) return;
    const { count } = this;
    const given = (this.tail - this.#fetchIndex + count) % count;
    const slot = (this.#cacheHead + this.cachedCount) % cacheEntries;
    const fetchCount = Math.min(
      given,
      Math.max(this.prefetch, 1),
      count - this.#fetchIndex,
      cacheEntries - this.cachedCount,
      cacheEntries - slot,
    );
    if (fetchCount === 0) return;
    const address = this.#base + this.#fetchIndex * nicDescriptorBytes;
    this.#isFetching = true;
    this.#fetchCount = fetchCount;
    reads.request(
      this.#requester,
      address,
      fetchCount * nicDescriptorBytes,
      cacheOffset + slot * nicDescriptorBytes,
      this.#generation,
    );
  }

  #fetched(generation: number, status: number, cycle: Cycles): void {
    this.#isFetching = generation === this.#generation;
    this.#hasArrived = this.#isFetching;
    this.#arrivedStatus = status;
    this.#arrivedCycle = cycle;
    this.#options.domain.wake(this.#stage, cycle + 1);
  }

  #takeOver(cycle: Cycles): void {
    const { counters, interrupts } = this.#options;
    this.#hasArrived = false;
    this.#isFetching = false;
    counters.descriptorFetches++;
    if (this.#arrivedStatus !== DmaStatus.ok) {
      this.isFaulty = true;
      counters.busErrors++;
      interrupts.set(NicCause.DMAERR, cycle);
    } else {
      this.cachedCount += this.#fetchCount;
      this.#fetchIndex = (this.#fetchIndex + this.#fetchCount) % this.count;
    }
    this.#engine.wake(cycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#arrivedCycle -= cycles;
  }
}
