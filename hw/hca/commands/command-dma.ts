/**
 * The command processor's share of the DMA engines: one read or one write at a time through its own buffers in the HCA's
 * memory, and streams of copies of a constant pattern, which empty the entries of a queue.
 *
 * Promises: at most one operation is under way; the processor is called inside the engine's stage with the status of the read,
 * or 0. After {@link CommandDma.cancel} reports of older operations are ignored. Every read and write of a command passes
 * here, and none that is longer than a buffer, or empty, is started: the command ends with status INTERNAL_ERR.
 */

import { CommandStatus } from '../../../abi/index.ts';
import { type BusAddress, type Cycles, pageBytes, type Wide } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DmaReads, DmaWrites, SramAllocator } from '../memory/index.ts';
import { demand } from './command-steps.ts';

/** Bytes of each buffer: a page of the host, the most that one read or write of a command moves. */
const BUFFER_BYTES = pageBytes;

export interface CommandDmaPorts {
  readonly processor: {
    /** The operation under way has ended. */
    dmaDone(status: number, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link CommandDma} uses. */
export interface CommandDmaSetup {
  readonly reads: DmaReads;
  readonly writes: DmaWrites;
  readonly sram: SramAllocator;
  readonly writesInFlightMax: number;
  /** Patterns of the card with which commands fill memory. Their lengths divide a page. */
  readonly patterns: readonly Uint8Array[];
}

export class CommandDma {
  readonly #reads: DmaReads;
  readonly #writes: DmaWrites;
  readonly #reader: number;
  readonly #writer: number;
  readonly #sram: Uint8Array;
  readonly #readOffset: number;
  readonly #writeOffset: number;
  readonly #patterns: readonly Uint8Array[];
  /** A buffer full of copies of each pattern. */
  readonly #patternOffsets: readonly number[];
  readonly #writesInFlightMax: number;
  #processor!: CommandDmaPorts['processor'];
  /** Operations of an older epoch were cancelled. */
  #generation = 0;
  #isReading = false;
  /** Progress of a fill or write: next address, bytes to issue, offset of the source, and writes under way. */
  #address: Wide = 0;
  #remainingBytes = 0;
  #sourceOffset = 0;
  #isPattern = false;
  #inFlight = 0;

  constructor(setup: CommandDmaSetup) {
    const { reads, writes, sram, patterns } = setup;
    const trafficClass = TrafficClass.command;
    this.#reads = reads;
    this.#writes = writes;
    this.#writesInFlightMax = setup.writesInFlightMax;
    this.#sram = sram.bytes;
    this.#readOffset = sram.allocate(BUFFER_BYTES);
    this.#writeOffset = sram.allocate(BUFFER_BYTES);
    this.#patterns = patterns;
    this.#patternOffsets = patterns.map(() => sram.allocate(BUFFER_BYTES));
    this.#fillBuffers();
    const name = 'command';
    this.#reader = reads.addRequester(
      { name, trafficClass, fifoDepth: 2, weight: 1 },
      {
        done: (cookie, status, cycle) => this.#readDone(cookie, status, cycle),
        space: () => this.#issueRead(),
      },
    );
    this.#writer = writes.addRequester(
      { name, trafficClass, fifoDepth: setup.writesInFlightMax },
      { done: (cookie, cycle) => this.#writeDone(cookie, cycle), space: () => this.#issueWrites() },
    );
  }

  /** On-chip memory that it allocates: a buffer for reads, one for writes, and one for each pattern. */
  static sramBytes(patternCount: number): number {
    return (2 + patternCount) * BUFFER_BYTES;
  }

  connect({ processor }: CommandDmaPorts): void {
    this.#processor = processor;
  }

  /** The bytes of the last read: valid until the next one. */
  readBytes(lengthBytes: number): Uint8Array {
    return this.#sram.slice(this.#readOffset, this.#readOffset + lengthBytes);
  }

  /** Starts a read of 1 to 4096 bytes. @throws CommandRejection for another length */
  startRead(address: BusAddress, lengthBytes: number): void {
    demandBufferSize(lengthBytes);
    this.#address = address;
    this.#remainingBytes = lengthBytes;
    this.#isReading = true;
    this.#issueRead();
  }

  /** Starts a write of 1 to 4096 bytes; the bytes are copied. @throws CommandRejection for another length */
  startWrite(address: BusAddress, bytes: Uint8Array): void {
    demandBufferSize(bytes.length);
    this.#sram.set(bytes, this.#writeOffset);
    this.#startWrites(address, bytes.length, this.#writeOffset, false);
  }

  /**
   * Starts writing copies of a pattern, by its number, in pieces of at most a page.
   * @throws CommandRejection unless address and length are multiples of the pattern's, and the length is not 0
   */
  startFill(address: BusAddress, lengthBytes: number, pattern: number): void {
    const patternBytes = this.#patterns[pattern]!.length;
    const isWhole = address % patternBytes === 0 && lengthBytes % patternBytes === 0;
    demand(isWhole && lengthBytes > 0, CommandStatus.INTERNAL_ERR);
    this.#startWrites(address, lengthBytes, this.#patternOffsets[pattern]!, true);
  }

  /** Reset: drops DMA in flight, and fills all buffers as after power-on. */
  reset(): void {
    this.cancel();
    this.#fillBuffers();
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    return {
      isReading: this.#isReading,
      remainingBytes: this.#remainingBytes,
      writesInFlight: this.#inFlight,
    };
  }

  /** Drops DMA in flight. */
  cancel(): void {
    this.#generation++;
    this.#isReading = false;
    this.#remainingBytes = 0;
    this.#inFlight = 0;
  }

  /** Scratch buffers of zeros, and copies of each pattern. */
  #fillBuffers(): void {
    for (const offset of [this.#readOffset, this.#writeOffset])
      this.#sram.fill(0, offset, offset + BUFFER_BYTES);
    for (const [index, pattern] of this.#patterns.entries())
      for (let at = 0; at < BUFFER_BYTES; at += pattern.length)
        this.#sram.set(pattern, this.#patternOffsets[index]! + at);
  }

  #startWrites(address: BusAddress, lengthBytes: number, sourceOffset: number, isPattern: boolean): void {
    this.#address = address;
    this.#remainingBytes = lengthBytes;
    this.#sourceOffset = sourceOffset;
    this.#isPattern = isPattern;
    this.#issueWrites();
  }

  #issueRead(): void {
    if (!this.#isReading || this.#remainingBytes === 0 || !this.#reads.canRequest(this.#reader)) return;
    const lengthBytes = this.#remainingBytes;
    this.#remainingBytes = 0;
    this.#reads.request(this.#reader, this.#address, lengthBytes, this.#readOffset, this.#generation);
  }

  #issueWrites(): void {
    if (this.#isReading) return;
    while (
      this.#remainingBytes > 0 &&
      this.#inFlight < this.#writesInFlightMax &&
      this.#writes.canRequest(this.#writer)
    ) {
      const toPageEnd = BUFFER_BYTES - (this.#address % BUFFER_BYTES);
      const lengthBytes = Math.min(this.#remainingBytes, this.#isPattern ? toPageEnd : BUFFER_BYTES);
      const address = this.#address;
      this.#address += lengthBytes;
      this.#remainingBytes -= lengthBytes;
      this.#inFlight++;
      this.#writes.request(
        this.#writer,
        address,
        lengthBytes,
        this.#sram,
        this.#sourceOffset,
        this.#generation,
      );
    }
  }

  #readDone(generation: number, status: number, cycle: Cycles): void {
    if (generation !== this.#generation) return;
    this.#isReading = false;
    this.#processor.dmaDone(status, cycle);
  }

  #writeDone(generation: number, cycle: Cycles): void {
    if (generation !== this.#generation) return;
    this.#inFlight--;
    this.#issueWrites();
    if (this.#remainingBytes === 0 && this.#inFlight === 0) this.#processor.dmaDone(0, cycle);
  }
}

function demandBufferSize(lengthBytes: number): void {
  demand(lengthBytes > 0 && lengthBytes <= BUFFER_BYTES, CommandStatus.INTERNAL_ERR);
}
