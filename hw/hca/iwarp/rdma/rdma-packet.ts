/** A DDP segment of this card before its FPDU is written: payload in the HCA's memory, a place in TCP's retransmission memory. */
import { PacketSlot } from '../../packets/index.ts';
import type { SendSegment } from '../streams.ts';
import type { InboundRead } from './inbound-reads.ts';
import type { RdmaConnection } from './rdma-connection.ts';

export class RdmaPacket extends PacketSlot {
  /** Stream that it belongs to; unused if {@link segment} is undefined. */
  connection: RdmaConnection | undefined = undefined;
  /** Undefined if the stream has ended since: the packet is dropped. */
  segment: SendSegment | undefined = undefined;
  /** The peer's READ to which a response belongs; undefined for a request. */
  read: InboundRead | undefined = undefined;

  /** Releases the place in the retransmission memory. */
  discard(): void {
    if (this.segment !== undefined) this.connection!.discard(this.segment);
    this.segment = undefined;
  }
}
