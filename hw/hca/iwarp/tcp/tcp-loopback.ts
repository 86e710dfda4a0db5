/**
 * The way of a frame whose destination is the MAC of its own port: past the cable, back to the engine.
 *
 *     TcpTransmitter ──▶ places for `loopbackBufferPackets` frames ──▶ TcpEngine, like a frame of the port
 *
 * - Frames arrive in the order sent, `loopbackLatencyCycles` after their last byte, which moves at `loopbackBytesPerCycle`.
 * - A frame keeps its place until its payload has left for host memory. With all places in use the transmitter waits. The
 *   engine works on received segments without waiting for the transmitter, so that no cycle of waits can close.
 * - The counters of the port leave these frames out.
 */
import { BlockCopier, type Cycles } from '../../../../base/index.ts';
import type { BlockState } from '../../../../sim/index.ts';
import type { HcaConfig } from '../../parameters.ts';

/** Frames without FCS. */
export interface LoopedFrames {
  sentFrames: number;
  sentBytes: number;
  /** Frames that the engine has worked on. */
  receivedFrames: number;
  receivedBytes: number;
  /** Frames that a reset has removed before. */
  droppedFrames: number;
}

export interface TcpLoopbackPorts {
  readonly transmitter: {
    /** A place became free. */
    loopbackSpace(): void;
  };
  readonly engine: {
    /** A frame was sent to this port; it arrives at `arrivalCycle`. */
    frameLooped(slot: number, arrivalCycle: Cycles): void;
  };
}

export class TcpLoopback {
  /** Frames, each at {@link frameStart} of its place. */
  readonly rxBytes: Uint8Array;
  readonly slotCount: number;
  readonly counters: LoopedFrames = {
    ...{ sentFrames: 0, sentBytes: 0, receivedFrames: 0, receivedBytes: 0, droppedFrames: 0 },
  };
  readonly #slotBytes: number;
  readonly #lengths: Int32Array;
  readonly #free: number[] = [];
  readonly #bytesPerCycle: number;
  readonly #latencyCycles: number;
  readonly #copier = new BlockCopier();
  /** Cycle from which on the path accepts another byte. */
  #freeCycle: Cycles = 0;
  #ports!: TcpLoopbackPorts;

  constructor(
    config: Pick<HcaConfig, 'loopbackBufferPackets' | 'loopbackBytesPerCycle' | 'loopbackLatencyCycles'>,
    frameBytesMax: number,
  ) {
    this.slotCount = config.loopbackBufferPackets;
    this.#bytesPerCycle = config.loopbackBytesPerCycle;
    this.#latencyCycles = config.loopbackLatencyCycles;
    this.#slotBytes = Math.ceil(frameBytesMax / 64) * 64;
    this.rxBytes = new Uint8Array(this.slotCount * this.#slotBytes);
    this.#lengths = new Int32Array(this.slotCount);
    this.#freeAll();
  }

  connect(ports: TcpLoopbackPorts): void {
    this.#ports = ports;
  }

  /** Whether a frame can be accepted now. If not, the transmitter is notified when it can. */
  get hasRoom(): boolean {
    return this.#free.length > 0;
  }

  /** Frames on their way, or not yet written to memory. */
  get heldCount(): number {
    return this.slotCount - this.#free.length;
  }

  frameStart(slot: number): number {
    return slot * this.#slotBytes;
  }

  frameBytes(slot: number): number {
    return this.#lengths[slot]!;
  }

  /** Sends a frame whose first byte leaves at `cycle`. The caller has checked {@link hasRoom}. */
  send(source: Uint8Array, at: number, lengthBytes: number, cycle: Cycles): void {
    const slot = this.#free.pop()!;
    this.#copier.copy(this.rxBytes, this.frameStart(slot), source, at, lengthBytes);
    this.#lengths[slot] = lengthBytes;
    this.counters.sentFrames++;
    this.counters.sentBytes += lengthBytes;
    this.#freeCycle = Math.max(this.#freeCycle, cycle) + Math.ceil(lengthBytes / this.#bytesPerCycle);
    this.#ports.engine.frameLooped(slot, this.#freeCycle + this.#latencyCycles);
  }

  /** The engine begins to work on a frame. */
  received(slot: number): void {
    this.counters.receivedFrames++;
    this.counters.receivedBytes += this.frameBytes(slot);
  }

  /** Releases a frame's place. */
  consume(slot: number): void {
    this.#free.push(slot);
    if (this.#free.length === 1) this.#ports.transmitter.loopbackSpace();
  }

  inspect(): BlockState {
    return { frames: this.heldCount, freeCycle: this.#freeCycle };
  }

  /** Forgets all frames: none of them may be consumed afterwards. */
  reset(): void {
    const { counters } = this;
    counters.droppedFrames = counters.sentFrames - counters.receivedFrames;
    this.#freeCycle = 0;
    this.#freeAll();
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#freeCycle -= cycles;
  }

  #freeAll(): void {
    this.#free.length = 0;
    for (let slot = this.slotCount - 1; slot >= 0; slot--) this.#free.push(slot);
  }
}
