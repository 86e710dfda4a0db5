/**
 * The transmitter of an Ethernet port: forms frames from the payload that the requester has gathered, and sends them
 * one at a time, in order.
 *
 *   request packets ──> form: headers of a segment, checksums, tag (all bytes pass once) ──> wire port
 *
 * The next frame is formed while the one before it is on the wire. A frame is dropped if its ring has been reset or has
 * failed since, or if its data could not be read. With the link down, frames are discarded and complete: the wire port
 * counts them. Sources: interface sheet 6.3, 6.4.
 */
import type { Cycles } from '../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  stallReasons,
} from '../../../sim/index.ts';
import { ETHERNET_FCS_BYTES, ETHERNET_FRAME_MIN_BYTES } from '../../../wire/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  type QpTable,
  type QueuePair,
  type SendRecord,
  type SendRecords,
} from '../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../packets/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { EthernetAttachment } from '../port/index.ts';
import type { ViolationCounters } from '../statistics/index.ts';
import {
  fillIpChecksum,
  fillTransportChecksum,
  insertTag,
  packetPlacesOf,
  TAG_BYTES,
  tagOf,
} from './frame-headers.ts';
import { fillSegmentHeaders } from './segment-headers.ts';

const stalls = stallReasons('payload', 'wire', 'formation', 'pause');
const { payload: STALL_PAYLOAD, wire: STALL_WIRE, formation: STALL_FORMATION, pause: STALL_PAUSE } = stalls;
/** No frame has been formed. */
const NOT_FORMED = -1;

export interface FrameTransmitterPorts {
  readonly requester: {
    /** A slot of the queue became free. */
    slotFreed(cycle: Cycles): void;
    /** A frame was handed to the wire port. */
    requestSent(packet: PacketSlot, cycle: Cycles): void;
  };
  readonly errors: {
    /** The data of a frame could not be read. */
    payloadFailed(request: SendRecord, pair: QueuePair, cycle: Cycles): void;
  };
}

/** Parts of the device that {@link FrameTransmitter} uses. */
export interface FrameTransmitterSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'transmitPacketCycles' | 'transmitBytesPerCycle'>;
  readonly ethernet: EthernetAttachment | undefined;
  readonly qps: QpTable;
  readonly sram: Uint8Array;
  readonly records: SendRecords;
  readonly requestPackets: PacketQueue;
  readonly violations: ViolationCounters;
}

export class FrameTransmitter {
  readonly account = new BlockAccount('frameTransmitter', stalls);
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #qps: QpTable;
  readonly #sram: Uint8Array;
  readonly #records: SendRecords;
  readonly #violations: ViolationCounters;
  /** Undefined on a port of InfiniBand, which sends no frames. */
  readonly #ethernet: EthernetAttachment | undefined;
  readonly #requests: PacketQueue;
  readonly #packetCycles: number;
  readonly #bytesPerCycle: number;
  readonly #stage: number;
  /** Frames with a tag that was inserted. */
  readonly #tagged: Uint8Array;
  /** Cycle at which the oldest frame has been formed; {@link NOT_FORMED} before that was begun. */
  #formedCycle = NOT_FORMED;
  #ports!: FrameTransmitterPorts;

  constructor(setup: FrameTransmitterSetup) {
    const { ethernet, config } = setup;
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#qps = setup.qps;
    this.#sram = setup.sram;
    this.#records = setup.records;
    this.#violations = setup.violations;
    this.#ethernet = ethernet;
    this.#requests = setup.requestPackets;
    this.#packetCycles = config.transmitPacketCycles;
    this.#bytesPerCycle = config.transmitBytesPerCycle;
    this.#tagged = new Uint8Array(ethernet === undefined ? 0 : ethernet.port.frameBytesMax + TAG_BYTES);
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: FrameTransmitterPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** Notes that the wire port may accept a frame again. */
  spaceFreed(): void {
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  /** A frame has been formed, and waits for the cable. */
  get waitsForWire(): boolean {
    return this.account.isStalledFor(STALL_WIRE) || this.account.isStalledFor(STALL_PAUSE);
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void {
    packet.pendingReads--;
    if (status !== 0) packet.failure = status;
    if (packet !== queue.oldest || !packet.isComplete) return;
    this.wake(packet.readyCycle > cycle ? packet.readyCycle : cycle + 1);
  }

  /** The queue itself is cleared with the transmitter of packets, whose it is, too. */
  reset(): void {
    this.#formedCycle = NOT_FORMED;
  }

  inspect(): BlockState {
    return { isForming: this.#formedCycle !== NOT_FORMED };
  }

  #run(cycle: Cycles): void {
    const ethernet = this.#ethernet;
    if (ethernet === undefined) return;
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    this.#dropUnfit(cycle);
    const packet = this.#requests.oldest;
    // With RoCE the queue is shared: the other transmitter sends packets.
    if (packet.isComplete && !isFrame(packet)) return this.account.rest(cycle);
    if (!packet.isComplete) {
      if (this.#requests.isEmpty) this.account.rest(cycle);
      else this.account.stall(cycle, STALL_PAYLOAD);
      return;
    }
    if (this.#formedCycle === NOT_FORMED) return this.#form(packet, cycle);
    if (!ethernet.port.canTransmit())
      return this.account.stall(cycle, ethernet.port.isPaused ? STALL_PAUSE : STALL_WIRE);
    this.#send(ethernet, packet, cycle);
    this.wake(cycle + 1);
  }

  /** Complete frames in front that are invalidated, or could not be read. */
  #dropUnfit(cycle: Cycles): void {
    for (let packet = this.#requests.oldest; packet.isComplete; packet = this.#requests.oldest) {
      if (!isFrame(packet) || (isCurrent(packet) && packet.failure === 0)) return;
      const { pair, request } = packet;
      if (isCurrent(packet)) this.#ports.errors.payloadFailed(request, pair, cycle);
      this.#free(pair, cycle);
    }
  }

  /** All bytes of the frame pass, which makes its checksums. */
  #form(packet: PacketSlot, cycle: Cycles): void {
    if (packet.readyCycle > cycle) {
      this.account.stall(cycle, STALL_FORMATION);
      return this.wake(packet.readyCycle);
    }
    const moveCycles = Math.ceil(packet.payloadBytes / this.#bytesPerCycle);
    const formingCycles = moveCycles > this.#packetCycles ? moveCycles : this.#packetCycles;
    this.#formedCycle = cycle + formingCycles;
    this.account.serve(cycle, formingCycles);
    this.wake(this.#formedCycle);
  }

  #send(ethernet: EthernetAttachment, packet: PacketSlot, cycle: Cycles): void {
    const { payloadOffset, payloadBytes, request } = packet;
    const { tag, tagType, segmentBytes } = this.#records.frames;
    const record = request.number;
    if (segmentBytes[record] !== 0) this.#fillSegment(packet, record);
    else this.#fillChecksums(packet, record);
    if (tag[record] === -1) {
      this.#hand(ethernet, packet.pair, this.#sram, payloadOffset, payloadBytes);
    } else {
      const type = tagType[record]!;
      const bytes = insertTag(this.#sram, payloadOffset, payloadBytes, type, tag[record]!, this.#tagged);
      this.#hand(ethernet, packet.pair, this.#tagged, 0, bytes);
    }
    this.#free(packet.pair, cycle);
    this.#ports.requester.requestSent(packet, cycle);
  }

  /** Fills in the checksums that the WQE requests. */
  #fillChecksums({ payloadOffset, payloadBytes }: PacketSlot, record: number): void {
    const sram = this.#sram;
    const { hasIpChecksum, hasL4Checksum } = this.#records.frames;
    if (hasIpChecksum[record] === 0 && hasL4Checksum[record] === 0) return;
    const places = packetPlacesOf(sram, payloadOffset, payloadBytes);
    if (places === undefined) return;
    if (hasIpChecksum[record] === 1) fillIpChecksum(sram, places);
    if (hasL4Checksum[record] === 1) fillTransportChecksum(sram, places);
  }

  /** Forms a frame of an LSO from the headers of the first frame. */
  #fillSegment({ payloadOffset, payloadBytes, index, isLast }: PacketSlot, record: number): void {
    const { segmentBytes, headerBytes } = this.#records.frames;
    const segment = { index, firstByte: index * segmentBytes[record]!, isLast };
    fillSegmentHeaders(this.#sram, payloadOffset, headerBytes[record]!, payloadBytes, segment);
  }

  /** A frame that its tag has made too long is discarded. */
  #hand(
    { port, side }: EthernetAttachment,
    pair: QueuePair,
    bytes: Uint8Array,
    at: number,
    frameBytes: number,
  ): void {
    const isTooLong = frameBytes > port.frameBytesMax;
    if (isTooLong) {
      this.#violations.count('frameTooLong');
      return;
    }
    const { frames } = port.transmitted;
    port.send(bytes, at, frameBytes);
    if (port.transmitted.frames === frames) return;
    const wireBytes = Math.max(frameBytes, ETHERNET_FRAME_MIN_BYTES) + ETHERNET_FCS_BYTES;
    const { longestBytes } = side.steering;
    side.statistics.transmitted.count(bytes, at, tagOf(bytes, at), wireBytes, longestBytes);
    side.flowCounters?.countTransmitted(this.#qps.counterOf(pair.slot), wireBytes);
  }

  #free(pair: QueuePair, cycle: Cycles): void {
    this.#formedCycle = NOT_FORMED;
    this.#requests.close();
    pair.inPipelineCount--;
    this.#ports.requester.slotFreed(cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    if (this.#formedCycle !== NOT_FORMED) this.#formedCycle -= cycles;
  }
}

const isFrame = ({ pair }: PacketSlot): boolean => pair.opcodeBase === ETHERNET_OPCODE_BASE;

function isCurrent({ sendGeneration, request, pair, generation }: PacketSlot): boolean {
  return sendGeneration === pair.sendGeneration && generation === request.generation;
}
