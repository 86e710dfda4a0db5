/**
 * The rings of an Ethernet port as the requester uses them instead of a transport: a frame has no number and no answer, and its
 * message is complete when it has left.
 */
import type { Cycles } from '../../../base/index.ts';
import type { QueuePair } from '../objects/index.ts';
import type { PacketSlot } from '../packets/index.ts';
import { NOT_PARKED } from '../send-queue/index.ts';
import type { RequestTransport, SentMessages } from '../transport/index.ts';

export class FrameRequests implements RequestTransport {
  readonly windowStall = 'none';
  #ends!: SentMessages;

  connect({ ends }: { readonly ends: SentMessages }): void {
    this.#ends = ends;
  }

  reasonToPark(): number {
    return NOT_PARKED;
  }

  messageBytesMax({ messageBytesMax }: QueuePair): number {
    return messageBytesMax;
  }

  /** Bytes of the longest frame: those of an LSO are as long as its WQE says. */
  packetBytes({ mtuBytes }: QueuePair): number {
    return mtuBytes;
  }

  begin(): boolean {
    return true;
  }

  /** The requester has written all bytes of the frame. */
  seal(): void {}

  sent({ request, pair, isLast }: PacketSlot, cycle: Cycles): void {
    this.#ends.completeOnSend(request, pair, isLast, cycle);
  }
}
