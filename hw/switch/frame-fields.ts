/**
 * The fields of a frame that a switch reads: its stations, its VLAN, its priority and its flow.
 *
 *     destination 6 │ source 6 │ (8100, tag) │ type │ IPv4, IPv6 or GRH of RoCE v1 │ ports of UDP and TCP
 *
 * Sources: IEEE 802.3-2018, 3.2; IEEE 802.1Q, 9.6; RFC 791, 8200, 768, 9293; IBTA volume 1, annex A16.
 */
import { EtherType, IpProtocol, ipv4Header, ipv6Header, udpHeader, vlanTag } from '../../abi/index.ts';
import { ethernetHeader } from '../../abi/nic/index.ts';
import { MAC_BYTES, viewOf } from '../../base/index.ts';

const TYPE_PLACE = ethernetHeader.fields.type.wordOffset;
const SOURCE_PLACE = MAC_BYTES;
const GROUP_BIT = 2 ** 40;
/** 01-80-C2-00-00-00 to -0F: frames for the other end of a cable (IEEE 802.1Q, table 8-1). */
const LINK_LOCAL_FIRST = 0x0180_c200_0000;
const LINK_LOCAL_COUNT = 16;
const FRAGMENT_MASK = 0x3fff;
/** Upper three bits of a DSCP. */
const CLASS_SHIFT = 3;
const GID_BYTES = 16;

export const isGroupMac = (mac: number): boolean => Math.floor(mac / GROUP_BIT) % 2 === 1;

export const isLinkLocalGroup = (mac: number): boolean =>
  mac >= LINK_LOCAL_FIRST && mac < LINK_LOCAL_FIRST + LINK_LOCAL_COUNT;

const macAt = (view: DataView, at: number): number => view.getUint16(at) * 2 ** 32 + view.getUint32(at + 2);

export const destinationMacOf = (frame: Uint8Array): number => macAt(viewOf(frame), 0);

export const sourceMacOf = (frame: Uint8Array): number => macAt(viewOf(frame), SOURCE_PLACE);

const isTagged = (view: DataView): boolean => view.getUint16(TYPE_PLACE) === EtherType.VLAN;

/** VLAN of a frame; 0 without a tag. */
export function vlanOf(frame: Uint8Array): number {
  const view = viewOf(frame);
  return isTagged(view) ? vlanTag.fields.vlan.get(view, TYPE_PLACE + 2) : 0;
}

const networkPlaceOf = (view: DataView): number => TYPE_PLACE + 2 + (isTagged(view) ? vlanTag.sizeBytes : 0);

/** Whether a header of this type lies within the frame. */
function hasHeader(view: DataView, frameBytes: number, type: number): boolean {
  const network = networkPlaceOf(view);
  const headerBytes = type === EtherType.IPV4 ? ipv4Header.sizeBytes : ipv6Header.sizeBytes;
  return view.getUint16(network - 2) === type && network + headerBytes <= frameBytes;
}

/** Priority of a frame, 0 to 7: see the parameter `trust`. */
export function priorityOf(frame: Uint8Array, frameBytes: number, trust: 'dscp' | 'pcp'): number {
  const view = viewOf(frame);
  if (trust === 'dscp') {
    const network = networkPlaceOf(view);
    if (hasHeader(view, frameBytes, EtherType.IPV4))
      return ipv4Header.fields.differentiatedServices.get(view, network) >>> CLASS_SHIFT;
    if (hasHeader(view, frameBytes, EtherType.IPV6) || hasHeader(view, frameBytes, EtherType.ROCE))
      return ipv6Header.fields.differentiatedServices.get(view, network) >>> CLASS_SHIFT;
  }
  return isTagged(view) ? vlanTag.fields.priority.get(view, TYPE_PLACE + 2) : 0;
}

/**
 * Bytes that name a flow: addresses, protocol and ports of an unfragmented IP packet (the five-tuple), without ports of a fragment and of
 * other protocols; both GIDs of RoCE v1; the MACs of any other frame.
 * @returns pairs of offset and length
 */
export function flowPlacesOf(frame: Uint8Array, frameBytes: number): readonly (readonly [number, number])[] {
  const view = viewOf(frame);
  const network = networkPlaceOf(view);
  if (hasHeader(view, frameBytes, EtherType.IPV4)) {
    const { source, protocol, fragment } = ipv4Header.fields;
    const isWhole = (fragment.get(view, network) & FRAGMENT_MASK) === 0;
    const addresses = [network + source.wordOffset, 8] as const;
    const kind = [network + protocol.wordOffset, 1] as const;
    const ports = network + ipv4Header.sizeBytes;
    const hasPorts = isWhole && arePorts(protocol.get(view, network), ports, frameBytes);
    return hasPorts ? [addresses, kind, [ports, 4]] : [addresses, kind];
  }
  const isIpv6 = hasHeader(view, frameBytes, EtherType.IPV6);
  if (isIpv6 || hasHeader(view, frameBytes, EtherType.ROCE)) {
    const { nextHeader, source } = ipv6Header.fields;
    const addresses = [network + source.field.offset, 2 * GID_BYTES] as const;
    const kind = [network + nextHeader.wordOffset, 1] as const;
    const ports = network + ipv6Header.sizeBytes;
    const hasPorts = isIpv6 && arePorts(nextHeader.get(view, network), ports, frameBytes);
    return hasPorts ? [addresses, kind, [ports, 4]] : [addresses, kind];
  }
  return [[0, 2 * MAC_BYTES]];
}

const arePorts = (protocol: number, place: number, frameBytes: number): boolean =>
  (protocol === IpProtocol.UDP || protocol === IpProtocol.TCP) && place + udpHeader.sizeBytes <= frameBytes;
