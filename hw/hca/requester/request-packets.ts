/**
 * Packets of send requests: at most one is open, the one whose payload is being gathered. Segments are translated page by page
 * and read by DMA straight into the packet's slot, inline data is copied; sealed, the packet goes out in its order when its
 * reads are done. What is sent again is gathered again. Frames of an LSO begin with its headers, which are on chip.
 */

import { WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import { type BlockAccount, type ClockDomain, stallReasons, type Wakeable } from '../../../sim/index.ts';
import { FLAG_ACK_REQUEST, FLAG_SOLICITED, Opcode, psnAdd } from '../../../wire/index.ts';
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

const { LSO, RDMA_READ } = WqeOpcode;

export const requesterStalls = stallReasons(
  'context',
  'translation',
  'dma',
  'transmitBuffer',
  'records',
  'psnWindow',
);
const { translation: STALL_TRANSLATION, dma: STALL_DMA } = requesterStalls;
export const {
  context: STALL_CONTEXT,
  transmitBuffer: STALL_TRANSMIT_BUFFER,
  records: STALL_RECORDS,
  psnWindow: STALL_PSN_WINDOW,
} = requesterStalls;

const NONE = -1;

/** What sends the packets of the queue. */
export interface PacketSink extends Wakeable {
  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, packet: PacketSlot, status: number, cycle: Cycles): void;
}

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
  /** From the making of a packet until it can be sent. */
  readonly #latencyCycles: number;
  /**
   * The open packet, the place of its payload in the message, bytes of headers in front of that, bytes of it whose reads are under
   * way, and all that it takes.
   */
  #open: PacketSlot | undefined = undefined;
  #first = 0;
  #headerBytes = 0;
  /** Segment that {@link #seek} has found. */
  #segment: DataSegment = noRecord.segment(0);
  #filled = 0;
  #wanted = 0;

  /**
   * @param account that of the requester, whose stage makes the packets
   * @param requester woken when payload can be asked for again
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

  /** Makes the packet of `request` at which the QP's cursor stands: SENT, REFUSED, STALLED or ABSENT. */
  send(pair: QueuePair, request: SendRecord, cycle: Cycles): MemoryAnswer {
    let packet = this.#open;
    if (packet === undefined) {
      if (this.#queue.isFull) return this.#stall(STALL_TRANSMIT_BUFFER, cycle);
      packet = this.#queue.open(pair, pair.sendGeneration, request);
      pair.inPipelineCount++;
      this.#open = packet;
      this.#filled = 0;
      this.#headerBytes = 0;
      let packetBytes = pair.mtuBytes;
      if (request.opcode === LSO) packetBytes = this.#beginSegment(request, packet);
      this.#first = pair.packetCursor * packetBytes;
      const left = request.messageBytes - this.#first;
      this.#wanted = request.isReadOrAtomic === 1 ? 0 : left < packetBytes ? left : packetBytes;
    }
    const gathered =
      request.isInline === 1
        ? this.#gatherInline(request, packet)
        : this.#gather(pair, request, packet, cycle);
    if (gathered === DONE) this.#seal(pair, request, packet, cycle);
    return gathered;
  }

  /** Abandons an open packet that is not the one `pair` is to send next: its generation is over, or its request has ended. */
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
    const from = this.#headerBytes + this.#first;
    const to = packet.payloadOffset + this.#headerBytes;
    for (let index = 0; index < this.#wanted; index++) this.#sram[to + index] = inlineData[from + index]!;
    this.#filled = this.#wanted;
    return DONE;
  }

  /** Begins the DMA reads of the packet's payload, segment by segment and page by page. DONE: all of them. */
  #gather(pair: QueuePair, request: SendRecord, packet: PacketSlot, cycle: Cycles): MemoryAnswer {
    while (this.#filled < this.#wanted) {
      const position = this.#seek(request, this.#first + this.#filled);
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
      // No more than was wanted: narrowed (build/README.md).
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

  /** Turns to the segment that holds a byte of the message; returns the byte's place in it. */
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

  #seal(pair: QueuePair, request: SendRecord, packet: PacketSlot, cycle: Cycles): void {
    const index = pair.packetCursor;
    const { opcode } = request;
    const isRead = opcode === RDMA_READ;
    const isLast = isRead || index === request.psnCount - 1;
    const place = (index === 0 ? IS_FIRST : 0) | (isLast ? IS_LAST : 0);
    packet.opcode = packetOpcodes[(opcode << 2) | place]! | pair.opcodeBase;
    packet.psn = psnAdd(request.firstPsn, index);
    packet.payloadBytes = this.#headerBytes + this.#wanted;
    packet.address = request.remoteAddress;
    packet.addressTop = request.remoteAddressTop;
    packet.key = request.remoteKey;
    packet.dmaBytes = request.messageBytes;
    packet.immediate = request.immediate;
    if (request.isReadOrAtomic === 1) askForRest(packet, request, this.#first);
    packet.isLast = isLast;
    packet.flags = flagsOf(pair, request, isLast);
    packet.readyCycle = cycle + this.#latencyCycles;
    packet.isSealed = 1;
    this.#open = undefined;
    if (packet.pendingReads === 0) this.#transmitter.wake(packet.readyCycle);
  }
}

/** Of a READ that is asked for again, what is missing; and the operands of an atomic. */
function askForRest(packet: PacketSlot, request: SendRecord, first: number): void {
  packet.operands.set(request.operands);
  if (request.opcode !== RDMA_READ) return;
  packet.address = request.remoteAddress + first;
  packet.dmaBytes = request.messageBytes - first;
}

function flagsOf(pair: QueuePair, request: SendRecord, isLast: boolean): number {
  pair.sinceAckRequest++;
  const solicited = isLast && request.isSolicited === 1 ? FLAG_SOLICITED : 0;
  if (pair.opcodeBase !== 0) return solicited;
  const asks = isLast || pair.sinceAckRequest >= pair.ackRequestEvery;
  if (asks) pair.sinceAckRequest = 0;
  return (asks ? FLAG_ACK_REQUEST : 0) | solicited;
}

/** Place of a packet in its message, as bits. */
const IS_FIRST = 2;
const IS_LAST = 1;
const WQE_OPCODE_COUNT = 32;
/** RC opcodes of request packets by WQE opcode and place. */
const packetOpcodes = Uint8Array.from({ length: WQE_OPCODE_COUNT << 2 }, (_, at) =>
  packetOpcode(at >> 2, (at & IS_FIRST) !== 0, (at & IS_LAST) !== 0),
);

/** RC opcode of a request packet by its place in the message (IBTA vol 1, table 38); other services add their base. */
function packetOpcode(wqeOpcode: number, isFirst: boolean, isLast: boolean): number {
  switch (wqeOpcode) {
    case WqeOpcode.RDMA_READ:
      return Opcode.RC_RDMA_READ_REQUEST;
    case WqeOpcode.ATOMIC_CS:
      return Opcode.RC_COMPARE_SWAP;
    case WqeOpcode.ATOMIC_FA:
      return Opcode.RC_FETCH_ADD;
    case WqeOpcode.MASKED_ATOMIC_CS:
      return Opcode.RC_MASKED_COMPARE_SWAP;
    case WqeOpcode.MASKED_ATOMIC_FA:
      return Opcode.RC_MASKED_FETCH_ADD;
    case WqeOpcode.RDMA_WRITE:
    case WqeOpcode.RDMA_WRITE_IMM: {
      const withImmediate = wqeOpcode === WqeOpcode.RDMA_WRITE_IMM;
      if (isFirst && isLast)
        return withImmediate ? Opcode.RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_RDMA_WRITE_LAST_WITH_IMMEDIATE : Opcode.RC_RDMA_WRITE_LAST;
      return isFirst ? Opcode.RC_RDMA_WRITE_FIRST : Opcode.RC_RDMA_WRITE_MIDDLE;
    }
    case WqeOpcode.SEND_INVAL:
      if (isLast) return isFirst ? Opcode.RC_SEND_ONLY_WITH_INVALIDATE : Opcode.RC_SEND_LAST_WITH_INVALIDATE;
      return isFirst ? Opcode.RC_SEND_FIRST : Opcode.RC_SEND_MIDDLE;
    default: {
      const withImmediate = wqeOpcode === WqeOpcode.SEND_IMM;
      if (isFirst && isLast) return withImmediate ? Opcode.RC_SEND_ONLY_WITH_IMMEDIATE : Opcode.RC_SEND_ONLY;
      if (isLast) return withImmediate ? Opcode.RC_SEND_LAST_WITH_IMMEDIATE : Opcode.RC_SEND_LAST;
      return isFirst ? Opcode.RC_SEND_FIRST : Opcode.RC_SEND_MIDDLE;
    }
  }
}
