/**
 * Parts of a frame, as any station on the way can find them: where its IP header is, and which bytes are payload.
 *
 *     addresses · [tag] · type · IPv4 or IPv6 · [TCP with options, or UDP] · payload · [padding]
 *
 * Sources: IEEE 802.1Q, 9; RFC 791, 3.1; RFC 8200, 3; RFC 9293, 3.1; RFC 768.
 */
import {
  EtherType,
  IpProtocol,
  ipv4Header,
  ipv6Header,
  tcpHeader,
  udpHeader,
  vlanTag,
} from '../abi/index.ts';
import { ethernetHeader } from '../abi/nic/index.ts';
import { viewOf } from '../base/index.ts';

const TYPE_PLACE = ethernetHeader.fields.type.wordOffset;
const BYTES_PER_DWORD = 4;
/** Dwords of an IPv4 header, options included. */
const IPV4_LENGTH_MASK = 0xf;

const ipv4 = ipv4Header.fields;
const ipv6 = ipv6Header.fields;

/** Offset of the IP header in a frame of `frameBytes` at `at`; -1 if the frame has none. */
export function ipHeaderIn(view: DataView, at: number, frameBytes: number): number {
  const hasTag = view.getUint16(at + TYPE_PLACE) === EtherType.VLAN;
  const typePlace = at + TYPE_PLACE + (hasTag ? vlanTag.sizeBytes : 0);
  const network = typePlace + 2;
  const leftBytes = at + frameBytes - network;
  if (leftBytes < ipv4Header.sizeBytes) return -1;
  const type = view.getUint16(typePlace);
  const version = ipv6.version.get(view, network);
  if (type === EtherType.IPV4) return version === 4 ? network : -1;
  return type === EtherType.IPV6 && version === 6 && leftBytes >= ipv6Header.sizeBytes ? network : -1;
}

export const isIpv4At = (view: DataView, header: number): boolean => ipv6.version.get(view, header) === 4;

/** Offsets of the first byte of payload and of the first byte after it: equal in a frame without payload. */
export interface PayloadPlaces {
  readonly first: number;
  readonly end: number;
}

/** The payload of the transport in a frame. A frame without a whole IP header has headers alone. */
export function payloadIn(bytes: Uint8Array, at: number, frameBytes: number): PayloadPlaces {
  const view = viewOf(bytes);
  const frameEnd = at + frameBytes;
  const network = ipHeaderIn(view, at, frameBytes);
  if (network === -1) return { first: frameEnd, end: frameEnd };
  const isIpv4 = isIpv4At(view, network);
  const [networkBytes, packetBytes] = isIpv4 ? ipv4BytesAt(view, network) : ipv6BytesAt(view, network);
  const protocol = (isIpv4 ? ipv4.protocol : ipv6.nextHeader).get(view, network);
  const transport = network + networkBytes;
  const end = Math.min(frameEnd, network + Math.max(networkBytes, packetBytes));
  const first = transport + transportBytes(view, transport, end, protocol);
  return { first: Math.min(end, first), end };
}

/** Bytes of the header, and of the packet with it. */
const ipv4BytesAt = (view: DataView, at: number): readonly [number, number] => [
  Math.max(ipv4Header.sizeBytes, BYTES_PER_DWORD * (ipv4.versionAndLength.get(view, at) & IPV4_LENGTH_MASK)),
  ipv4.totalLength.get(view, at),
];

const ipv6BytesAt = (view: DataView, at: number): readonly [number, number] => [
  ipv6Header.sizeBytes,
  ipv6Header.sizeBytes + ipv6.payloadLength.get(view, at),
];

function transportBytes(view: DataView, transport: number, end: number, protocol: number): number {
  if (protocol === IpProtocol.UDP) return udpHeader.sizeBytes;
  if (protocol !== IpProtocol.TCP || transport + tcpHeader.sizeBytes > end) return 0;
  return BYTES_PER_DWORD * tcpHeader.fields.dataOffset.get(view, transport);
}
