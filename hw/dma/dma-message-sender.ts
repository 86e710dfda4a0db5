/**
 * Sends MSI-X messages: memory writes of one dword, after every write requested earlier, so that a handler finds the event that
 * its interrupt announces (PCIe Base 3.0, 6.1.4: message signalled interrupts are ordered as posted writes).
 */
import type { BusAddress, Cycles } from '../../base/index.ts';
import type { DmaWriteEngine } from './dma-write-engine.ts';
import { TrafficClass } from './traffic-class.ts';

const MESSAGE_BYTES = 4;

export class DmaMessageSender {
  readonly #engine: DmaWriteEngine;
  readonly #requester: number;
  readonly #data: Uint8Array;
  readonly #view: DataView;
  readonly #depth: number;
  #next = 0;

  /** @param depth messages held at once */
  constructor(engine: DmaWriteEngine, depth: number) {
    this.#engine = engine;
    this.#depth = depth;
    this.#data = new Uint8Array(depth * MESSAGE_BYTES);
    this.#view = new DataView(this.#data.buffer);
    this.#requester = engine.addRequester({
      name: 'msix',
      trafficClass: TrafficClass.msix,
      fifoDepth: depth,
    });
  }

  canSend(): boolean {
    return this.#engine.canRequest(this.#requester);
  }

  /**
   * Sends `data` to `address`, as programmed in the vector's table entry.
   * @param _cycle the edge being run
   */
  sendMessage(address: BusAddress, data: number, _cycle: Cycles): void {
    const offset = this.#next * MESSAGE_BYTES;
    this.#view.setUint32(offset, data, true);
    this.#next = this.#next + 1 === this.#depth ? 0 : this.#next + 1;
    this.#engine.request(this.#requester, address, MESSAGE_BYTES, this.#data, offset, 0);
  }
}
