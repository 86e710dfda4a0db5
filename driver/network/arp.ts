/**
 * Packets of ARP for IPv4 on Ethernet, in frames without FCS.
 *
 *     destination · source · 0806 · 0001 · 0800 · 6 · 4 · operation · sender's MAC and IPv4 · target's MAC and IPv4
 *
 * A request goes to all stations, with zeros for the MAC that it asks for; its answer goes to the requester. Sources: RFC 826;
 * RFC 1812, 3.3.2 (an answer with a group's MAC is ignored).
 */
import { EtherType } from '../../abi/index.ts';
import { bytes as byteField, bytesEqual, type Decoded, layout, u8, u16, u32 } from '../../base/index.ts';
import { broadcastMac, ethernetHeader, isGroupMac } from './ethernet-header.ts';

export const ArpOperation = { REQUEST: 1, REPLY: 2 } as const;
const hardwareEthernet = 1;
const macBytes = 6;
const ipv4Bytes = 4;

const arpPacket = layout(
  'ARP packet',
  { sizeBytes: 28, byteOrder: 'big', source: 'RFC 826' },
  {
    hardwareType: u16(0),
    protocolType: u16(2),
    hardwareBytes: u8(4),
    protocolBytes: u8(5),
    operation: u16(6),
    senderMac: byteField(8, 6),
    senderAddress: u32(14),
    targetMac: byteField(18, 6),
    targetAddress: u32(24),
  },
);
export type ArpPacket = Decoded<typeof arpPacket>;

/** The sender of a request or answer. The address is a number, its first byte highest. */
export interface ArpStation {
  readonly mac: Uint8Array;
  readonly address: number;
}

/** A request for an address, to all stations or to the last known one. */
export const arpRequest = (own: ArpStation, address: number, to: Uint8Array = broadcastMac): Uint8Array =>
  frameOf(to, ArpOperation.REQUEST, own, { mac: new Uint8Array(macBytes), address });

/** The answer to a requester. */
export const arpReply = (own: ArpStation, asker: ArpStation): Uint8Array =>
  frameOf(asker.mac, ArpOperation.REPLY, own, asker);

function frameOf(
  destination: Uint8Array,
  operation: number,
  sender: ArpStation,
  target: ArpStation,
): Uint8Array {
  const frame = new Uint8Array(ethernetHeader.sizeBytes + arpPacket.sizeBytes);
  ethernetHeader.encodeInto({ destination, source: sender.mac, type: EtherType.ARP }, frame);
  const packet = {
    hardwareType: hardwareEthernet,
    protocolType: EtherType.IPV4,
    hardwareBytes: macBytes,
    protocolBytes: ipv4Bytes,
    operation,
    senderMac: sender.mac,
    senderAddress: sender.address,
    targetMac: target.mac,
    targetAddress: target.address,
  };
  arpPacket.encodeInto(packet, frame, ethernetHeader.sizeBytes);
  return frame;
}

/** The ARP packet of a frame; undefined if it is too short, of other address types, or from no station's MAC. */
export function arpOf(frame: Uint8Array): ArpPacket | undefined {
  if (frame.length < ethernetHeader.sizeBytes + arpPacket.sizeBytes) return undefined;
  const packet = arpPacket.decode(frame, ethernetHeader.sizeBytes);
  const isIpv4 =
    packet.hardwareType === hardwareEthernet &&
    packet.protocolType === EtherType.IPV4 &&
    packet.hardwareBytes === macBytes &&
    packet.protocolBytes === ipv4Bytes;
  const isKnown = packet.operation === ArpOperation.REQUEST || packet.operation === ArpOperation.REPLY;
  return isIpv4 && isKnown && !isGroupMac(packet.senderMac) ? packet : undefined;
}

/** An unsolicited announcement of itself; counts as an answer only if it names itself as the target (Linux: arp_is_garp). */
export const isGratuitous = (packet: ArpPacket): boolean =>
  packet.senderAddress === packet.targetAddress &&
  (packet.operation === ArpOperation.REQUEST || bytesEqual(packet.senderMac, packet.targetMac));
