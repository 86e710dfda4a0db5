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
const { ATOMIC_CS, ATOMIC_FA, MASKED_ATOMIC_CS, MASKED_ATOMIC_FA, RDMA_WRITE_IMM } = WqeOpcode;

/** Opcodes of the messages of RFC 5040, and of operations executed on this side. */
const executable: ReadonlySet<number> = new Set<number>([
  ...[RDMA_WRITE, RDMA_READ, SEND, SEND_INVAL],
  ...[NOP, LOCAL_INVAL, FMR, BIND_MW],
]);
/** Messages of RFC 7306. A SEND has no immediate data: they are a message of their own, which takes a receive. */
const extended: ReadonlySet<number> = new Set<number>([
  ...[ATOMIC_CS, ATOMIC_FA, MASKED_ATOMIC_CS, MASKED_ATOMIC_FA],
  RDMA_WRITE_IMM,
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
  /** Whether messages of RFC 7306 may be sent. */
  readonly hasExtensions: boolean;
  readonly costs: CostAttribution | undefined;
}

export class IwarpRequests implements RequestTransport<RdmaPacket>, RequestLifecycle {
  readonly windowStall = 'sendBuffer';
  readonly isPaced = false;
  readonly #domain: ClockDomain;
  readonly #connections: RdmaConnections;
  readonly #hasExtensions: boolean;
  readonly #costs: CostAttribution | undefined;
  /** Number of the first segment, by record. */
  readonly #firstNumber: Int32Array;
  #ends!: SentMessages;

  constructor({ domain, connections, recordCount, hasExtensions, costs }: IwarpRequestsSetup) {
    this.#domain = domain;
    this.#connections = connections;
    this.#hasExtensions = hasExtensions;
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
    const isExecutable = executable.has(opcode) || (this.#hasExtensions && extended.has(opcode));
    if (!isExecutable) return CqeSyndrome.LOCAL_QP_OP_ERR;
    if (messageBytes > pair.messageBytesMax || messageBytes >= MESSAGE_BYTES_END)
      return CqeSyndrome.LOCAL_LENGTH_ERR;
    const isRead = opcode === RDMA_READ;
    return isRead && (segmentCount > SINKS_MAX || isInline === 1) ? CqeSyndrome.LOCAL_QP_OP_ERR : 0;
  }

  /** A READ is one packet, whatever its response is. Immediate data have room in the TCP segment of the last packet. */
  packetBytes({ slot }: QueuePair, opcode: number): number {
    const connection = this.#connections.rows[slot];
    if (isReadOrAtomic(opcode) || connection === undefined) return MESSAGE_BYTES_END;
    const bytes = connection.payloadBytesMax(headerBytesOf(opcode));
    return opcode === RDMA_WRITE_IMM ? bytes - connection.immediateBytes : bytes;
  }

  begin({ slot }: QueuePair, { number, opcode, packetCount, stream }: SendRecord): boolean {
    const connection = this.#connections.rows[slot];
    if (connection === undefined || !connection.maySend) return false;
    const first = connection.nextRequestNumber;
    const segmentCount = packetCount + (opcode === RDMA_WRITE_IMM ? 1 : 0);
    this.#firstNumber[number] = first;
    connection.nextRequestNumber = (first + segmentCount) & REQUEST_NUMBER_MASK;
    this.#costs?.numbered(connection.pair, first, segmentCount);
    stream.begin();
    return true;
  }

  /** Number of the first segment of a request. */
  firstNumberOf({ number }: SendRecord): number {
    return this.#firstNumber[number] ?? 0;
  }

  choosePacket(): void {}

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

  /** TCP has accepted a segment: with the last one a SEND or WRITE is complete, a READ or atomic is not. */
  sent({ request, pair, isLast }: RdmaPacket, cycle: Cycles): void {
    if (request.isReadOrAtomic === 0) this.#ends.completeOnSend(request, pair, isLast, cycle);
  }

  #segmentBytes(slot: QpSlot, opcode: number, payloadBytes: number): number {
    if (isReadOrAtomic(opcode)) return OWN_MESSAGE_BYTES;
    const connection = this.#connections.rows[slot]!;
    const bytes = connection.fpduBytes(headerBytesOf(opcode) + payloadBytes);
    return opcode === RDMA_WRITE_IMM ? bytes + connection.immediateBytes : bytes;
  }
}

const headerBytesOf = (opcode: number): number =>
  opcode === RDMA_WRITE || opcode === RDMA_WRITE_IMM ? taggedHeader.sizeBytes : untaggedHeader.sizeBytes;
