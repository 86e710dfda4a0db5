/**
 * Writes received payload into host memory by DMA, straight from the buffer they were received in, and keeps each packet
 * in that buffer until all of it has left. Writes leave in the order requested, so counting them is enough.
 */
import type { BusAddress } from '../../../base/units.ts';
import { Fifo } from '../../../sim/index.ts';
import type { DmaWrites } from '../memory/index.ts';
import type { ReceivedPackets } from '../packets/index.ts';

export interface PayloadListener {
  /** A write has left for memory. */
  payloadLeft(cycle: number): void;
}

export class PayloadWriter {
  /** Writes requested and writes handed to the link, ever. */
  requestedCount = 0;
  doneCount = 0;
  readonly #dmaWrite: DmaWrites;
  readonly #port: ReceivedPackets;
  readonly #requester: number;
  /** Packets still held, each visible at the done count that releases it; as many as the receive buffers hold. */
  readonly #held: Fifo;
  #listener: PayloadListener | undefined;

  constructor(dmaWrite: DmaWrites, port: ReceivedPackets, trafficClass: number) {
    this.#dmaWrite = dmaWrite;
    this.#port = port;
    this.#listener = undefined;
    this.#held = new Fifo(port.receivePacketsMax);
    this.#requester = dmaWrite.addRequester(
      { name: 'payloadWrite', trafficClass, fifoDepth: 16 },
      (_cookie, cycle) => this.#done(cycle),
    );
  }

  /** Says whom to tell when a write has left, or room for one became free. */
  attach(listener: PayloadListener, onSpace: () => void): void {
    this.#listener = listener;
    this.#dmaWrite.onSpace(this.#requester, onSpace);
  }

  /** Writes that have not left, and packets held for them. */
  get heldCount(): number {
    return this.requestedCount - this.doneCount + this.#held.count;
  }

  get canWrite(): boolean {
    return this.#dmaWrite.canRequest(this.#requester);
  }

  /** Requests a write; the caller has checked {@link canWrite}. */
  write(address: BusAddress, lengthBytes: number, source: Uint8Array, sourceOffset: number): void {
    this.requestedCount++;
    this.#dmaWrite.request(this.#requester, address, lengthBytes, source, sourceOffset, 0);
  }

  /** The packet of this name needs no more writes: its buffer is freed when those requested have left. */
  finish(name: number): void {
    if (this.doneCount === this.requestedCount) this.#port.consume(name);
    else this.#held.push(name, this.requestedCount);
  }

  reset(): void {
    this.doneCount = this.requestedCount;
    while (!this.#held.isEmpty) this.#port.consume(this.#held.pop());
  }

  #done(cycle: number): void {
    this.doneCount++;
    while (this.#held.headCycle <= this.doneCount) this.#port.consume(this.#held.pop());
    this.#listener?.payloadLeft(cycle);
  }
}
