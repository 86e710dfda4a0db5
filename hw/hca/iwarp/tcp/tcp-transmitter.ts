/**
 * Sends the frames that the TCP engine has formed, one at a time, in order: by the cable, or by the loopback if they go to this very port.
 * While the rings' transmitter has a frame for the cable, too, they send in turns. A full fifo of frames holds the engine back: connections
 * that have something to send wait.
 */
import type { Cycles } from '../../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  Fifo,
  type LogicalProcess,
  stallReasons,
} from '../../../../sim/index.ts';
import { ETHERNET_FCS_BYTES, ETHERNET_FRAME_MIN_BYTES } from '../../../../wire/index.ts';
import { tagOf } from '../../frames/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { EthernetAttachment } from '../../port/index.ts';
import type { TcpLoopback } from './tcp-loopback.ts';

const stalls = stallReasons('wire', 'pause', 'loopback');
const { wire: STALL_WIRE, pause: STALL_PAUSE, loopback: STALL_LOOPBACK } = stalls;

export interface TcpTransmitterPorts {
  readonly engine: {
    /** A full fifo of frames has room again. */
    transmitSpace(cycle: Cycles): void;
  };
  readonly frameTransmitter: {
    /** A frame of a ring has been formed, and waits for the cable. */
    readonly waitsForWire: boolean;
  };
}

/** Parts of the device that {@link TcpTransmitter} uses. */
export interface TcpTransmitterSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'transmitPacketCycles' | 'transmitBytesPerCycle'>;
  /** Frames that may wait. */
  readonly frameCount: number;
  readonly ethernet: EthernetAttachment;
  readonly address: { readonly isActive: boolean };
  readonly loopback: TcpLoopback;
}

export class TcpTransmitter {
  readonly account = new BlockAccount('tcpTransmitter', stalls);
  /** Frames are formed here, each in a place of its own. */
  readonly bytes: Uint8Array;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #ethernet: EthernetAttachment;
  readonly #address: { readonly isActive: boolean };
  readonly #loopback: TcpLoopback;
  readonly #placeBytes: number;
  readonly #placeCount: number;
  /** Bytes of the frame in each place, whether it has a segment that was sent before, and whether it goes to this port. */
  readonly #lengths: Int32Array;
  readonly #isSentAgain: Uint8Array;
  readonly #isToSelf: Uint8Array;
  readonly #frames: Fifo;
  readonly #packetCycles: number;
  readonly #bytesPerCycle: number;
  readonly #stage: number;
  #nextPlace = 0;
  /** True if a segment was sent last, and no ring's frame since. */
  #wasSegment = false;
  #ports!: TcpTransmitterPorts;

  constructor({ lp, domain, config, frameCount, ethernet, address, loopback }: TcpTransmitterSetup) {
    this.#lp = lp;
    this.#domain = domain;
    this.#ethernet = ethernet;
    this.#address = address;
    this.#loopback = loopback;
    this.#placeBytes = Math.ceil(ethernet.port.frameBytesMax / 64) * 64;
    this.#placeCount = frameCount;
    this.bytes = new Uint8Array(frameCount * this.#placeBytes);
    this.#lengths = new Int32Array(frameCount);
    this.#isSentAgain = new Uint8Array(frameCount);
    this.#isToSelf = new Uint8Array(frameCount);
    this.#frames = new Fifo({
      name: 'frames of TCP',
      capacity: frameCount,
      whenFull: 'connections with something to send wait',
    });
    this.#packetCycles = config.transmitPacketCycles;
    this.#bytesPerCycle = config.transmitBytesPerCycle;
    this.#stage = domain.addStage(this.#run, this);
  }

  connect(ports: TcpTransmitterPorts): void {
    this.#ports = ports;
  }

  /** Frames that may be formed now. */
  get room(): number {
    return this.#placeCount - this.#frames.count;
  }

  /**
   * Offset in {@link bytes} at which the next frame is formed.
   */
  get nextFrameAt(): number {
    return this.#nextPlace * this.#placeBytes;
  }

  /** The frame at {@link nextFrameAt} has been formed, and can be seen from `cycle` on. The caller has checked {@link room}. */
  formed(lengthBytes: number, isSentAgain: boolean, isToSelf: boolean, cycle: Cycles): void {
    const place = this.#nextPlace;
    this.#lengths[place] = lengthBytes;
    this.#isSentAgain[place] = isSentAgain ? 1 : 0;
    this.#isToSelf[place] = isToSelf ? 1 : 0;
    this.#frames.push(place, cycle);
    this.#nextPlace = (place + 1) % this.#placeCount;
    this.#domain.wake(this.#stage, cycle);
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Notes that the wire port may accept a frame again. */
  spaceFreed(): void {
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  /** The loopback has room again. */
  loopbackSpace(): void {
    if (this.account.isStalledFor(STALL_LOOPBACK)) this.wake(this.#domain.cycle + 1);
  }

  /** Frames that have not been sent. */
  get heldCount(): number {
    return this.#frames.count;
  }

  get fifos(): readonly Fifo[] {
    return [this.#frames];
  }

  inspect(): BlockState {
    return { frames: this.#frames.values, wasSegment: this.#wasSegment };
  }

  reset(): void {
    this.#frames.clear();
    this.#nextPlace = 0;
    this.#wasSegment = false;
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#frames.rebase(cycles);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#frames.headCycle > cycle) {
      this.account.rest(cycle);
      if (!this.#frames.isEmpty) this.wake(this.#frames.headCycle);
      return;
    }
    const place = this.#frames.head;
    const lengthBytes = this.#lengths[place]!;
    const passCycles = Math.max(Math.ceil(lengthBytes / this.#bytesPerCycle), this.#packetCycles);
    // A frame to a port that is not open is discarded as others are.
    if (this.#isToSelf[place] === 1 && this.#address.isActive) {
      if (!this.#loopback.hasRoom) return this.account.stall(cycle, STALL_LOOPBACK);
      this.#loopback.send(this.bytes, place * this.#placeBytes, lengthBytes, cycle + passCycles);
    } else if (!this.#sendByCable(place, lengthBytes, passCycles, cycle)) return;
    this.account.serve(cycle, passCycles);
    const wasFull = this.#frames.isFull;
    this.#frames.pop();
    if (wasFull) this.#ports.engine.transmitSpace(cycle);
    if (!this.#frames.isEmpty) this.wake(Math.max(cycle + passCycles, this.#frames.headCycle));
  }

  /** @returns false when the frame has to wait: then the reason is accounted for */
  #sendByCable(place: number, lengthBytes: number, passCycles: number, cycle: Cycles): boolean {
    const { port } = this.#ethernet;
    const formedPs = this.#lp.nowPs + this.#domain.clock.durationPs(passCycles);
    if (!port.canTransmit(formedPs)) {
      this.account.stall(cycle, port.isPaused ? STALL_PAUSE : STALL_WIRE);
      return false;
    }
    if (this.#wasSegment && this.#ports.frameTransmitter.waitsForWire) {
      this.#wasSegment = false;
      this.wake(cycle + 1);
      this.account.stall(cycle, STALL_WIRE);
      return false;
    }
    this.#wasSegment = true;
    this.#send(place, lengthBytes, formedPs);
    return true;
  }

  #send(place: number, lengthBytes: number, formedPs: number): void {
    const { port, side } = this.#ethernet;
    const at = place * this.#placeBytes;
    const { frames } = port.transmitted;
    port.send(this.bytes, at, lengthBytes, formedPs, this.#isSentAgain[place] === 1);
    if (port.transmitted.frames === frames) return;
    const wireBytes = Math.max(lengthBytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
    const { longestBytes } = side.steering;
    side.statistics.transmitted.count(this.bytes, at, tagOf(this.bytes, at), wireBytes, longestBytes);
  }
}
