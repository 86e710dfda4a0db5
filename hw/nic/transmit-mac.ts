/**
 * The transmitting half of the MAC: hands complete frames of the packet buffer to the cable's port, oldest first.
 *
 *     packet buffer (ring) ─┐
 *     PIOTX fifo ───────────┴─► port.canTransmit ─► port.send        room released when the port takes the next frame
 *
 * While the link is down frames still leave, and the port counts them as discarded: a ring must not stop because a cable was
 * pulled.
 */

import { ethernetFcsBytes, ethernetFrameMinBytes, NicCause } from '../../abi/nic/index.ts';
import type { Cycles } from '../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  stallReasons,
} from '../../sim/index.ts';
import type { EthernetPort } from '../../wire/index.ts';
import type { NicCounters } from './nic-counters.ts';
import type { NicInterrupts } from './nic-interrupts.ts';
import type { PacketBuffer } from './packet-buffer.ts';
import type { NicConfig } from './parameters.ts';

const stalls = stallReasons('link');
const { link: STALL_LINK } = stalls;
const SHORTEST_BYTES = ethernetFrameMinBytes - ethernetFcsBytes;

export interface TransmitMacParts {
  readonly domain: ClockDomain;
  readonly config: NicConfig;
  readonly counters: NicCounters;
  readonly sram: Uint8Array;
  readonly buffer: PacketBuffer;
  readonly port: EthernetPort;
  readonly interrupts: NicInterrupts;
  readonly lp: LogicalProcess;
}

export interface TransmitMacPorts {
  readonly engine: {
    /** The packet buffer has released room. */
    bufferFreed(): void;
  };
}

export class TransmitMac {
  readonly account = new BlockAccount('nicTransmitMac', stalls);
  /** PBMODE: frames are sent by PIOTX. */
  isProgrammed = false;
  /** Frames of PIOTX that have left the packet buffer. */
  programmedCount = 0;
  readonly #parts: TransmitMacParts;
  #engine!: TransmitMacPorts['engine'];
  readonly #stage: number;
  /** The port is sending the frame at the head of its queue. */
  #isSending = false;
  /** PIOTX: offsets and lengths of frames, a ring. */
  readonly #place: Int32Array;
  readonly #lengthBytes: Int32Array;
  readonly #visibleCycle: Float64Array;
  #head = 0;
  #count = 0;

  constructor(parts: TransmitMacParts) {
    this.#parts = parts;
    const { programmedFrames } = parts.config;
    this.#place = new Int32Array(programmedFrames);
    this.#lengthBytes = new Int32Array(programmedFrames);
    this.#visibleCycle = new Float64Array(programmedFrames);
    this.#stage = parts.domain.addStage(this.#run, this);
  }

  connect({ engine }: TransmitMacPorts): void {
    this.#engine = engine;
  }

  /** The port may accept a frame again. */
  spaceFreed(): void {
    const { domain, lp } = this.#parts;
    domain.wakeAfter(this.#stage, lp.nowPs);
  }

  /** A frame can be taken from `cycle` on. */
  frameReady(cycle: Cycles): void {
    this.#parts.domain.wake(this.#stage, cycle);
  }

  get hasProgrammedRoom(): boolean {
    return this.#count < this.#place.length;
  }

  /** No frame waits for the cable. */
  get isIdle(): boolean {
    return this.#count === 0 && this.#parts.buffer.count === 0;
  }

  /** PIOTX: a frame that software has put into the packet buffer; room is available. */
  program(place: number, lengthBytes: number, cycle: Cycles): void {
    const slot = (this.#head + this.#count) % this.#place.length;
    this.#place[slot] = place;
    this.#lengthBytes[slot] = lengthBytes;
    this.#visibleCycle[slot] = cycle + this.#parts.config.transmitLatencyCycles;
    this.#count++;
    this.frameReady(this.#visibleCycle[slot]!);
  }

  reset(cycle: Cycles): void {
    this.isProgrammed = false;
    this.programmedCount = 0;
    this.#isSending = false;
    this.#head = 0;
    this.#count = 0;
    this.account.rest(cycle);
  }

  inspect(): BlockState {
    const slots = Array.from(
      { length: this.#count },
      (_, index) => (this.#head + index) % this.#place.length,
    );
    return {
      isProgrammed: this.isProgrammed,
      programmedCount: this.programmedCount,
      isSending: this.#isSending,
      programmed: slots.map((slot) => [this.#place[slot]!, this.#lengthBytes[slot]!]),
    };
  }

  get #waiting(): number {
    return this.isProgrammed ? this.#count : this.#parts.buffer.count;
  }

  #run(cycle: Cycles): void {
    if (this.#waiting === 0) {
      this.account.rest(cycle);
      return;
    }
    if (!this.#parts.port.canTransmit()) {
      this.account.stall(cycle, STALL_LINK);
      return;
    }
    if (this.#isSending) this.#release(cycle);
    if (this.#waiting === 0) {
      this.account.rest(cycle);
      return;
    }
    const visibleCycle = this.isProgrammed
      ? this.#visibleCycle[this.#head]!
      : this.#parts.buffer.visibleCycleOf(0);
    if (cycle < visibleCycle) {
      this.account.rest(cycle);
      this.#parts.domain.wake(this.#stage, visibleCycle);
      return;
    }
    this.#send(cycle);
  }

  #send(cycle: Cycles): void {
    const { buffer, counters, port, sram, domain } = this.#parts;
    const place = this.isProgrammed ? this.#place[this.#head]! : buffer.placeOf(0);
    const bytes = this.isProgrammed ? this.#lengthBytes[this.#head]! : buffer.bytesOf(0);
    port.send(sram, place, bytes);
    counters.transmitFrames++;
    counters.transmitBytes += Math.max(bytes, SHORTEST_BYTES) + ethernetFcsBytes;
    if (this.isProgrammed) counters.programmedFrames++;
    this.#isSending = true;
    this.account.serve(cycle, 1);
    domain.wake(this.#stage, cycle + 1);
  }

  #release(cycle: Cycles): void {
    const { buffer, interrupts } = this.#parts;
    this.#isSending = false;
    if (!this.isProgrammed) {
      buffer.release();
      this.#engine.bufferFreed();
      return;
    }
    this.#head = (this.#head + 1) % this.#place.length;
    this.#count--;
    this.programmedCount = (this.programmedCount + 1) >>> 0;
    interrupts.set(NicCause.PIOTX, cycle);
  }

  /** Handles a new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.account.rebase(cycles);
    for (let slot = 0; slot < this.#visibleCycle.length; slot++)
      this.#visibleCycle[slot] = this.#visibleCycle[slot]! - cycles;
  }
}
