/**
 * The transport's side of requests, as the requester uses it. The requester selects the QP, makes records of WQEs and
 * gathers payload into packets; the transport numbers the packets, writes their headers, and decides what may be sent
 * now.
 */
import type { Cycles } from '../../../base/index.ts';
import type { QpSlot, QueuePair, SendRecord } from '../objects/index.ts';
import type { PacketSlot } from '../packets/index.ts';

/** @typeParam Packet slots of the queue that the transport has made for request packets */
export interface RequestTransport<Packet extends PacketSlot = PacketSlot> {
  /** Name of the transport's window, as a reason for which the requester stalls. */
  readonly windowStall: string;
  /** Whether QPs may have rates: the transport then moves `QueuePair.pacedCycle` on with each packet. */
  readonly isPaced: boolean;
  /**
   * Why the transport cannot start the next request of `pair`, whose operation is `opcode` (WqeOpcode): one of PARKED_, or NOT_PARKED.
   * The transport unparks the QP.
   */
  reasonToPark(pair: QueuePair, opcode: number): number;
  /** CQE syndrome with which a decoded request completes that the transport cannot carry, e.g. one that is too long; 0: it can. */
  refusalOf(pair: QueuePair, request: SendRecord): number;
  /** Payload bytes of each packet of a message but the last; `opcode` is that of its request. */
  packetBytes(pair: QueuePair, opcode: number): number;
  /**
   * Numbers the packets of a decoded request, `request.packetCount` of them.
   * @returns false when the transport's window has no room for them: nothing has happened, and the requester parks the QP as
   *   PARKED_TRANSPORT_WINDOW until the transport unparks it
   */
  begin(pair: QueuePair, request: SendRecord): boolean;
  /**
   * Moves the cursor of `pair` (`recordCursor`, `packetCursor`) to the packet that is to be made next, before each packet is
   * opened. A transport that sends all after a lost packet again moves it when it hears of that, and leaves it here.
   */
  choosePacket(pair: QueuePair): void;
  /**
   * Whether the next packet of `request`, with this many bytes of payload, may be opened. If not, the requester parks
   * the QP as PARKED_TRANSPORT_WINDOW until the transport unparks it.
   */
  hasRoom(pair: QueuePair, request: SendRecord, payloadBytes: number): boolean;
  /** A packet was opened, for which {@link hasRoom} returned true in this cycle. */
  opened(packet: Packet, pair: QueuePair, request: SendRecord, payloadBytes: number): void;
  /**
   * Writes the header fields of a packet whose payload is gathered or under way. `packet.index`, `firstByte`, `payloadBytes` and
   * `isLast` are set.
   */
  seal(packet: Packet, pair: QueuePair, request: SendRecord): void;
  /** A packet of a request has left the port: its answer is awaited, or its message is complete. */
  sent(packet: Packet, cycle: Cycles): void;
}

/** The transport's part in the life of a QP. */
export interface RequestLifecycle {
  /** See SlotUser. */
  slotsGrown(slotCount: number): void;
  /** Stops the timers of a QP: a generation of it begins or ends, or its send queue stops. */
  forget(slot: QpSlot): void;
}

/** Completes messages that no response of the peer completes. */
export interface SentMessages {
  /** A packet has left; the last one completes its message. */
  completeOnSend(request: SendRecord, pair: QueuePair, isLast: boolean, cycle: Cycles): void;
}
