/**
 * The receive engine: moves frames from the packet buffer into the host's buffers, one descriptor at a time.
 *
 *     oldest frame ─► descriptor ─► bus master moves up to RXBUF bytes ─► write-back ─► more of the frame: next descriptor
 *                                                                                  └─ EOP: room given back, RXT0
 *
 * Without a descriptor the frame and all later ones wait in the packet buffer; frames that no longer fit there are missed
 * (RXO). Writes are posted: only the root complex reports a buffer outside memory, not the device.
 */

import { NicCause, NicDmaError, nicReceiveDescriptor, nicWriteBack } from '../../abi/nic/index.ts';
import { type Cycles, viewOf } from '../../base/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../sim/index.ts';
import type { DmaWriteEngine } from '../dma/index.ts';
import type { BusMaster } from './bus-master.ts';
import { onesComplementSum } from './checksum.ts';
import type { DescriptorRing } from './descriptor-ring.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';
import { NO_TAG, type PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';
import { WriteBack } from './write-back.ts';

const stalls = stallReasons('descriptor', 'data', 'writeBack');
const { descriptor: STALL_DESCRIPTOR, data: STALL_DATA, writeBack: STALL_WRITE_BACK } = stalls;

const TAKE_UP = 0;
const MOVE = 1;
const REPORT = 2;
const stepNames = ['takeUp', 'move', 'report'] as const;

const RESET_BUFFER_BYTES = 2048;
export const RECEIVE_BUFFER_BYTES_MIN = 64;

const { fields } = nicReceiveDescriptor;

export interface ReceiveEngineParts {
  readonly domain: ClockDomain;
  readonly config: NicConfig;
  readonly counters: NicCounters;
  readonly sram: Uint8Array;
  readonly ring: DescriptorRing;
  readonly buffer: PacketBuffer;
  readonly writes: DmaWriteEngine;
  readonly interrupts: NicInterrupts;
  readonly pcieFunction: { isBusMaster(): boolean };
}

export class ReceiveEngine {
  readonly account = new BlockAccount('nicReceive', stalls);
  /** PBMODE: software reads the frames from the packet buffer. */
  isProgrammed = false;
  /** RXBUF, RXMIN, RXCSUM.PCSS. */
  bufferBytes = RESET_BUFFER_BYTES;
  lowWater = 0;
  checksumStart = 0;
  readonly #parts: ReceiveEngineParts;
  readonly #view: DataView;
  readonly #writeBack: WriteBack;
  readonly #stage: number;
  #busMaster: BusMaster | undefined;
  #step = TAKE_UP;
  #at = 0;
  #error = 0;
  /** Bytes of the oldest frame that were moved, and those being moved. */
  #frameMoved = 0;
  #moving = 0;
  #hasWaited = false;
  /** PIORX has announced the oldest frame. */
  #isAnnounced = false;

  constructor(parts: ReceiveEngineParts) {
    this.#parts = parts;
    this.#view = viewOf(parts.sram);
    this.#writeBack = new WriteBack('receive', parts.writes, parts.sram, parts.config.writeBackDepth, this);
    this.#stage = parts.domain.addStage(this.#run, this);
  }

  connect({ busMaster }: { readonly busMaster: BusMaster }): void {
    this.#busMaster = busMaster;
  }

  wake(cycle: Cycles): void {
    this.#parts.domain.wake(this.#stage, cycle + 1);
  }

  /** A frame can be seen from `cycle` on. */
  frameReady(cycle: Cycles): void {
    this.#parts.domain.wake(this.#stage, cycle);
  }

  /** A write-back has room again: see WriteRequesterPort. */
  space(): void {
    const { domain } = this.#parts;
    if (this.account.isStalledFor(STALL_WRITE_BACK)) domain.wake(this.#stage, domain.cycle + 1);
  }

  /** Whether PIORX shows the oldest frame. */
  get showsFrame(): boolean {
    return this.#isAnnounced;
  }

  /** PIORX: software has read the oldest frame; releases its room. */
  releaseShown(cycle: Cycles): void {
    if (!this.#isAnnounced) return;
    const { buffer, counters } = this.#parts;
    counters.released++;
    counters.releasedBytes += buffer.bytesOf(0);
    buffer.release();
    this.#isAnnounced = false;
    this.wake(cycle);
  }

  /** No frame is being moved. */
  get isAtRest(): boolean {
    return this.#step === TAKE_UP && this.#frameMoved === 0;
  }

  /** The bus master's transfer has ended. */
  moved(error: number, cycle: Cycles): void {
    this.#error = error;
    this.#step = REPORT;
    this.wake(cycle);
  }

  reset(cycle: Cycles): void {
    this.isProgrammed = false;
    this.bufferBytes = RESET_BUFFER_BYTES;
    this.lowWater = 0;
    this.checksumStart = 0;
    this.#step = TAKE_UP;
    this.#frameMoved = 0;
    this.#hasWaited = false;
    this.#isAnnounced = false;
    this.#writeBack.reset();
    this.account.rest(cycle);
  }

  inspect(): BlockState {
    const { isProgrammed, bufferBytes, lowWater, checksumStart } = this;
    const isAtWork = this.#step !== TAKE_UP;
    return {
      isProgrammed,
      bufferBytes,
      lowWater,
      checksumStart,
      step: stepNames[this.#step]!,
      descriptorAt: isAtWork ? this.#at : 'none',
      error: isAtWork ? this.#error : NicDmaError.NONE,
      moving: isAtWork ? this.#moving : 0,
      frameMoved: this.#frameMoved,
      hasWaited: this.#hasWaited,
      isAnnounced: this.#isAnnounced,
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
    const { ring, buffer, config, counters, domain } = this.#parts;
    if (ring.isStopping) {
      this.#frameMoved = 0;
      ring.stopped();
    }
    if (buffer.count === 0 || buffer.visibleCycleOf(0) > cycle) {
      this.account.rest(cycle);
      if (buffer.count > 0) domain.wake(this.#stage, buffer.visibleCycleOf(0));
      return;
    }
    if (this.isProgrammed) {
      this.account.rest(cycle);
      this.#announce(cycle);
      return;
    }
    if (!ring.isRunning || ring.cachedCount === 0) {
      if (ring.available === 0 && !this.#hasWaited) {
        this.#hasWaited = true;
        counters.waitedForDescriptor++;
      }
      this.account.stall(cycle, STALL_DESCRIPTOR);
      return;
    }
    this.account.serve(cycle, config.descriptorCycles);
    const readyCycle = cycle + config.descriptorCycles;
    this.#at = ring.cachedOffset;
    this.#error = NicDmaError.NONE;
    this.#moving = Math.min(buffer.bytesOf(0) - this.#frameMoved, this.bufferBytes);
    if (!this.#parts.pcieFunction.isBusMaster()) {
      this.#error = NicDmaError.NOT_MASTER;
      this.#step = REPORT;
      domain.wake(this.#stage, readyCycle);
      return;
    }
    this.#step = MOVE;
    const address = fields.bufferAddress.getNumber(this.#view, this.#at);
    this.#busMaster!.start(address, this.#moving, buffer.placeOf(0) + this.#frameMoved, readyCycle);
    this.account.stall(readyCycle, STALL_DATA);
  }

  #announce(cycle: Cycles): void {
    if (this.#isAnnounced) return;
    this.#isAnnounced = true;
    this.#parts.interrupts.set(NicCause.PIORX, cycle);
  }

  #report(cycle: Cycles): void {
    const { ring, buffer, counters, interrupts } = this.#parts;
    if (this.#error !== NicDmaError.NONE) {
      this.#fail(cycle);
      return;
    }
    if (!this.#writeBack.hasRoom) {
      this.account.stall(cycle, STALL_WRITE_BACK);
      return;
    }
    const frameBytes = buffer.bytesOf(0);
    const isLast = this.#frameMoved + this.#moving === frameBytes;
    this.#fillIn(isLast);
    this.#writeBack.send(ring.headAddress + nicWriteBack.offset, this.#at + nicWriteBack.offset);
    counters.writeBacks++;
    counters.receiveDescriptors++;
    this.account.serve(cycle, 1);
    this.#step = TAKE_UP;
    ring.pop(cycle);
    let causes = 0;
    if (isLast) {
      counters.delivered++;
      counters.deliveredBytes += frameBytes;
      if (buffer.tagOf(0) !== NO_TAG) counters.deliveredTags++;
      buffer.release();
      this.#frameMoved = 0;
      this.#hasWaited = false;
      causes = NicCause.RXT0;
    } else {
      this.#frameMoved += this.#moving;
    }
    if (this.lowWater > 0 && ring.available === this.lowWater) causes |= NicCause.RXDMT0;
    interrupts.set(causes, cycle);
    this.#parts.domain.wake(this.#stage, cycle + 1);
  }

  #fillIn(isLast: boolean): void {
    const { sram, buffer } = this.#parts;
    const view = this.#view;
    const place = buffer.placeOf(0);
    const frameBytes = buffer.bytesOf(0);
    const sum = isLast ? onesComplementSum(sram, place + this.checksumStart, place + frameBytes) : 0;
    fields.length.set(view, this.#at, this.#moving);
    fields.checksum.set(view, this.#at, sum);
    view.setUint32(this.#at + STATUS_OFFSET, 0, true);
    fields.done.set(view, this.#at, 1);
    fields.endOfPacket.set(view, this.#at, isLast ? 1 : 0);
    const tag = buffer.tagOf(0);
    if (!isLast || tag === NO_TAG) return;
    fields.isTagged.set(view, this.#at, 1);
    fields.special.set(view, this.#at, tag);
  }

  /** The frame stays in the buffer; software must restart the queue. */
  #fail(cycle: Cycles): void {
    const { ring, counters, interrupts } = this.#parts;
    this.account.serve(cycle, 1);
    this.#step = TAKE_UP;
    this.#frameMoved = 0;
    counters.busErrors++;
    ring.fail();
    interrupts.set(NicCause.DMAERR, cycle);
    this.wake(cycle);
  }
}

/** Status, error and special are the descriptor's last dword. */
const STATUS_OFFSET = 12;
