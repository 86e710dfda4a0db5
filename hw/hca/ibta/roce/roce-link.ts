/**
 * The packet port of an Ethernet port with RoCE. It connects the packet transmitter and receiver with the Ethernet
 * port; neither of them, nor any block beyond them, sees a frame.
 *
 *   transmitter ──record──> frame ──┐                   ┌── RoCE? ──> MAC, ICRC ──record──> receiver
 *                                   ├─> wire port ══════┤
 *   frame transmitter ──────frame───┘                   └── others ─────────frame─────────> frame receiver
 *
 * Promises:
 * - While both transmitters have something to send, they alternate.
 * - A received packet keeps the slot that its frame has in the wire port until it is consumed. While all slots are in
 *   use the wire port drops arriving frames, as Ethernet does; a reliable connection retransmits them.
 * - Frames for another MAC, damaged packets and malformed packets are dropped and counted with the other dropped
 *   frames.
 *
 * Sources: IBTA vol 1, annexes A16 and A17; interface sheet 7.5.
 */
import { generalServicesQpn } from '../../../../abi/index.ts';
import type { Picoseconds } from '../../../../base/index.ts';
import type { BlockState } from '../../../../sim/index.ts';
import {
  ETHERNET_FCS_BYTES,
  ETHERNET_FRAME_MIN_BYTES,
  FLAG_RETRANSMISSION,
  ICRC_WRONG,
  isRoceFrame,
  openPacket,
  PACKET_RIGHT,
  PacketCounters,
  packetBytesOf,
  RoceBytes,
  WORD_DESTINATION_QPN,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from '../../../../wire/index.ts';
import { tagOf } from '../../frames/index.ts';
import type { QpSlot, QpTable } from '../../objects/index.ts';
import type { EthernetAttachment, FrameDropReason } from '../../port/index.ts';
import type { FlowCounters, ViolationCounters } from '../../statistics/index.ts';
import type { PacketPort, PortAddress } from '../packets/index.ts';

/** Header, the longest payload, and the XRCETH, GRH and route that follow it. */
const RECORD_BYTES = 64 + 4096 + 128;
/** Longest frame of a packet: with that payload and all headers. */
const FRAME_BYTES_MAX = RECORD_BYTES + 64;

export interface RoceLinkPorts {
  readonly receiver: {
    /**
     * A whole packet has arrived: its buffer must be returned ({@link RoceLink.consume}).
     */
    packetArrived(offset: number, payloadBytes: number): void;
    /** Number of the QP that serves QPN 0 or 1; -1 if the port has none. */
    specialQpn(qpn: number): number;
  };
  readonly frameReceiver: {
    frameArrived(slot: number): void;
  };
  readonly transmitter: {
    /** The port may accept a packet again. */
    spaceFreed(): void;
  };
  readonly frameTransmitter: {
    /** A frame has been formed, and waits for the cable. */
    readonly waitsForWire: boolean;
  };
}

/** Records of packets. */
class Records {
  readonly bytes: Uint8Array;
  readonly words: Int32Array;
  readonly floats: Float64Array;
  readonly frames: RoceBytes;

  constructor(count: number) {
    this.bytes = new Uint8Array(count * RECORD_BYTES);
    this.words = new Int32Array(this.bytes.buffer);
    this.floats = new Float64Array(this.bytes.buffer);
    this.frames = new RoceBytes(this);
  }
}

export class RoceLink implements PacketPort {
  readonly outboundHeaders = { destinationQpn: 0, psn: 0 };
  readonly receivePacketsMax: number;
  readonly holdReasons = ['pause'];
  /**
   * Packets sent on the cable, first transmissions and retransmissions apart, and packets discarded while it was down.
   */
  readonly sent = {
    first: new PacketCounters(),
    retransmitted: new PacketCounters(),
    discarded: new PacketCounters(),
  };
  /** Packets handed to the receiver. Bytes are those of frames here, from the destination to the FCS. */
  readonly received = new PacketCounters();
  /** Undefined on ports that carry only packets or only frames, which do not use this block. */
  readonly #ethernet: EthernetAttachment | undefined;
  readonly #address: PortAddress;
  readonly #violations: ViolationCounters;
  readonly #qps: QpTable;
  /** The packet being sent, and the received packets: one for each slot of the wire port. */
  readonly #out: Records;
  readonly #in: Records;
  readonly #frame: Uint8Array;
  /** Instant from which the packet being filled in may leave. */
  #formedPs: Picoseconds = 0;
  /** True if a packet was sent last, and no frame since. */
  #wasPacket = false;
  #ports!: RoceLinkPorts;

  constructor(
    ethernet: EthernetAttachment | undefined,
    address: PortAddress,
    violations: ViolationCounters,
    qps: QpTable,
  ) {
    this.#qps = qps;
    this.#ethernet = address.roce === undefined ? undefined : ethernet;
    this.#address = address;
    this.#violations = violations;
    this.receivePacketsMax = this.#ethernet?.port.slotCount ?? 0;
    this.#out = new Records(this.isOn ? 1 : 0);
    this.#in = new Records(this.receivePacketsMax);
    this.#frame = new Uint8Array(this.isOn ? FRAME_BYTES_MAX : 0);
  }

  connect(ports: RoceLinkPorts): void {
    this.#ports = ports;
  }

  /** True on a port of Ethernet with RoCE. */
  get isOn(): boolean {
    return this.#ethernet !== undefined;
  }

  inspect(): BlockState {
    return { wasPacket: this.#wasPacket };
  }

  reset(): void {
    this.#wasPacket = false;
  }

  // ---- transmit ----

  get txBytes(): Uint8Array {
    return this.#out.bytes;
  }

  /** Packets handed to the receiver. */
  get receivedCount(): number {
    return this.received.packetTotal;
  }

  get txWords(): Int32Array {
    return this.#out.words;
  }

  get txFloats(): Float64Array {
    return this.#out.floats;
  }

  /** The reason for which the link accepts no packet: the far end has paused this one. */
  get holdReason(): number {
    return this.#ethernet!.port.isPaused ? 0 : -1;
  }

  get freePs(): Picoseconds {
    return this.#ethernet!.port.freePs;
  }

  get discardedCount(): number {
    return this.#ethernet!.port.transmitted.discardedFrames;
  }

  expectPacket(_fromPs: Picoseconds, formingPs: Picoseconds): Picoseconds {
    return this.#ethernet!.port.readyPs(formingPs);
  }

  sendPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane = 0,
  ): number {
    if (!this.#mayTransmit(atPs)) return -1;
    const packetBytes = packetBytesOf(opcode, payloadBytes, true);
    openPacket(this.#out.words, 0, opcode, payloadBytes, flags, virtualLane, packetBytes);
    this.#formedPs = atPs;
    return 0;
  }

  /** True if the cable accepts a packet, and it is not a frame's turn. */
  #mayTransmit(formedPs: Picoseconds): boolean {
    if (!this.#ethernet!.port.canTransmit(formedPs)) return false;
    if (!this.#wasPacket || !this.#ports.frameTransmitter.waitsForWire) return true;
    this.#wasPacket = false;
    this.#ports.transmitter.spaceFreed();
    return false;
  }

  /** A packet that is longer than frames may be is discarded. */
  packetFilled(offset: number, sender: QpSlot): void {
    const { port, side } = this.#ethernet!;
    this.#wasPacket = true;
    const bytes = this.#out.frames.pack(offset, this.#frame, 0, this.#address.roce!.udpPort);
    if (bytes > port.frameBytesMax) {
      this.#violations.count('frameTooLong');
      return;
    }
    const { frames } = port.transmitted;
    const isSentAgain = (this.#out.words[(offset >> 2) + WORD_PACKET_FLAGS]! & FLAG_RETRANSMISSION) !== 0;
    port.send(this.#frame, 0, bytes, this.#formedPs, isSentAgain);
    const wireBytes = Math.max(bytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
    const isSent = port.transmitted.frames !== frames;
    this.#countSent(offset >> 2, wireBytes, isSent);
    if (!isSent) return;
    const { longestBytes } = side.steering;
    side.statistics.transmitted.count(this.#frame, 0, tagOf(this.#frame, 0), wireBytes, longestBytes);
    side.flowCounters?.countTransmitted(this.#qps.counterOf(sender), wireBytes);
  }

  #countSent(at: number, wireBytes: number, isSent: boolean): void {
    const { words } = this.#out;
    const { first, retransmitted, discarded } = this.sent;
    const isFirst = (words[at + WORD_PACKET_FLAGS]! & FLAG_RETRANSMISSION) === 0;
    const counters = isSent ? (isFirst ? first : retransmitted) : discarded;
    counters.count(words[at + WORD_OPCODE]!, wireBytes, words[at + WORD_PAYLOAD_BYTES]!);
  }

  // ---- receive ----

  get rxBytes(): Uint8Array {
    return this.#in.bytes;
  }

  get rxWords(): Int32Array {
    return this.#in.words;
  }

  get rxFloats(): Float64Array {
    return this.#in.floats;
  }

  /**
   * Returns the name of a frame's buffer, for {@link consume}.
   */
  frameName(slot: number): number {
    return slot * RECORD_BYTES;
  }

  /** Releases the buffer of a packet or of a frame. */
  consume(name: number): void {
    this.#ethernet!.port.consume(name / RECORD_BYTES);
  }

  /** The wire port has a frame in this slot, whole. */
  frameArrived(slot: number): void {
    const { port, side } = this.#ethernet!;
    const { rxBytes } = port;
    const at = port.frameStart(slot);
    const bytes = port.frameBytes(slot);
    if (!isRoceFrame(rxBytes, at, bytes, this.#address.roce!.udpPort))
      return this.#ports.frameReceiver.frameArrived(slot);
    const { longestBytes } = side.steering;
    side.statistics.received.count(rxBytes, at, tagOf(rxBytes, at), bytes + ETHERNET_FCS_BYTES, longestBytes);
    const reason = this.#take(slot, at, bytes);
    if (reason === undefined) {
      const offset = slot * RECORD_BYTES;
      const { words } = this.#in;
      const payloadBytes = words[(offset >> 2) + WORD_PAYLOAD_BYTES]!;
      if (side.flowCounters !== undefined) this.#countFlow(side.flowCounters, offset, bytes);
      this.received.count(words[(offset >> 2) + WORD_OPCODE]!, bytes + ETHERNET_FCS_BYTES, payloadBytes);
      this.#ports.receiver.packetArrived(offset, payloadBytes);
      return;
    }
    side.steering.drop(reason);
    port.consume(slot);
  }

  /**
   * Counts a received packet for its QP's flow counter; packets for no QP or for a group count for the sink counter.
   */
  #countFlow(counters: FlowCounters, offset: number, frameBytes: number): void {
    const qpn = this.#in.words[(offset >> 2) + WORD_DESTINATION_QPN]!;
    const number = qpn > generalServicesQpn ? qpn : this.#ports.receiver.specialQpn(qpn);
    const slot = number === -1 ? -1 : this.#qps.slotOf(number);
    const index = slot === -1 ? counters.count - 1 : this.#qps.counterOf(slot);
    counters.countReceived(index, frameBytes + ETHERNET_FCS_BYTES);
  }

  /** Makes the record of a frame's packet; returns the reason if the frame is dropped. */
  #take(slot: number, at: number, frameBytes: number): FrameDropReason | undefined {
    const { port, side } = this.#ethernet!;
    if (!this.#address.isActive) return 'portClosed';
    if (!side.steering.isForPort(port.rxBytes, at)) return 'foreignMac';
    const verdict = this.#in.frames.unpack(port.rxBytes, at, frameBytes, slot * RECORD_BYTES);
    if (verdict === PACKET_RIGHT) return undefined;
    return verdict === ICRC_WRONG ? 'packetDamaged' : 'packetMalformed';
  }
}
