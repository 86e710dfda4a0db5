/**
 * The transmit engine: works off the transmit ring, one descriptor at a time.
 *
 *     descriptor ─► room for a frame ─► bus master moves its bytes ─► status write-back (RS) ─► next descriptor
 *                                                                 └─ EOP: checksum, tag, frame to the MAC
 *
 * A frame is completely in the packet buffer before the MAC takes it. A failed transfer, or an invalid frame (longer than the
 * cable allows, empty, or shorter than 60 bytes without padding), stops the queue with its cause; the descriptor is written
 * back with its error bit if it requested a report.
 */

import { EtherType } from '../../abi/index.ts';
import {
  ethernetTagAt,
  ethernetTagBytes,
  NicCause,
  NicDmaError,
  nicDescriptorBytes,
  nicTransmitDescriptor,
  nicWriteBack,
} from '../../abi/nic/index.ts';
import { type Cycles, viewOf } from '../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../sim/index.ts';
import type { DmaWriteEngine } from '../dma/index.ts';
import type { BusMaster } from './bus-master.ts';
import { insertChecksum } from './checksum.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';
import { NO_ROOM, type PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';
import { WriteBack } from './write-back.ts';

const stalls = stallReasons('descriptor', 'buffer', 'data', 'writeBack');
const {
  descriptor: STALL_DESCRIPTOR,
  buffer: STALL_BUFFER,
  data: STALL_DATA,
  writeBack: STALL_WRITE_BACK,
} = stalls;

/** Next action of the engine. */
const TAKE_UP = 0;
const MOVE = 1;
const REPORT = 2;

const stepNames = ['takeUp', 'move', 'report'] as const;

const { fields } = nicTransmitDescriptor;

export interface TransmitEngineParts {
  readonly domain: ClockDomain;
  readonly config: NicConfig;
  readonly counters: NicCounters;
  readonly sram: Uint8Array;
  readonly ring: DescriptorRing;
  readonly buffer: PacketBuffer;
  readonly writes: DmaWriteEngine;
  readonly interrupts: NicInterrupts;
  readonly frameBytesMax: number;
}

export interface TransmitEnginePorts {
  readonly busMaster: BusMaster;
  readonly mac: {
    /** A frame is complete in the packet buffer. */
    frameReady(cycle: Cycles): void;
  };
}

export class TransmitEngine {
  readonly account = new BlockAccount('nicTransmit', stalls);
  /** TCTL. */
  isOn = false;
  padsShort = false;
  /** CTRL.VME. */
  insertsTags = false;
  readonly #parts: TransmitEngineParts;
  #mac!: TransmitEnginePorts['mac'];
  readonly #view: DataView;
  readonly #writeBack: WriteBack;
  readonly #stage: number;
  #busMaster: BusMaster | undefined;
  #step = TAKE_UP;
  /** The descriptor being executed, and its frame. */
  #at = 0;
  #error = 0;
  #isProgrammingError = false;
  #frameAt = NO_ROOM;
  #frameBytes = 0;

  constructor(parts: TransmitEngineParts) {
    this.#parts = parts;
    this.#view = viewOf(parts.sram);
    this.#writeBack = new WriteBack('transmit', parts.writes, parts.sram, parts.config.writeBackDepth, this);
    this.#stage = parts.domain.addStage(this.#run, this);
  }

  connect({ busMaster, mac }: TransmitEnginePorts): void {
    this.#busMaster = busMaster;
    this.#mac = mac;
  }

  /** A condition changed for which the engine may be waiting. */
  wake(cycle: Cycles): void {
    this.#parts.domain.wake(this.#stage, cycle + 1);
  }

  /** A write-back has room again: see WriteRequesterPort. */
  space(): void {
    this.#wakeIf(STALL_WRITE_BACK);
  }

  /** The packet buffer has released room. */
  bufferFreed(): void {
    this.#wakeIf(STALL_BUFFER);
  }

  /** No frame is being moved. */
  get isAtRest(): boolean {
    return this.#step === TAKE_UP && this.#frameAt === NO_ROOM;
  }

  /** The bus master's transfer has ended. */
  moved(error: number, cycle: Cycles): void {
    this.#error = error;
    if (error === NicDmaError.NONE) this.#frameBytes += fields.length.get(this.#view, this.#at);
    this.#step = REPORT;
    this.wake(cycle);
  }

  reset(cycle: Cycles): void {
    this.isOn = false;
    this.padsShort = false;
    this.insertsTags = false;
    this.#step = TAKE_UP;
    this.#frameAt = NO_ROOM;
    this.#frameBytes = 0;
    this.#writeBack.reset();
    this.account.rest(cycle);
  }

  inspect(): BlockState {
    const { isOn, padsShort, insertsTags } = this;
    const isAtWork = this.#step !== TAKE_UP;
    return {
      isOn,
      padsShort,
      insertsTags,
      step: stepNames[this.#step]!,
      descriptorAt: isAtWork ? this.#at : 'none',
      error: isAtWork ? this.#error : NicDmaError.NONE,
      frameAt: this.#frameAt,
      frameBytes: this.#frameAt === NO_ROOM ? 0 : this.#frameBytes,
      writeBackSlot: this.#writeBack.nextSlot,
    };
  }

  rebase(cycles: number): void {
    this.account.rebase(cycles);
  }

  #run(cycle: Cycles): void {
    if (this.#step === MOVE) return;
    if (cycle < this.account.freeCycle) {
      this.#parts.domain.wake(this.#stage, this.account.freeCycle);
      return;
    }
    if (this.#step === REPORT) this.#report(cycle);
    else this.#takeUp(cycle);
  }

  #takeUp(cycle: Cycles): void {
    const { ring, buffer, config, domain } = this.#parts;
    if (ring.isStopping) this.#stop();
    if (!ring.isRunning || !(this.isOn || this.#frameAt !== NO_ROOM)) {
      this.account.rest(cycle);
      return;
    }
    if (ring.cachedCount === 0) {
      if (ring.available > 0 || this.#frameAt !== NO_ROOM) this.account.stall(cycle, STALL_DESCRIPTOR);
      else this.account.rest(cycle);
      return;
    }
    if (this.#frameAt === NO_ROOM) {
      this.#frameAt = buffer.reserve(this.#parts.frameBytesMax);
      if (this.#frameAt === NO_ROOM) {
        this.account.stall(cycle, STALL_BUFFER);
        return;
      }
      this.#frameBytes = 0;
    }
    this.account.serve(cycle, config.descriptorCycles);
    const readyCycle = cycle + config.descriptorCycles;
    this.#at = ring.cachedOffset;
    this.#error = NicDmaError.NONE;
    const lengthBytes = fields.length.get(this.#view, this.#at);
    this.#isProgrammingError = !this.#isLegal(lengthBytes);
    if (this.#isProgrammingError || lengthBytes === 0) {
      this.#step = REPORT;
      domain.wake(this.#stage, readyCycle);
      return;
    }
    this.#step = MOVE;
    const address = fields.bufferAddress.getNumber(this.#view, this.#at);
    this.#busMaster!.start(address, lengthBytes, this.#frameAt + this.#frameBytes, readyCycle);
    this.account.stall(readyCycle, STALL_DATA);
  }

  #isLegal(lengthBytes: number): boolean {
    const frameBytes = this.#frameBytes + lengthBytes;
    if (frameBytes > this.#parts.frameBytesMax) return false;
    if (fields.endOfPacket.get(this.#view, this.#at) === 0) return true;
    if (this.#isTagged && frameBytes + ethernetTagBytes > this.#parts.frameBytesMax) return false;
    return this.padsShort ? frameBytes >= FRAME_HEADER_BYTES : frameBytes >= UNPADDED_BYTES_MIN;
  }

  /** True if the descriptor requests a tag. */
  get #isTagged(): boolean {
    return this.insertsTags && fields.insertTag.get(this.#view, this.#at) === 1;
  }

  #report(cycle: Cycles): void {
    const { ring, counters, interrupts } = this.#parts;
    const view = this.#view;
    const hasFailed = this.#error !== NicDmaError.NONE || this.#isProgrammingError;
    const isReported = fields.reportStatus.get(view, this.#at) === 1;
    const address = ring.headAddress + nicWriteBack.offset;
    if (isReported) {
      if (!this.#writeBack.hasRoom) {
        this.account.stall(cycle, STALL_WRITE_BACK);
        return;
      }
      fields.done.set(view, this.#at, 1);
      fields.error.set(view, this.#at, hasFailed ? 1 : 0);
      this.#writeBack.send(address, this.#at + nicWriteBack.offset);
      counters.writeBacks++;
    }
    this.account.serve(cycle, 1);
    this.#step = TAKE_UP;
    counters.transmitDescriptors++;
    if (hasFailed) this.#fail(cycle);
    else if (fields.endOfPacket.get(view, this.#at) === 1) this.#finish(cycle);
    ring.pop(cycle);
    let causes = isReported ? NicCause.TXDW : 0;
    if (ring.available === 0) causes |= NicCause.TXQE;
    interrupts.set(causes, cycle);
    this.#parts.domain.wake(this.#stage, cycle + 1);
  }

  /** The frame is complete. */
  #finish(cycle: Cycles): void {
    const { buffer, config, counters, sram } = this.#parts;
    const view = this.#view;
    if (fields.insertChecksum.get(view, this.#at) === 1) {
      const start = fields.checksumStart.get(view, this.#at);
      const place = fields.checksumOffset.get(view, this.#at);
      if (insertChecksum(sram, this.#frameAt, this.#frameBytes, start, place)) counters.checksumsInserted++;
    }
    if (this.#isTagged) this.#insertTag();
    const visibleCycle = cycle + config.transmitLatencyCycles;
    buffer.commit(this.#frameBytes, visibleCycle);
    this.#frameAt = NO_ROOM;
    this.#mac.frameReady(visibleCycle);
  }

  /** The tag goes after the addresses; the checksum was computed without it. */
  #insertTag(): void {
    const { sram, counters } = this.#parts;
    const at = this.#frameAt + ethernetTagAt;
    sram.copyWithin(at + ethernetTagBytes, at, this.#frameAt + this.#frameBytes);
    this.#view.setUint16(at, EtherType.VLAN);
    this.#view.setUint16(at + 2, fields.special.get(this.#view, this.#at));
    this.#frameBytes += ethernetTagBytes;
    counters.tagsInserted++;
  }

  #fail(cycle: Cycles): void {
    const { ring, counters, interrupts } = this.#parts;
    this.#abort();
    ring.fail();
    if (this.#isProgrammingError) counters.programmingErrors++;
    else counters.busErrors++;
    interrupts.set(this.#isProgrammingError ? NicCause.PROGERR : NicCause.DMAERR, cycle);
  }

  /** The queue is switched off, between two descriptors: a partial frame is abandoned. */
  #stop(): void {
    if (this.#frameAt !== NO_ROOM) this.#abort();
    this.#parts.ring.stopped();
  }

  #abort(): void {
    this.#parts.buffer.cancel();
    this.#parts.counters.transmitAborts++;
    this.#frameAt = NO_ROOM;
  }

  #wakeIf(reason: number): void {
    const { domain } = this.#parts;
    if (this.account.isStalledFor(reason)) domain.wake(this.#stage, domain.cycle + 1);
  }
}

/** A frame has at least a header, and, without padding by the MAC, at least 60 bytes. */
export const FRAME_HEADER_BYTES = 14;
export const UNPADDED_BYTES_MIN = 60;

/** Bytes of on-chip memory for the descriptors of a ring. */
export const cacheBytesOf = (config: NicConfig): number => config.descriptorCacheEntries * nicDescriptorBytes;
