/**
 * The command processor's share of the DMA engines: one read or one write at a time through its own buffers in the HCA's
 * memory, and streams of empty queue entries out of a constant pattern.
 *
 * Promises: at most one operation is under way; the processor is called inside the engine's stage with the status of the read,
 * or 0. After {@link CommandDma.cancel} reports of older operations are ignored. Every read and write of a command passes
 * here, and none that is longer than a buffer, or empty, is started: the command ends with status INTERNAL_ERR.
 */

import { CommandStatus, mailboxBytes } from '../../../abi/index.ts';
import type { BusAddress, Cycles, Wide } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import type { DmaReads, DmaWrites, SramAllocator } from '../memory/index.ts';
import { demand } from './command-steps.ts';

const entryBytes = 32;
/** Offset of the owner byte in an entry, and its value for an owner bit of 1. */
const ownerByte = entryBytes - 1;
const ownerBitSet = 0x80;

export interface CommandDmaPorts {
  readonly processor: {
    /** The operation under way has ended. */
    dmaDone(status: number, cycle: Cycles): void;
  };
}

export class CommandDma {
  readonly #reads: DmaReads;
  readonly #writes: DmaWrites;
  readonly #reader: number;
  readonly #writer: number;
  readonly #sram: Uint8Array;
  readonly #readOffset: number;
  readonly #writeOffset: number;
  readonly #patternOffset: readonly [number, number];
  readonly #writesInFlightMax: number;
  #processor!: CommandDmaPorts['processor'];
  /** Operations of an older epoch were cancelled. */
  #generation = 0;
  #isReading = false;
  /** Where a fill or write stands: next address, bytes to issue, source and writes under way. */
  #address: Wide = 0;
  #remainingBytes = 0;
  #sourceOffset = 0;
  #isPattern = false;
  #inFlight = 0;

  constructor(setup: {
    reads: DmaReads;
    writes: DmaWrites;
    sram: SramAllocator;
    writesInFlightMax: number;
  }) {
    const { reads, writes, sram } = setup;
    const trafficClass = TrafficClass.command;
    this.#reads = reads;
    this.#writes = writes;
    this.#writesInFlightMax = setup.writesInFlightMax;
    this.#sram = sram.bytes;
    this.#readOffset = sram.allocate(mailboxBytes);
    this.#writeOffset = sram.allocate(mailboxBytes);
    this.#patternOffset = [sram.allocate(mailboxBytes), sram.allocate(mailboxBytes)];
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
   * Starts writing empty entries with this owner bit, in pieces of at most a page.
   * @throws CommandRejection unless address and length are multiples of an entry, and the length is not 0
   */
  startFill(address: BusAddress, lengthBytes: number, ownerBit: number): void {
    const isWhole = address % entryBytes === 0 && lengthBytes % entryBytes === 0;
    demand(isWhole && lengthBytes > 0, CommandStatus.INTERNAL_ERR);
    this.#startWrites(address, lengthBytes, this.#patternOffset[ownerBit === 0 ? 0 : 1], true);
  }

  /** Reset: forgets what is under way, and fills all buffers as after power-on. */
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

  /** Forgets what is under way. */
  cancel(): void {
    this.#generation++;
    this.#isReading = false;
    this.#remainingBytes = 0;
    this.#inFlight = 0;
  }

  /** Scratch buffers of zeros, and the two patterns of empty entries. */
  #fillBuffers(): void {
    const [owned, disowned] = this.#patternOffset;
    for (const offset of [this.#readOffset, this.#writeOffset, owned, disowned])
      this.#sram.fill(0, offset, offset + mailboxBytes);
    for (let at = ownerByte; at < mailboxBytes; at += entryBytes) this.#sram[disowned + at] = ownerBitSet;
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
      const toPageEnd = mailboxBytes - (this.#address % mailboxBytes);
      const lengthBytes = Math.min(this.#remainingBytes, this.#isPattern ? toPageEnd : mailboxBytes);
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
  demand(lengthBytes > 0 && lengthBytes <= mailboxBytes, CommandStatus.INTERNAL_ERR);
}
