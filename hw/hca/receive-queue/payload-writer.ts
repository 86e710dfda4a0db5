/**
 * Writes received payload into host memory by DMA, straight from its receive buffer, and keeps each packet in that
 * buffer until all of it has left. Writes leave in the order requested, so counting them is enough.
 */

import type { BusAddress, Cycles } from '../../../base/index.ts';
import { type BlockState, type ClockDomain, Fifo } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DmaWrites } from '../memory/index.ts';

/** Buffers of received packets, each packet under a name. */
export interface ReceiveBuffers {
  /** Most packets that can be received and not yet consumed. */
  readonly receivePacketsMax: number;
  /** Gives a packet's buffer back. */
  consume(name: number): void;
}

/** Blocks that wait until payload has left. */
interface PayloadWaiter {
  /** A write has left for memory. */
  payloadLeft(cycle: Cycles): void;
}

export interface PayloadWriterPorts {
  readonly responses: PayloadWaiter;
  readonly requester: PayloadWaiter;
  /** Woken when there is room for a write. */
  readonly receiver: { wake(cycle: Cycles): void };
}

/** Parts of the device that {@link PayloadWriter} uses. */
export interface PayloadWriterSetup {
  readonly domain: ClockDomain;
  readonly dmaWrite: DmaWrites;
  readonly receiveBuffers: ReceiveBuffers;
}

export class PayloadWriter {
  /** Writes requested and writes handed to the link, ever. */
  requestedCount = 0;
  doneCount = 0;
  readonly #dmaWrite: DmaWrites;
  readonly #port: ReceiveBuffers;
  readonly #requester: number;
  /** Packets still held, each visible at the done count that releases it; as many as the receive buffers hold. */
  readonly #held: Fifo;
  /** The receiver waits until all writes have left. */
  #isAwaited = false;
  #ports!: PayloadWriterPorts;

  constructor({ dmaWrite, domain, receiveBuffers }: PayloadWriterSetup) {
    this.#dmaWrite = dmaWrite;
    this.#port = receiveBuffers;
    this.#held = new Fifo({
      name: 'packets held for their payload',
      capacity: receiveBuffers.receivePacketsMax,
      whenFull: 'never: it has a place for each packet that the receive buffers hold',
    });
    this.#requester = dmaWrite.addRequester(
      { name: 'payloadWrite', trafficClass: TrafficClass.payloadWrite, fifoDepth: 16 },
      {
        done: (_cookie, cycle) => this.#done(cycle),
        space: () => this.#ports.receiver.wake(domain.cycle + 1),
      },
    );
  }

  connect(ports: PayloadWriterPorts): void {
    this.#ports = ports;
  }

  /** Writes that have not left, and packets held for them. */
  get heldCount(): number {
    return this.requestedCount - this.doneCount + this.#held.count;
  }

  get canWrite(): boolean {
    return this.#dmaWrite.canRequest(this.#requester);
  }

  /** TLPs of a write. */
  tlpCount(address: BusAddress, lengthBytes: number): number {
    return this.#dmaWrite.tlpCount(address, lengthBytes);
  }

  /** Requests a write; the caller has checked {@link canWrite}. */
  write(address: BusAddress, lengthBytes: number, source: Uint8Array, sourceOffset: number): void {
    this.requestedCount++;
    this.#dmaWrite.request(this.#requester, address, lengthBytes, source, sourceOffset, 0);
  }

  /** Whether all writes have left; otherwise the receiver is woken when they have. */
  awaitLeft(): boolean {
    this.#isAwaited = this.doneCount !== this.requestedCount;
    return !this.#isAwaited;
  }

  /** The packet of this name needs no more writes: its buffer is freed when those requested have left. */
  finish(name: number): void {
    if (this.doneCount === this.requestedCount) this.#port.consume(name);
    else this.#held.push(name, this.requestedCount);
  }

  reset(): void {
    this.doneCount = this.requestedCount;
    this.#isAwaited = false;
    while (!this.#held.isEmpty) this.#port.consume(this.#held.pop());
  }

  get fifos(): readonly Fifo[] {
    return [this.#held];
  }

  inspect(): BlockState {
    return { writes: this.requestedCount - this.doneCount, packets: this.#held.values };
  }

  #done(cycle: Cycles): void {
    this.doneCount++;
    while (this.#held.headCycle <= this.doneCount) this.#port.consume(this.#held.pop());
    this.#ports.responses.payloadLeft(cycle);
    this.#ports.requester.payloadLeft(cycle);
    if (!this.#isAwaited || this.doneCount !== this.requestedCount) return;
    this.#isAwaited = false;
    this.#ports.receiver.wake(cycle + 1);
  }
}
