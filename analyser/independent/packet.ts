/**
 * Reads packets by the text of the standards alone: all RDMA forms on InfiniBand and on Ethernet.
 *
 *     local, global        LRH · [GRH] ──────────────────────────────┐
 *     roce1                Ethernet · [tag] · GRH ───────────────────┤─ BTH · extended headers · payload · pad · ICRC · [VCRC]
 *     roce2Ipv4, roce2Ipv6 Ethernet · [tag] · IPv4 or IPv6 · UDP ────┘
 *
 * It reads the headers field by field, computes both CRCs, and reports contradictions between headers in words.
 * Sources: IBTA vol 1, 5.2, 7.7, 7.8, 8.3, 9.2 to 9.4, 10.5.2, annexes A14, A16, A17; RFC 791, 768, 1071, 1112, 2464,
 * 8200.
 */
import { crc16Of, crc32Of } from './crc.ts';
import { bytesOf, fieldsAt, type HeaderFields, type HeaderName } from './fields.ts';
import { type Operation, operationOf } from './operations.ts';
import { addressContradictions, checksumOf, linkContradictions, transportContradictions } from './rules.ts';

export type PacketForm = 'local' | 'global' | 'roce1' | 'roce2Ipv4' | 'roce2Ipv6';

/** The CRC in a packet and the expected one; the byte that is sent first is the lowest. */
export interface CheckedCrc {
  readonly found: number;
  readonly due: number;
}

export interface IndependentPacket {
  readonly form: PacketForm;
  /** Headers in their order on the wire. */
  readonly headers: readonly HeaderFields[];
  /** Undefined if no service defines the opcode. */
  readonly operation: Operation | undefined;
  /** Offsets of the BTH, of the payload and its end, and of the end of the ICRC. */
  readonly base: number;
  readonly payload: number;
  readonly payloadEnd: number;
  readonly end: number;
  readonly icrc: CheckedCrc;
  /** CRC of an InfiniBand packet. */
  readonly vcrc: CheckedCrc | undefined;
  /** Contradictions among the headers, without CRCs. */
  readonly wrong: readonly string[];
}

export const isRight = ({ found, due }: CheckedCrc): boolean => found === due;

/** Returns the errors of a packet, including its CRCs; an empty list for a correct packet. */
export function errorsOf({ icrc, vcrc, wrong }: IndependentPacket): string[] {
  const errors = [...wrong];
  if (!isRight(icrc)) errors.push(`ICRC ${hex(icrc.found)}, due ${hex(icrc.due)}`);
  if (vcrc !== undefined && !isRight(vcrc)) errors.push(`VCRC ${hex(vcrc.found)}, due ${hex(vcrc.due)}`);
  return errors;
}

const hex = (value: number): string => `0x${value.toString(16)}`;

/** Returns the header of a packet with this name. */
export const headerOf = ({ headers }: IndependentPacket, name: HeaderName): HeaderFields | undefined =>
  headers.find((header) => header.name === name);

/** Link types of captures. */
const linkTypeEthernet = 1;
const linkTypeErf = 197;
const linkTypeInfiniband = 247;
/** A record of the extensible record format; the last two bytes of its header give the bytes on the wire. */
const erfHeaderBytes = 16;

const etherType = { ipv4: 0x0800, vlan: 0x8100, ipv6: 0x86dd, roce: 0x8915 } as const;
const protocolUdp = 17;
const rocePort = 4791;
const icrcBytes = 4;
const vcrcBytes = 2;
/** LNH: a BTH follows the LRH, or a GRH follows it (7.7.5). */
const nextIsBase = 2;
const nextIsGlobal = 3;

/** A packet after its parts were located. */
interface Found {
  readonly form: PacketForm;
  readonly headers: HeaderFields[];
  /** Offset at which the ICRC's coverage begins. */
  readonly covered: number;
  readonly base: number;
  /** Offset after the ICRC. */
  readonly end: number;
}

/** Reads a captured packet. Undefined for another protocol or link type. */
export function readCaptured(linkType: number, bytes: Uint8Array): IndependentPacket | string | undefined {
  if (linkType === linkTypeEthernet) return readFrame(bytes);
  if (linkType === linkTypeInfiniband) return readLinkPacket(bytes);
  if (linkType !== linkTypeErf || bytes.length < erfHeaderBytes) return undefined;
  const wireBytes = bytes[erfHeaderBytes - 2]! * 256 + bytes[erfHeaderBytes - 1]!;
  return readLinkPacket(bytes.subarray(erfHeaderBytes, erfHeaderBytes + wireBytes));
}

/** Reads a packet from its LRH to its VCRC. Returns the reason in words if the bytes contain no packet. */
export function readLinkPacket(bytes: Uint8Array): IndependentPacket | string {
  const end = bytes.length - vcrcBytes;
  const least = bytesOf('LRH') + bytesOf('BTH') + icrcBytes;
  if (end < least) return `${bytes.length} bytes are no packet`;
  const lrh = fieldsAt(bytes, 0, 'LRH');
  const next = lrh.numbers['linkNextHeader'];
  if (next !== nextIsBase && next !== nextIsGlobal) return `LNH ${next}: no BTH follows`;
  const isGlobal = next === nextIsGlobal;
  if (isGlobal && end < least + bytesOf('GRH')) return `${bytes.length} bytes are no packet with a GRH`;
  const headers = isGlobal ? [lrh, fieldsAt(bytes, bytesOf('LRH'), 'GRH')] : [lrh];
  const base = headers.reduce((sum, { name }) => sum + bytesOf(name), 0);
  return packetOf(bytes, { form: isGlobal ? 'global' : 'local', headers, covered: 0, base, end });
}

/** Reads a frame without its FCS. Returns undefined if it is not RoCE, and the reason in words if it is cut. */
export function readFrame(bytes: Uint8Array): IndependentPacket | string | undefined {
  if (bytes.length < bytesOf('ETHERNET')) return undefined;
  const headers = [fieldsAt(bytes, 0, 'ETHERNET')];
  let covered = bytesOf('ETHERNET');
  let type = headers[0]!.numbers['type']!;
  if (type === etherType.vlan && bytes.length >= covered + bytesOf('VLAN')) {
    const tag = fieldsAt(bytes, covered, 'VLAN');
    headers.push(tag);
    covered += bytesOf('VLAN');
    type = tag.numbers['type']!;
  }
  if (type === etherType.roce) return readGlobal(bytes, headers, covered);
  if (type === etherType.ipv4) return readInternet(bytes, headers, covered, 'IPV4');
  if (type === etherType.ipv6) return readInternet(bytes, headers, covered, 'IPV6');
  return undefined;
}

function readGlobal(bytes: Uint8Array, headers: HeaderFields[], covered: number): IndependentPacket | string {
  const base = covered + bytesOf('GRH');
  if (bytes.length < base + bytesOf('BTH') + icrcBytes) return `${bytes.length} bytes are no packet of RoCE`;
  const grh = fieldsAt(bytes, covered, 'GRH');
  headers.push(grh);
  return packetOf(bytes, {
    form: 'roce1',
    headers,
    covered,
    base,
    end: base + grh.numbers['payloadLength']!,
  });
}

function readInternet(
  bytes: Uint8Array,
  headers: HeaderFields[],
  covered: number,
  name: 'IPV4' | 'IPV6',
): IndependentPacket | string | undefined {
  const isIpv4 = name === 'IPV4';
  const udpAt = covered + bytesOf(name);
  const base = udpAt + bytesOf('UDP');
  if (bytes.length < base) return undefined;
  const ip = fieldsAt(bytes, covered, name);
  const udp = fieldsAt(bytes, udpAt, 'UDP');
  const protocol = ip.numbers[isIpv4 ? 'protocol' : 'nextHeader'];
  if (protocol !== protocolUdp || udp.numbers['destinationPort'] !== rocePort) return undefined;
  if (bytes.length < base + bytesOf('BTH') + icrcBytes) return `${bytes.length} bytes are no packet of RoCE`;
  headers.push(ip, udp);
  const end = isIpv4 ? covered + ip.numbers['totalLength']! : udpAt + ip.numbers['payloadLength']!;
  return packetOf(bytes, { form: isIpv4 ? 'roce2Ipv4' : 'roce2Ipv6', headers, covered, base, end });
}

/** Decodes the transport headers of a packet, its CRCs, and its contradictions. */
function packetOf(bytes: Uint8Array, found: Found): IndependentPacket | string {
  const { form, headers, base, end } = found;
  if (end > bytes.length) return `${bytes.length} bytes, though the headers say ${end}`;
  if (end < base + bytesOf('BTH') + icrcBytes)
    return `the headers leave ${end - base} bytes for BTH and ICRC`;
  const bth = fieldsAt(bytes, base, 'BTH');
  headers.push(bth);
  const operation = operationOf(bth.numbers['opcode']!);
  const room = end - icrcBytes - base - bytesOf('BTH');
  const extended = operation?.headers ?? [];
  const extendedBytes = extended.reduce((sum, name) => sum + bytesOf(name), 0);
  const pad = bth.numbers['padCount']!;
  if (extendedBytes + pad > room) return `${room} bytes after the BTH do not hold ${extended.join(', ')}`;
  let payload = base + bytesOf('BTH');
  for (const name of extended) {
    headers.push(fieldsAt(bytes, payload, name));
    payload += bytesOf(name);
  }
  const icrcAt = end - icrcBytes;
  const isLink = form === 'local' || form === 'global';
  const packet = {
    form,
    headers,
    operation,
    base,
    payload,
    payloadEnd: icrcAt - pad,
    end,
    icrc: {
      found: littleAt(bytes, icrcAt, icrcBytes),
      due: crc32Of(coveredBytes(bytes.subarray(found.covered, icrcAt), form, base - found.covered)),
    },
    vcrc: isLink
      ? { found: littleAt(bytes, end, vcrcBytes), due: crc16Of(bytes.subarray(0, end)) }
      : undefined,
  };
  return { ...packet, wrong: contradictions(bytes, packet) };
}

/**
 * The bytes over which an ICRC is computed (7.8.1; A16.5.3; A17.3.4): fields that a switch or router may change are
 * replaced with ones. In a local packet that field is the VL. A packet with a GRH may cross routers, which replace its
 * whole LRH, so the LRH becomes ones. A RoCE packet has no LRH; 64 ones precede it.
 * @param base offset of the BTH in `covered`
 */
function coveredBytes(covered: Uint8Array, form: PacketForm, base: number): Uint8Array {
  const isLink = form === 'local' || form === 'global';
  const lrh = isLink ? 0 : bytesOf('LRH');
  const all = new Uint8Array(lrh + covered.length).fill(0xff, 0, bytesOf('LRH'));
  all.set(
    form === 'global' ? covered.subarray(bytesOf('LRH')) : covered,
    form === 'global' ? bytesOf('LRH') : lrh,
  );
  const ones = (at: number, bits: number): void => {
    for (let bit = 0; bit < bits; bit++) all[(at + bit) >> 3]! |= 0x80 >> ((at + bit) & 7);
  };
  const network = 8 * bytesOf('LRH');
  const udp = network + 8 * bytesOf(form === 'roce2Ipv4' ? 'IPV4' : 'IPV6');
  if (form === 'local') {
    ones(0, 4); // VL
  } else if (form === 'roce2Ipv4') {
    ones(network + 8, 8); // type of service
    ones(network + 64, 8); // time to live
    ones(network + 80, 16); // header checksum
  } else {
    ones(network + 4, 28); // traffic class and flow label
    ones(network + 56, 8); // hop limit
  }
  if (form === 'roce2Ipv4' || form === 'roce2Ipv6') ones(udp + 48, 16); // UDP checksum
  ones(8 * (lrh + base) + 32, 8); // FECN, BECN and the six reserved bits next to them
  return all;
}

function contradictions(bytes: Uint8Array, packet: Omit<IndependentPacket, 'wrong'>): string[] {
  const { headers, end } = packet;
  const of = (name: HeaderName): HeaderFields | undefined => headers.find((header) => header.name === name);
  const wrong: string[] = [];
  const [lrh, grh, ethernet, ipv4, ipv6, udp] = [
    of('LRH'),
    of('GRH'),
    of('ETHERNET'),
    of('IPV4'),
    of('IPV6'),
    of('UDP'),
  ];
  if (lrh !== undefined) wrong.push(...linkContradictions(lrh, grh, of('BTH')!, end));
  if (grh !== undefined) {
    const rest = end - grh.at - bytesOf('GRH');
    if (grh.numbers['ipVersion'] !== 6) wrong.push(`GRH: IPVer ${grh.numbers['ipVersion']}`);
    if (grh.numbers['nextHeader'] !== 0x1b) wrong.push(`GRH: NxtHdr ${grh.numbers['nextHeader']}`);
    if (grh.numbers['payloadLength'] !== rest)
      wrong.push(`GRH: PayLen ${grh.numbers['payloadLength']}, ${rest} bytes follow`);
  }
  if (ipv4 !== undefined) {
    if (ipv4.numbers['versionAndLength'] !== 0x45) wrong.push('IPv4: options, or another version');
    if ((ipv4.numbers['fragment']! & 0x3fff) !== 0) wrong.push('IPv4: a fragment');
    if (checksumOf(bytes.subarray(ipv4.at, ipv4.at + bytesOf('IPV4'))) !== 0)
      wrong.push('IPv4: wrong header checksum');
  }
  if (ipv6 !== undefined && ipv6.numbers['version'] !== 6)
    wrong.push(`IPv6: version ${ipv6.numbers['version']}`);
  if (udp !== undefined) {
    if (udp.numbers['length'] !== end - udp.at)
      wrong.push(`UDP: length ${udp.numbers['length']}, ${end - udp.at} bytes`);
    if (udp.numbers['checksum'] !== 0 && checksumOf(pseudoHeader(bytes, ipv4 ?? ipv6!, udp, end)) !== 0)
      wrong.push('UDP: wrong checksum');
  }
  if (ethernet !== undefined) {
    wrong.push(...addressContradictions(ethernet, destinationGid(packet as IndependentPacket)));
    if (bytes.subarray(end).some((byte) => byte !== 0)) wrong.push('Ethernet: its padding is not zero');
  }
  return [...wrong, ...transportContradictions(bytes, packet)];
}

/** A UDP checksum covers a pseudo header and everything from the UDP header on (RFC 768; RFC 8200, 8.1). */
function pseudoHeader(bytes: Uint8Array, ip: HeaderFields, udp: HeaderFields, end: number): Uint8Array {
  const addresses = ip.name === 'IPV4' ? 12 : 8;
  const length = end - udp.at;
  const tail =
    ip.name === 'IPV4'
      ? [0, protocolUdp, length >> 8, length & 0xff]
      : [0, 0, length >> 8, length & 0xff, 0, 0, 0, protocolUdp];
  return Uint8Array.from([
    ...bytes.subarray(ip.at + addresses, ip.at + bytesOf(ip.name)),
    ...tail,
    ...bytes.subarray(udp.at, end),
  ]);
}

/** GIDs in hexadecimal. An IPv4 address is a mapped GID (RFC 4291, 2.5.5.2; A17). Undefined without a GRH or IP header. */
export const sourceGid = (packet: IndependentPacket): string | undefined => gidOf(packet, 'source');
export const destinationGid = (packet: IndependentPacket): string | undefined => gidOf(packet, 'destination');

function gidOf(packet: IndependentPacket, end: 'source' | 'destination'): string | undefined {
  const ipv4 = headerOf(packet, 'IPV4');
  if (ipv4 !== undefined) return `${'0'.repeat(20)}ffff${ipv4.numbers[end]!.toString(16).padStart(8, '0')}`;
  return headerOf(packet, 'GRH')?.digits[`${end}Gid`] ?? headerOf(packet, 'IPV6')?.digits[end];
}

/** A number in little-endian byte order. */
function littleAt(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let byte = count - 1; byte >= 0; byte--) value = value * 256 + bytes[at + byte]!;
  return value;
}
