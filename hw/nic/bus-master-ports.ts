/**
 * The two bus masters' ports to the DMA engines: bursts of frames, requested while the engine's fifo has room.
 *
 *     transmit  memory ── read engine ──► packet buffer        receive  packet buffer ── write engine ──► memory
 */
import { NicDmaError } from '../../abi/nic/index.ts';
import type { BusAddress, Cycles } from '../../base/index.ts';
import { type DmaReadEngine, type DmaWriteEngine, TrafficClass } from '../dma/index.ts';
import type { BurstMaster, BurstPort } from './bus-master.ts';

const name = 'frames';

/** Moves frames from memory into the SRAM of the read engine. */
export class ReadBursts implements BurstPort {
  readonly #reads: DmaReadEngine;
  readonly #requester: number;
  #master!: BurstMaster;

  constructor(reads: DmaReadEngine, fifoDepth: number) {
    this.#reads = reads;
    this.#requester = reads.addRequester(
      { name, trafficClass: TrafficClass.frameRead, fifoDepth, weight: 1 },
      this,
    );
  }

  connect({ master }: { readonly master: BurstMaster }): void {
    this.#master = master;
  }

  canRequest(): boolean {
    return this.#reads.canRequest(this.#requester);
  }

  request(address: BusAddress, bytes: number, place: number): void {
    this.#reads.request(this.#requester, address, bytes, place, bytes);
  }

  done(bytes: number, status: number, cycle: Cycles): void {
    this.#master.done(bytes, status, cycle);
  }

  space(): void {
    this.#master.wake();
  }
}

/** Moves frames from `sram` into memory. */
export class WriteBursts implements BurstPort {
  readonly #writes: DmaWriteEngine;
  readonly #sram: Uint8Array;
  readonly #requester: number;
  #master!: BurstMaster;

  constructor(writes: DmaWriteEngine, fifoDepth: number, sram: Uint8Array) {
    this.#writes = writes;
    this.#sram = sram;
    this.#requester = writes.addRequester({ name, trafficClass: TrafficClass.frameWrite, fifoDepth }, this);
  }

  connect({ master }: { readonly master: BurstMaster }): void {
    this.#master = master;
  }

  canRequest(): boolean {
    return this.#writes.canRequest(this.#requester);
  }

  request(address: BusAddress, bytes: number, place: number): void {
    this.#writes.request(this.#requester, address, bytes, this.#sram, place, bytes);
  }

  done(bytes: number, cycle: Cycles): void {
    this.#master.done(bytes, NicDmaError.NONE, cycle);
  }

  space(): void {
    this.#master.wake();
  }
}
