/**
 * Status write-backs of one ring: 8 bytes of a descriptor each, staged until the DMA write engine has handed them to the link,
 * so that the descriptor's on-chip slot is free at once.
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

  /** @param engine the ring's, which waits for room */
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

  /** Writes the 8 bytes at `place` of on-chip memory to `address`, after all writes requested earlier. */
  send(address: BusAddress, place: number): void {
    const at = this.#next * nicWriteBack.lengthBytes;
    this.#next = this.#next + 1 === this.#depth ? 0 : this.#next + 1;
    for (let index = 0; index < nicWriteBack.lengthBytes; index++) {
      this.#staging[at + index] = this.#sram[place + index]!;
    }
    this.#writes.request(this.#requester, address, nicWriteBack.lengthBytes, this.#staging, at, 0);
  }

  /** Staging index of the next write-back: the number sent since the reset, modulo the size. */
  get nextSlot(): number {
    return this.#next;
  }

  reset(): void {
    this.#next = 0;
  }
}
