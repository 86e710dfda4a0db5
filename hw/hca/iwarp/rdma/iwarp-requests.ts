/**
 * The iWARP transport's side of requests: a packet is a DDP segment, and has its place in TCP's retransmission memory from its opening on. A QP
 * that may not send yet, or whose connection has no room, is parked before a segment is opened: others use the queue meanwhile.
 */
import { CqeSyndrome, WqeOpcode } from '../../../../abi/index.ts';
import type { Cycles } from '../../../../base/index.ts';
import { taggedHeader, untaggedHeader } from '../../../../protocol/iwarp/index.ts';
import type { ClockDomain } from '../../../../sim/index.ts';
import type { CostAttribution } from '../../costs/index.ts';
import type { QpSlot, QueuePair, SendRecord } from '../../objects/index.ts';
import { isReadOrAtomic, NOT_PARKED, PARKED_READ_LIMIT } from '../../send-queue/index.ts';
import type { RequestLifecycle, RequestTransport, SentMessages } from '../../transport/index.ts';
import { OWN_MESSAGE_BYTES, REQUEST_NUMBER_MASK } from './rdma-connection.ts';
import type { RdmaConnections } from './rdma-connections.ts';
import type { RdmaPacket } from './rdma-packet.ts';

const { BIND_MW, FMR, LOCAL_INVAL, NOP, RDMA_READ, RDMA_WRITE, SEND, SEND_INVAL } = WqeOpcode;

/** Messages of RFC 5040, and what is carried out on this side. Immediate data and atomics need RFC 7306. */
const executable: ReadonlySet<number> = new Set<number>([
  ...[RDMA_WRITE, RDMA_READ, SEND, SEND_INVAL],
  ...[NOP, LOCAL_INVAL, FMR, BIND_MW],
]);
/** A READ names its sink by one STag. */
const SINKS_MAX = 1;
/** A message is shorter (RFC 5041, 4). */
const MESSAGE_BYTES_END = 2 ** 32;

export interface IwarpRequestPorts {
  readonly ends: SentMessages;
}

/** Parts of the device that {@link IwarpRequests} uses. */
export interface IwarpRequestsSetup {
  readonly domain: ClockDomain;
  readonly connections: RdmaConnections;
  /** Records of requests that may be under way. */
  readonly recordCount: number;
  readonly costs: CostAttribution | undefined;
}

export class IwarpRequests implements RequestTransport<RdmaPacket>, RequestLifecycle {
  readonly windowStall = 'sendBuffer';
  readonly #domain: ClockDomain;
  readonly #connections: RdmaConnections;
  readonly #costs: CostAttribution | undefined;
  /** By record: number of its first segment. */
  readonly #firstNumber: Int32Array;
  #ends!: SentMessages;

  constructor({ domain, connections, recordCount, costs }: IwarpRequestsSetup) {
    this.#domain = domain;
    this.#connections = connections;
    this.#costs = costs;
    this.#firstNumber = new Int32Array(recordCount);
  }

  connect({ ends }: IwarpRequestPorts): void {
    this.#ends = ends;
  }

  /** The streams grow as {@link RdmaConnections}. */
  slotsGrown(): void {}

  forget(slot: QpSlot): void {
    this.#connections.forget(slot);
  }

  /** ORD is no power of two, as the field of a context is that the requester observes; a ready-to-receive READ counts, too. */
  reasonToPark({ slot, readsOutstanding }: QueuePair, opcode: number): number {
    const connection = this.#connections.rows[slot];
    if (connection === undefined || !isReadOrAtomic(opcode)) return NOT_PARKED;
    const { outstanding } = connection.receiver;
    const isAtLimit = readsOutstanding >= connection.traits.outboundReads || outstanding.isFull;
    return isAtLimit ? PARKED_READ_LIMIT : NOT_PARKED;
  }

  refusalOf(pair: QueuePair, { opcode, messageBytes, segmentCount, isInline }: SendRecord): number {
    if (!executable.has(opcode)) return CqeSyndrome.LOCAL_QP_OP_ERR;
    if (messageBytes > pair.messageBytesMax || messageBytes >= MESSAGE_BYTES_END)
      return CqeSyndrome.LOCAL_LENGTH_ERR;
    const isRead = opcode === RDMA_READ;
    return isRead && (segmentCount > SINKS_MAX || isInline === 1) ? CqeSyndrome.LOCAL_QP_OP_ERR : 0;
  }

  /** A READ is one packet, whatever its response is. */
  packetBytes({ slot }: QueuePair, opcode: number): number {
    const connection = this.#connections.rows[slot];
    if (opcode === RDMA_READ || connection === undefined) return MESSAGE_BYTES_END;
    return connection.payloadBytesMax(headerBytesOf(opcode));
  }

  begin({ slot }: QueuePair, { number, packetCount, stream }: SendRecord): boolean {
    const connection = this.#connections.rows[slot];
    if (connection === undefined || !connection.maySend) return false;
    const first = connection.nextRequestNumber;
    this.#firstNumber[number] = first;
    connection.nextRequestNumber = (first + packetCount) & REQUEST_NUMBER_MASK;
    this.#costs?.numbered(connection.pair, first, packetCount);
    stream.begin();
    return true;
  }

  /** Number of the first segment of a request. */
  firstNumberOf({ number }: SendRecord): number {
    return this.#firstNumber[number] ?? 0;
  }

  hasRoom({ slot }: QueuePair, { opcode, stream }: SendRecord, payloadBytes: number): boolean {
    const connection = this.#connections.rows[slot];
    const hasRoom = connection?.hasRoom(this.#segmentBytes(slot, opcode, payloadBytes)) === true;
    if (!hasRoom) stream.blocked(this.#domain.cycle);
    return hasRoom;
  }

  opened(
    packet: RdmaPacket,
    { slot }: QueuePair,
    { opcode, stream }: SendRecord,
    payloadBytes: number,
  ): void {
    packet.read = undefined;
    stream.opened(this.#domain.cycle);
    this.#connections.rows[slot]!.open(packet, this.#segmentBytes(slot, opcode, payloadBytes));
  }

  /** The transmitter writes the header with the FPDU. */
  seal(): void {}

  /** TCP has accepted a segment: with the last one a SEND or WRITE is complete, a READ is not. */
  sent({ request, pair, isLast }: RdmaPacket, cycle: Cycles): void {
    if (request.opcode !== RDMA_READ) this.#ends.completeOnSend(request, pair, isLast, cycle);
  }

  #segmentBytes(slot: QpSlot, opcode: number, payloadBytes: number): number {
    if (opcode === RDMA_READ) return OWN_MESSAGE_BYTES;
    return this.#connections.rows[slot]!.fpduBytes(headerBytesOf(opcode) + payloadBytes);
  }
}

const headerBytesOf = (opcode: number): number =>
  opcode === RDMA_WRITE ? taggedHeader.sizeBytes : untaggedHeader.sizeBytes;
