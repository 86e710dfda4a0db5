/**
 * Status write-backs of one ring: 8 bytes of a descriptor each, staged until the DMA write engine has handed them to
 * the link, so that the descriptor's place on chip is free at once.
 */

import { nicWriteBack } from '../../abi/nic/index.ts';
import type { BusAddress } from '../../base/index.ts';
import { type DmaWriteEngine, TrafficClass, type WriteRequesterPort } from '../dma/index.ts';

export class WriteBack {
  readonly #writes: DmaWriteEngine;
  readonly #sram: Uint8Array;
  readonly #requester: number;
  readonly #depth: number;
  readonly #staging: Uint8Array;
  #next = 0;

  /** @param engine the ring's, which waits while there is no room */
  constructor(
    name: string,
    writes: DmaWriteEngine,
    sram: Uint8Array,
    depth: number,
    engine: WriteRequesterPort,
  ) {
    this.#writes = writes;
    this.#sram = sram;
    this.#depth = depth;
    this.#staging = new Uint8Array(depth * nicWriteBack.lengthBytes);
    this.#requester = writes.addRequester(
      { name: `${name}WriteBack`, trafficClass: TrafficClass.descriptorWrite, fifoDepth: depth },
      engine,
    );
  }

  get hasRoom(): boolean {
    return this.#writes.canRequest(this.#requester);
  }

  /** Writes the 8 bytes at `place` of on-chip memory to `address`, behind all writes requested before. */
  send(address: BusAddress, place: number): void {
    const at = this.#next * nicWriteBack.lengthBytes;
    this.#next = this.#next + 1 === this.#depth ? 0 : this.#next + 1;
    for (let index = 0; index < nicWriteBack.lengthBytes; index++) {
      this.#staging[at + index] = this.#sram[place + index]!;
    }
    this.#writes.request(this.#requester, address, nicWriteBack.lengthBytes, this.#staging, at, 0);
  }

  /** The place of the next one in the staging: it says how many were sent since the reset, round and round. */
  get nextSlot(): number {
    return this.#next;
  }

  reset(): void {
    this.#next = 0;
  }
}
