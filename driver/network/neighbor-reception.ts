/**
 * A station's reaction to a Neighbor Discovery message, on any adapter:
 *
 *     a solicitation from an own address, an advertisement of one ─► conflicting
 *     a solicitation for an own address ──► its sender is known from then on; the answer  (a sender without an address only asks: not known)
 *     an advertisement ──► of a requested or known neighbour: its MAC; else unsolicited
 *
 * Sources: RFC 4861, 7.2; Linux 6.1, net/ipv6/ndisc.c (ndisc_recv_ns, ndisc_recv_na).
 */
import { ethernetHeader } from './ethernet-header.ts';
import { type NeighborMessage, neighborAdvertisement, neighborMessageOf } from './neighbour-discovery.ts';
import type { AnswerFlags } from './neighbour-table.ts';

/** The station; addresses are 16 bytes. */
export interface NeighborReceiver {
  readonly mac: Uint8Array;
  isOwn(address: Uint8Array): boolean;
  isOnLink(address: Uint8Array): boolean;
  /** A neighbour has requested an own address, and thereby announced its own. */
  asked(address: Uint8Array, mac: Uint8Array): void;
  /** A neighbour has advertised itself, and possibly its MAC. @returns false if the neighbour was not requested, or keeps another MAC for now */
  advertised(address: Uint8Array, mac: Uint8Array | undefined, flags: AnswerFlags): boolean;
}

/** Result of a packet; `other`: not a Neighbor Discovery message. */
export type NeighborOutcome = 'taken' | 'malformed' | 'conflicting' | 'ignored' | 'unsolicited' | 'other';

/** Handles an IPv6 frame, without FCS. @returns the frame that answers it, or the result */
export function receiveNeighborMessage(
  frame: Uint8Array,
  receiver: NeighborReceiver,
): Uint8Array | NeighborOutcome {
  const message = neighborMessageOf(frame);
  if (typeof message === 'string') return message;
  if (message.isSolicitation) return solicited(message, frame, receiver);
  if (receiver.isOwn(message.target)) return 'conflicting';
  return receiver.advertised(message.target, message.mac, message) ? 'taken' : 'unsolicited';
}

function solicited(
  { source, target, mac }: NeighborMessage,
  frame: Uint8Array,
  receiver: NeighborReceiver,
): Uint8Array | NeighborOutcome {
  if (receiver.isOwn(source)) return 'conflicting';
  if (!receiver.isOwn(target)) return 'ignored';
  if (mac !== undefined && receiver.isOnLink(source)) receiver.asked(source, mac);
  const asker = { mac: mac ?? ethernetHeader.decode(frame).source, address: source };
  return neighborAdvertisement({ mac: receiver.mac, address: target }, asker);
}
