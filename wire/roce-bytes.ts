/**
 * A packet's record (packet.ts) and its frame on an Ethernet link: each is built from the other.
 *
 *     version 1   destination · source · [tag] · 8915 · GRH ──────────────────────────┐
 *     version 2   destination · source · [tag] · 0800 or 86dd · IPv4 or IPv6 · UDP 4791 ─┴─ BTH · … · payload · pad · ICRC
 *
 * The wire port adds the FCS. A frame may be padded after the ICRC: GRH or IP header determine the end of the packet. Sources:
 * IBTA vol 1, annexes A16 (RoCE) and A17 (RoCE v2); RFC 791, 768, 8200; IEEE 802.1Q, 9.
 */
import { EtherType, IpProtocol, ipv4Header, ipv6Header, udpHeader, vlanTag } from '../abi/index.ts';
import { ethernetHeader } from '../abi/nic/index.ts';
import { viewOf } from '../base/index.ts';
import { type InvariantCover, invariantCrc } from './crc.ts';
import { bth, GRH_BYTES, grh, ICRC_BYTES, NEXT_HEADER_BTH, ROCE_UDP_PORT } from './headers.ts';
import { opcodeRow, packetBytesOf, transportHeaderBytes } from './opcodes.ts';
import {
  FLAG_GRH,
  PACKET_BYTES_SHIFT,
  roceRoute,
  roceRoutePlace,
  WORD_OPCODE,
  WORD_PACKET_FLAGS,
  WORD_PAYLOAD_BYTES,
} from './packet.ts';
import { ICRC_WRONG, PACKET_MALFORMED, PACKET_RIGHT, type RecordArea, RecordBytes } from './record-bytes.ts';

const IP_VERSION_6 = 6;
/** IPv4 without options. */
const IPV4_PLAIN = 0x45;
/** More fragments, or not the first fragment. */
const FRAGMENT_MASK = 0x3fff;
const TYPE_PLACE = ethernetHeader.fields.type.wordOffset;
const MACS_BYTES = TYPE_PLACE;

const route = roceRoute.fields;

/** Positions of the parts of a frame. */
interface FramePlaces {
  readonly cover: Exclude<InvariantCover, 'local' | 'localWithGrh'>;
  /** Bytes of GRH or IP header. */
  readonly network: number;
  readonly base: number;
  readonly icrc: number;
}

/** True for RoCE frames: of version 1, and of version 2 if `udpPort` is given. */
export function isRoceFrame(bytes: Uint8Array, at: number, frameBytes: number, udpPort?: number): boolean {
  const view = viewOf(bytes);
  const hasTag = view.getUint16(at + TYPE_PLACE) === EtherType.VLAN;
  const typePlace = at + TYPE_PLACE + (hasTag ? vlanTag.sizeBytes : 0);
  const type = view.getUint16(typePlace);
  if (type === EtherType.ROCE) return true;
  if (udpPort === undefined || (type !== EtherType.IPV4 && type !== EtherType.IPV6)) return false;
  const network = typePlace + 2;
  const udp = network + (type === EtherType.IPV4 ? ipv4Header.sizeBytes : ipv6Header.sizeBytes);
  if (udp + udpHeader.sizeBytes > at + frameBytes) return false;
  const isUdp = type === EtherType.IPV4 ? isPlainIpv4(view, network) : isPlainIpv6(view, network);
  return isUdp && udpHeader.fields.destinationPort.get(view, udp) === udpPort;
}

const isPlainIpv4 = (view: DataView, at: number): boolean =>
  ipv4Header.fields.versionAndLength.get(view, at) === IPV4_PLAIN &&
  (ipv4Header.fields.fragment.get(view, at) & FRAGMENT_MASK) === 0 &&
  ipv4Header.fields.protocol.get(view, at) === IpProtocol.UDP;

const isPlainIpv6 = (view: DataView, at: number): boolean =>
  ipv6Header.fields.version.get(view, at) === IP_VERSION_6 &&
  ipv6Header.fields.nextHeader.get(view, at) === IpProtocol.UDP;

/** The shortest RoCE frame: version 2 over IPv4, without payload. */
const FRAME_BYTES_MIN =
  TYPE_PLACE + 2 + ipv4Header.sizeBytes + udpHeader.sizeBytes + bth.sizeBytes + ICRC_BYTES;

/**
 * Positions of BTH and ICRC in a RoCE frame, as any station on the way can find them.
 * @returns undefined for other frames, and for invalid headers or lengths
 */
export function roceTransportIn(
  bytes: Uint8Array,
  at: number,
  frameBytes: number,
): Pick<FramePlaces, 'base' | 'icrc'> | undefined {
  if (frameBytes < FRAME_BYTES_MIN || !isRoceFrame(bytes, at, frameBytes, ROCE_UDP_PORT)) return undefined;
  return placesOf(bytes, at, frameBytes);
}

/** Transport header fields of a packet, for observers. */
export interface PacketSeen {
  readonly opcode: number;
  readonly destinationQpn: number;
  readonly psn: number;
  readonly payloadBytes: number;
  readonly asksForAck: boolean;
  /** Syndrome of an AETH; 0 without one. */
  readonly syndrome: number;
}

/** The packet in a frame; undefined without one of a known kind. */
export function packetSeenIn(bytes: Uint8Array, at: number, frameBytes: number): PacketSeen | undefined {
  const places = roceTransportIn(bytes, at, frameBytes);
  if (places === undefined) return undefined;
  const { base, icrc } = places;
  const view = viewOf(bytes);
  const opcode = bth.fields.opcode.get(view, base);
  const row = opcodeRow(opcode);
  if (row === undefined) return undefined;
  const aeth = row.headers.includes('AETH') ? base + bth.sizeBytes : -1;
  return {
    opcode,
    destinationQpn: bth.fields.destinationQp.get(view, base),
    psn: bth.fields.psn.get(view, base),
    payloadBytes: icrc - base - transportHeaderBytes(opcode) - bth.fields.padCount.get(view, base),
    asksForAck: bth.fields.ackRequest.get(view, base) === 1,
    syndrome: aeth === -1 ? 0 : bytes[aeth]!,
  };
}

/** The checksum of an IPv4 header; its own field counts as zero (RFC 1071). */
export function ipv4Checksum(view: DataView, at: number): number {
  let sum = 0;
  for (let place = 0; place < ipv4Header.sizeBytes; place += 2) sum += view.getUint16(at + place);
  sum -= ipv4Header.fields.checksum.get(view, at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

/** True if a record's 40 bytes hold an IPv4 header: a GRH and an IPv6 header begin with their version. */
export const isIpv4Route = (bytes: Uint8Array, grhAt: number): boolean => bytes[grhAt] === 0;

export class RoceBytes {
  readonly #area: RecordArea;
  readonly #transport: RecordBytes;

  constructor(area: RecordArea) {
    this.#area = area;
    this.#transport = new RecordBytes(area);
  }

  /** Writes the frame, without FCS, of the packet whose record is at `offset`; returns its length in bytes. */
  pack(offset: number, into: Uint8Array, at: number, udpPort: number = ROCE_UDP_PORT): number {
    const { bytes } = this.#area;
    const from = this.#transport.grhPlaceIn(offset);
    const places = this.#packRoute(from, into, at);
    const networkBytes = places.cover === 'roce2Ipv4' ? ipv4Header.sizeBytes : GRH_BYTES;
    into.set(bytes.subarray(from + GRH_BYTES - networkBytes, from + GRH_BYTES), places.network);
    const icrc = this.#transport.packTransport(offset, into, places.base);
    if (places.cover !== 'roce1') {
      const udp = places.network + networkBytes;
      const fields = {
        sourcePort: route.udpSourcePort.get(viewOf(bytes), roceRoutePlace(from)),
        destinationPort: udpPort,
        length: icrc + ICRC_BYTES - udp,
      };
      udpHeader.encodeInto(fields, into, udp);
    }
    viewOf(into).setUint32(icrc, invariantCrc(into, places.network, icrc, places.cover), true);
    return icrc + ICRC_BYTES - at;
  }

  /** Addresses, tag and type. */
  #packRoute(from: number, into: Uint8Array, at: number): Omit<FramePlaces, 'icrc'> {
    const { bytes } = this.#area;
    const own = viewOf(bytes);
    const view = viewOf(into);
    const place = roceRoutePlace(from);
    into.set(bytes.subarray(place, place + MACS_BYTES), at);
    const hasTag = route.hasTag.get(own, place) === 1;
    let type = at + TYPE_PLACE;
    if (hasTag) {
      view.setUint16(type, EtherType.VLAN);
      view.setUint16(type + 2, route.vlanTag.get(own, place));
      type += vlanTag.sizeBytes;
    }
    const network = type + 2;
    if (route.isRoutable.get(own, place) === 0) {
      view.setUint16(type, EtherType.ROCE);
      return { cover: 'roce1', network, base: network + GRH_BYTES };
    }
    const isIpv4 = isIpv4Route(bytes, from);
    view.setUint16(type, isIpv4 ? EtherType.IPV4 : EtherType.IPV6);
    const networkBytes = isIpv4 ? ipv4Header.sizeBytes : GRH_BYTES;
    return {
      cover: isIpv4 ? 'roce2Ipv4' : 'roce2Ipv6',
      network,
      base: network + networkBytes + udpHeader.sizeBytes,
    };
  }

  /**
   * Fills in the record at `offset` from a RoCE frame, see {@link isRoceFrame}, if it is right. Everything is overwritten
   * except the time and size that a channel gives each record.
   * @returns PACKET_RIGHT, or the error: the record is then unchanged
   */
  unpack(from: Uint8Array, at: number, frameBytes: number, offset: number): number {
    const places = placesOf(from, at, frameBytes);
    if (places === undefined) return PACKET_MALFORMED;
    const view = viewOf(from);
    const { icrc, network, cover } = places;
    if (view.getUint32(icrc, true) !== invariantCrc(from, network, icrc, cover)) return ICRC_WRONG;
    if (!this.#transport.unpackTransport(from, places.base, icrc, offset)) return PACKET_MALFORMED;
    const { words } = this.#area;
    const word = offset >> 2;
    const packetBytes = packetBytesOf(words[word + WORD_OPCODE]!, words[word + WORD_PAYLOAD_BYTES]!, true);
    words[word + WORD_PACKET_FLAGS]! |= FLAG_GRH | (packetBytes << PACKET_BYTES_SHIFT);
    const { bytes } = this.#area;
    const to = this.#transport.grhPlaceIn(offset);
    takeRoute(from, at, bytes, to, bytes, roceRoutePlace(to));
    return PACKET_RIGHT;
  }
}

/**
 * Copies the fields before the BTH of a RoCE frame in the form of records: the network header, 40 bytes, to `grhAt` of
 * `headers`, the rest to `routeAt` of `routes`. The caller has checked that all of them are present.
 * @returns the position of the BTH, or -1 for a frame of another type
 */
export function takeRoute(
  from: Uint8Array,
  at: number,
  headers: Uint8Array,
  grhAt: number,
  routes: Uint8Array,
  routeAt: number,
): number {
  const view = viewOf(from);
  const own = viewOf(routes);
  const hasTag = view.getUint16(at + TYPE_PLACE) === EtherType.VLAN;
  const typePlace = at + TYPE_PLACE + (hasTag ? vlanTag.sizeBytes : 0);
  const type = view.getUint16(typePlace);
  if (type !== EtherType.ROCE && type !== EtherType.IPV4 && type !== EtherType.IPV6) return -1;
  const network = typePlace + 2;
  const networkBytes = type === EtherType.IPV4 ? ipv4Header.sizeBytes : GRH_BYTES;
  const headerAt = grhAt + GRH_BYTES - networkBytes;
  headers.fill(0, grhAt, headerAt);
  headers.set(from.subarray(network, network + networkBytes), headerAt);
  routes.fill(0, routeAt, routeAt + roceRoute.sizeBytes);
  routes.set(from.subarray(at, at + MACS_BYTES), routeAt);
  if (hasTag) {
    route.hasTag.set(own, routeAt, 1);
    route.vlanTag.set(own, routeAt, view.getUint16(at + TYPE_PLACE + 2));
  }
  if (type === EtherType.ROCE) return network + networkBytes;
  const udp = network + networkBytes;
  route.isRoutable.set(own, routeAt, 1);
  route.udpSourcePort.set(own, routeAt, udpHeader.fields.sourcePort.get(view, udp));
  return udp + udpHeader.sizeBytes;
}

/** Undefined for invalid headers or lengths. */
function placesOf(from: Uint8Array, at: number, frameBytes: number): FramePlaces | undefined {
  const view = viewOf(from);
  const hasTag = view.getUint16(at + TYPE_PLACE) === EtherType.VLAN;
  const typePlace = at + TYPE_PLACE + (hasTag ? vlanTag.sizeBytes : 0);
  const network = typePlace + 2;
  const places = networkPlaces(view, view.getUint16(typePlace), network, at + frameBytes);
  if (places === undefined) return undefined;
  const { base, end } = places;
  const icrc = end - ICRC_BYTES;
  if (end > at + frameBytes || icrc < base + bth.sizeBytes) return undefined;
  return { cover: places.cover, network, base, icrc };
}

/** Positions of BTH and ICRC. */
function networkPlaces(
  view: DataView,
  type: number,
  network: number,
  frameEnd: number,
): (Pick<FramePlaces, 'cover' | 'base'> & { readonly end: number }) | undefined {
  if (type === EtherType.ROCE) {
    const base = network + GRH_BYTES;
    if (base > frameEnd) return undefined;
    const { ipVersion, nextHeader, payloadLength } = grh.fields;
    const isGrh =
      ipVersion.get(view, network) === IP_VERSION_6 && nextHeader.get(view, network) === NEXT_HEADER_BTH;
    return isGrh ? { cover: 'roce1', base, end: base + payloadLength.get(view, network) } : undefined;
  }
  const isIpv4 = type === EtherType.IPV4;
  const udp = network + (isIpv4 ? ipv4Header.sizeBytes : ipv6Header.sizeBytes);
  if (udp + udpHeader.sizeBytes > frameEnd) return undefined;
  if (isIpv4 && ipv4Header.fields.checksum.get(view, network) !== ipv4Checksum(view, network))
    return undefined;
  const end = isIpv4
    ? network + ipv4Header.fields.totalLength.get(view, network)
    : udp + ipv6Header.fields.payloadLength.get(view, network);
  if (udpHeader.fields.length.get(view, udp) !== end - udp) return undefined;
  return { cover: isIpv4 ? 'roce2Ipv4' : 'roce2Ipv6', base: udp + udpHeader.sizeBytes, end };
}
