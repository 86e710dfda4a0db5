/**
 * The transmitter: sends complete packets to the wire port, one at a time.
 *
 *   response packets ─┐
 *                     ├─> choose (see below) ─> header words and payload ─┬─> wire port
 *   request packets  ─┘                                    to this very port:   └─> loopback
 *
 * Each queue is served in its own order: a packet whose payload is not yet on chip holds up those after it, but not the
 * other queue. While both have a packet that can be sent, `hca.responseBurstPackets` responses go, then one request: if
 * responses always went first, a side with enough responses would never send a request. Responses depend on nothing
 * that requests hold: a request is sent only when all of its payload is on chip, and yields to a response while the
 * loopback has no room. Congestion notifications, if the port has them, go before both.
 */

import { BlockCopier, type Cycles } from '../../../../base/index.ts';
import {
  BlockAccount,
  type BlockState,
  type ClockDomain,
  type LogicalProcess,
  NOT_STALLED,
  stallReasons,
} from '../../../../sim/index.ts';
import {
  ADDRESS_TOP_SHIFT,
  bytesBeforeGrh,
  FLAG_GRH,
  FLAG_RETRANSMISSION,
  FLOAT_VIRTUAL_ADDRESS,
  grhPlace,
  MANAGEMENT_LANE,
  Opcode,
  operandBytes,
  PACKET_PAYLOAD_OFFSET,
  PSN_MASK,
  psnDistance,
  WORD_AETH,
  WORD_DATAGRAM_PKEY,
  WORD_DATAGRAM_QKEY,
  WORD_DATAGRAM_SOURCE_QPN,
  WORD_DESTINATION_QPN,
  WORD_DMA_LENGTH,
  WORD_IMMEDIATE,
  WORD_LIDS,
  WORD_PSN,
  WORD_RKEY,
  xrcethWord,
} from '../../../../wire/index.ts';
import type { DmaReads } from '../../memory/index.ts';
import {
  ETHERNET_OPCODE_BASE,
  noRecord,
  type QpTable,
  type QueuePair,
  type SendRecord,
  type SendRecords,
  UD_OPCODE_BASE,
  XRC_SERVICE,
} from '../../objects/index.ts';
import type { PacketQueue } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { IbtaState, IbtaStates } from '../state/index.ts';
import { isLoopbackPath } from './grh.ts';
import { type IbtaPacket, isDatagram, wireOpcodeOf } from './ibta-packet.ts';
import type { LaneGate } from './lane-gate.ts';
import type { Loopback } from './loopback.ts';
import { MessageGaps, type MessageGapsConfig } from './message-gaps.ts';
import type { NetworkHeaders } from './network-headers.ts';
import type { PacketPort } from './packet-port.ts';
import { isOwnLid, type PortAddress } from './port-address.ts';

const { RC_ACKNOWLEDGE, RC_RDMA_READ_REQUEST } = Opcode;

const WORD_PAYLOAD = PACKET_PAYLOAD_OFFSET >> 2;
/** Value instead of a cycle: the packet is not complete. */
const NOT_COMPLETE = -1;
/** The port may have more of them, whose numbers follow these. */
const stalls = stallReasons('payload', 'wire', 'formation', 'loopback');
const STALL_OF_PORT = Object.keys(stalls).length;
const {
  payload: STALL_PAYLOAD,
  wire: STALL_WIRE,
  formation: STALL_FORMATION,
  loopback: STALL_LOOPBACK,
} = stalls;
/** Beyond the opcodes of the reliable connection. */
const RC_OPCODE_END = 0x20;

/** Ways out, as bits: a packet for a multicast group takes both. */
const WAY_CABLE = 1;
const WAY_LOOPBACK = 2;

export interface TransmitterPorts {
  readonly requester: PacketSource & {
    /** A request packet was handed to the wire port. */
    requestSent(packet: IbtaPacket, cycle: Cycles): void;
  };
  readonly responses: PacketSource & {
    /** The payload of a READ response could not be read. */
    payloadFailed(packet: IbtaPacket, cycle: Cycles): void;
  };
  readonly errors: {
    /** The payload of a request packet could not be read. */
    payloadFailed(request: SendRecord, pair: QueuePair, cycle: Cycles): void;
  };
}

/** A source of packets: the requester or the response engine. */
interface PacketSource {
  /** A slot of the queue became free. */
  slotFreed(cycle: Cycles): void;
}

/** Parts of the device that {@link Transmitter} uses. */
export interface TransmitterSetup {
  readonly lp: LogicalProcess;
  readonly domain: ClockDomain;
  readonly config: MessageGapsConfig &
    Pick<HcaConfig, 'transmitPacketCycles' | 'transmitBytesPerCycle' | 'responseBurstPackets'>;
  readonly dmaRead: DmaReads;
  /** The ports, and their addresses. */
  readonly ports: readonly PacketPort[];
  readonly addresses: readonly PortAddress[];
  readonly qps: QpTable;
  readonly states: IbtaStates;
  readonly sram: Uint8Array;
  readonly records: SendRecords;
  readonly requestPackets: PacketQueue<IbtaPacket>;
  readonly responsePackets: PacketQueue<IbtaPacket>;
  /** CNPs; left out where marks of congestion are not answered. */
  readonly notificationPackets: PacketQueue<IbtaPacket> | undefined;
  readonly loopback: Loopback;
  readonly laneGate: LaneGate;
  readonly networkHeaders: NetworkHeaders;
}

export class Transmitter {
  readonly account: BlockAccount;
  repeatedPacketCount = 0;
  droppedPacketCount = 0;
  readonly requests: PacketQueue<IbtaPacket>;
  readonly responses: PacketQueue<IbtaPacket>;
  readonly #notifications: PacketQueue<IbtaPacket> | undefined;
  readonly #lp: LogicalProcess;
  readonly #domain: ClockDomain;
  readonly #dmaRead: DmaReads;
  readonly #qps: QpTable;
  readonly #states: IbtaStates;
  readonly #networkHeaders: NetworkHeaders;
  readonly #ports: readonly PacketPort[];
  readonly #loopback: Loopback;
  readonly #laneGate: LaneGate;
  readonly #addresses: readonly PortAddress[];
  readonly #records: SendRecords;
  readonly #copier = new BlockCopier();
  readonly #sram: Uint8Array;
  /** Configured cycles per packet and payload bytes per cycle. */
  readonly #packetCycles: number;
  readonly #bytesPerCycle: Cycles;
  readonly #gaps: MessageGaps;
  /** Limit of responses sent in a row while a request could be sent, and their present number. */
  readonly #responseBurstPackets: number;
  #responsesInRow = 0;
  /** Both queues had a packet to send when one was chosen. */
  #isContended = false;
  readonly #stage: number;
  #requester!: TransmitterPorts['requester'];
  #responses!: TransmitterPorts['responses'];
  #errors!: TransmitterPorts['errors'];

  constructor(setup: TransmitterSetup) {
    const [{ holdReasons }] = setup.ports as readonly [PacketPort];
    this.account = new BlockAccount('transmitter', stallReasons(...Object.keys(stalls), ...holdReasons));
    this.#lp = setup.lp;
    this.#domain = setup.domain;
    this.#dmaRead = setup.dmaRead;
    this.#qps = setup.qps;
    this.#states = setup.states;
    this.#networkHeaders = setup.networkHeaders;
    this.#ports = setup.ports;
    this.#loopback = setup.loopback;
    this.#laneGate = setup.laneGate;
    this.#addresses = setup.addresses;
    this.#records = setup.records;
    this.#sram = setup.sram;
    this.#packetCycles = setup.config.transmitPacketCycles;
    this.#bytesPerCycle = setup.config.transmitBytesPerCycle;
    this.#gaps = new MessageGaps(setup.config);
    this.#responseBurstPackets = setup.config.responseBurstPackets;
    this.requests = setup.requestPackets;
    this.responses = setup.responsePackets;
    this.#notifications = setup.notificationPackets;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  /** Notes that the port may accept a packet again. */
  spaceFreed(): void {
    this.#domain.wakeAfter(this.#stage, this.#lp.nowPs);
  }

  connect({ requester, responses, errors }: TransmitterPorts): void {
    this.#requester = requester;
    this.#responses = responses;
    this.#errors = errors;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: PacketQueue<IbtaPacket>, packet: IbtaPacket, status: number, cycle: Cycles): void {
    packet.pendingReads--;
    if (status !== 0) packet.failure = status;
    if (packet !== queue.oldest || !packet.isComplete) return;
    this.wake(packet.readyCycle > cycle ? packet.readyCycle : cycle + 1);
  }

  reset(): void {
    this.#dmaRead.withdrawPlaces();
    this.requests.clear();
    this.responses.clear();
    this.#responsesInRow = 0;
  }

  /** Packets that have not left. */
  get heldCount(): number {
    const inQueues = this.requests.heldCount + this.responses.heldCount + this.#laneGate.heldCount;
    return inQueues + (this.#notifications?.heldCount ?? 0);
  }

  inspect(): BlockState {
    const { requests, responses } = this;
    return {
      requestPackets: requests.heldCount,
      responsePackets: responses.heldCount,
      responsesInRow: this.#responsesInRow,
    };
  }

  /** The stage: sends one packet. */
  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    const queue = this.#choose(cycle);
    if (queue === undefined) return;
    let outcome = this.#send(queue, cycle);
    if (outcome === STALL_LOOPBACK && queue === this.requests && this.#isContended)
      outcome = this.#send(this.responses, cycle);
    if (outcome !== NOT_STALLED) return this.account.stall(cycle, this.#reasonOf(outcome));
    this.account.serve(cycle, this.#packetCycles);
    this.#scheduleNext(cycle + this.#packetCycles);
  }

  /**
   * Returns the reason why the cable accepts no packet: it is busy, or the port has a reason of its own. Only the first
   * port, that of Ethernet, can have one.
   */
  #reasonOf(outcome: number): number {
    if (outcome !== STALL_WIRE) return outcome;
    const { holdReason } = this.#ports[0]!;
    return holdReason === -1 ? STALL_WIRE : STALL_OF_PORT + holdReason;
  }

  /** Sends the oldest packet of a queue. NOT_STALLED, or why it has to wait. */
  #send(queue: PacketQueue<IbtaPacket>, cycle: Cycles): number {
    const packet = queue.oldest;
    const isRepeated = this.#isRepeated(packet);
    const flags = packet.flags | (queue === this.#notifications ? 0 : packet.pair.migrationFlag);
    packet.flags = isRepeated ? flags | FLAG_RETRANSMISSION : flags & ~FLAG_RETRANSMISSION;
    const port = this.#ports[packet.pair.portIndex]!;
    const discarded = port.discardedCount;
    const outcome = this.#isPlain(packet)
      ? this.#sendByCable(packet, packet.flags, this.#laneOf(packet.pair), cycle)
      : this.#sendSpecial(packet, cycle);
    if (outcome !== NOT_STALLED) return outcome;
    if (queue === this.requests) this.#responsesInRow = 0;
    else if (this.#isContended) this.#responsesInRow++;
    if (this.#gaps.areThere) this.#gaps.left(packet, this.#leftCycle(packet));
    if (isRepeated) this.repeatedPacketCount++;
    else if (port.discardedCount === discarded) noteSent(packet, this.#states.rows[packet.pair.slot]!);
    this.#free(queue, packet.pair, cycle);
    if (packet.request !== noRecord) this.#requester.requestSent(packet, cycle);
    return NOT_STALLED;
  }

  /**
   * Whether a packet's PSN has left before, of a reliable connection's request, READ response or atomic result. One
   * that was queued and dropped before it left is not repeated; acknowledgements name PSNs and never are.
   */
  #isRepeated({ opcode, pair, psn, request }: IbtaPacket): boolean {
    if (opcode >= RC_OPCODE_END || opcode === RC_ACKNOWLEDGE) return false;
    const { unansweredPsn, unsentPsn } = this.#states.rows[pair.slot]!;
    return psnDistance(psn, request === noRecord ? unansweredPsn : unsentPsn) < 0;
  }

  /** Schedules the next attempt at `cycle`, or when the cable becomes free if that is later. */
  #scheduleNext(cycle: Cycles): void {
    const { responses, requests } = this;
    if (this.#notifications?.oldest.isComplete) this.wake(cycle);
    const packet = responses.oldest.isComplete ? responses.oldest : requests.oldest;
    if (!packet.isComplete) return;
    const fromPs = this.#domain.clock.edgePs(cycle);
    const isForCable = isFit(packet) && packet.readyCycle <= cycle && this.#isPlain(packet);
    const readyPs = isForCable
      ? this.#ports[packet.pair.portIndex]!.expectPacket(
          fromPs,
          this.#formedPs(cycle, packet.payloadBytes) - fromPs,
        )
      : fromPs;
    if (readyPs <= fromPs) return this.wake(cycle);
    this.account.stall(cycle, STALL_WIRE);
    this.#domain.wakeAfter(this.#stage, readyPs);
  }

  /** The queue to serve, or undefined: then the reason is accounted for and the next try is scheduled. */
  #choose(cycle: Cycles): PacketQueue<IbtaPacket> | undefined {
    const { responses, requests } = this;
    if (this.#notifications !== undefined && this.#isDue(this.#notifications, cycle))
      return this.#notifications;
    const response = this.#headReadyCycle(responses, cycle);
    const request = this.#headReadyCycle(requests, cycle);
    const isRequest = request !== NOT_COMPLETE && request <= cycle;
    if (response !== NOT_COMPLETE && response <= cycle) {
      this.#isContended = isRequest;
      return isRequest && this.#responsesInRow >= this.#responseBurstPackets ? requests : responses;
    }
    this.#isContended = false;
    if (isRequest) return requests;
    if (response !== NOT_COMPLETE || request !== NOT_COMPLETE) {
      this.account.stall(cycle, STALL_FORMATION);
      if (response !== NOT_COMPLETE) this.wake(response);
      if (request !== NOT_COMPLETE) this.wake(request);
    } else if (requests.isEmpty && responses.isEmpty) {
      this.account.rest(cycle);
    } else {
      this.account.stall(cycle, STALL_PAYLOAD);
    }
    return undefined;
  }

  /** Whether the oldest notification can be sent; if it is still being formed, the next try is scheduled. */
  #isDue(notifications: PacketQueue<IbtaPacket>, cycle: Cycles): boolean {
    const readyCycle = this.#headReadyCycle(notifications, cycle);
    if (readyCycle === NOT_COMPLETE) return false;
    this.#isContended = false;
    if (readyCycle > cycle) this.wake(readyCycle);
    return readyCycle <= cycle;
  }

  /**
   * Returns the cycle from which the oldest packet of a queue can be sent; NOT_COMPLETE while it is not complete. Drops
   * complete packets in front of it that are invalidated or could not be read.
   */
  #headReadyCycle(queue: PacketQueue<IbtaPacket>, cycle: Cycles): number {
    for (let packet = queue.oldest; packet.isComplete; packet = queue.oldest) {
      // A frame among requests is the frame transmitter's.
      if (packet.pair.opcodeBase === ETHERNET_OPCODE_BASE) return NOT_COMPLETE;
      if (isFit(packet)) return this.#gaps.areThere ? this.#readyAfterGap(packet) : packet.readyCycle;
      const { request, pair } = packet;
      this.droppedPacketCount++;
      if (isCurrent(packet)) {
        if (request === noRecord) this.#responses.payloadFailed(packet, cycle);
        else this.#errors.payloadFailed(request, pair, cycle);
      }
      this.#free(queue, pair, cycle);
    }
    return NOT_COMPLETE;
  }

  #readyAfterGap(packet: IbtaPacket): Cycles {
    return this.#gaps.readyCycle(packet, this.#formingCycles(packet.payloadBytes));
  }

  /** The loopback has room again. */
  loopbackSpace(): void {
    if (this.account.isStalledFor(STALL_LOOPBACK)) this.wake(this.#domain.cycle + 1);
  }

  #waysOf(packet: IbtaPacket): number {
    const { pair, request } = packet;
    return isDatagram(packet)
      ? this.#waysOfDatagram(request.number, this.#addresses[pair.portIndex]!)
      : this.#waysOfConnected(pair);
  }

  /** A connected QP's packets to this very port never see the cable. */
  #waysOfConnected(pair: QueuePair): number {
    const address = this.#addresses[pair.portIndex]!;
    const isToSelf =
      isOwnLid(address, pair.remoteLid) ||
      pair.isForcedBack === 1 ||
      (pair.hasGrh === 1 && this.#isLoopbackPath(pair));
    return isToSelf && address.isActive ? WAY_LOOPBACK : WAY_CABLE;
  }

  #isLoopbackPath({ slot, portIndex }: QueuePair): boolean {
    return isLoopbackPath(this.#addresses[portIndex]!, this.#qps.bytes, this.#qps.pathOf(slot));
  }

  /**
   * Returns the ways that a datagram takes. Subnet management works before the port is active. Packets to a multicast
   * group go to the cable and to the loopback.
   */
  #waysOfDatagram(record: number, address: PortAddress): number {
    const { datagrams } = this.#records;
    const lid = datagrams.destinationLid[record]!;
    const isOpen = address.isActive || datagrams.virtualLane[record] === MANAGEMENT_LANE;
    if (!isOpen) return WAY_CABLE;
    if (datagrams.isToGroup[record] === 1) return WAY_CABLE | WAY_LOOPBACK;
    if (isOwnLid(address, lid) || datagrams.isForcedBack[record] === 1) return WAY_LOOPBACK;
    return lid === address.embeddedManagerLid ? WAY_LOOPBACK : WAY_CABLE;
  }

  /** A packet as most are: of a connected QP, without GRH, for another port. */
  #isPlain({ opcode, pair }: IbtaPacket): boolean {
    return (
      opcode < UD_OPCODE_BASE &&
      pair.hasGrh === 0 &&
      pair.isForcedBack === 0 &&
      !isOwnLid(this.#addresses[pair.portIndex]!, pair.remoteLid)
    );
  }

  /** Sends any packet the ways it has to go: NOT_STALLED, or why it has to wait. */
  #sendSpecial(packet: IbtaPacket, cycle: Cycles): number {
    const { pair, request } = packet;
    const { datagrams } = this.#records;
    const isOfDatagram = isDatagram(packet);
    const ways = this.#waysOf(packet);
    const grh = isOfDatagram ? datagrams.hasGrh[request.number]! : pair.hasGrh;
    const lane = isOfDatagram ? this.#laneGate.laneOfDatagram(pair, request.number) : this.#laneOf(pair);
    const flags = packet.flags | (grh === 1 ? FLAG_GRH : 0);
    if ((ways & WAY_LOOPBACK) !== 0 && !this.#loopback.hasRoom) return STALL_LOOPBACK;
    if ((ways & WAY_CABLE) !== 0) {
      const outcome = this.#sendByCable(packet, flags, lane, cycle);
      if (outcome !== NOT_STALLED) return outcome;
    }
    if ((ways & WAY_LOOPBACK) !== 0) {
      const { bytes, words, floats } = this.#loopback;
      const { payloadBytes } = packet;
      const opcode = wireOpcodeOf(packet);
      const formedCycle = cycle + this.#formingCycles(payloadBytes);
      const loopLane = lane === MANAGEMENT_LANE ? lane : 0;
      const offset = this.#loopback.begin(opcode, payloadBytes, flags, loopLane, formedCycle, pair.portIndex);
      this.#fill(packet, flags, bytes, words, floats, offset);
    }
    return NOT_STALLED;
  }

  #laneOf(pair: QueuePair): number {
    return this.#laneGate.isOn ? this.#laneGate.laneOf(pair) : 0;
  }

  /** Returns the cycle by which the last byte of the packet just sent has left; by the cable if it uses both ways. */
  #leftCycle(packet: IbtaPacket): Cycles {
    const isByCable = this.#isPlain(packet) || (this.#waysOf(packet) & WAY_CABLE) !== 0;
    return isByCable
      ? this.#domain.clock.cycleAfter(this.#ports[packet.pair.portIndex]!.freePs)
      : this.#loopback.freeCycle;
  }

  /** Sends the packet by the cable. Returns NOT_STALLED, or STALL_WIRE if the cable accepts none now. */
  #sendByCable(packet: IbtaPacket, flags: number, lane: number, cycle: Cycles): number {
    const { payloadBytes } = packet;
    const opcode = wireOpcodeOf(packet);
    const port = this.#ports[packet.pair.portIndex]!;
    const formedPs = this.#formedPs(cycle, payloadBytes);
    const headers = port.outboundHeaders;
    headers.destinationQpn = this.#destinationQpn(packet);
    headers.psn = packet.psn;
    const offset = port.sendPacket(opcode, payloadBytes, flags, formedPs, lane);
    if (offset < 0) return STALL_WIRE;
    this.#fill(packet, flags, port.txBytes, port.txWords, port.txFloats, offset);
    port.packetFilled(offset, packet.pair.slot);
    return NOT_STALLED;
  }

  #destinationQpn(packet: IbtaPacket): number {
    const { pair, request } = packet;
    return isDatagram(packet) ? this.#records.datagrams.destinationQpn[request.number]! : pair.remoteQpn;
  }

  /** Instant at which a packet begun at `cycle` is formed. */
  #formedPs(cycle: Cycles, payloadBytes: number): number {
    const formedCycle = payloadBytes === 0 ? cycle : cycle + this.#formingCycles(payloadBytes);
    return this.#domain.clock.edgePs(formedCycle);
  }

  /** Cycles until all payload has passed from the packet buffer. */
  #formingCycles(payloadBytes: number): number {
    const width = this.#bytesPerCycle;
    return ((payloadBytes + width - 1) / width) | 0;
  }

  /** The packet's words, operands and payload, into the record at `offset`. */
  #fill(
    packet: IbtaPacket,
    flags: number,
    bytes: Uint8Array,
    words: Int32Array,
    floats: Float64Array,
    offset: number,
  ): void {
    const { payloadBytes, pair } = packet;
    const isResponse = packet.request === noRecord;
    const address = this.#addresses[pair.portIndex]!;
    const pkey = address.pkeys[pair.pkeyIndex]! | pair.serviceLevelBits;
    const word = offset >> 2;
    words[word + WORD_DESTINATION_QPN] = this.#destinationQpn(packet);
    words[word + WORD_PSN] = packet.psn;
    floats[(offset >> 3) + FLOAT_VIRTUAL_ADDRESS] = packet.address;
    words[word + WORD_RKEY] = packet.key;
    words[word + WORD_DMA_LENGTH] = packet.dmaBytes;
    // P_Key and service level occupy the word of a field that this direction lacks: an AETH or an immediate.
    words[word + WORD_AETH] = isResponse ? packet.aeth : pkey | (packet.addressTop << ADDRESS_TOP_SHIFT);
    words[word + WORD_IMMEDIATE] = isResponse ? pkey | packet.becn : packet.immediate;
    words[word + WORD_LIDS] = ((address.lid | pair.sourcePathBits) << 16) | pair.remoteLid;
    if (isDatagram(packet)) this.#fillDatagram(packet.request.number, words, word);
    if (pair.serviceBits === XRC_SERVICE && !isResponse) fillXrceth(packet, words, offset);
    if ((flags & FLAG_GRH) !== 0) this.#fillNetworkHeader(packet, bytes, offset);
    const to = offset + PACKET_PAYLOAD_OFFSET;
    if (payloadBytes > 0) this.#copier.copy(bytes, to, this.#sram, packet.payloadOffset, payloadBytes);
    else fillOperands(packet, words, word);
  }

  /** Fills the words in which a datagram's headers differ from those of a connected QP's packet. */
  #fillDatagram(record: number, words: Int32Array, word: number): void {
    const { datagrams } = this.#records;
    words[word + WORD_DATAGRAM_PKEY] = datagrams.pkeyAndLevel[record]!;
    words[word + WORD_DATAGRAM_QKEY] = datagrams.queueKey[record]!;
    words[word + WORD_DATAGRAM_SOURCE_QPN] = datagrams.sourceQpn[record]!;
    words[word + WORD_LIDS] = (datagrams.sourceLid[record]! << 16) | datagrams.destinationLid[record]!;
  }

  /** Writes the network header after the payload. */
  #fillNetworkHeader(packet: IbtaPacket, bytes: Uint8Array, offset: number): void {
    const opcode = wireOpcodeOf(packet);
    this.#networkHeaders.fill(packet, bytes, grhPlace(offset, bytesBeforeGrh(opcode, packet.payloadBytes)));
  }

  #free(queue: PacketQueue<IbtaPacket>, pair: QueuePair, cycle: Cycles): void {
    queue.close();
    pair.inPipelineCount--;
    if (queue === this.requests) this.#requester.slotFreed(cycle);
    else this.#responses.slotFreed(cycle);
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.requests.rebase(cycles);
    this.responses.rebase(cycles);
  }
}

/** A packet leaves for the first time: all PSNs up to its own have left, with a READ request those of its responses. */
function noteSent(packet: IbtaPacket, state: IbtaState): void {
  const { opcode, pair, psn } = packet;
  if (opcode >= RC_OPCODE_END || opcode === RC_ACKNOWLEDGE) return;
  if (packet.request === noRecord) state.unansweredPsn = (psn + 1) & PSN_MASK;
  else if (opcode !== RC_RDMA_READ_REQUEST) state.unsentPsn = (psn + 1) & PSN_MASK;
  else state.unsentPsn = (psn + Math.max(1, Math.ceil(packet.dmaBytes / pair.mtuBytes))) & PSN_MASK;
}

/** Responses answer for packets already accepted: they go out even if the QP has failed since. */
function isCurrent({ sendGeneration, request, pair, generation }: IbtaPacket): boolean {
  return (
    sendGeneration === (request === noRecord ? 0 : pair.sendGeneration) && generation === request.generation
  );
}

/** A complete packet that may be sent: still valid, and its payload was read. */
function isFit(packet: IbtaPacket): boolean {
  return isCurrent(packet) && packet.failure === 0;
}

/** Writes the target SRQ number of an XRC request after its payload. */
function fillXrceth({ opcode, payloadBytes, request }: IbtaPacket, words: Int32Array, offset: number): void {
  words[xrcethWord(offset, operandBytes(opcode) + payloadBytes)] = request.remoteSrqn;
}

/** Writes the operands to the place where other packets have their payload. */
function fillOperands({ opcode, operands }: IbtaPacket, words: Int32Array, word: number): void {
  const count = operandBytes(opcode) >> 2;
  for (let index = 0; index < count; index++) words[word + WORD_PAYLOAD + index] = operands[index]!;
}
