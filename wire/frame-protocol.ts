/** Protocols of Ethernet frames other than RoCE, as far as the model's software uses them. Sources: RFC 826, 4861; IEEE 802.3-2018, 31. */
import { EtherType, IpProtocol } from '../abi/index.ts';

const MAC_CONTROL = 0x8808;
const TYPE_PLACE = 12;
const NETWORK_PLACE = 14;
const ARP_OPERATION_PLACE = NETWORK_PLACE + 7;
const NEXT_HEADER_PLACE = NETWORK_PLACE + 6;
const ICMP_TYPE_PLACE = NETWORK_PLACE + 40;
const SOLICITATION = 135;
const ADVERTISEMENT = 136;

/** Names, by the numbers that {@link frameProtocolIn} returns. */
export const frameProtocols = [
  'frame',
  'ARP request',
  'ARP reply',
  'neighbor solicitation',
  'neighbor advertisement',
  'PAUSE',
] as const;
type FrameProtocol = (typeof frameProtocols)[number];

const numberOf = (name: FrameProtocol): number => frameProtocols.indexOf(name);
const numbers = {
  other: numberOf('frame'),
  request: numberOf('ARP request'),
  reply: numberOf('ARP reply'),
  solicitation: numberOf('neighbor solicitation'),
  advertisement: numberOf('neighbor advertisement'),
  pause: numberOf('PAUSE'),
} as const;

/** The number of the protocol in the frame at `bytes[at]`; 0 for an unnamed one. */
export function frameProtocolIn(bytes: Uint8Array, at: number, frameBytes: number): number {
  const type = (bytes[at + TYPE_PLACE]! << 8) | bytes[at + TYPE_PLACE + 1]!;
  if (type === MAC_CONTROL) return numbers.pause;
  if (type === EtherType.ARP) {
    const operation = bytes[at + ARP_OPERATION_PLACE]!;
    if (operation === 1) return numbers.request;
    return operation === 2 ? numbers.reply : numbers.other;
  }
  const isIcmp =
    type === EtherType.IPV6 &&
    frameBytes > ICMP_TYPE_PLACE &&
    bytes[at + NEXT_HEADER_PLACE] === IpProtocol.ICMPV6;
  if (!isIcmp) return numbers.other;
  const message = bytes[at + ICMP_TYPE_PLACE]!;
  if (message === SOLICITATION) return numbers.solicitation;
  return message === ADVERTISEMENT ? numbers.advertisement : numbers.other;
}
