/**
 * Packets as bytes: parsed into headers, and built from them, on an InfiniBand link, and in the Ethernet frames of RoCE.
 *
 *     InfiniBand  LRH · [GRH] ─┐
 *     RoCE v1     Ethernet · [VLAN] · GRH ─┤─ BTH · [extended headers] · payload · pad · ICRC ─ [VCRC on InfiniBand]
 *     RoCE v2     Ethernet · [VLAN] · IPv4 or IPv6 · UDP 4791 ─┘
 *
 * Derived fields are computed: lengths, pad count, the IPv4 checksum and both CRCs. For tools and tests; the ports have
 * record-bytes.ts. Source: IBTA vol 1, chapters 7 to 9 and annexes A14 (XRC), A16 (RoCE), A17 (RoCE v2).
 */
import {
  EtherType,
  IpProtocol,
  Ipv6Extension,
  ipv4Header,
  ipv6Header,
  udpHeader,
  vlanTag,
} from '../abi/index.ts';
import { ethernetHeader } from '../abi/nic/index.ts';
import { type Decoded, type Initial, viewOf } from '../base/index.ts';
import { type InvariantCover, invariantCrc, variantCrc } from './crc.ts';
import {
  bth,
  type ExtendedHeaderName,
  extendedHeaders,
  grh,
  ICRC_BYTES,
  lrh,
  NEXT_HEADER_BTH,
  ROCE_UDP_PORT,
  VCRC_BYTES,
} from './headers.ts';
import { isKnownOpcode, opcodeRow, padBytes, transportHeaderBytes } from './opcodes.ts';

/** Values of LRH.LNH: the next header (7.7.5). */
const NextHeader = { RAW: 0, RAW_IPV6: 1, BTH: 2, GRH: 3 } as const;

/** Extended headers of a packet, by name. */
type ExtendedHeaders = {
  readonly [Name in ExtendedHeaderName]?: Decoded<(typeof extendedHeaders)[Name]>;
};

/** Headers before the BTH: LRH and perhaps GRH; or Ethernet, perhaps VLAN, and GRH or IP and UDP. */
interface RouteHeaders {
  readonly lrh?: Decoded<typeof lrh>;
  readonly ethernet?: Decoded<typeof ethernetHeader>;
  readonly vlan?: Decoded<typeof vlanTag>;
  readonly grh?: Decoded<typeof grh>;
  readonly ipv4?: Decoded<typeof ipv4Header>;
  readonly ipv6?: Decoded<typeof ipv6Header>;
  readonly udp?: Decoded<typeof udpHeader>;
}

export interface WirePacket extends RouteHeaders {
  readonly kind: 'packet';
  readonly bth: Decoded<typeof bth>;
  readonly headers: ExtendedHeaders;
  /** The captured part of the payload. */
  readonly payload: Uint8Array;
  /** Bytes of the payload on the wire. */
  readonly payloadBytes: number;
  /** The CRCs in the packet's byte order, the first sent byte lowest; and whether they are right. A RoCE frame has no VCRC. */
  readonly icrc: number | undefined;
  readonly isIcrcRight: boolean;
  readonly vcrc: number | undefined;
  readonly isVcrcRight: boolean;
  /** Why the ICRC was not checked, and so counts as right; absent if it was checked. */
  readonly unchecked?: 'cut' | 'IP options';
}

/** Parts of a packet: fields left out are zero; derived fields are computed. */
export interface PacketParts {
  readonly lrh?: Initial<typeof lrh> | undefined;
  readonly ethernet?: Initial<typeof ethernetHeader> | undefined;
  readonly vlan?: Initial<typeof vlanTag> | undefined;
  readonly grh?: Initial<typeof grh> | undefined;
  readonly ipv4?: Initial<typeof ipv4Header> | undefined;
  readonly ipv6?: Initial<typeof ipv6Header> | undefined;
  readonly udp?: Initial<typeof udpHeader> | undefined;
  readonly bth: Initial<typeof bth>;
  readonly headers?: { readonly [Name in ExtendedHeaderName]?: Initial<(typeof extendedHeaders)[Name]> };
  readonly payload?: Uint8Array;
}

/** A frame of another protocol: ARP, TCP, neighbour discovery. */
export interface OtherFrame extends RouteHeaders {
  readonly kind: 'other';
  /** Name of the protocol after the parsed headers. */
  readonly protocol: string;
  /** Captured bytes after the parsed headers, without Ethernet padding. */
  readonly payload: Uint8Array;
  /** Bytes of the payload on the wire. */
  readonly payloadBytes: number;
}

export interface MalformedPacket {
  readonly kind: 'malformed';
  readonly reason: string;
}

/** A frame that the capture cut before its protocol is known. */
export interface CutFrame {
  readonly kind: 'cut';
  readonly reason: string;
}

const malformed = (reason: string): MalformedPacket => ({ kind: 'malformed', reason });

/** Captured bytes of a frame: from the first, perhaps not to the last. */
class Frame {
  readonly bytes: Uint8Array;
  /** Length on the wire. */
  readonly wireBytes: number;

  constructor(bytes: Uint8Array, wireBytes: number) {
    this.bytes = bytes;
    this.wireBytes = Math.max(wireBytes, bytes.length);
  }

  /** Reports that a header that ends at `end` is missing: because of the capture, or because the frame has none. */
  lacks(what: string, end: number): MalformedPacket | CutFrame | undefined {
    if (end <= this.bytes.length) return undefined;
    const reason = `cut within the ${what}`;
    return end <= this.wireBytes ? { kind: 'cut', reason } : malformed(reason);
  }

  other(route: RouteHeaders, protocol: string, at: number, end = this.wireBytes): OtherFrame {
    const payload = this.bytes.slice(at, end);
    return { kind: 'other', protocol, ...route, payload, payloadBytes: Math.max(0, end - at) };
  }
}

export type DecodedFrame = WirePacket | OtherFrame | MalformedPacket | CutFrame;

/**
 * Parses a packet as on an InfiniBand link, from LRH to VCRC.
 * @param wireBytes its length on the wire, if the capture cut it
 */
export function decodeInfiniband(
  bytes: Uint8Array,
  wireBytes = bytes.length,
): WirePacket | MalformedPacket | CutFrame {
  const frame = new Frame(bytes, wireBytes);
  const shortest = lrh.sizeBytes + bth.sizeBytes + ICRC_BYTES + VCRC_BYTES;
  if (frame.wireBytes < shortest)
    return malformed(`${frame.wireBytes} bytes: too short for LRH, BTH and CRCs`);
  const cut = frame.lacks('LRH', lrh.sizeBytes);
  if (cut !== undefined) return cut;
  const route = lrh.decode(bytes);
  const end = frame.wireBytes - VCRC_BYTES;
  if (route.linkVersion !== 0) return malformed(`LVer ${route.linkVersion}, not 0`);
  if (4 * route.packetLength !== end)
    return malformed(`PktLen of ${4 * route.packetLength} bytes in ${end} from LRH to ICRC`);
  if (route.linkNextHeader < NextHeader.BTH)
    return malformed(`LNH ${route.linkNextHeader}: a raw packet, which has no BTH`);
  const isWhole = bytes.length === frame.wireBytes;
  const vcrc = isWhole ? bytes[end]! | (bytes[end + 1]! << 8) : undefined;
  const crc = { vcrc, isVcrcRight: vcrc === undefined || vcrc === variantCrc(bytes, 0, end) };
  if (route.linkNextHeader === NextHeader.BTH)
    return decodeTransport(frame, lrh.sizeBytes, end, { lrh: route }, crc, 0, 'local');
  const global = readGrh(frame, lrh.sizeBytes, end);
  if ('kind' in global) return global;
  const at = lrh.sizeBytes + grh.sizeBytes;
  return decodeTransport(frame, at, end, { lrh: route, grh: global }, crc, 0, 'localWithGrh');
}

const noVcrc = { vcrc: undefined, isVcrcRight: true } as const;

/**
 * Parses an Ethernet frame: a packet of RoCE v1 or v2, also within a tunnel (VXLAN, GENEVE, GRE), or any other frame. A frame
 * check sequence may follow.
 * @param wireBytes its length on the wire, if the capture cut it
 */
export const decodeEthernet = (bytes: Uint8Array, wireBytes = bytes.length): DecodedFrame =>
  ethernetIn(new Frame(bytes, wireBytes), 0);

/**
 * Parses the data after a header that names its content by an EtherType, such as the one that Linux writes before packets of
 * any device.
 * @param at where the data begin
 */
export const decodeEtherType = (
  bytes: Uint8Array,
  at: number,
  type: number,
  wireBytes = bytes.length,
): DecodedFrame => etherTypeIn(new Frame(bytes, wireBytes), at, type, {}, 0);

/** Parses an IPv4 or IPv6 packet that begins at `at`. */
export function decodeInternet(bytes: Uint8Array, at: number, wireBytes = bytes.length): DecodedFrame {
  const frame = new Frame(bytes, wireBytes);
  const version = (bytes[at] ?? 0) >> 4;
  const cut = frame.lacks('IP header', at + 1);
  if (cut !== undefined) return cut;
  if (version === IPV4_VERSION) return decodeIpv4(frame, at, {}, 0);
  if (version === IPV6_VERSION) return decodeIpv6(frame, at, {}, 0);
  return malformed(`IP version ${version}`);
}

const IPV4_VERSION = 4;
const IPV6_VERSION = 6;
/** Depth to which nested tunnels are followed. */
const TUNNELS_MAX = 4;
/** Tags of a frame: IEEE 802.1Q, 802.1ad, and older ones. */
const tagTypes: readonly number[] = [EtherType.VLAN, EtherType.PROVIDER_VLAN, EtherType.OLD_PROVIDER_VLAN];

function ethernetIn(frame: Frame, tunnels: number): DecodedFrame {
  const at = ethernetHeader.sizeBytes;
  const cut = frame.lacks('Ethernet header', at);
  if (cut !== undefined) return cut;
  const ethernet = ethernetHeader.decode(frame.bytes);
  return etherTypeIn(frame, at, ethernet.type, { ethernet }, tunnels);
}

/** @param route headers before `at`; it records the last of several VLAN tags */
function etherTypeIn(
  frame: Frame,
  from: number,
  fromType: number,
  outer: RouteHeaders,
  tunnels: number,
): DecodedFrame {
  let [at, type, route] = [from, fromType, outer];
  while (tagTypes.includes(type)) {
    const cut = frame.lacks('VLAN tag', at + vlanTag.sizeBytes);
    if (cut !== undefined) return cut;
    const vlan = vlanTag.decode(frame.bytes, at);
    at += vlanTag.sizeBytes;
    type = vlan.type;
    route = { ...route, vlan };
  }
  switch (type) {
    case EtherType.ROCE: {
      const global = readGrh(frame, at, frame.wireBytes);
      if ('kind' in global) return global;
      const end = at + grh.sizeBytes + global.payloadLength;
      return decodeTransport(frame, at + grh.sizeBytes, end, { ...route, grh: global }, noVcrc, at, 'roce1');
    }
    case EtherType.IPV4:
      return decodeIpv4(frame, at, route, tunnels);
    case EtherType.IPV6:
      return decodeIpv6(frame, at, route, tunnels);
    default:
      return frame.other(route, etherTypeName(type), at);
  }
}

function etherTypeName(type: number): string {
  if (type === EtherType.ARP) return 'ARP';
  return type < ETHER_TYPE_MIN ? 'IEEE 802.2' : `EtherType 0x${type.toString(16).padStart(4, '0')}`;
}

/** Smaller numbers instead of a type are lengths (IEEE 802.3, 3.2.6). */
const ETHER_TYPE_MIN = 0x600;

/** Bits of an IPv4 header's fragment word: more fragments; the offset. */
const FRAGMENT_MASK = 0x3fff;

function decodeIpv4(frame: Frame, at: number, route: RouteHeaders, tunnels: number): DecodedFrame {
  const cut = frame.lacks('IPv4 header', at + ipv4Header.sizeBytes);
  if (cut !== undefined) return cut;
  const ipv4 = ipv4Header.decode(frame.bytes, at);
  const headerBytes = 4 * (ipv4.versionAndLength & 0xf);
  if (ipv4.versionAndLength >> 4 !== IPV4_VERSION || headerBytes < ipv4Header.sizeBytes)
    return malformed(`IPv4 header that begins with 0x${ipv4.versionAndLength.toString(16)}`);
  const room = frame.wireBytes - at;
  // A sender that leaves segmentation to its card writes 0 if the length does not fit.
  const totalLength = ipv4.totalLength === 0 ? room : ipv4.totalLength;
  if (totalLength > room || totalLength < headerBytes)
    return malformed(`IPv4 total length ${totalLength} in ${room} bytes`);
  const end = at + totalLength;
  const upper = at + headerBytes;
  const optionsCut = frame.lacks('IPv4 options', upper);
  if (optionsCut !== undefined) return optionsCut;
  const routed = { ...route, ipv4 };
  if ((ipv4.fragment & FRAGMENT_MASK) !== 0) return frame.other(routed, 'IP fragment', upper, end);
  if (ipv4.protocol === IpProtocol.GRE && tunnels < TUNNELS_MAX)
    return greIn(frame, upper, end, routed, tunnels);
  if (ipv4.protocol !== IpProtocol.UDP) return frame.other(routed, ipName(ipv4.protocol), upper, end);
  const cover = headerBytes === ipv4Header.sizeBytes ? 'roce2Ipv4' : undefined;
  return decodeUdp(frame, at, upper, end, routed, cover, tunnels);
}

function ipName(protocol: number): string {
  const found = Object.entries(IpProtocol).find(([, number]) => number === protocol)?.[0];
  return found ?? `IP protocol ${protocol}`;
}

/** Headers between IPv6's own and the payload (RFC 8200, 4), which count their length in 8 bytes after the first 8; fragments have 8. */
const ipv6Extensions: readonly number[] = [
  Ipv6Extension.HOP_BY_HOP,
  Ipv6Extension.ROUTING,
  Ipv6Extension.DESTINATION,
  Ipv6Extension.FRAGMENT,
];
const EXTENSION_UNIT_BYTES = 8;
const IPV6_FRAGMENT_MASK = 0xfff9;

function decodeIpv6(frame: Frame, at: number, route: RouteHeaders, tunnels: number): DecodedFrame {
  const cut = frame.lacks('IPv6 header', at + ipv6Header.sizeBytes);
  if (cut !== undefined) return cut;
  const ipv6 = ipv6Header.decode(frame.bytes, at);
  if (ipv6.version !== IPV6_VERSION) return malformed(`IPv6 header of version ${ipv6.version}`);
  let upper = at + ipv6Header.sizeBytes;
  const room = frame.wireBytes - upper;
  const payloadLength = ipv6.payloadLength === 0 ? room : ipv6.payloadLength;
  if (payloadLength > room) return malformed(`IPv6 payload of ${payloadLength} in ${room} bytes`);
  const end = upper + payloadLength;
  const routed = { ...route, ipv6 };
  let protocol = ipv6.nextHeader;
  let cover: InvariantCover | undefined = 'roce2Ipv6';
  while (ipv6Extensions.includes(protocol)) {
    const lacking = frame.lacks('IPv6 extension header', upper + EXTENSION_UNIT_BYTES);
    if (lacking !== undefined) return lacking;
    const isFragment = protocol === Ipv6Extension.FRAGMENT;
    const fragment = (frame.bytes[upper + 2]! << 8) | frame.bytes[upper + 3]!;
    if (isFragment && (fragment & IPV6_FRAGMENT_MASK) !== 0)
      return frame.other(routed, 'IP fragment', upper, end);
    protocol = frame.bytes[upper]!;
    upper += EXTENSION_UNIT_BYTES * (isFragment ? 1 : 1 + frame.bytes[upper + 1]!);
    if (upper > end) return malformed('IPv6 extension headers that are longer than the packet');
    cover = undefined;
  }
  if (protocol === IpProtocol.GRE && tunnels < TUNNELS_MAX) return greIn(frame, upper, end, routed, tunnels);
  return protocol === IpProtocol.UDP
    ? decodeUdp(frame, at, upper, end, routed, cover, tunnels)
    : frame.other(routed, ipName(protocol), upper, end);
}

/** @param cover undefined if IP has options, for which no ICRC is defined */
function decodeUdp(
  frame: Frame,
  ipAt: number,
  udpAt: number,
  end: number,
  route: RouteHeaders,
  cover: InvariantCover | undefined,
  tunnels: number,
): DecodedFrame {
  const at = udpAt + udpHeader.sizeBytes;
  if (end < at) return malformed('cut within the UDP header');
  const cut = frame.lacks('UDP header', at);
  if (cut !== undefined) return cut;
  const udp = udpHeader.decode(frame.bytes, udpAt);
  if (udp.destinationPort === VXLAN_UDP_PORT && tunnels < TUNNELS_MAX)
    return vxlanIn(frame, at, end, route, tunnels);
  if (udp.destinationPort === GENEVE_UDP_PORT && tunnels < TUNNELS_MAX)
    return geneveIn(frame, at, end, route, tunnels);
  if (udp.destinationPort !== ROCE_UDP_PORT)
    return frame.other(route, `UDP to port ${udp.destinationPort}`, udpAt, end);
  if (udp.length !== end - udpAt) return malformed(`UDP length ${udp.length} in ${end - udpAt} bytes`);
  return decodeTransport(frame, at, end, { ...route, udp }, noVcrc, ipAt, cover);
}

/** The frame in a tunnel, after the tunnel's own header, which follows UDP's (RFC 7348, 5). */
function vxlanIn(frame: Frame, at: number, end: number, route: RouteHeaders, tunnels: number): DecodedFrame {
  const cut = frame.lacks('VXLAN header', at + VXLAN_HEADER_BYTES);
  if (cut !== undefined) return cut;
  if (end < at + VXLAN_HEADER_BYTES || (frame.bytes[at]! & VXLAN_HAS_NETWORK) === 0)
    return frame.other(route, 'UDP to port 4789', at, end);
  const inner = at + VXLAN_HEADER_BYTES;
  return ethernetIn(new Frame(frame.bytes.subarray(inner, end), end - inner), tunnels + 1);
}

const VXLAN_UDP_PORT = 4789;
const VXLAN_HEADER_BYTES = 8;
const VXLAN_HAS_NETWORK = 0x08;

/** The frame or IP packet in a tunnel's, after a header with options (RFC 8926, 3.4). Control messages have no packet. */
function geneveIn(frame: Frame, at: number, end: number, route: RouteHeaders, tunnels: number): DecodedFrame {
  const cut = frame.lacks('GENEVE header', at + GENEVE_HEADER_BYTES);
  if (cut !== undefined) return cut;
  const first = frame.bytes[at]!;
  const inner = at + GENEVE_HEADER_BYTES + 4 * (first & GENEVE_OPTION_WORDS);
  const isData = first >> 6 === 0 && (frame.bytes[at + 1]! & GENEVE_IS_CONTROL) === 0;
  if (!isData || end < inner) return frame.other(route, 'UDP to port 6081', at, end);
  return tunnelled(frame, inner, end, viewOf(frame.bytes).getUint16(at + 2), 'GENEVE', route, tunnels);
}

const GENEVE_UDP_PORT = 6081;
const GENEVE_HEADER_BYTES = 8;
const GENEVE_OPTION_WORDS = 0x3f;
const GENEVE_IS_CONTROL = 0x80;

/** The frame or IP packet after a header of GRE, whose optional words its flags announce (RFC 2784, 2; RFC 2890, 2; RFC 7637, 3.2). */
function greIn(frame: Frame, at: number, end: number, route: RouteHeaders, tunnels: number): DecodedFrame {
  const cut = frame.lacks('GRE header', at + GRE_HEADER_BYTES);
  if (cut !== undefined) return cut;
  const flags = viewOf(frame.bytes).getUint16(at);
  const words = greOptions.filter((option) => (flags & option) !== 0).length;
  const inner = at + GRE_HEADER_BYTES + 4 * words;
  // A receiver discards routing, strict source routes and other versions (RFC 2784, 2.2 and 2.3).
  if ((flags & GRE_REFUSED) !== 0 || end < inner) return frame.other(route, 'GRE', at, end);
  return tunnelled(frame, inner, end, viewOf(frame.bytes).getUint16(at + 2), 'GRE', route, tunnels);
}

const GRE_HEADER_BYTES = 4;
/** Flags of GRE that announce four bytes each: checksum and a reserved word, key, sequence number. */
const greOptions: readonly number[] = [0x8000, 0x2000, 0x1000];
/** Bits 1, 4 and 5, and the version. */
const GRE_REFUSED = 0x4c07;

/** Contents of a tunnel from `inner` to `end`: a frame, or an IP packet. */
function tunnelled(
  frame: Frame,
  inner: number,
  end: number,
  type: number,
  tunnel: string,
  route: RouteHeaders,
  tunnels: number,
): DecodedFrame {
  const carried = new Frame(frame.bytes.subarray(inner, end), end - inner);
  if (type === EtherType.BRIDGED) return ethernetIn(carried, tunnels + 1);
  if (type === EtherType.IPV4 || type === EtherType.IPV6)
    return etherTypeIn(carried, 0, type, {}, tunnels + 1);
  return frame.other(route, `${tunnel} of ${etherTypeName(type)}`, inner, end);
}

function readGrh(frame: Frame, at: number, end: number): Decoded<typeof grh> | MalformedPacket | CutFrame {
  if (end < at + grh.sizeBytes) return malformed('cut within the GRH');
  const cut = frame.lacks('GRH', at + grh.sizeBytes);
  if (cut !== undefined) return cut;
  const global = grh.decode(frame.bytes, at);
  if (global.ipVersion !== 6) return malformed(`GRH: IPVer ${global.ipVersion}, not 6`);
  if (global.nextHeader !== NEXT_HEADER_BTH)
    return malformed(`GRH: next header 0x${global.nextHeader.toString(16)}, not 0x1b`);
  const room = end - at - grh.sizeBytes;
  if (global.payloadLength > room)
    return malformed(`GRH: payload of ${global.payloadLength} in ${room} bytes`);
  return global;
}

/** @param at offset of the BTH; @param end of the ICRC; @param coverAt where the ICRC's coverage begins */
function decodeTransport(
  frame: Frame,
  at: number,
  end: number,
  route: RouteHeaders,
  crc: Pick<WirePacket, 'vcrc' | 'isVcrcRight'>,
  coverAt: number,
  cover: InvariantCover | undefined,
): WirePacket | MalformedPacket | CutFrame {
  const { bytes } = frame;
  if (end < at + bth.sizeBytes + ICRC_BYTES) return malformed('cut within the BTH');
  const cut = frame.lacks('BTH', at + bth.sizeBytes);
  if (cut !== undefined) return cut;
  const base = bth.decode(bytes, at);
  if (base.transportVersion !== 0) return malformed(`TVer ${base.transportVersion}, not 0`);
  if (!isKnownOpcode(base.opcode)) return malformed(`opcode 0x${base.opcode.toString(16)} of no service`);
  const icrcAt = end - ICRC_BYTES;
  const payloadAt = at + transportHeaderBytes(base.opcode);
  const payloadEnd = icrcAt - base.padCount;
  if (payloadEnd < payloadAt)
    return malformed(`${payloadEnd - at} bytes for BTH and headers of opcode 0x${base.opcode.toString(16)}`);
  const headers: Record<string, unknown> = {};
  let next = at + bth.sizeBytes;
  for (const name of opcodeRow(base.opcode)!.headers) {
    const header = next;
    next += extendedHeaders[name].sizeBytes;
    if (next <= bytes.length) headers[name] = extendedHeaders[name].decode(bytes, header);
  }
  const isCut = end > bytes.length;
  const icrc = isCut ? undefined : viewOf(bytes).getUint32(icrcAt, true);
  return {
    kind: 'packet',
    ...route,
    bth: base,
    headers: headers as ExtendedHeaders,
    payload: bytes.slice(Math.min(payloadAt, bytes.length), payloadEnd),
    payloadBytes: payloadEnd - payloadAt,
    icrc,
    isIcrcRight: isCut || cover === undefined || icrc === invariantCrc(bytes, coverAt, icrcAt, cover),
    ...crc,
    ...(isCut ? { unchecked: 'cut' } : cover === undefined ? { unchecked: 'IP options' } : {}),
  };
}

/**
 * Builds the bytes of a packet: for an InfiniBand link if it has an LRH, otherwise the frame of RoCE v1 (with a GRH) or v2
 * (with IP and UDP).
 * @throws FieldValueError for a value that does not fit its field, InvariantError for a packet without a route
 */
export function encodePacket(parts: PacketParts): Uint8Array<ArrayBuffer> {
  const payload = parts.payload ?? new Uint8Array(0);
  const opcode = parts.bth.opcode ?? 0;
  const pad = padBytes(payload.length);
  const transportBytes = transportHeaderBytes(opcode) + payload.length + pad + ICRC_BYTES;
  const route = encodeRoute(parts, transportBytes);
  const at = route.length;
  const icrcAt = at + transportBytes - ICRC_BYTES;
  const bytes = new Uint8Array(at + transportBytes + (parts.lrh === undefined ? 0 : VCRC_BYTES));
  bytes.set(route);
  bth.encodeInto({ ...parts.bth, padCount: pad }, bytes, at);
  let next = at + bth.sizeBytes;
  for (const name of opcodeRow(opcode)?.headers ?? []) {
    extendedHeaders[name].encodeInto((parts.headers?.[name] ?? {}) as never, bytes, next);
    next += extendedHeaders[name].sizeBytes;
  }
  bytes.set(payload, next);
  const view = new DataView(bytes.buffer);
  const { cover, coverAt } = coverOf(parts);
  view.setUint32(icrcAt, invariantCrc(bytes, coverAt, icrcAt, cover), true);
  if (parts.lrh !== undefined) {
    const vcrcAt = icrcAt + ICRC_BYTES;
    view.setUint16(vcrcAt, variantCrc(bytes, 0, vcrcAt), true);
  }
  return bytes;
}

/** Headers before the BTH, with lengths computed from the bytes after them. */
function encodeRoute(parts: PacketParts, transportBytes: number): Uint8Array {
  const { lrh: local, ethernet, vlan, grh: global, ipv4, ipv6, udp } = parts;
  const pieces: Uint8Array[] = [];
  if (local !== undefined) {
    const packetLength = (lrh.sizeBytes + (global === undefined ? 0 : grh.sizeBytes) + transportBytes) >> 2;
    pieces.push(lrh.encode({ ...local, packetLength }));
  } else {
    pieces.push(ethernetHeader.encode(ethernet ?? {}));
    if (vlan !== undefined) pieces.push(vlanTag.encode(vlan));
  }
  const udpBytes = udpHeader.sizeBytes + transportBytes;
  if (global !== undefined) pieces.push(grh.encode({ ...global, payloadLength: transportBytes }));
  if (ipv4 !== undefined) pieces.push(encodeIpv4(ipv4, udpBytes));
  if (ipv6 !== undefined) pieces.push(ipv6Header.encode({ ...ipv6, payloadLength: udpBytes }));
  if (udp !== undefined) pieces.push(udpHeader.encode({ ...udp, length: udpBytes }));
  return joined(pieces);
}

/** An IPv4 header without options, with its length and checksum (RFC 1071). */
function encodeIpv4(fields: Initial<typeof ipv4Header>, payloadBytes: number): Uint8Array {
  const totalLength = ipv4Header.sizeBytes + payloadBytes;
  const header = ipv4Header.encode({ ...fields, totalLength, checksum: 0 });
  const view = new DataView(header.buffer);
  let sum = 0;
  for (let at = 0; at < header.length; at += 2) sum += view.getUint16(at);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  ipv4Header.fields.checksum.set(view, 0, ~sum & 0xffff);
  return header;
}

function coverOf({ lrh: local, vlan, grh: global, ipv4 }: PacketParts): {
  readonly cover: InvariantCover;
  readonly coverAt: number;
} {
  if (local !== undefined) return { cover: global === undefined ? 'local' : 'localWithGrh', coverAt: 0 };
  const coverAt = ethernetHeader.sizeBytes + (vlan === undefined ? 0 : vlanTag.sizeBytes);
  if (global !== undefined) return { cover: 'roce1', coverAt };
  return { cover: ipv4 === undefined ? 'roce2Ipv6' : 'roce2Ipv4', coverAt };
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
