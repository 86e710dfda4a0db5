/**
 * The atomic unit: one read-modify-write of 8 bytes of host memory at a time, for the whole device.
 *
 *   begin ──DMA read──> compute ──DMA write──> end, with the old value as the result
 *                                               └── atomicWriteBackCycles ──> the next one may begin
 *
 * Executed one at a time, as measured (rate independent of the number of counters: measurements.csv D-062, D-063). Values are
 * in the host's byte order, little-endian, as low and high words. The user of the unit is woken when memory has answered.
 */
import type { BusAddress, Cycles } from '../../../base/index.ts';
import type { Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DmaReads, DmaWrites } from '../memory/index.ts';
import type { HcaConfig } from '../parameters.ts';
import { AtomicValue } from './atomic-value.ts';

export const ATOMIC_BYTES = 8;
/** Bytes of the HCA's memory for the old value, followed by the new one. */
const ATOMIC_SRAM_BYTES = 64;

/** The two operations: see AtomicValue. */
export const ATOMIC_ADD = 0;
export const ATOMIC_SWAP = 1;
export type AtomicOperation = typeof ATOMIC_ADD | typeof ATOMIC_SWAP;

/** Words of the operands, low before high: value to add and boundaries, or value to store, value to compare, and the masks of both. */
export const ATOMIC_OPERAND_WORDS = 8;

const IDLE = 0;
const READING = 1;
const READ = 2;
const WRITING = 3;
const WRITTEN = 4;

/** Parts of the device that {@link AtomicUnit} uses. */
export interface AtomicUnitSetup {
  readonly config: Pick<HcaConfig, 'atomicCycles' | 'atomicWriteBackCycles'>;
  readonly dmaRead: DmaReads;
  readonly dmaWrite: DmaWrites;
  readonly sram: Uint8Array;
  readonly sramView: DataView;
  allocateSram(lengthBytes: number): number;
}

export class AtomicUnit {
  /** Atomics executed. */
  executedCount = 0;
  readonly #dmaRead: DmaReads;
  readonly #dmaWrite: DmaWrites;
  readonly #sram: Uint8Array;
  readonly #sramView: DataView;
  readonly #readRequester: number;
  readonly #writeRequester: number;
  readonly #sramOffset: number;
  #state = IDLE;
  #readStatus = 0;
  #address = 0;
  /** Cycle from which the next atomic may begin. */
  #freeCycle = 0;
  readonly #user: Wakeable;
  readonly #writeBackCycles: Cycles;
  readonly #value = new AtomicValue();

  /** @param user woken when memory has answered */
  constructor(setup: AtomicUnitSetup, user: Wakeable) {
    this.#user = user;
    this.#writeBackCycles = setup.config.atomicWriteBackCycles;
    this.#dmaRead = setup.dmaRead;
    this.#dmaWrite = setup.dmaWrite;
    this.#sram = setup.sram;
    this.#sramView = setup.sramView;
    this.#sramOffset = setup.allocateSram(ATOMIC_SRAM_BYTES);
    this.#readRequester = setup.dmaRead.addRequester(
      { name: 'atomicRead', fifoDepth: 1, trafficClass: TrafficClass.payloadRead, weight: 4 },
      {
        done: (_cookie, status, cycle) => {
          this.#readStatus = status;
          this.#state = READ;
          user.wake(cycle + setup.config.atomicCycles);
        },
      },
    );
    this.#writeRequester = setup.dmaWrite.addRequester(
      { name: 'atomicWrite', trafficClass: TrafficClass.payloadWrite, fifoDepth: 1 },
      {
        done: (_cookie, cycle) => {
          this.#state = WRITTEN;
          user.wake(cycle + 1);
        },
      },
    );
  }

  get isIdle(): boolean {
    return this.#state === IDLE;
  }

  /** True while memory is being read or written. */
  get isWaiting(): boolean {
    return this.#state === READING || this.#state === WRITING;
  }

  /**
   * True if the old value has arrived, or could not be read ({@link hasFailed}).
   */
  get isRead(): boolean {
    return this.#state === READ;
  }

  get hasFailed(): boolean {
    return this.#readStatus !== 0;
  }

  /** The new value is in memory. */
  get isWritten(): boolean {
    return this.#state === WRITTEN;
  }

  /** The old value. */
  get resultLow(): number {
    return this.#sramView.getInt32(this.#sramOffset, true);
  }

  get resultHigh(): number {
    return this.#sramView.getInt32(this.#sramOffset + 4, true);
  }

  /** True if the next atomic may begin at `cycle`; otherwise wakes the user at the first cycle in which it may. */
  mayBegin(cycle: Cycles): boolean {
    if (this.#freeCycle <= cycle) return true;
    this.#user.wake(this.#freeCycle);
    return false;
  }

  /** Begins to read the 8 bytes at a physical address. The caller has checked {@link mayBegin}. */
  begin(address: BusAddress): void {
    this.#address = address;
    this.#dmaRead.request(this.#readRequester, address, ATOMIC_BYTES, this.#sramOffset, 0);
    this.#state = READING;
  }

  /** Computes the new value and begins to write it. */
  compute(operation: AtomicOperation, operands: Int32Array): void {
    const value = this.#value;
    value.set(this.resultLow, this.resultHigh);
    const [low = 0, high = 0, otherLow = 0, otherHigh = 0] = operands;
    if (operation === ATOMIC_ADD) value.add(low, high, otherLow, otherHigh);
    else if (value.isEqual(otherLow, otherHigh, operands[6]!, operands[7]!))
      value.replace(low, high, operands[4]!, operands[5]!);
    const place = this.#sramOffset + ATOMIC_BYTES;
    this.#sramView.setUint32(place, value.low, true);
    this.#sramView.setUint32(place + 4, value.high, true);
    this.#dmaWrite.request(this.#writeRequester, this.#address, ATOMIC_BYTES, this.#sram, place, 0);
    this.#state = WRITING;
  }

  /**
   * Ends the atomic and occupies the unit for `atomicWriteBackCycles`. The result stays readable until the next atomic
   * begins.
   */
  end(cycle: Cycles): void {
    this.executedCount++;
    this.#release(cycle);
  }

  /**
   * Abandons the current atomic; not while {@link isWaiting}. A write that is on its way occupies the unit all the
   * same.
   */
  abandon(cycle: Cycles): void {
    if (this.#state === WRITTEN) this.#release(cycle);
    else this.#state = IDLE;
  }

  #release(cycle: Cycles): void {
    this.#freeCycle = cycle + this.#writeBackCycles;
    this.#state = IDLE;
  }

  /** Forgets the current atomic, at once. */
  reset(): void {
    this.#state = IDLE;
    this.#freeCycle = 0;
  }

  /** Cycle from which the next atomic may begin: see Block.inspect. */
  get freeCycle(): Cycles {
    return this.#freeCycle;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#freeCycle -= cycles;
  }
}
