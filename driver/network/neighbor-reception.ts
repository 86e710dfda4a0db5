/**
 * What a station does about a message of Neighbor Discovery, whatever its adapter is:
 *
 *     a solicitation from an own address, an advertisement of one ─► conflicting
 *     a solicitation for an own address ──► its sender is known from now on; the answer  (one without an address yet only asks: not known)
 *     an advertisement ──► of a neighbour that is looked for, or known: its MAC; else unsolicited
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
  /** A neighbour has asked for an own address, and so said who he is. */
  asked(address: Uint8Array, mac: Uint8Array): void;
  /** A neighbour has said that it is there, and perhaps its MAC. @returns false for one that nobody looks for, or who is another for now */
  advertised(address: Uint8Array, mac: Uint8Array | undefined, flags: AnswerFlags): boolean;
}

/** What became of a packet; `other`: it is no such message. */
export type NeighborOutcome = 'taken' | 'malformed' | 'conflicting' | 'ignored' | 'unsolicited' | 'other';

/** Takes a frame of IPv6, without FCS. @returns the frame that answers it, or what became of it */
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
