import type { Conversation } from '../index.ts';
import { type CapturedPacket, PacketListener } from '../packet-listener.ts';
import { LineBudget } from '../talk.ts';

/** Returns the conversations of packets in the order in which they began, with all lines. */
export function conversationsOf(packets: Iterable<CapturedPacket>): Conversation[] {
  const listener = new PacketListener(
    new LineBudget({ lines: Number.POSITIVE_INFINITY, isTroubleOnly: false }),
  );
  for (const packet of packets) listener.take(packet);
  return listener.conversations();
}
