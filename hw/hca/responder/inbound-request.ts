/** The request that the responder works on: whose it is, and how far it is. There is one at a time. */
import type { VirtualAddress } from '../../../base/units.ts';
import { QueuePair } from '../objects/index.ts';
import { MESSAGE_NONE, messageKind, type ReceivedPackets } from '../packets/index.ts';

export class InboundRequest {
  /** Its headers: the packet that the receiver works on. */
  readonly packet: ReceivedPackets;
  /** The QP it is for. */
  pair = new QueuePair();
  /** MESSAGE_ kind of the opcode. */
  kind = MESSAGE_NONE;
  /** Payload bytes of the packet already on their way. */
  placed = 0;
  /** CQE syndrome of a receive WQE that the message does not fit or whose memory is refused; 0 while all is well. */
  receiveSyndrome = 0;

  constructor(packet: ReceivedPackets) {
    this.packet = packet;
  }

  /** Takes up the packet that the receiver has turned to, for a QP. */
  begin(pair: QueuePair): void {
    this.pair = pair;
    this.kind = messageKind(this.packet.traits);
    this.placed = 0;
    this.receiveSyndrome = 0;
  }

  /** Slot of the QP. */
  get qp(): number {
    return this.pair.slot;
  }

  /** Trait bits of the opcode. */
  get traits(): number {
    return this.packet.traits;
  }

  get opcode(): number {
    return this.packet.opcode;
  }

  get psn(): number {
    return this.packet.psn;
  }

  get payloadBytes(): number {
    return this.packet.payloadBytes;
  }

  /** Of the RETH or AtomicETH. */
  get remoteAddress(): VirtualAddress {
    return this.packet.virtualAddress;
  }

  get remoteKey(): number {
    return this.packet.key >>> 0;
  }

  get dmaBytes(): number {
    return this.packet.dmaLength >>> 0;
  }
}
