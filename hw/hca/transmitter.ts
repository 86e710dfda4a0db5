/**
 * The transmitter: sends complete packets to the wire port, one at a time.
 *
 *   response packets ─┐
 *                     ├─> choose (responses first) ─> header words and payload ─┬─> wire port
 *   request packets  ─┘                                    to this very port:   └─> loopback
 *
 * Each queue is served in its own order: a packet whose payload is not yet on chip holds up those behind it, but
 * not the other queue. Responses go first because a responder must make progress whatever its own requests wait for.
 */
import { BlockCopier } from '../../base/block-copy.ts';
import { BlockAccount } from '../../sim/index.ts';
import * as headersConstants from '../../wire/headers.ts';
import { operandBytes, packetBytesOf } from '../../wire/opcodes.ts';
import * as packetConstants from '../../wire/packet.ts';
import { grhPlace } from '../../wire/packet.ts';
import type { HcaCore } from './core.ts';
import { buildGrh, isPathToUs, setGrhLength } from './grh.ts';
import type { Loopback } from './loopback.ts';
import type { PacketPort } from './packet-port.ts';
import { isComplete, PacketQueue, type PacketSlot } from './packet-queue.ts';
import * as portAddress from './port-address.ts';
import { isOwnLid, type PortAddress } from './port-address.ts';
import * as qpTable from './qp-table.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SendRecords } from './send-records.ts';

// Copies: V8 folds constants of this module into its code, but looks imported ones up at every use.
const { GRH_BYTES } = headersConstants;
const { FLAG_GRH, FLAG_RETRANSMISSION, FLOAT_VIRTUAL_ADDRESS, MANAGEMENT_LANE } = packetConstants;
const { PACKET_PAYLOAD_OFFSET, WORD_AETH, WORD_DATAGRAM_PKEY, WORD_DATAGRAM_QKEY } = packetConstants;
const { WORD_DATAGRAM_SOURCE_QPN, WORD_DESTINATION_QPN, WORD_DMA_LENGTH, WORD_IMMEDIATE } = packetConstants;
const { WORD_LIDS, WORD_PSN, WORD_RKEY } = packetConstants;
const { FIRST_MULTICAST_LID, PERMISSIVE_LID } = portAddress;
const { UD_OPCODE_BASE } = qpTable;

const NEVER = Number.POSITIVE_INFINITY;
const STALL_PAYLOAD = 0;
const STALL_WIRE = 1;
const STALL_FORMATION = 2;
const STALL_LOOPBACK = 3;

/** Ways out, as bits: a packet for a multicast group takes both. */
const WAY_CABLE = 1;
const WAY_LOOPBACK = 2;

export interface TransmitterListener {
  /** A request packet was handed to the wire port. */
  requestSent(record: number, qp: number, isLast: number, cycle: number): void;
  /** The payload of a request packet could not be read. */
  payloadFailed(record: number, qp: number, cycle: number): void;
  /** A slot of the request queue, or of the response queue, became free. */
  requestSlotFreed(cycle: number): void;
  responseSlotFreed(cycle: number): void;
}

export class Transmitter {
  readonly account = new BlockAccount('transmitter', ['payload', 'wire', 'formation', 'loopback']);
  repeatedPacketCount = 0;
  droppedPacketCount = 0;
  readonly requests: PacketQueue;
  readonly responses: PacketQueue;
  readonly #core: HcaCore;
  readonly #port: PacketPort;
  readonly #loopback: Loopback;
  readonly #address: PortAddress;
  readonly #records: SendRecords;
  readonly #copier = new BlockCopier();
  readonly #stage: number;
  #listener: TransmitterListener | undefined;

  constructor(
    core: HcaCore,
    port: PacketPort,
    loopback: Loopback,
    address: PortAddress,
    records: SendRecords,
    requestSram: number,
    responseSram: number,
  ) {
    this.#core = core;
    this.#port = port;
    this.#loopback = loopback;
    this.#address = address;
    this.#records = records;
    this.requests = new PacketQueue(core.config.transmitBufferPackets, requestSram);
    this.responses = new PacketQueue(core.config.responseBufferPackets, responseSram);
    this.#stage = core.domain.addStage((cycle) => this.#run(cycle));
    port.onSpace(() => core.domain.wakeAfter(this.#stage, core.lp.nowPs));
    loopback.onSpace(() => this.#loopbackSpace());
  }

  connect(listener: TransmitterListener): void {
    this.#listener = listener;
  }

  wake(cycle: number): void {
    this.#core.domain.wake(this.#stage, cycle);
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue, slot: number, status: number, cycle: number): void {
    const packet = queue.rows[slot]!;
    packet.pendingReads--;
    if (status !== 0) packet.failure = status;
    if (packet !== queue.oldest || !isComplete(packet)) return;
    this.wake(Math.max(cycle + 1, packet.readyCycle));
  }

  reset(): void {
    this.requests.clear();
    this.responses.clear();
  }

  #run(cycle: number): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const queue = this.#choose(cycle);
    if (queue === undefined) return;
    const packet = queue.oldest;
    const { opcode } = packet;
    const isDatagram = opcode >= UD_OPCODE_BASE;
    const pair = this.#core.qps.rows[packet.qp]!;
    const ways = isDatagram ? this.#waysOfDatagram(packet.record) : this.#waysOf(packet.qp, pair);
    const grh = isDatagram ? this.#records.datagrams.hasGrh[packet.record]! : pair.hasGrh;
    const lane = isDatagram ? this.#records.datagrams.virtualLane[packet.record]! : 0;
    const grhFlag = grh === 1 ? FLAG_GRH : 0;
    if ((ways & WAY_LOOPBACK) !== 0 && !this.#loopback.hasRoom)
      return this.account.stall(cycle, STALL_LOOPBACK);
    if (!this.#send(queue, packet, pair, ways, grhFlag, lane, cycle))
      return this.account.stall(cycle, STALL_WIRE);
    const busyCycles = this.#core.config.transmitPacketCycles;
    this.account.serve(cycle, busyCycles);
    if (isComplete(this.responses.oldest) || isComplete(this.requests.oldest)) this.wake(cycle + busyCycles);
  }

  /** The queue to serve, or undefined: then the reason is accounted for and the next look is arranged. */
  #choose(cycle: number): PacketQueue | undefined {
    const { responses, requests } = this;
    const response = isComplete(responses.oldest) ? this.#headReadyCycle(responses, cycle) : NEVER;
    const request = isComplete(requests.oldest) ? this.#headReadyCycle(requests, cycle) : NEVER;
    if (response <= cycle) return responses;
    if (request <= cycle) return requests;
    const next = request < response ? request : response;
    if (next < NEVER) {
      this.account.stall(cycle, STALL_FORMATION);
      this.wake(next);
    } else if (requests.isEmpty && responses.isEmpty) {
      this.account.rest(cycle);
    } else {
      this.account.stall(cycle, STALL_PAYLOAD);
    }
    return undefined;
  }

  /**
   * Cycle from which the oldest packet of a queue can be sent; Infinity while it is not complete. Complete ones in
   * front of it that are void or could not be read are dropped.
   */
  #headReadyCycle(queue: PacketQueue, cycle: number): number {
    for (let packet = queue.oldest; isComplete(packet); packet = queue.oldest) {
      const { qp, record } = packet;
      // Responses answer for packets already accepted: they go out even if the QP has failed since.
      const isCurrent = packet.epoch === (record === -1 ? 0 : this.#core.qps.rows[qp]!.epoch);
      if (isCurrent && packet.failure === 0) return packet.readyCycle;
      this.droppedPacketCount++;
      if (isCurrent && record !== -1) this.#listener!.payloadFailed(record, qp, cycle);
      this.#free(queue, this.#core.qps.rows[qp]!, cycle);
    }
    return NEVER;
  }

  #loopbackSpace(): void {
    const { domain } = this.#core;
    if (this.account.isStalledFor(STALL_LOOPBACK)) this.wake(domain.cycle + 1);
  }

  /** A connected QP's packets to this very port never see the cable. */
  #waysOf(qp: number, pair: QueuePair): number {
    const { qps } = this.#core;
    const address = this.#address;
    const isToSelf =
      isOwnLid(address, pair.remoteLid) ||
      pair.isForcedBack === 1 ||
      (pair.hasGrh === 1 && isPathToUs(address, qps.bytes, qps.pathOf(qp)));
    return isToSelf && address.isActive ? WAY_LOOPBACK : WAY_CABLE;
  }

  /** Subnet management goes on before the port is active. What is for a group is for others and for us. */
  #waysOfDatagram(record: number): number {
    const { datagrams } = this.#records;
    const lid = datagrams.destinationLid[record]!;
    const isOpen = this.#address.isActive || datagrams.virtualLane[record] === MANAGEMENT_LANE;
    if (!isOpen) return WAY_CABLE;
    if (isOwnLid(this.#address, lid) || datagrams.isForcedBack[record] === 1) return WAY_LOOPBACK;
    return lid >= FIRST_MULTICAST_LID && lid !== PERMISSIVE_LID ? WAY_CABLE | WAY_LOOPBACK : WAY_CABLE;
  }

  /** Sends the packet, and frees its slot. False: the cable takes none now. */
  #send(
    queue: PacketQueue,
    packet: PacketSlot,
    pair: QueuePair,
    ways: number,
    grhFlag: number,
    lane: number,
    cycle: number,
  ): boolean {
    const { opcode, payloadBytes, record, isLast, qp } = packet;
    const flags = packet.flags | grhFlag | (packet.isRepeat === 1 ? FLAG_RETRANSMISSION : 0);
    const formedCycle =
      payloadBytes === 0 ? cycle : cycle + Math.ceil(payloadBytes / this.#core.config.transmitBytesPerCycle);
    if ((ways & WAY_CABLE) !== 0) {
      const formedPs = this.#core.domain.clock.edgePs(formedCycle);
      const port = this.#port;
      const offset = port.sendPacket(opcode, payloadBytes, flags, formedPs, lane);
      if (offset < 0) return false;
      this.#fill(queue, packet, pair, port.txBytes, port.txWords, port.txFloats, offset);
      if (grhFlag !== 0) this.#fillGrh(packet, port.txBytes, offset);
    }
    if ((ways & WAY_LOOPBACK) !== 0) {
      const { bytes, words, floats } = this.#loopback;
      const offset = this.#loopback.begin(opcode, payloadBytes, flags, lane, formedCycle);
      this.#fill(queue, packet, pair, bytes, words, floats, offset);
      if (grhFlag !== 0) this.#fillGrh(packet, bytes, offset);
    }
    if (packet.isRepeat === 1) this.repeatedPacketCount++;
    this.#free(queue, pair, cycle);
    if (record !== -1) this.#listener!.requestSent(record, qp, isLast, cycle);
    return true;
  }

  /** The packet's words, operands and payload, into the record at `offset`. */
  #fill(
    queue: PacketQueue,
    packet: PacketSlot,
    pair: QueuePair,
    bytes: Uint8Array,
    words: Int32Array,
    floats: Float64Array,
    offset: number,
  ): void {
    const { opcode, payloadBytes } = packet;
    const word = offset >> 2;
    words[word + WORD_DESTINATION_QPN] = pair.remoteQpn;
    words[word + WORD_PSN] = packet.psn;
    floats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS] = packet.address;
    words[word + WORD_RKEY] = packet.key;
    words[word + WORD_DMA_LENGTH] = packet.dmaBytes;
    words[word + WORD_AETH] = packet.aeth;
    words[word + WORD_IMMEDIATE] = packet.immediate;
    words[word + WORD_LIDS] = ((this.#address.lid | pair.sourcePathBits) << 16) | pair.remoteLid;
    if (opcode >= UD_OPCODE_BASE) this.#fillDatagram(packet.record, words, word);
    const operandWords = operandBytes(opcode) >> 2;
    if (operandWords > 0) this.#fillOperands(queue, packet.slot, operandWords, words, word);
    if (payloadBytes === 0) return;
    const to = offset + PACKET_PAYLOAD_OFFSET;
    this.#copier.copy(bytes, to, this.#core.sram, packet.payloadOffset, payloadBytes);
  }

  #fillOperands(queue: PacketQueue, slot: number, count: number, words: Int32Array, word: number): void {
    const payload = word + (PACKET_PAYLOAD_OFFSET >> 2);
    for (let index = 0; index < count; index++) words[payload + index] = queue.operands[slot * 4 + index]!;
  }

  /** The words in which a datagram's headers differ from those of a connected QP's packet. */
  #fillDatagram(record: number, words: Int32Array, word: number): void {
    const { datagrams } = this.#records;
    words[word + WORD_DESTINATION_QPN] = datagrams.destinationQpn[record]!;
    words[word + WORD_DATAGRAM_PKEY] = datagrams.pkeyAndLevel[record]!;
    words[word + WORD_DATAGRAM_QKEY] = datagrams.queueKey[record]!;
    words[word + WORD_DATAGRAM_SOURCE_QPN] = datagrams.sourceQpn[record]!;
    words[word + WORD_LIDS] = (datagrams.sourceLid[record]! << 16) | datagrams.destinationLid[record]!;
  }

  /** The GRH: of the address vector or software's own, or made from the QP's path. */
  #fillGrh(packet: PacketSlot, bytes: Uint8Array, offset: number): void {
    const { qps } = this.#core;
    const { opcode, payloadBytes } = packet;
    const grh = grhPlace(offset, operandBytes(opcode) + payloadBytes);
    if (opcode >= UD_OPCODE_BASE) {
      const from = packet.record * GRH_BYTES;
      const all = this.#records.datagrams.grh;
      for (let byte = 0; byte < GRH_BYTES; byte++) bytes[grh + byte] = all[from + byte]!;
    } else {
      buildGrh(qps.bytes, qps.pathOf(packet.qp), this.#address, bytes, grh);
    }
    setGrhLength(bytes, grh, packetBytesOf(opcode, payloadBytes, true));
  }

  #free(queue: PacketQueue, pair: QueuePair, cycle: number): void {
    queue.close();
    pair.inPipelineCount--;
    if (queue === this.requests) this.#listener!.requestSlotFreed(cycle);
    else this.#listener!.responseSlotFreed(cycle);
  }
}
