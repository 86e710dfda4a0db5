/**
 * Packets of send requests: at most one is open, the one whose payload is being gathered. Segments are translated page
 * by page and read by DMA straight into the packet's slot, inline data is copied; a sealed packet is sent in order when
 * its reads are done. Retransmitted packets read their payload from memory again. The transport writes their headers.
 * Frames of an LSO begin with the headers of the WQE, which are on chip.
 */

import { WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { type BlockAccount, type ClockDomain, stallReasons, type Wakeable } from '../../../sim/index.ts';
import { TrafficClass } from '../../dma/index.ts';
import { ABSENT, DONE, type MemoryAnswer, REFUSED, WAIT } from '../answers.ts';
import {
  type DmaReads,
  PAGE_FAULT,
  type PageFaults,
  PENDING,
  PORT_REQUESTER,
  RIGHT_LOCAL_READ,
  SIDE_REQUESTER,
  TRANSLATED,
  type TranslationPort,
  type Translator,
} from '../memory/index.ts';
import {
  type DataSegment,
  noRecord,
  type QueuePair,
  type SendRecord,
  type SendRecords,
} from '../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../packets/index.ts';
import type { HcaConfig } from '../parameters.ts';
import type { PacketSink, RequestTransport } from '../transport/index.ts';

const { LSO, RDMA_READ } = WqeOpcode;

const stalls = stallReasons('context', 'translation', 'dma', 'transmitBuffer', 'records');
const { translation: STALL_TRANSLATION, dma: STALL_DMA } = stalls;
export const {
  context: STALL_CONTEXT,
  transmitBuffer: STALL_TRANSMIT_BUFFER,
  records: STALL_RECORDS,
} = stalls;
/** The transport names the first reason after these; the second one exists where its QPs have rates. */
export const STALL_TRANSPORT_WINDOW = Object.keys(stalls).length;
export const STALL_RATE_LIMIT = STALL_TRANSPORT_WINDOW + 1;
export const requesterStalls = ({
  windowStall,
  isPaced,
}: Pick<RequestTransport, 'windowStall' | 'isPaced'>) =>
  stallReasons(...Object.keys(stalls), windowStall, ...(isPaced ? ['rateLimit'] : []));

const NONE = -1;

/** Parts of the device that {@link RequestPackets} uses. */
export interface RequestPacketsSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'requestPacketCycles' | 'transmitLatencyCycles'>;
  readonly dmaRead: DmaReads;
  readonly sram: Uint8Array;
  readonly translator: Translator;
  readonly pageFaults: PageFaults;
  readonly records: SendRecords;
  readonly requestPackets: PacketQueue;
}

export class RequestPackets {
  readonly #dmaRead: DmaReads;
  readonly #sram: Uint8Array;
  readonly #translator: Translator;
  readonly #pageFaults: PageFaults;
  readonly #records: SendRecords;
  readonly #queue: PacketQueue;
  readonly #account: BlockAccount;
  readonly #readRequester: number;
  readonly #translation: TranslationPort;
  #transmitter!: PacketSink;
  /** Cycles from making a packet until it can be sent. */
  readonly #latencyCycles: number;
  /**
   * The open packet, bytes of headers before its payload, bytes of the payload whose reads are under way, and all that it takes.
   */
  #open: PacketSlot | undefined = undefined;
  #headerBytes = 0;
  /** Segment that {@link #seek} has found. */
  #segment: DataSegment = noRecord.segment(0);
  #filled = 0;
  #wanted = 0;

  /**
   * @param account that of the requester, whose stage makes the packets
   * @param requester woken when payload can be requested again
   */
  constructor(setup: RequestPacketsSetup, account: BlockAccount, requester: Wakeable) {
    this.#dmaRead = setup.dmaRead;
    this.#sram = setup.sram;
    this.#translator = setup.translator;
    this.#pageFaults = setup.pageFaults;
    this.#records = setup.records;
    this.#queue = setup.requestPackets;
    this.#account = account;
    this.#translation = setup.translator.port(PORT_REQUESTER);
    this.#latencyCycles = setup.config.requestPacketCycles + setup.config.transmitLatencyCycles;
    this.#readRequester = setup.dmaRead.addRequester(
      {
        name: 'payloadRead',
        trafficClass: TrafficClass.payloadRead,
        fifoDepth: 16,
        weight: 4,
        placesEarly: true,
      },
      {
        done: (slot, status, cycle) => this.#payloadRead(slot, status, cycle),
        space: () => requester.wake(setup.domain.cycle + 1),
      },
    );
  }

  connect({ transmitter }: { readonly transmitter: PacketSink }): void {
    this.#transmitter = transmitter;
  }

  /** True while a packet's payload is being gathered. */
  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** Payload of the packet that was made last. */
  get payloadBytes(): number {
    return this.#wanted;
  }

  /** Whether the packet of `request` at the QP's cursor is open, or the transport has room for it. */
  mayOpen(pair: QueuePair, request: SendRecord, transport: RequestTransport): boolean {
    if (this.#open !== undefined) return true;
    const packetBytes = transport.packetBytes(pair, request.opcode);
    return transport.hasRoom(pair, request, payloadOf(request, pair.packetCursor * packetBytes, packetBytes));
  }

  /** Makes the packet of `request` at the QP's cursor, and has `transport` write its headers. */
  send(pair: QueuePair, request: SendRecord, transport: RequestTransport, cycle: Cycles): MemoryAnswer {
    let packet = this.#open;
    if (packet === undefined) {
      if (this.#queue.isFull) return this.#stall(STALL_TRANSMIT_BUFFER, cycle);
      packet = this.#queue.open(pair, pair.sendGeneration, request);
      pair.inPipelineCount++;
      this.#open = packet;
      this.#filled = 0;
      this.#headerBytes = 0;
      const packetBytes =
        request.opcode === LSO
          ? this.#beginSegment(request, packet)
          : transport.packetBytes(pair, request.opcode);
      packet.index = pair.packetCursor;
      packet.firstByte = packet.index * packetBytes;
      this.#wanted = payloadOf(request, packet.firstByte, packetBytes);
      transport.opened(packet, pair, request, this.#wanted);
    }
    const gathered =
      request.isInline === 1
        ? this.#gatherInline(request, packet)
        : this.#gather(pair, request, packet, cycle);
    if (gathered === DONE) this.#seal(pair, request, packet, transport, cycle);
    return gathered;
  }

  /**
   * Abandons an open packet that is not the next one that `pair` must send: its generation is over, or its request has
   * ended.
   */
  abandonStale(pair: QueuePair, cycle: Cycles): void {
    const packet = this.#open;
    if (packet === undefined) return;
    if (packet.sendGeneration !== pair.sendGeneration || packet.pair !== pair || !packet.isOfRequest)
      this.abandon(cycle);
  }

  /** Leaves the open slot to be dropped when its reads are done. */
  abandon(cycle: Cycles): void {
    const packet = this.#open!;
    packet.sendGeneration = NONE;
    packet.isSealed = 1;
    this.#open = undefined;
    this.#transmitter.wake(cycle + 1);
  }

  /** Forgets the open packet: the queue is cleared, too. */
  reset(): void {
    this.#open = undefined;
  }

  /** Puts the headers of an LSO in front of the frame's payload. Returns the payload of each of its frames but the last. */
  #beginSegment({ number, inlineData }: SendRecord, packet: PacketSlot): number {
    const headerBytes = this.#records.frames.headerBytes[number]!;
    this.#sram.set(inlineData.subarray(0, headerBytes), packet.payloadOffset);
    this.#headerBytes = headerBytes;
    return this.#records.frames.segmentBytes[number]!;
  }

  /** Inline data is on chip already. */
  #gatherInline({ inlineData }: SendRecord, packet: PacketSlot): typeof DONE {
    const from = this.#headerBytes + packet.firstByte;
    const to = packet.payloadOffset + this.#headerBytes;
    for (let index = 0; index < this.#wanted; index++) this.#sram[to + index] = inlineData[from + index]!;
    this.#filled = this.#wanted;
    return DONE;
  }

  /** Begins the DMA reads of the packet's payload, segment by segment and page by page. DONE: all of them. */
  #gather(pair: QueuePair, request: SendRecord, packet: PacketSlot, cycle: Cycles): MemoryAnswer {
    while (this.#filled < this.#wanted) {
      const position = this.#seek(request, packet.firstByte + this.#filled);
      const { key, address, addressTop, bytes: segmentBytes } = this.#segment;
      const rest = segmentBytes - position;
      const left = this.#wanted - this.#filled;
      const wanted = rest < left ? rest : left;
      const from = address + position;
      const found = this.#translation.translate(
        key,
        pair.pd,
        from,
        addressTop,
        wanted,
        RIGHT_LOCAL_READ,
        pair,
      );
      if (found === PENDING) return this.#stall(STALL_TRANSLATION, cycle);
      if (found === PAGE_FAULT) {
        const pages = {
          side: SIDE_REQUESTER,
          key,
          address: from,
          addressTop,
          lengthBytes: rest,
          isWrite: false,
        };
        return this.#pageFaults.raise(pair.slot, pages, cycle) ? ABSENT : REFUSED;
      }
      if (found !== TRANSLATED) return REFUSED;
      if (!this.#dmaRead.canRequest(this.#readRequester)) return this.#stall(STALL_DMA, cycle);
      // At most the wanted bytes: narrowed (build/README.md).
      const bytes = this.#translator.contiguousBytes | 0;
      const target = packet.payloadOffset + this.#headerBytes + this.#filled;
      packet.pendingReads++;
      this.#dmaRead.request(
        this.#readRequester,
        this.#translator.physicalAddress,
        bytes,
        target,
        packet.slot,
      );
      this.#translation.used();
      this.#filled += bytes;
    }
    return DONE;
  }

  /** Moves to the segment that holds a byte of the message; returns the byte's offset in it. */
  #seek(request: SendRecord, byte: number): number {
    let position = byte;
    let segment = request.segment(0);
    for (let index = 1; position >= segment.bytes; index++) {
      position -= segment.bytes;
      segment = request.segment(index);
    }
    this.#segment = segment;
    return position;
  }

  #payloadRead(slot: number, status: number, cycle: Cycles): void {
    const packet = this.#queue.rows[slot]!;
    if (packet.isLast && packet.isOfRequest) packet.request.gatheredCycle = cycle;
    this.#transmitter.payloadArrived(this.#queue, packet, status, cycle);
  }

  #stall(reason: number, cycle: Cycles): typeof WAIT {
    this.#account.stall(cycle, reason);
    return WAIT;
  }

  #seal(
    pair: QueuePair,
    request: SendRecord,
    packet: PacketSlot,
    transport: RequestTransport,
    cycle: Cycles,
  ): void {
    packet.payloadBytes = this.#headerBytes + this.#wanted;
    packet.isLast = request.opcode === RDMA_READ || packet.index === request.packetCount - 1;
    transport.seal(packet, pair, request);
    packet.readyCycle = cycle + this.#latencyCycles;
    packet.isSealed = 1;
    this.#open = undefined;
    if (packet.pendingReads === 0) this.#transmitter.wake(packet.readyCycle);
  }
}

/** Payload bytes of the packet that begins with this byte of the message. */
function payloadOf(
  { isReadOrAtomic, messageBytes }: SendRecord,
  firstByte: number,
  packetBytes: number,
): number {
  const left = messageBytes - firstByte;
  if (isReadOrAtomic === 1) return 0;
  return left < packetBytes ? left : packetBytes;
}
