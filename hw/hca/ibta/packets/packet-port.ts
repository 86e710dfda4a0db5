/**
 * The link as the transport uses it: the wire port of InfiniBand, or the RoCE link over an Ethernet port. Packets are written into and
 * read from its buffers in place, at the words that wire/packet.ts names.
 */
import type { Picoseconds } from '../../../../base/index.ts';
import type { QpSlot } from '../../objects/index.ts';

export interface PacketPort {
  /**
   * Destination QPN and PSN of the packet for which {@link sendPacket} is called next: faults that select by header use
   * them.
   */
  readonly outboundHeaders: { destinationQpn: number; psn: number };
  /**
   * Sends a packet that is formed by `atPs`, and leaves then or when the port is free; the caller fills it in at once.
   * Returns its offset, or a negative number if the port accepts none now: it then calls `spaceFreed` of the connected
   * block when a retry may succeed.
   */
  sendPacket(
    opcode: number,
    payloadBytes: number,
    flags: number,
    atPs: Picoseconds,
    virtualLane?: number,
  ): number;
  /** The packet that was sent last, of a QP, has been filled in. */
  packetFilled(offset: number, sender: QpSlot): void;
  /**
   * Reasons, except a busy cable, for which the link may accept no packet, by their names in a cycle account; and the
   * number of the reason that holds packets back now, or -1.
   */
  readonly holdReasons: readonly string[];
  readonly holdReason: number;
  /**
   * Announces a packet to send from `fromPs` on, which takes `formingPs` to form. Returns the instant from which the
   * cable is free enough (0 with the link down). If that is later, the packet waits from `fromPs` on, and the caller
   * retries at the returned instant: `spaceFreed` is called for it only if the link goes down.
   */
  expectPacket(fromPs: Picoseconds, formingPs: Picoseconds): number;
  /** Instant by which everything handed to the port has left. */
  readonly freePs: Picoseconds;
  /** Packets that left nowhere, because the link was down. */
  readonly discardedCount: number;
  readonly txBytes: Uint8Array;
  readonly txWords: Int32Array;
  readonly txFloats: Float64Array;

  /** Releases the packet's buffer. */
  consume(offset: number): void;
  readonly rxBytes: Uint8Array;
  readonly rxWords: Int32Array;
  readonly rxFloats: Float64Array;
  /** Most packets that can be waiting in the receive buffer. */
  readonly receivePacketsMax: number;
}
