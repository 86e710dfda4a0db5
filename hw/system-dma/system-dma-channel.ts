/** One channel of the system DMA controller: base and current registers, mode, request and mask. */
import { SystemDmaMode, SystemDmaTransfer, systemDmaBits, systemDmaWordBytes } from '../../abi/nic/index.ts';
import { fieldOf } from '../../base/index.ts';
import type { BlockState } from '../../sim/index.ts';

const FOUR_GIB = 0x1_0000_0000;

export class SystemDmaChannel {
  mode = 0;
  isMasked = true;
  isRequested = false;
  hasReachedCount = false;
  hasFailed = false;
  /** Current registers. */
  address = 0;
  count = 0;
  device = 0;
  /** Free-running, for reports. */
  wordsMoved = 0;
  terminalCounts = 0;
  failures = 0;
  #baseAddress = 0;
  #baseCount = 0;
  #baseDevice = 0;

  get isReady(): boolean {
    return this.isRequested && !this.isMasked;
  }

  get isBlock(): boolean {
    return fieldOf(this.mode, systemDmaBits.mode.mode) === SystemDmaMode.BLOCK;
  }

  /** True for transfers from memory to the device. */
  get readsMemory(): boolean {
    return fieldOf(this.mode, systemDmaBits.mode.transfer) === SystemDmaTransfer.READ;
  }

  /** Whether its mode is valid. */
  get isLegal(): boolean {
    const transfer = fieldOf(this.mode, systemDmaBits.mode.transfer);
    const mode = fieldOf(this.mode, systemDmaBits.mode.mode);
    const isTransfer = transfer === SystemDmaTransfer.READ || transfer === SystemDmaTransfer.WRITE;
    const isAligned = this.address % systemDmaWordBytes === 0 && this.device % systemDmaWordBytes === 0;
    return isTransfer && isAligned && (mode === SystemDmaMode.SINGLE || mode === SystemDmaMode.BLOCK);
  }

  setAddressLow(value: number): void {
    this.#baseAddress = Math.floor(this.#baseAddress / FOUR_GIB) * FOUR_GIB + value;
    this.address = this.#baseAddress;
  }

  setAddressHigh(value: number): void {
    this.#baseAddress = value * FOUR_GIB + (this.#baseAddress % FOUR_GIB);
    this.address = this.#baseAddress;
  }

  setDeviceLow(value: number): void {
    this.#baseDevice = Math.floor(this.#baseDevice / FOUR_GIB) * FOUR_GIB + value;
    this.device = this.#baseDevice;
  }

  setDeviceHigh(value: number): void {
    this.#baseDevice = value * FOUR_GIB + (this.#baseDevice % FOUR_GIB);
    this.device = this.#baseDevice;
  }

  setCount(value: number): void {
    this.#baseCount = value;
    this.count = value;
  }

  /** A word was moved. Returns true at terminal count. */
  step(): boolean {
    const isDown = fieldOf(this.mode, systemDmaBits.mode.decrement) === 1;
    this.address += isDown ? -systemDmaWordBytes : systemDmaWordBytes;
    if (fieldOf(this.mode, systemDmaBits.mode.fixedDevice) === 0) this.device += systemDmaWordBytes;
    this.count--;
    this.wordsMoved++;
    return this.count === 0;
  }

  /** Terminal count: the channel restarts, or masks itself. The request was served. */
  finish(): void {
    this.hasReachedCount = true;
    this.terminalCounts++;
    this.isRequested = false;
    if (fieldOf(this.mode, systemDmaBits.mode.autoInitialize) === 1) {
      this.address = this.#baseAddress;
      this.count = this.#baseCount;
      this.device = this.#baseDevice;
    } else {
      this.isMasked = true;
    }
  }

  /** An access failed, or the programmed transfer is impossible: the registers keep the state of the failure. */
  fail(): void {
    this.hasFailed = true;
    this.failures++;
    this.isRequested = false;
    this.isMasked = true;
  }

  inspect(): BlockState {
    const { mode, isMasked, isRequested, hasReachedCount, hasFailed, address, count, device } = this;
    return {
      mode,
      isMasked,
      isRequested,
      hasReachedCount,
      hasFailed,
      address,
      count,
      device,
      base: [this.#baseAddress, this.#baseCount, this.#baseDevice],
    };
  }

  clear(): void {
    this.mode = 0;
    this.isMasked = true;
    this.isRequested = false;
    this.hasReachedCount = false;
    this.hasFailed = false;
    this.#baseAddress = 0;
    this.#baseCount = 0;
    this.#baseDevice = 0;
    this.address = 0;
    this.count = 0;
    this.device = 0;
  }
}
