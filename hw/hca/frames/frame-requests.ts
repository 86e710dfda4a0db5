/**
 * The requester's transport for the rings of an Ethernet port: a frame has no number and no response, and its message
 * is complete when it has left.
 */
import { CqeSyndrome, WqeOpcode } from '../../../abi/index.ts';
import type { Cycles } from '../../../base/index.ts';
import type { QueuePair, SendRecord } from '../objects/index.ts';
import type { PacketSlot } from '../packets/index.ts';
import { NOT_PARKED } from '../send-queue/index.ts';
import type { RequestTransport, SentMessages } from '../transport/index.ts';

export class FrameRequests implements RequestTransport {
  readonly windowStall = 'none';
  readonly isPaced = false;
  #ends!: SentMessages;

  connect({ ends }: { readonly ends: SentMessages }): void {
    this.#ends = ends;
  }

  reasonToPark(): number {
    return NOT_PARKED;
  }

  /** The decoder compares an LSO with limits of its own. */
  refusalOf({ messageBytesMax }: QueuePair, { opcode, messageBytes }: SendRecord): number {
    return opcode !== WqeOpcode.LSO && messageBytes > messageBytesMax ? CqeSyndrome.LOCAL_LENGTH_ERR : 0;
  }

  /** Bytes of the longest frame; for an LSO the WQE gives the length. */
  packetBytes({ mtuBytes }: QueuePair): number {
    return mtuBytes;
  }

  begin(): boolean {
    return true;
  }

  choosePacket(): void {}

  hasRoom(): boolean {
    return true;
  }

  opened(): void {}

  /** The requester has written all bytes of the frame. */
  seal(): void {}

  sent({ request, pair, isLast }: PacketSlot, cycle: Cycles): void {
    this.#ends.completeOnSend(request, pair, isLast, cycle);
  }
}
