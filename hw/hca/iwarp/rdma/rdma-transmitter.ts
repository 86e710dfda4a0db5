/**
 * Writes the FPDUs of complete packets into TCP's retransmission memory, one at a time, and hands them to TCP:
 *
 *     ready-to-receive message, Terminate ─┐
 *     READ responses ──────────────────────┼─► header, payload, markers, CRC ─► TcpStreams.send
 *     requests ────────────────────────────┘
 *
 * Each queue is served in its own order. While both have a packet, `hca.responseBurstPackets` responses go, then one request. An FPDU is written
 * when its time has passed: the order of FPDUs in a stream is that in which TCP receives them.
 */
import { TcpEvent, WqeOpcode } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import { MARKER_DISTANCE_BYTES, RdmapOpcode } from '../../../../protocol/iwarp/index.ts';
import { BlockAccount, type BlockState, type ClockDomain, stallReasons } from '../../../../sim/index.ts';
import type { DmaReads } from '../../memory/index.ts';
import { ETHERNET_OPCODE_BASE, noRecord, type QueuePair, type SendRecord } from '../../objects/index.ts';
import type { PacketQueue, PacketSlot } from '../../packets/index.ts';
import type { HcaConfig } from '../../parameters.ts';
import type { OutboundEnd } from '../../transport/index.ts';
import type { IwarpConfig } from '../iwarp-parameters.ts';
import type { TcpStreams } from '../streams.ts';
import { OWN_MESSAGE_BYTES, type RdmaConnection } from './rdma-connection.ts';
import type { RdmaConnections } from './rdma-connections.ts';
import type { RdmaPacket } from './rdma-packet.ts';

const { RDMA_READ, RDMA_WRITE, RDMA_WRITE_IMM, SEND_INVAL } = WqeOpcode;

const { payload: STALL_PAYLOAD, formation: STALL_FORMATION } = stallReasons('payload', 'formation');

export interface RdmaTransmitterPorts {
  readonly streams: TcpStreams;
  readonly connections: RdmaConnections;
  readonly requester: {
    slotFreed(cycle: Cycles): void;
    requestSent(packet: PacketSlot, cycle: Cycles): void;
  };
  readonly responder: {
    slotFreed(cycle: Cycles): void;
    payloadFailed(packet: RdmaPacket, cycle: Cycles): void;
  };
  readonly errors: { payloadFailed(request: SendRecord, pair: QueuePair, cycle: Cycles): void };
  /** Waits for the port, as frames of TCP do. */
  readonly link: { spaceFreed(): void };
}

/** Parts of the device that {@link RdmaTransmitter} uses. */
export interface RdmaTransmitterSetup {
  readonly domain: ClockDomain;
  readonly config: Pick<HcaConfig, 'transmitPacketCycles' | 'transmitBytesPerCycle' | 'responseBurstPackets'>;
  readonly iwarp: Pick<IwarpConfig, 'crcBytesPerCycle' | 'markerCycles'>;
  readonly dmaRead: DmaReads;
  readonly sram: Uint8Array;
  readonly requestPackets: PacketQueue<RdmaPacket>;
  readonly responsePackets: PacketQueue<RdmaPacket>;
}

type Queue = PacketQueue<RdmaPacket>;

export class RdmaTransmitter implements OutboundEnd {
  readonly account = new BlockAccount('transmitter', stallReasons('payload', 'formation'));
  droppedPacketCount = 0;
  readonly #domain: ClockDomain;
  readonly #config: RdmaTransmitterSetup['config'];
  readonly #iwarp: RdmaTransmitterSetup['iwarp'];
  readonly #dmaRead: DmaReads;
  readonly #sram: Uint8Array;
  readonly #requests: Queue;
  readonly #responses: Queue;
  readonly #stage: number;
  #ports!: RdmaTransmitterPorts;
  /** Queue whose oldest packet is being written. */
  #writing: Queue | undefined = undefined;
  #responsesInRow = 0;
  /** Streams with a message of their own to send, each once. */
  #due: RdmaConnection[] = [];

  constructor(setup: RdmaTransmitterSetup) {
    this.#domain = setup.domain;
    this.#config = setup.config;
    this.#iwarp = setup.iwarp;
    this.#dmaRead = setup.dmaRead;
    this.#sram = setup.sram;
    this.#requests = setup.requestPackets;
    this.#responses = setup.responsePackets;
    this.#stage = setup.domain.addStage(this.#run, this);
  }

  connect(ports: RdmaTransmitterPorts): void {
    this.#ports = ports;
  }

  wake(cycle: Cycles): void {
    this.#domain.wake(this.#stage, cycle);
  }

  spaceFreed(): void {
    this.#ports.link.spaceFreed();
  }

  /** A DMA read into a slot is complete. */
  payloadArrived(queue: Queue, packet: RdmaPacket, status: number, cycle: Cycles): void {
    packet.pendingReads--;
    if (status !== 0) packet.failure = status;
    if (packet !== queue.oldest || !packet.isComplete) return;
    this.wake(packet.readyCycle > cycle ? packet.readyCycle : cycle + 1);
  }

  /** The stream has a ready-to-receive message or a Terminate to send. */
  messageDue(connection: RdmaConnection, cycle: Cycles): void {
    if (!this.#due.includes(connection)) this.#due.push(connection);
    this.wake(cycle + 1);
  }

  /** Packets that have not left. */
  get heldCount(): number {
    return this.#requests.heldCount + this.#responses.heldCount;
  }

  reset(): void {
    this.#dmaRead.withdrawPlaces();
    this.#requests.clear();
    this.#responses.clear();
    for (const { rows } of [this.#requests, this.#responses])
      for (const packet of rows) packet.segment = undefined;
    this.#writing = undefined;
    this.#responsesInRow = 0;
    this.#due = [];
  }

  inspect(): BlockState {
    return {
      requestPackets: this.#requests.heldCount,
      responsePackets: this.#responses.heldCount,
      isWriting: this.#writing !== undefined,
      responsesInRow: this.#responsesInRow,
      due: this.#due.map(({ number }) => number),
    };
  }

  /** A new epoch: see EdgeKeeper. */
  rebase(cycles: number): void {
    this.#requests.rebase(cycles);
    this.#responses.rebase(cycles);
  }

  #run(cycle: Cycles): void {
    if (this.account.freeCycle > cycle) return this.wake(this.account.freeCycle);
    if (this.#writing !== undefined) this.#write(this.#writing, cycle);
    if (this.#due.length > 0 && this.#sendDue(cycle)) {
      this.account.serve(cycle, this.#config.transmitPacketCycles);
      return this.wake(cycle + this.#config.transmitPacketCycles);
    }
    const queue = this.#choose(cycle);
    if (queue === undefined) return;
    const { oldest } = queue;
    const busyCycles = this.#cyclesOf(oldest);
    if (oldest.isLast && oldest.request !== noRecord) oldest.request.stream.framedCycle = cycle;
    this.#writing = queue;
    this.account.serve(cycle, busyCycles);
    this.wake(cycle + busyCycles);
  }

  /** Cycles of the header, the payload, its CRC and the markers in it. */
  #cyclesOf({ payloadBytes, connection }: RdmaPacket): number {
    const { transmitPacketCycles, transmitBytesPerCycle } = this.#config;
    const { traits } = connection!;
    const copyCycles = Math.ceil(payloadBytes / transmitBytesPerCycle);
    const crcCycles = traits.hasCrc ? Math.ceil(payloadBytes / this.#iwarp.crcBytesPerCycle) : 0;
    const markers = traits.sendsMarkers ? Math.floor(payloadBytes / MARKER_DISTANCE_BYTES) : 0;
    const pathCycles = Math.max(copyCycles, crcCycles) + markers * this.#iwarp.markerCycles;
    return Math.max(transmitPacketCycles, pathCycles);
  }

  /** The FPDU of the oldest packet of `queue` is complete, unless its stream has ended meanwhile. */
  #write(queue: Queue, cycle: Cycles): void {
    this.#writing = undefined;
    const packet = queue.oldest;
    if (!isFit(packet)) return this.#drop(queue, packet, cycle);
    const connection = packet.connection!;
    if (queue === this.#responses) this.#writeResponse(packet, connection, cycle);
    else this.#writeRequest(packet, connection, cycle);
    this.#free(queue, packet, cycle);
    if (packet.request !== noRecord) this.#ports.requester.requestSent(packet, cycle);
  }

  #writeRequest(packet: RdmaPacket, connection: RdmaConnection, cycle: Cycles): void {
    const { request } = packet;
    if (request.opcode === RDMA_READ) return connection.writeReadRequest(packet, cycle);
    if (request.isReadOrAtomic === 1) return connection.writeAtomicRequest(packet, cycle);
    if (packet.index === 0) beginRequest(connection, request);
    if (request.opcode === RDMA_WRITE_IMM && packet.isLast)
      connection.writeLastWithImmediate(packet, this.#sram, cycle);
    else connection.writeSegment(connection.request, packet, this.#sram, cycle);
  }

  #writeResponse(packet: RdmaPacket, connection: RdmaConnection, cycle: Cycles): void {
    const { response, sender, receiver, reads } = connection;
    const read = packet.read!;
    if (read.isAtomic) {
      connection.writeAtomicResponse(packet, read, cycle);
      reads.pop();
      return receiver.requestServed();
    }
    const { sinkTag, sinkOffset, sinkOffsetTop, lengthBytes } = read.request;
    if (packet.firstByte === 0)
      sender.beginTagged(
        response,
        RdmapOpcode.READ_RESPONSE,
        sinkTag,
        sinkOffset,
        sinkOffsetTop,
        lengthBytes,
      );
    connection.writeSegment(response, packet, this.#sram, cycle);
    if (!response.isWritten) return;
    reads.pop();
    receiver.requestServed();
  }

  /** Sends a message of a stream's own for which there is room. */
  #sendDue(cycle: Cycles): boolean {
    for (const connection of this.#due) {
      const isLive = this.#ports.connections.isLive(connection);
      if (isLive && !connection.hasRoom(OWN_MESSAGE_BYTES)) continue;
      this.#due = this.#due.filter((other) => other !== connection);
      if (!isLive) continue;
      if (connection.isTerminateDue) this.#terminate(connection, cycle);
      else if (connection.isReadyDue) this.#beReady(connection, cycle);
      return true;
    }
    return false;
  }

  #terminate(connection: RdmaConnection, cycle: Cycles): void {
    const { streams } = this.#ports;
    connection.isTerminateDue = false;
    connection.isReadyDue = false;
    connection.writeTerminate(cycle);
    streams.terminated(connection.number, TcpEvent.TERMINATE_SENT, connection.failure);
    streams.close(connection.number, cycle);
  }

  #beReady(connection: RdmaConnection, cycle: Cycles): void {
    connection.isReadyDue = false;
    connection.maySend = true;
    connection.writeReady(cycle);
    this.#ports.connections.sendingBegins(connection, cycle);
  }

  /** The queue to serve, or undefined: then the reason is accounted for. */
  #choose(cycle: Cycles): Queue | undefined {
    const requests = this.#requests;
    const responses = this.#responses;
    const hasResponse = this.#isReady(responses, cycle);
    const hasRequest = this.#isReady(requests, cycle);
    if (hasResponse && hasRequest) {
      const isRequests = this.#responsesInRow >= this.#config.responseBurstPackets;
      this.#responsesInRow = isRequests ? 0 : this.#responsesInRow + 1;
      return isRequests ? requests : responses;
    }
    this.#responsesInRow = 0;
    if (hasResponse || hasRequest) return hasResponse ? responses : requests;
    const isForming = [responses, requests].some(({ oldest }) => isOurs(oldest) && oldest.isComplete);
    if (isForming) this.account.stall(cycle, STALL_FORMATION);
    else if (isOurs(requests.oldest) || isOurs(responses.oldest)) this.account.stall(cycle, STALL_PAYLOAD);
    else this.account.rest(cycle);
    return undefined;
  }

  /** Whether the oldest packet of a queue can be written. Drops complete packets in front of it that must not leave. */
  #isReady(queue: Queue, cycle: Cycles): boolean {
    for (let packet = queue.oldest; packet.isComplete; packet = queue.oldest) {
      // A frame among requests is the frame transmitter's.
      if (packet.pair.opcodeBase === ETHERNET_OPCODE_BASE) return false;
      if (!isFit(packet)) {
        this.#drop(queue, packet, cycle);
        continue;
      }
      if (packet.readyCycle <= cycle) return true;
      this.wake(packet.readyCycle);
      return false;
    }
    return false;
  }

  #drop(queue: Queue, packet: RdmaPacket, cycle: Cycles): void {
    const { request, pair } = packet;
    this.droppedPacketCount++;
    const isUnreadable = isCurrent(packet) && packet.failure !== 0;
    this.#free(queue, packet, cycle);
    if (!isUnreadable) return;
    if (request === noRecord) this.#ports.responder.payloadFailed(packet, cycle);
    else this.#ports.errors.payloadFailed(request, pair, cycle);
  }

  #free(queue: Queue, packet: RdmaPacket, cycle: Cycles): void {
    packet.discard();
    queue.close();
    packet.pair.inPipelineCount--;
    if (queue === this.#requests) this.#ports.requester.slotFreed(cycle);
    else this.#ports.responder.slotFreed(cycle);
  }
}

/** A SEND in one of its four forms, or a WRITE, with immediate data or without. */
function beginRequest({ sender, request: message }: RdmaConnection, request: SendRecord): void {
  const { opcode, messageBytes, isSolicited, immediate } = request;
  if (opcode === RDMA_WRITE || opcode === RDMA_WRITE_IMM) {
    const { remoteKey, remoteAddress, remoteAddressTop } = request;
    sender.beginTagged(message, RdmapOpcode.WRITE, remoteKey, remoteAddress, remoteAddressTop, messageBytes);
    return;
  }
  const hasKey = opcode === SEND_INVAL;
  const plain = hasKey ? RdmapOpcode.SEND_INVALIDATE : RdmapOpcode.SEND;
  const solicited = hasKey ? RdmapOpcode.SEND_SOLICITED_INVALIDATE : RdmapOpcode.SEND_SOLICITED;
  sender.beginSend(
    message,
    isSolicited === 1 ? solicited : plain,
    hasKey ? immediate >>> 0 : 0,
    messageBytes,
  );
}

/** A slot in use that holds no frame of a ring. */
const isOurs = ({ slot, pair }: RdmaPacket): boolean => slot >= 0 && pair.opcodeBase !== ETHERNET_OPCODE_BASE;

/** True if the stream of the packet, and its request, have not ended. */
function isCurrent(packet: RdmaPacket): boolean {
  const { segment, connection, request, pair, sendGeneration, generation } = packet;
  if (segment === undefined || !connection!.maySend) return false;
  return (
    sendGeneration === (request === noRecord ? 0 : pair.sendGeneration) && generation === request.generation
  );
}

/** A complete packet that may be sent: still valid, and its payload was read. */
const isFit = (packet: RdmaPacket): boolean => isCurrent(packet) && packet.failure === 0;
