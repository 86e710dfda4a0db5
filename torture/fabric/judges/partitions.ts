/** Which packets partitions let pass, by the words of IBTA volume 1, 10.9.3, alone. */
import type { Membership } from '../fabric-story.ts';
import type { PlayedFabric } from '../played.ts';

const fullMember = 0x8000;
const partitionOf = ({ pkey }: Membership): number => pkey % fullMember;

/** Whether the switches pass on the packets that one host sends to another. */
export function isCarried({ story }: PlayedFabric, from: number, to: number): boolean {
  const sender = story.memberships?.[from];
  const receiver = story.memberships?.[to];
  if (sender === undefined || receiver === undefined || from === to) return true;
  return [sender, receiver].every(({ partitions }) => partitions.includes(partitionOf(sender)));
}

/** Whether a host's QPs accept them, too. */
export function isAccepted(played: PlayedFabric, from: number, to: number): boolean {
  const sender = played.story.memberships?.[from];
  const receiver = played.story.memberships?.[to];
  if (sender === undefined || receiver === undefined) return true;
  const hasFull = sender.pkey >= fullMember || receiver.pkey >= fullMember;
  return isCarried(played, from, to) && hasFull && partitionOf(sender) === partitionOf(receiver);
}
