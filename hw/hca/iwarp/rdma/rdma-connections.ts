/**
 * The streams of all queue pairs. INIT2RTR attaches the connection that the QP's context names, RTR2RTS lets it send: an initiator after its
 * ready-to-receive message, if one was agreed; a responder after the first FPDU of its peer (RFC 5044, 7.1.2).
 */
import { iwarpContext, iwarpOffsetInQpc, QpState } from '../../../../abi/index.ts';
import { type Cycles, mask24 } from '../../../../base/index.ts';
import type { BlockState, ClockDomain } from '../../../../sim/index.ts';
import type { QpSlot, QpTable, QueuePair } from '../../objects/index.ts';
import type { PacketQueue } from '../../packets/index.ts';
import { PARKED_READ_LIMIT, PARKED_TRANSPORT_WINDOW, type SendScheduler } from '../../send-queue/index.ts';
import type { ConnectionNumbers, ConnectionStates } from '../../transport/index.ts';
import type { TcpStreams } from '../streams.ts';
import type { PlacementQueue } from './placement-queue.ts';
import { RdmaConnection, type StreamEvents, type StreamTraits } from './rdma-connection.ts';
import type { RdmaPacket } from './rdma-packet.ts';
import type { SegmentCounters } from './segment-counters.ts';

export interface RdmaConnectionPorts {
  readonly streams: TcpStreams;
  readonly scheduler: SendScheduler;
  readonly ends: { endDue(connection: RdmaConnection): void };
  /** Blocks to notify when a stream may send, for the first time or again. */
  readonly transmitter: { messageDue(connection: RdmaConnection, cycle: Cycles): void };
  readonly responder: { unblocked(connection: RdmaConnection, cycle: Cycles): void };
  readonly errors: { communicationEstablished(qp: QpSlot, cycle: Cycles): void };
}

/** Parts of the device that {@link RdmaConnections} uses. */
export interface RdmaConnectionsSetup {
  readonly domain: ClockDomain;
  readonly qps: QpTable;
  readonly placementQueue: PlacementQueue;
  readonly segmentCounters: SegmentCounters;
  readonly hasExtensions: boolean;
  readonly earlySegmentsMax: number;
  readonly requestPackets: PacketQueue<RdmaPacket>;
  readonly responsePackets: PacketQueue<RdmaPacket>;
}

/** Others are rings of the port. */
const RELIABLE_CONNECTION = 0;

const noNumbers = { nextSend: 0, lastAcknowledged: 0, sentMessages: 0, nextReceive: 0, receivedMessages: 0 };

export class RdmaConnections implements ConnectionStates, StreamEvents {
  /** Connections by slot of the QP. */
  readonly rows: (RdmaConnection | undefined)[] = [];
  /** QPs whose INIT2RTR named a connection that cannot be theirs. */
  refusedCount = 0;
  readonly #domain: ClockDomain;
  readonly #qps: QpTable;
  readonly #queue: PlacementQueue;
  readonly #counters: SegmentCounters;
  readonly #hasExtensions: boolean;
  readonly #earlySegmentsMax: number;
  readonly #packetQueues: readonly PacketQueue<RdmaPacket>[];
  #ports!: RdmaConnectionPorts;

  constructor(setup: RdmaConnectionsSetup) {
    this.#domain = setup.domain;
    this.#qps = setup.qps;
    this.#queue = setup.placementQueue;
    this.#counters = setup.segmentCounters;
    this.#hasExtensions = setup.hasExtensions;
    this.#earlySegmentsMax = setup.earlySegmentsMax;
    this.#packetQueues = [setup.requestPackets, setup.responsePackets];
  }

  connect(ports: RdmaConnectionPorts): void {
    this.#ports = ports;
  }

  slotsGrown(slotCount: number): void {
    while (this.rows.length < slotCount) this.rows.push(undefined);
  }

  begin(slot: QpSlot): void {
    this.#forget(this.rows[slot]);
  }

  startReceiving(slot: QpSlot): void {
    const { streams } = this.#ports;
    const pair = this.#qps.rows[slot]!;
    if (pair.opcodeBase !== RELIABLE_CONNECTION) return;
    const traits = this.#traitsOf(slot);
    const connection = new RdmaConnection(pair, traits, {
      streams,
      queue: this.#queue,
      events: this,
      counters: this.#counters,
      hasExtensions: this.#hasExtensions,
      earlySegmentsMax: this.#earlySegmentsMax,
    });
    this.rows[slot] = connection;
    if (streams.attach(traits.connection, pair.qpn, connection, this.#domain.cycle)) return;
    this.rows[slot] = undefined;
    this.refusedCount++;
  }

  startSending(slot: QpSlot): void {
    const connection = this.rows[slot];
    if (connection === undefined) return;
    const { isInitiator, ready } = connection.traits;
    connection.isReadyDue = isInitiator && ready !== 0;
    connection.maySend = isInitiator ? ready === 0 : connection.hasReceived;
    if (connection.isReadyDue) this.#ports.transmitter.messageDue(connection, this.#domain.cycle);
    else if (connection.maySend) this.sendingBegins(connection, this.#domain.cycle);
  }

  numbersOf(slot: QpSlot): ConnectionNumbers {
    const connection = this.rows[slot];
    if (connection === undefined) return noNumbers;
    const sentMessages = (connection.sender.messages[0]! - 1) & mask24;
    const receivedMessages = (connection.receiver.messages[0]! - 1) & mask24;
    return { ...noNumbers, sentMessages, receivedMessages };
  }

  /**
   * Forgets the stream of a QP that begins, ends, or stops its send queue. A stream that has not ended by itself ends
   * with the QP: by RST, or, if the QP is reset while either side closes, by FIN after everything that TCP has (Linux
   * 6.1, cxgb4's qp.c: c4iw_destroy_qp takes a QP in RTS to ERROR, which aborts).
   */
  forget(slot: QpSlot): void {
    const connection = this.rows[slot];
    if (connection === undefined) return;
    const { number, state, isCloseRequested, hasPeerClosed } = connection;
    const isReset = connection.pair.state === QpState.RST;
    const isOver = state === 'TERMINATE' || state === 'ERROR';
    if (!isReset && isOver) return;
    this.#forget(connection);
    const { streams } = this.#ports;
    const closes = isCloseRequested || hasPeerClosed;
    if (isReset && (isOver || closes)) {
      streams.detach(number);
      if (state === 'RTS') streams.close(number, this.#domain.cycle);
    } else streams.abort(number, this.#domain.cycle);
  }

  /** TCP has ended the stream. */
  ended({ pair, number }: RdmaConnection): void {
    const connection = this.rows[pair.slot];
    if (connection?.number === number) this.#forget(connection);
  }

  /** Whether the stream is still that of its QP. */
  isLive(connection: RdmaConnection): boolean {
    return this.rows[connection.pair.slot] === connection;
  }

  firstArrived(connection: RdmaConnection): void {
    const { pair } = connection;
    const { cycle } = this.#domain;
    this.#ports.errors.communicationEstablished(pair.slot, cycle);
    if (pair.state !== QpState.RTS || connection.maySend || connection.traits.isInitiator) return;
    connection.maySend = true;
    this.sendingBegins(connection, cycle);
  }

  endDue(connection: RdmaConnection): void {
    this.#ports.ends.endDue(connection);
  }

  writable(connection: RdmaConnection, cycle: Cycles): void {
    if (connection.isReadyDue || connection.isTerminateDue)
      this.#ports.transmitter.messageDue(connection, cycle);
    this.sendingBegins(connection, cycle);
  }

  /** Resumes work that waited for the stream. */
  sendingBegins(connection: RdmaConnection, cycle: Cycles): void {
    this.#unpark(connection.pair, PARKED_TRANSPORT_WINDOW, cycle);
    this.#ports.responder.unblocked(connection, cycle);
  }

  /** The response to the ready-to-receive READ has arrived: another READ may be sent. */
  readyAnswered({ pair }: RdmaConnection, cycle: Cycles): void {
    this.#unpark(pair, PARKED_READ_LIMIT, cycle);
  }

  reset(): void {
    this.rows.fill(undefined);
  }

  inspect(): BlockState {
    const live = this.rows.flatMap((connection) => connection ?? []);
    return {
      streams: live.map(({ pair, number, state, jobCount, reads }) => ({
        slot: pair.slot,
        connection: number,
        state,
        jobs: jobCount,
        reads: reads.count,
      })),
    };
  }

  #unpark(pair: QueuePair, reason: number, cycle: Cycles): void {
    if (pair.parkedFor === reason) this.#ports.scheduler.unpark(pair, cycle + 1);
  }

  /** Releases places in the retransmission memory before TCP forgets the stream. */
  #forget(connection: RdmaConnection | undefined): void {
    if (connection === undefined) return;
    connection.receiver.stop();
    connection.state = 'ERROR';
    connection.maySend = false;
    for (const { rows } of this.#packetQueues)
      for (const packet of rows) if (packet.connection === connection) packet.discard();
    this.rows[connection.pair.slot] = undefined;
  }

  #traitsOf(slot: QpSlot): StreamTraits {
    const { view } = this.#qps;
    const at = this.#qps.offsetOf(slot) + iwarpOffsetInQpc;
    const { fields } = iwarpContext;
    return {
      connection: fields.connection.get(view, at),
      isInitiator: fields.isInitiator.get(view, at) === 1,
      sendsMarkers: fields.sendsMarkers.get(view, at) === 1,
      receivesMarkers: fields.receivesMarkers.get(view, at) === 1,
      hasCrc: fields.hasCrc.get(view, at) === 1,
      ready: fields.rtr.get(view, at),
      inboundReads: fields.inboundReads.get(view, at),
      outboundReads: fields.outboundReads.get(view, at),
    };
  }
}
