/**
 * A bus-master engine: one transfer register set that moves words between host memory and the packet buffer.
 *
 *     start(address, bytes, place) ─► bursts ─► DMA engine of hw/dma ─► done, in order ─► registers count ─► engine
 *
 *     address   counts up  ┐
 *     count     counts down├ as each burst has moved; readable by software while it runs
 *     place     counts up  ┘
 *
 * Promises: bursts end at multiples of their size; at most `burstsOutstanding` are outstanding. A failed transfer requests no
 * more bursts, and ends with its status when the outstanding ones have ended. The engine that is notified of the end only
 * leaves work for later edges.
 */

import { NicDmaError } from '../../abi/nic/index.ts';
import type { BusAddress, Cycles } from '../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../sim/index.ts';

const stalls = stallReasons('engine', 'data');
const { engine: STALL_ROOM, data: STALL_DATA } = stalls;
const WORD_BYTES = 4;

/** The DMA engine as one of its requesters sees it. */
export interface BurstPort {
  canRequest(): boolean;
  /** @param bytes also the cookie of the report */
  request(address: BusAddress, bytes: number, place: number): void;
  connect(ports: { readonly master: BurstMaster }): void;
}

/** The bus master as its port to the DMA engine sees it. */
export interface BurstMaster {
  /** A burst of `bytes` has moved, or failed: the DMA engine's report. */
  done(bytes: number, status: number, cycle: Cycles): void;
  /** The DMA engine has room again. */
  wake(): void;
}

export interface BusMasterSetup {
  readonly name: string;
  readonly domain: ClockDomain;
  readonly port: BurstPort;
  readonly burstBytes: number;
}

export interface BusMasterPorts {
  readonly engine: {
    /** The count has reached zero, or an error has ended the transfer: the callee may only leave work for later edges. */
    moved(error: number, cycle: Cycles): void;
  };
}

export class BusMaster {
  readonly account: BlockAccount;
  /** The registers: address of the next word, number of words left, and its on-board address. */
  address = 0;
  bytesLeft = 0;
  place = 0;
  isBusy = false;
  /** Status of the last transfer. */
  error: number = NicDmaError.NONE;
  transfers = 0;
  wordsMoved = 0;

  readonly #domain: ClockDomain;
  readonly #port: BurstPort;
  readonly #burstBytes: number;
  #engine!: BusMasterPorts['engine'];
  readonly #stage: number;
  /** Bytes not requested yet. */
  #nextAddress = 0;
  #nextPlace = 0;
  #unsentBytes = 0;
  #outstanding = 0;

  constructor({ name, domain, port, burstBytes }: BusMasterSetup) {
    this.account = new BlockAccount(name, stalls);
    this.#domain = domain;
    this.#port = port;
    this.#burstBytes = burstBytes;
    this.#stage = domain.addStage(this.#run, this);
    port.connect({ master: this });
  }

  connect({ engine }: BusMasterPorts): void {
    this.#engine = engine;
  }

  /** Words of 4 bytes left; the last may be partial. */
  get wordsLeft(): number {
    return Math.ceil(this.bytesLeft / WORD_BYTES);
  }

  /** Moves `bytes` (1 or more) from `cycle` on; the engine must not be busy. */
  start(address: BusAddress, bytes: number, place: number, cycle: Cycles): void {
    this.address = address;
    this.bytesLeft = bytes;
    this.place = place;
    this.#nextAddress = address;
    this.#nextPlace = place;
    this.#unsentBytes = bytes;
    this.isBusy = true;
    this.error = NicDmaError.NONE;
    this.transfers++;
    this.#domain.wake(this.#stage, cycle);
  }

  /** See BurstMaster. */
  done(bytes: number, status: number, cycle: Cycles): void {
    this.#outstanding--;
    if (status !== NicDmaError.NONE) {
      if (this.error === NicDmaError.NONE) this.error = status;
      this.#unsentBytes = 0;
    } else if (this.error === NicDmaError.NONE) {
      const wordsBefore = this.wordsLeft;
      this.address += bytes;
      this.place += bytes;
      this.bytesLeft -= bytes;
      this.wordsMoved += wordsBefore - this.wordsLeft;
    }
    if (this.#outstanding > 0 || this.#unsentBytes > 0) return;
    this.isBusy = false;
    this.account.rest(cycle + 1);
    this.#engine.moved(this.error, cycle);
  }

  wake(): void {
    if (this.account.isStalledFor(STALL_ROOM)) this.#domain.wake(this.#stage, this.#domain.cycle + 1);
  }

  /** Drops all outstanding bursts without reports. */
  reset(cycle: Cycles): void {
    this.address = 0;
    this.bytesLeft = 0;
    this.place = 0;
    this.isBusy = false;
    this.error = NicDmaError.NONE;
    this.#unsentBytes = 0;
    this.#outstanding = 0;
    this.account.rest(cycle);
  }

  inspect(): BlockState {
    const { address, bytesLeft, place, isBusy, error } = this;
    return {
      address,
      bytesLeft,
      place,
      isBusy,
      error,
      unsentBytes: this.#unsentBytes,
      burstsUnderWay: this.#outstanding,
    };
  }

  rebase(cycles: number): void {
    this.account.rebase(cycles);
  }

  #run(cycle: Cycles): void {
    if (this.#unsentBytes === 0) return;
    if (cycle < this.account.freeCycle) {
      this.#domain.wake(this.#stage, this.account.freeCycle);
      return;
    }
    if (!this.#port.canRequest()) {
      this.account.stall(cycle, STALL_ROOM);
      return;
    }
    const burst = this.#burstBytes;
    const bytes = Math.min(burst - (this.#nextAddress % burst), this.#unsentBytes);
    this.#port.request(this.#nextAddress, bytes, this.#nextPlace);
    this.#nextAddress += bytes;
    this.#nextPlace += bytes;
    this.#unsentBytes -= bytes;
    this.#outstanding++;
    this.account.serve(cycle, 1);
    if (this.#unsentBytes > 0) this.#domain.wake(this.#stage, cycle + 1);
    else this.account.stall(cycle + 1, STALL_DATA);
  }
}
