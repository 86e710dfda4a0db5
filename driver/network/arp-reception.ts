/**
 * A station's reaction to an ARP packet, on any adapter:
 *
 *     from one of the own addresses ─► conflicting
 *     a request for an own address ──► its sender is known from then on; the answer    (a sender without an address only asks: not known)
 *     anything else ─────────────────► of a requested or known neighbour: its MAC; else unsolicited, or ignored
 *
 * Sources: RFC 826, packet reception; RFC 5227, 2.1.1; Linux 6.1, net/ipv4/arp.c (arp_process).
 */
import { bytesEqual } from '../../base/index.ts';
import { ArpOperation, arpOf, arpReply, isGratuitous } from './arp.ts';
import { ethernetHeader } from './ethernet-header.ts';
import type { AnswerFlags } from './neighbour-table.ts';

/** The station, with addresses as numbers. */
export interface ArpReceiver {
  readonly mac: Uint8Array;
  isOwn(address: number): boolean;
  isOnLink(address: number): boolean;
  /** A neighbour has requested an own address, and thereby announced its own. */
  asked(address: number, mac: Uint8Array): void;
  /** A MAC was announced for a neighbour. @returns false if the neighbour was not requested, or keeps another MAC for now */
  announced(address: number, mac: Uint8Array, flags: AnswerFlags): boolean;
}

/** Result of a packet. */
export type ArpOutcome = 'taken' | 'malformed' | 'conflicting' | 'ignored' | 'unsolicited';

/** Handles an ARP frame, without FCS. @returns the frame that answers it, or the result */
export function receiveArp(frame: Uint8Array, receiver: ArpReceiver): Uint8Array | ArpOutcome {
  const packet = arpOf(frame);
  if (packet === undefined) return 'malformed';
  const { operation, senderAddress, senderMac, targetAddress } = packet;
  if (receiver.isOwn(senderAddress)) return 'conflicting';
  if (operation === ArpOperation.REQUEST && receiver.isOwn(targetAddress)) {
    const isProbe = senderAddress === 0;
    if (!isProbe && !receiver.isOnLink(senderAddress)) return 'ignored';
    if (!isProbe) receiver.asked(senderAddress, senderMac);
    const own = { mac: receiver.mac, address: targetAddress };
    return arpReply(own, { mac: senderMac, address: senderAddress });
  }
  const { destination } = ethernetHeader.decode(frame);
  const flags = {
    isSolicited: operation === ArpOperation.REPLY && bytesEqual(destination, receiver.mac),
    overrides: isGratuitous(packet),
  };
  if (receiver.announced(senderAddress, senderMac, flags)) return 'taken';
  // A reply to another station is not an answer.
  return operation === ArpOperation.REPLY ? 'unsolicited' : 'ignored';
}
