/**
 * Packets as bytes, read into headers and made of them: on an InfiniBand link, and in the Ethernet frames of RoCE.
 *
 *     InfiniBand  LRH · [GRH] ─┐
 *     RoCE v1     Ethernet · [VLAN] · GRH ─┤─ BTH · [extended headers] · payload · pad · ICRC ─ [VCRC on InfiniBand]
 *     RoCE v2     Ethernet · [VLAN] · IPv4 or IPv6 · UDP 4791 ─┘
 *
 * What follows from the rest is made, not asked for: lengths, pad count, the IPv4 checksum and both CRCs. For tools and tests; the
 * ports have record-bytes.ts. Source: IBTA vol 1, chapters 7 to 9 and annexes A14 (XRC), A16 (RoCE), A17 (RoCE v2).
 */
import { EtherType, IpProtocol, ipv4Header, ipv6Header, udpHeader, vlanTag } from '../abi/index.ts';
import { ethernetHeader } from '../abi/nic/index.ts';
import type { Decoded, Initial } from '../base/index.ts';
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

/** Values of LRH.LNH: what follows (7.7.5). */
const NextHeader = { RAW: 0, RAW_IPV6: 1, BTH: 2, GRH: 3 } as const;

/** Extended headers of a packet, by name. */
type ExtendedHeaders = {
  readonly [Name in ExtendedHeaderName]?: Decoded<(typeof extendedHeaders)[Name]>;
};

/** In front of the BTH: LRH and perhaps GRH; or Ethernet, perhaps VLAN, and GRH or IP and UDP. */
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
  readonly payload: Uint8Array;
  /** As they lie in the packet, the byte sent first lowest; and whether they are right. A frame of RoCE has no VCRC. */
  readonly icrc: number;
  readonly isIcrcRight: boolean;
  readonly vcrc: number | undefined;
  readonly isVcrcRight: boolean;
}

/** What a packet is made of: fields left out are zero, what follows from the rest is made. */
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
  /** What follows the headers that were read. */
  readonly payload: Uint8Array;
}

export interface MalformedPacket {
  readonly kind: 'malformed';
  readonly reason: string;
}

const malformed = (reason: string): MalformedPacket => ({ kind: 'malformed', reason });

/** Reads a packet as an InfiniBand link carries it, from LRH to VCRC. */
export function decodeInfiniband(bytes: Uint8Array): WirePacket | MalformedPacket {
  if (bytes.length < lrh.sizeBytes + bth.sizeBytes + ICRC_BYTES + VCRC_BYTES)
    return malformed(`${bytes.length} bytes: too short for LRH, BTH and CRCs`);
  const route = lrh.decode(bytes);
  const end = bytes.length - VCRC_BYTES;
  if (route.linkVersion !== 0) return malformed(`LVer ${route.linkVersion}, not 0`);
  if (4 * route.packetLength !== end)
    return malformed(`PktLen of ${4 * route.packetLength} bytes in ${end} from LRH to ICRC`);
  if (route.linkNextHeader < NextHeader.BTH)
    return malformed(`LNH ${route.linkNextHeader}: a raw packet, which has no BTH`);
  const vcrc = bytes[end]! | (bytes[end + 1]! << 8);
  const crc = { vcrc, isVcrcRight: vcrc === variantCrc(bytes, 0, end) };
  if (route.linkNextHeader === NextHeader.BTH)
    return decodeTransport(bytes, lrh.sizeBytes, end, { lrh: route }, crc, 0, 'local');
  const global = readGrh(bytes, lrh.sizeBytes, end);
  if ('kind' in global) return global;
  const at = lrh.sizeBytes + grh.sizeBytes;
  return decodeTransport(bytes, at, end, { lrh: route, grh: global }, crc, 0, 'localWithGrh');
}

const noVcrc = { vcrc: undefined, isVcrcRight: true } as const;

/** Reads an Ethernet frame without its frame check sequence: a packet of RoCE v1 or v2, or what else it is. */
export function decodeEthernet(bytes: Uint8Array): WirePacket | OtherFrame | MalformedPacket {
  if (bytes.length < ethernetHeader.sizeBytes) return malformed(`${bytes.length} bytes: no Ethernet header`);
  const ethernet = ethernetHeader.decode(bytes);
  const tagAt = ethernetHeader.sizeBytes;
  const isTagged = ethernet.type === EtherType.VLAN && bytes.length >= tagAt + vlanTag.sizeBytes;
  const vlan = isTagged ? vlanTag.decode(bytes, tagAt) : undefined;
  const at = isTagged ? tagAt + vlanTag.sizeBytes : tagAt;
  const route: RouteHeaders = vlan === undefined ? { ethernet } : { ethernet, vlan };
  switch (vlan?.type ?? ethernet.type) {
    case EtherType.ROCE: {
      const global = readGrh(bytes, at, bytes.length);
      if ('kind' in global) return global;
      const end = at + grh.sizeBytes + global.payloadLength;
      return decodeTransport(bytes, at + grh.sizeBytes, end, { ...route, grh: global }, noVcrc, at, 'roce1');
    }
    case EtherType.IPV4:
      return decodeIpv4(bytes, at, route);
    case EtherType.IPV6:
      return decodeIpv6(bytes, at, route);
    default:
      return { kind: 'other', ...route, payload: bytes.slice(at) };
  }
}

function decodeIpv4(
  bytes: Uint8Array,
  at: number,
  route: RouteHeaders,
): WirePacket | OtherFrame | MalformedPacket {
  if (bytes.length < at + ipv4Header.sizeBytes) return malformed('cut within the IPv4 header');
  const ipv4 = ipv4Header.decode(bytes, at);
  const udpAt = at + ipv4Header.sizeBytes;
  const end = at + ipv4.totalLength;
  if (end > bytes.length || ipv4.totalLength < ipv4Header.sizeBytes)
    return malformed(`IPv4 total length ${ipv4.totalLength} in ${bytes.length - at} bytes`);
  const isPlain = ipv4.versionAndLength === IPV4_PLAIN && ipv4.protocol === IpProtocol.UDP;
  const routed = { ...route, ipv4 };
  return isPlain
    ? decodeUdp(bytes, at, udpAt, end, routed, 'roce2Ipv4')
    : { kind: 'other', ...routed, payload: bytes.slice(udpAt) };
}

function decodeIpv6(
  bytes: Uint8Array,
  at: number,
  route: RouteHeaders,
): WirePacket | OtherFrame | MalformedPacket {
  if (bytes.length < at + ipv6Header.sizeBytes) return malformed('cut within the IPv6 header');
  const ipv6 = ipv6Header.decode(bytes, at);
  const udpAt = at + ipv6Header.sizeBytes;
  const end = udpAt + ipv6.payloadLength;
  if (end > bytes.length)
    return malformed(`IPv6 payload of ${ipv6.payloadLength} in ${bytes.length - udpAt} bytes`);
  const routed = { ...route, ipv6 };
  return ipv6.nextHeader === IpProtocol.UDP
    ? decodeUdp(bytes, at, udpAt, end, routed, 'roce2Ipv6')
    : { kind: 'other', ...routed, payload: bytes.slice(udpAt) };
}

function decodeUdp(
  bytes: Uint8Array,
  ipAt: number,
  udpAt: number,
  end: number,
  route: RouteHeaders,
  cover: InvariantCover,
): WirePacket | OtherFrame | MalformedPacket {
  if (end < udpAt + udpHeader.sizeBytes) return malformed('cut within the UDP header');
  const udp = udpHeader.decode(bytes, udpAt);
  if (udp.destinationPort !== ROCE_UDP_PORT) return { kind: 'other', ...route, payload: bytes.slice(udpAt) };
  if (udp.length !== end - udpAt) return malformed(`UDP length ${udp.length} in ${end - udpAt} bytes`);
  return decodeTransport(bytes, udpAt + udpHeader.sizeBytes, end, { ...route, udp }, noVcrc, ipAt, cover);
}

function readGrh(bytes: Uint8Array, at: number, end: number): Decoded<typeof grh> | MalformedPacket {
  if (end < at + grh.sizeBytes) return malformed('cut within the GRH');
  const global = grh.decode(bytes, at);
  if (global.ipVersion !== 6) return malformed(`GRH: IPVer ${global.ipVersion}, not 6`);
  if (global.nextHeader !== NEXT_HEADER_BTH)
    return malformed(`GRH: next header 0x${global.nextHeader.toString(16)}, not 0x1b`);
  const room = end - at - grh.sizeBytes;
  if (global.payloadLength > room)
    return malformed(`GRH: payload of ${global.payloadLength} in ${room} bytes`);
  return global;
}

/** @param at place of the BTH; @param end of the ICRC; @param coverAt where the ICRC begins to cover */
function decodeTransport(
  bytes: Uint8Array,
  at: number,
  end: number,
  route: RouteHeaders,
  crc: Pick<WirePacket, 'vcrc' | 'isVcrcRight'>,
  coverAt: number,
  cover: InvariantCover,
): WirePacket | MalformedPacket {
  if (end < at + bth.sizeBytes + ICRC_BYTES) return malformed('cut within the BTH');
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
    headers[name] = extendedHeaders[name].decode(bytes, next);
    next += extendedHeaders[name].sizeBytes;
  }
  const icrc = new DataView(bytes.buffer, bytes.byteOffset).getUint32(icrcAt, true);
  return {
    kind: 'packet',
    ...route,
    bth: base,
    headers: headers as ExtendedHeaders,
    payload: bytes.slice(payloadAt, payloadEnd),
    icrc,
    isIcrcRight: icrc === invariantCrc(bytes, coverAt, icrcAt, cover),
    ...crc,
  };
}

/** IPv4 without options. */
const IPV4_PLAIN = 0x45;

/**
 * The bytes of a packet: on an InfiniBand link if it has an LRH, else the frame of RoCE v1 (with a GRH) or v2 (with IP and UDP).
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

/** What precedes the BTH, with the lengths that follow from what comes after it. */
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
